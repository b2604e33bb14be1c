"""Multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...core.eager import replayed
from ...lax import linalg as lal
from ...numpy._promote import promote_dtypes_inexact

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


@replayed
def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Array:
    """Logarithm of the density at points along the last axis.

    By the Cholesky factor of the covariance.

    Parameters
    ----------
    x : array_like
        Points (..., n).
    mean : array_like
        Of the shape of ``x``, or one that broadcasts to it.
    cov : array_like
        Covariances (..., n, n), or a variance for independent components.
    allow_singular : None
        Singular covariances give NaN.

    Raises
    ------
    ValueError
        For shapes that do not fit, or a request to allow singular covariances.
    """
    if allow_singular is not None:
        raise ValueError(
            f"multivariate_normal.logpdf: allow_singular must be None, got {allow_singular}."
        )
    x, mean, cov = promote_dtypes_inexact(x, mean, cov)
    if not mean.shape:
        return -0.5 * ((x - mean) ** 2 / cov + math.log(2 * math.pi) + jnp.log(cov))
    n = mean.shape[-1]
    if not cov.shape:
        y = x - mean
        return -0.5 * (jnp.sum(y * y, -1) / cov + n * (math.log(2 * math.pi) + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal.logpdf: a mean of shape {mean.shape} needs covariances "
            f"(..., {n}, {n}), got shape {cov.shape}."
        )
    factor = lal.cholesky(cov)
    y = jnp.broadcast_to(x - mean, np.broadcast_shapes(x.shape, mean.shape))
    batch = np.broadcast_shapes(y.shape[:-1], factor.shape[:-2])
    if factor.ndim == 2:
        # One factor serves all points at once.
        flat = lal.triangular_solve(factor, y.reshape(-1, n).T, left_side=True, lower=True)
        z = flat.T.reshape(y.shape)
    else:
        z = lal.triangular_solve(
            jnp.broadcast_to(factor, (*batch, n, n)),
            jnp.broadcast_to(y, (*batch, n)),
            left_side=True,
            lower=True,
        )
    volume = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    return -0.5 * (jnp.sum(z * z, -1) + n * math.log(2 * math.pi)) - volume


@replayed
def pdf(x: Any, mean: Any, cov: Any) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, mean, cov))
