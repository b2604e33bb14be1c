"""Length, height and noise of a Gaussian process, by the gradient of its Cholesky likelihood.

``fa.grad`` goes through ``cholesky`` and ``cho_solve``; SciPy's BFGS does the walking, here with
that gradient and once more, from scikit-learn, with the formula worked out by hand (Rasmussen and
Williams, *Gaussian Processes for Machine Learning*, 2006, equation 5.9).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import scipy


def data(n=80):
    """Noisy samples of a smooth curve."""
    generator = np.random.default_rng(0)
    x = np.sort(generator.uniform(-3, 3, n))
    return x[:, None], np.sin(2 * x) + 0.3 * x + 0.2 * generator.standard_normal(n)


def kernel(params, a, b):
    """Squared exponential covariance of rows of ``a`` with rows of ``b``."""
    height, length, _ = jnp.exp(params)
    squared = jnp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)
    return height * jnp.exp(-0.5 * squared / length**2)


def factor(params, x):
    """Cholesky factor of the covariance of noisy observations at ``x``."""
    return jnp.linalg.cholesky(kernel(params, x, x) + jnp.exp(params[2]) * jnp.eye(x.shape[0]))


def negative_log_likelihood(params, x, y):
    """Of observations ``y`` at ``x``, given logarithms of height, length and noise variance."""
    low = factor(params, x)
    weights = scipy.linalg.cho_solve((low, True), y)
    log_det = 2 * jnp.sum(jnp.log(jnp.diag(low)))
    return 0.5 * (y @ weights + log_det + y.size * jnp.log(2 * jnp.pi))


@fa.jit
def predict(params, x, y, at):
    """Mean and standard deviation of the curve at new points."""
    low, across = factor(params, x), kernel(params, x, at)
    mean = across.T @ scipy.linalg.cho_solve((low, True), y)
    half = scipy.linalg.solve_triangular(low, across, lower=True)
    return mean, jnp.sqrt(jnp.exp(params[0]) - jnp.sum(half**2, axis=0))


def main():
    """Fit here and in scikit-learn."""
    x, y = data()
    at = np.linspace(-3, 3, 7)[:, None]
    start = np.zeros(3)
    shape = kernels.ConstantKernel() * kernels.RBF() + kernels.WhiteKernel()
    peer = GaussianProcessRegressor(shape).fit(x, y)
    with fa.enable_x64(True):
        walk = fa.jit(fa.value_and_grad(negative_log_likelihood))

        def value_and_slope(params):
            value, slope = walk(params, x, y)
            return float(value), np.asarray(slope)

        found = minimize(value_and_slope, start, jac=True, method="BFGS", options={"gtol": 1e-6})
        mean, deviation = predict(found.x, x, y, at)
    reference = peer.kernel_.theta  # the same logarithms
    for name, params in (("fnarray", found.x), ("sklearn", reference)):
        print(name + ": height {:.4f}, length {:.4f}, noise {:.4f}".format(*np.exp(params)))
    print(
        f"log likelihood {-found.fun:.5f}, scikit-learn {peer.log_marginal_likelihood_value_:.5f}"
    )
    print(
        "curve", np.round(np.asarray(mean), 3), "give or take", np.round(np.asarray(deviation), 3)
    )
    assert np.isclose(-found.fun, peer.log_marginal_likelihood_value_, rtol=1e-6)
    assert np.allclose(found.x, reference, atol=2e-3)
    assert np.allclose(np.asarray(mean), peer.predict(at), atol=2e-3)


if __name__ == "__main__":
    main()
