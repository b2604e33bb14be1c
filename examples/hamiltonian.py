"""Bayesian regression by Hamiltonian Monte Carlo, many chains at once.

Leapfrog steps are a loop inside a ``scan`` over draws, the gradient of the log posterior is
``fa.grad``, and ``fa.vmap`` runs one chain per lane (Neal, "MCMC using Hamiltonian dynamics",
2011). The prior is the normal-inverse-gamma one: its posterior has a closed form to compare with.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_diabetes

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, random
from fnarray.scipy import stats

CHAINS, DRAWS, WARM_UP, LEAPS, STEP = 8, 1000, 100, 20, 0.018
SHAPE, SCALE = 2.0, 1.0  # of the inverse gamma prior of the variance


def log_posterior(params, x, y):
    """Log density, up to a constant, of coefficients and the logarithm of the noise variance.

    Coefficients are ``normal(0, variance)``, and the variance is ``inverse_gamma(SHAPE, SCALE)``.
    """
    w, log_variance = params["w"], params["log_variance"]
    deviation = jnp.exp(0.5 * log_variance)
    likelihood = stats.norm.logpdf(y, x @ w, deviation).sum()
    prior = stats.norm.logpdf(w, 0, deviation).sum()
    # The density of a gamma of 1 / variance; one factor of it is the logarithm's Jacobian.
    return likelihood + prior - SHAPE * log_variance - SCALE * jnp.exp(-log_variance)


class Place(NamedTuple):
    """Parameters, with the log density there and its gradient."""

    params: dict
    density: fa.Array
    slope: dict


def moved(tree, along, by):
    """Return ``tree + by * along``."""
    return fa.tree.map(lambda x, a: x + by * a, tree, along)


def leapfrog(place, momentum, size, look):
    """Follow the Hamiltonian for ``LEAPS`` steps; ``look`` makes a `Place` of parameters."""

    def leap(_, state):
        place, momentum = state
        momentum = moved(momentum, place.slope, size / 2)
        place = look(moved(place.params, momentum, size))
        return place, moved(momentum, place.slope, size / 2)

    return lax.fori_loop(0, LEAPS, leap, (place, momentum))


def energy(place, momentum):
    """Potential and kinetic energy."""
    return sum(0.5 * jnp.sum(p**2) for p in fa.tree.leaves(momentum)) - place.density


def chain(key, start, x, y):
    """Return ``DRAWS`` positions and the share of proposals that were accepted."""

    def look(params):
        return Place(params, *fa.value_and_grad(log_posterior)(params, x, y))

    # Paths of equal length could return to where they began, again and again: steps vary.
    keys, draws = random.split(key, 4), (DRAWS,)
    chances = {
        "size": STEP * random.uniform(keys[0], draws, x.dtype, 0.5, 1.5),
        "luck": jnp.log(random.uniform(keys[1], draws, x.dtype)),
        "momentum": {
            "w": random.normal(keys[2], draws + start["w"].shape, x.dtype),
            "log_variance": random.normal(keys[3], draws, x.dtype),
        },
    }

    def draw(place, chance):
        proposed, momentum = leapfrog(place, chance["momentum"], chance["size"], look)
        gain = energy(place, chance["momentum"]) - energy(proposed, momentum)
        accept = chance["luck"] < gain
        place = fa.tree.map(partial(jnp.where, accept), proposed, place)
        return place, (place.params, accept)

    _, (draws, accepted) = lax.scan(draw, look(start), chances)
    return draws, accepted.mean()


def closed_form(x, y):
    """Exact posterior mean of coefficients, their deviations, and mean of the variance."""
    precision = x.T @ x + np.eye(x.shape[1])
    mean = np.linalg.solve(precision, x.T @ y)
    shape = SHAPE + len(y) / 2
    scale = SCALE + 0.5 * (y @ y - mean @ precision @ mean)
    variance = scale / (shape - 1)
    return mean, np.sqrt(variance * np.diag(np.linalg.inv(precision))), variance


def main():
    """Sample the posterior for the diabetes data and compare its moments."""
    x, y = load_diabetes(return_X_y=True)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    mean, deviation, variance = closed_form(x, y)

    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    start = {"w": jnp.zeros(x.shape[1]), "log_variance": jnp.zeros(())}
    sample = fa.jit(fa.vmap(chain, in_axes=(0, None, None, None)))
    draws, accepted = sample(random.split(random.key(0), CHAINS), start, x, y)
    draws = fa.tree.map(lambda d: np.asarray(d)[:, WARM_UP:], draws)

    w = draws["w"].reshape(-1, x.shape[1])
    found_variance = np.exp(draws["log_variance"]).mean()
    off = np.abs(w.mean(0) - mean) / deviation
    print(f"{CHAINS} chains, accepted {float(accepted.mean()):.1%}")
    print(f"noise variance {found_variance:.4f}, exact {variance:.4f}")
    print(f"means off by at most {off.max():.3f} posterior deviations")
    print("deviations, relative to the exact ones:", np.round(w.std(0) / deviation, 2))
    assert float(accepted.mean()) > 0.8
    assert off.max() < 0.1
    assert np.allclose(w.std(0), deviation, rtol=0.1)
    assert np.isclose(found_variance, variance, rtol=0.01)


if __name__ == "__main__":
    main()
