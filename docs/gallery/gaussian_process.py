"""A Gaussian process, its scales found by gradients.

The marginal likelihood goes through a Cholesky factor; its gradient is `value_and_grad`'s, and the
ascent one `fori_loop`. The prediction is scikit-learn's for the same scales.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.scipy.linalg import cho_solve

NOISE = 0.01


def kernel(p, a, b):
    """Covariances: variance and length are exponentials of the parameters."""
    return jnp.exp(p[0] - 0.5 * ((a[:, None] - b) / jnp.exp(p[1])) ** 2)


def surprise(p, x, y):
    """Negative logarithm of the likelihood, up to a constant."""
    factor = jnp.linalg.cholesky(kernel(p, x, x) + NOISE * jnp.eye(x.size))
    return 0.5 * y @ cho_solve((factor, True), y) + jnp.sum(jnp.log(jnp.diag(factor)))


@fa.jit
def learn(x, y):
    """Return the scales that sixty steps of descent find."""
    slope = fa.grad(surprise)
    return lax.fori_loop(0, 60, lambda _, p: p - 0.05 * slope(p, x, y), jnp.zeros(2))


@fa.jit
def predict(p, x, y, at):
    """Return means and variances."""
    factor = jnp.linalg.cholesky(kernel(p, x, x) + NOISE * jnp.eye(x.size))
    across = kernel(p, x, at)
    spread = jnp.diag(kernel(p, at, at)) - jnp.sum(across * cho_solve((factor, True), across), 0)
    return across.T @ cho_solve((factor, True), y), spread


def main():
    """Learn, predict, compare, draw."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(-4, 4, 16)).astype(np.float32)
    y = (np.sin(1.5 * x) + 0.1 * rng.normal(size=x.size)).astype(np.float32)
    at = np.linspace(-5, 5, 200, dtype=np.float32)
    scales = learn(x, y)
    mean, spread = map(np.asarray, predict(scales, x, y, at))
    variance, length = np.exp(np.asarray(scales, np.float64))
    same = ConstantKernel(variance) * RBF(length)
    reference = GaussianProcessRegressor(same, alpha=NOISE, optimizer=None).fit(x[:, None], y)
    np.testing.assert_allclose(mean, reference.predict(at[:, None]), atol=2e-3)
    figure = Figure(figsize=(6.4, 3.2))
    axes = figure.subplots()
    width = 2 * np.sqrt(np.maximum(spread, 0))
    axes.fill_between(at, mean - width, mean + width, alpha=0.3, label="two deviations")
    axes.plot(at, mean, label="mean")
    axes.plot(x, y, "o", label="data")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    axes.legend()
    return figure
