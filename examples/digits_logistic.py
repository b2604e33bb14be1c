"""Multinomial logistic regression on handwritten digits, by Newton's method and by SGD.

Newton's method takes ``fa.hessian`` of the objective, a square array over all 650 coefficients, and
solves by Cholesky; stochastic gradient descent is a ``scan`` over shuffled batches with ``fa.grad``
in its body, compiled to one loop. scikit-learn minimises the same objective.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, nn, random, scipy

CLASSES = 10


def digits():
    """Pixels in [0, 1] with a constant beside them, and labels, each split in two halves."""
    x, y = load_digits(return_X_y=True)
    x = np.hstack([x / 16, np.ones((len(x), 1))])
    return train_test_split(x, y.astype(np.int32), test_size=0.5, random_state=0, stratify=y)


def loss(w, x, y):
    """Mean negative log likelihood of labels ``y``, given ``x @ w`` as log odds."""
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(x @ w), y[:, None], axis=1))


def objective(w, x, y, rows):
    """The loss with scikit-learn's penalty for ``C=1``: half the squared norm, spread over rows."""
    return loss(w, x, y) + 0.5 * jnp.sum(w**2) / rows


@fa.jit
def newton_step(w, x, y):
    """One step of Newton's method, and the norm of the gradient before it."""
    flat = w.ravel()

    def of_flat(flat):
        return objective(flat.reshape(w.shape), x, y, x.shape[0])

    gradient, curvature = fa.grad(of_flat)(flat), fa.hessian(of_flat)(flat)
    step = scipy.linalg.cho_solve(scipy.linalg.cho_factor(curvature), gradient)
    return (flat - step).reshape(w.shape), jnp.linalg.norm(gradient)


def newton(x, y, tolerance=1e-8):
    """Minimise the objective to ``tolerance`` in the gradient; also return the steps it took."""
    w, norm, steps = jnp.zeros((x.shape[1], CLASSES), x.dtype), np.inf, 0
    while norm > tolerance:
        w, norm = newton_step(w, x, y)
        steps += 1
    return w, steps


@fa.jit(static_argnames=("epochs", "batch"))
def sgd(key, x, y, *, epochs=120, batch=16, rate=0.5, momentum=0.9):
    """Minimise the objective by stochastic gradient descent with momentum, its rate decaying."""
    n = x.shape[0] // batch * batch
    zeros = jnp.zeros((x.shape[1], CLASSES), x.dtype)

    def epoch(state, key_and_rate):
        key, rate = key_and_rate

        def step(state, rows):
            w, velocity = state
            slope = fa.grad(objective)(w, x[rows], y[rows], x.shape[0])
            velocity = momentum * velocity - rate * slope
            return (w + velocity, velocity), None

        return lax.scan(step, state, random.permutation(key, x.shape[0])[:n].reshape(-1, batch))

    rates = rate * jnp.linspace(1, 0, epochs, dtype=x.dtype) ** 2
    (w, _), _ = lax.scan(epoch, (zeros, zeros), (random.split(key, epochs), rates))
    return w


def accuracy(w, x, y):
    """Share of rows whose largest log odds stand at the label."""
    return float(jnp.mean(jnp.argmax(x @ w, axis=1) == y))


def main():
    """Fit in three ways and compare."""
    x, x_test, y, y_test = digits()
    peer = LogisticRegression(fit_intercept=False, tol=1e-9, max_iter=5000).fit(x, y)
    reference = peer.coef_.T

    with fa.enable_x64(True):
        w, steps = newton(jnp.asarray(x), jnp.asarray(y))
        best, gap = float(objective(w, x, y, len(x))), np.abs(np.asarray(w) - reference).max()
        print(f"Newton: {steps} steps, objective {best:.6f}, largest difference {gap:.1e}")
    x, x_test = jnp.asarray(x, jnp.float32), jnp.asarray(x_test, jnp.float32)
    w_sgd = sgd(random.key(0), x, jnp.asarray(y))
    reached = float(objective(w_sgd, x, y, len(x)))
    print(f"SGD: objective {reached:.6f}")

    scores = [accuracy(w, x_test, y_test) for w in (np.float32(w), w_sgd, np.float32(reference))]
    print("test accuracy: Newton {:.4f}, SGD {:.4f}, scikit-learn {:.4f}".format(*scores))
    assert gap < 1e-4
    assert best < reached < 1.02 * best
    assert abs(scores[0] - scores[2]) < 1e-9
    assert abs(scores[1] - scores[2]) < 0.01


if __name__ == "__main__":
    main()
