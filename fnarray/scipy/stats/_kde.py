"""Densities estimated from samples by Gaussian kernels."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any, cast

from ... import numpy as jnp
from ... import random
from ...core.array import Array
from ...core.tree import register_pytree_node_class
from ...lax import linalg as lal
from ...numpy._promote import promote_dtypes_inexact
from .. import special
from ._continuous import norm

__all__ = ["gaussian_kde"]


def _bandwidth(method: Any, neff: Array, d: int) -> Any:
    """Factor between the samples' covariance and the kernel's, before squaring."""
    if method is None or method == "scott":
        return neff ** (-1 / (d + 4))
    if method == "silverman":
        return (neff * (d + 2) / 4) ** (-1 / (d + 4))
    if isinstance(method, str):
        raise ValueError(
            "gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got "
            f"{method!r}."
        )
    return method


@register_pytree_node_class
class gaussian_kde:  # noqa: N801 - the name is SciPy's
    """A density: the mean of normal ones about samples.

    Parameters
    ----------
    dataset : array_like
        Samples: a vector, or (d, n) for n samples of d dimensions.
    bw_method : {"scott", "silverman"}, float or callable, optional
        Factor by which kernels are narrower than the samples' spread; a callable gets this object.
    weights : array_like, optional
        Of the samples, not negative; equal where omitted.

    Attributes
    ----------
    neff : array
        Number of samples of equal weight that would be worth as much.
    covariance, inv_cov : array
        Of a kernel.

    Raises
    ------
    ValueError
        For fewer than two samples, weights of another shape, or an unknown method.
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None):
        (data,) = promote_dtypes_inexact(jnp.atleast_2d(dataset))
        if data.dtype.kind == "c":
            raise TypeError("gaussian_kde takes real samples.")
        d, n = data.shape
        if n < 2:
            raise ValueError(
                f"gaussian_kde takes at least two samples along the last axis, got {data.shape}."
            )
        if weights is None:
            w = jnp.full(n, 1 / n, data.dtype)
        else:
            data, w = promote_dtypes_inexact(data, jnp.atleast_1d(weights))
            if w.shape != (n,):
                raise ValueError(f"gaussian_kde: weights must have shape ({n},), got {w.shape}.")
            w = w / jnp.sum(w)
        self.dataset, self.weights = data, w
        self.neff = 1 / jnp.sum(w * w)
        if callable(bw_method):
            factor = cast("Any", bw_method)(self)
        else:
            factor = _bandwidth(bw_method, self.neff, d)
        spread = jnp.atleast_2d(jnp.cov(data, rowvar=True, bias=False, aweights=w))
        self.covariance = spread * factor**2
        self.inv_cov = jnp.linalg.inv(spread) / factor**2

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.dataset.shape[1]

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return the arrays it is made of, as pytrees ask."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> gaussian_kde:
        """Return the density made of arrays."""
        self = object.__new__(cls)
        self.neff, self.dataset, self.weights, self.covariance, self.inv_cov = children
        return self

    def _points(self, points: Any) -> Array:
        points, _ = promote_dtypes_inexact(jnp.atleast_2d(points), self.dataset)
        d, m = points.shape
        if d == 1 and m == self.d != 1:
            points = points.reshape(self.d, 1)
        elif d != self.d:
            raise ValueError(
                f"gaussian_kde: points must have {self.d} dimensions along the first axis, as the "
                f"samples have, got shape {points.shape}."
            )
        return points

    def evaluate(self, points: Any) -> Array:
        """Return the density at points (d, m)."""
        return jnp.exp(self.logpdf(points))

    def __call__(self, points: Any) -> Array:
        """Return the density at points; see `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: Any) -> Array:
        """Return the density at points; see `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """Return the logarithm of the density at points (d, m), exact far from all samples."""
        points = self._points(x)
        return _log_mixture(points, self.dataset, self.weights, self.covariance)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """Return the integral of the density times a normal one."""
        mean, cov = promote_dtypes_inexact(jnp.atleast_1d(mean), jnp.atleast_2d(cov))
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(
                f"gaussian_kde: a density of {self.d} dimensions needs a mean and covariance of "
                f"as many, got shapes {mean.shape} and {cov.shape}."
            )
        total = self.covariance + cov
        return jnp.exp(_log_mixture(mean[:, None], self.dataset, self.weights, total))[0]

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """Return the probability of an interval, of a density of one dimension."""
        if self.d != 1:
            raise ValueError(
                f"gaussian_kde: integrate_box_1d is for one dimension, the samples have {self.d}."
            )
        center, scale = self.dataset[0], jnp.sqrt(self.covariance[0, 0])
        mass = norm.cdf(high, center, scale) - norm.cdf(low, center, scale)
        return jnp.sum(self.weights * mass)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Return the integral of the product with another density."""
        if other.d != self.d:
            raise ValueError(
                f"gaussian_kde: densities must be of one dimension, got {self.d} and {other.d}."
            )
        total = self.covariance + other.covariance
        logs = _log_mixture(other.dataset, self.dataset, self.weights, total)
        return jnp.sum(other.weights * jnp.exp(logs))

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Return samples of the density: arrays (d, *shape)."""
        where, noise = random.split(key)
        picked = random.choice(where, self.n, shape, p=self.weights)
        zero = jnp.zeros(self.d, self.dataset.dtype)
        steps = random.multivariate_normal(
            noise, zero, self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, picked] + jnp.moveaxis(steps, -1, 0)


def _log_mixture(points: Array, centers: Array, weights: Array, covariance: Array) -> Array:
    """Logarithm of a weighted mean of normal densities about centers (d, n), at points (d, m)."""
    d = centers.shape[0]
    factor = lal.cholesky(covariance, symmetrize_input=False)
    flags = {"left_side": True, "lower": True}
    x, y = (lal.triangular_solve(factor, side, **flags) for side in (points, centers))
    squares = jnp.sum((x[:, None, :] - y[:, :, None]) ** 2, axis=0)
    volume = jnp.sum(jnp.log(jnp.diagonal(factor))) + d * log(sqrt(2 * pi))
    return special.logsumexp(-0.5 * squares, axis=0, b=weights[:, None]) - volume
