"""Three small jobs end to end: digits clustered, digits classified, the likelihood of inflation.

Each result is compared with an independent implementation (scikit-learn, a NumPy loop), and the
classifier must know over 96 % of the digits that it was not shown; the script exits with status 1
when one is off. Run it twice: the second process finds its kernels on disk.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import digits_mlp
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from statsmodels.datasets import macrodata

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, random


def squared_distances(x, centers):
    """All squared distances (n, k) between rows of ``x`` (n, d) and ``centers`` (k, d)."""
    return (x**2).sum(1)[:, None] - 2 * x @ centers.T + (centers**2).sum(1)


@partial(fa.jit, static_argnames="k")
def seed(key, x, k):
    """Draw k-means++ centres: each next one with chance proportional to its squared distance.

    Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    keys = random.split(key, k)
    first = random.randint(keys[0], (), 0, x.shape[0])

    def add_center(i, state):
        centers, nearest = state
        nearest = jnp.minimum(nearest, ((x - centers[i - 1]) ** 2).sum(1))
        row = random.categorical(keys[i], jnp.log(nearest))
        return centers.at[i].set(x[row]), nearest

    centers = jnp.zeros((k, x.shape[1]), x.dtype).at[0].set(x[first])
    return lax.fori_loop(1, k, add_center, (centers, jnp.full(x.shape[0], jnp.inf, x.dtype)))[0]


@fa.jit
def lloyd(x, centers):
    """Alternate assignment and averaging until no label changes: labels, inertia, trips."""

    def assign(centers):
        return jnp.argmin(squared_distances(x, centers), axis=1)

    def step(state):
        centers, labels, _, trips = state
        sums = jnp.zeros_like(centers).at[labels].add(x)
        counts = jnp.zeros(centers.shape[0], x.dtype).at[labels].add(1)
        centers = jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centers)
        new = assign(centers)
        return centers, new, (new != labels).any(), trips + 1

    start = (centers, assign(centers), True, 0)
    centers, labels, _, trips = lax.while_loop(lambda state: state[2], step, start)
    return labels, ((x - centers[labels]) ** 2).sum(), trips


@fa.jit
def garch(params, shocks):
    """Gaussian log-likelihood and variances of a GARCH(1,1) process (Bollerslev 1986).

    The variance of each step is ``omega + alpha * shock**2 + beta * variance`` of the one before.
    """
    omega, alpha, beta = params

    def step(variance, shock):
        loglik = -0.5 * (jnp.log(2 * jnp.pi * variance) + shock**2 / variance)
        return omega + alpha * shock**2 + beta * variance, (loglik, variance)

    _, (loglik, variances) = lax.scan(step, jnp.var(shocks), shocks)
    return loglik.sum(), variances


def garch_in_numpy(params, shocks):
    """Compute the same with a loop in double precision."""
    omega, alpha, beta = params
    variance, loglik, variances = np.var(shocks), 0.0, []
    for shock in shocks:
        variances.append(variance)
        loglik -= 0.5 * (np.log(2 * np.pi * variance) + shock**2 / variance)
        variance = omega + alpha * shock**2 + beta * variance
    return loglik, np.array(variances)


def timed(label, call, repeats=5):
    """Run ``call``; print the time of its first run and the best of the later ones."""

    def seconds():
        start = time.perf_counter()
        result = fa.block_until_ready(call())
        return time.perf_counter() - start, result

    first, result = seconds()
    later = min(seconds()[0] for _ in range(repeats))
    print(f"  {label:<10} first call {first * 1e3:9.2f} ms, later {later * 1e3:9.3f} ms")
    return result


def run_kmeans(k=10):
    """Cluster the digits here and in scikit-learn, from the same start."""
    digits = load_digits().data.astype(np.float32)
    print(f"k-means, {digits.shape[0]} x {digits.shape[1]}, k = {k}")
    x = jnp.asarray(digits)
    centers = timed("seeding", lambda: seed(random.key(0), x, k=k))
    labels, inertia, trips = timed("Lloyd", lambda: lloyd(x, centers))

    peer = KMeans(k, init=np.asarray(centers), n_init=1, tol=0, algorithm="lloyd").fit(digits)
    same = np.mean(np.asarray(labels) == peer.labels_)
    print(f"  {int(trips)} iterations; inertia {float(inertia):.1f}, sklearn {peer.inertia_:.1f}")
    print(f"  labels equal: {same:.2%}")
    return bool(same > 0.999 and np.isclose(float(inertia), peer.inertia_, rtol=1e-5))


def run_classifier():
    """Train the perceptron of ``digits_mlp.py``: each epoch one call, forward and backward."""
    x, x_test, y, y_test = digits_mlp.digits()
    print(
        f"Classifier, layers of {digits_mlp.SIZES}, {digits_mlp.EPOCHS} epochs of {len(x)} digits"
    )
    layers, losses = timed("training", lambda: digits_mlp.train(random.key(0), x, y), repeats=1)
    correct = digits_mlp.accuracy(layers, x_test, y_test)
    print(f"  loss {losses[0]:.3f} at first, {losses[-1]:.5f} at last")
    print(f"  unseen digits told right: {correct:.2%}")
    return correct > 0.96


def run_garch(params=(0.5, 0.3, 0.6)):
    """Filter quarterly US inflation, 1959 to 2009, here and in NumPy."""
    inflation = macrodata.load_pandas().data["infl"].to_numpy()
    shocks = inflation - inflation.mean()
    print(f"GARCH(1,1), {shocks.size} quarters of US inflation")
    args = jnp.asarray(params, jnp.float32), jnp.asarray(shocks, jnp.float32)
    loglik, variances = timed("filter", lambda: garch(*args))
    expected, expected_variances = garch_in_numpy(params, shocks)
    print(f"  log-likelihood {float(loglik):.4f}, NumPy {expected:.4f}")
    print("\nThe filter's emitted source:\n")
    print(garch.lower(*args).as_text(dialect="numba"))
    return bool(
        np.isclose(float(loglik), expected, rtol=1e-5)
        and np.allclose(np.asarray(variances), expected_variances, rtol=1e-4)
    )


def main():
    """Run all jobs and report what the cache gave."""
    matches = {"k-means": run_kmeans(), "classifier": run_classifier(), "GARCH": run_garch()}
    print("\nKernels:", ", ".join(f"{name} {value}" for name, value in fa.cache_info().items()))
    for name, ok in matches.items():
        print(f"{name}: {'as expected' if ok else 'NOT AS EXPECTED'}")
    return 0 if all(matches.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
