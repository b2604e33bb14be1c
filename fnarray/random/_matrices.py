"""Random vectors of a covariance, and random orthogonal matrices."""

from __future__ import annotations

from operator import index
from typing import Any

from .. import numpy as jnp
from ..core.array import Array, aval_of
from ..core.eager import replayed
from ..lax import linalg as lal
from ..ops.kit.canonical import canonical_shape
from ..ops.kit.matrix import diagonal, scale_columns, swap
from ._args import check_shape, dtype_of, param
from ._samplers import sampler
from ._uniform import normal

__all__ = ["multivariate_normal", "orthogonal"]


def _square_root(cov: Array, method: str) -> Array:
    """Return factors whose products with their transposes are the covariances."""
    if method == "cholesky":
        return lal.cholesky(cov)
    if method == "eigh":
        v, w = lal.eigh(cov)
        return scale_columns(v, jnp.sqrt(w))
    u, s, _ = lal.svd(cov)
    return scale_columns(u, jnp.sqrt(s))


@sampler
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
) -> Array:
    """Return samples of normal distributions of vectors.

    Parameters
    ----------
    key : key
    mean : array
        Means (..., n).
    cov : array
        Covariances (..., n, n).
    shape : sequence of int, optional
        Of the samples without their last axis; that of mean and covariance together by default.
    dtype : dtype-like, optional
        A float.
    method : {"cholesky", "eigh", "svd"}
        How the covariance is factored; the first is the fastest and needs positive definite ones.

    Raises
    ------
    ValueError
        For another method, or shapes that do not fit.
    """
    name = "multivariate_normal"
    dtype = dtype_of(name, dtype)
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(
            f"random.{name}: method must be one of 'cholesky', 'eigh', 'svd', got {method!r}."
        )
    of_mean, of_cov = aval_of(mean).shape, aval_of(cov).shape
    if not of_mean or of_cov[-2:] != (of_mean[-1],) * 2:
        raise ValueError(
            f"random.{name} takes means (..., n) and covariances (..., n, n), got shapes "
            f"{of_mean} and {of_cov}."
        )
    batch = of_mean[:-1], of_cov[:-2]
    if shape is None:
        shape = jnp.broadcast_shapes(*batch)
    else:
        shape = check_shape(name, canonical_shape(name, shape), *batch)
    mean, cov = param(name, mean, dtype), param(name, cov, dtype)
    factor = _square_root(cov, method)
    z = normal(key, (*shape, of_mean[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", factor, z)


@sampler
@replayed(program=True)
def orthogonal(
    key: Any,
    n: int,
    shape: Any = (),
    dtype: Any = None,
    m: int | None = None,
) -> Array:
    """Return orthogonal (unitary, for complex dtypes) matrices, uniformly distributed.

    By QR factors of normal matrices whose signs are made unique (Mezzadri 2007).

    Parameters
    ----------
    key : key
    n, m : int
        Rows and columns; square where ``m`` is omitted. Of the longer side there are as many
        orthonormal vectors as the shorter side is long.
    shape : sequence of int
        Of the stack.
    dtype : dtype-like, optional
        A float or complex.

    Raises
    ------
    ValueError
        For another dtype.
    """
    dtype = dtype_of("orthogonal", dtype, "inexact")
    rows = index(n)
    columns = rows if m is None else index(m)
    shape = canonical_shape("orthogonal", shape)
    z = normal(key, (*shape, max(rows, columns), min(rows, columns)), dtype)
    q, r = lal.qr(z, full_matrices=False)
    d = diagonal(r)
    q = scale_columns(q, d / jnp.abs(d).astype(d.dtype))
    return swap(q) if rows < columns else q
