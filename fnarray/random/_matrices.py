"""Random vectors and matrices: the multivariate normal, orthogonal matrices."""

from __future__ import annotations

import operator
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..core.array import Array, aval_of
from ..core.dtypes import to_inexact
from ..ops._canonical import canonical_shape
from ._args import Shape, check_shape, dtype_of
from ._keys import sampler
from ._uniform import normal

__all__ = ["multivariate_normal", "orthogonal"]


@sampler
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Shape | None = None,
    dtype: Any = None,
    method: str = "cholesky",
) -> Array:
    """Draw normal vectors of a mean and covariance.

    Parameters
    ----------
    key : key
    mean : array (..., n)
    cov : array (..., n, n)
        Positive definite; semidefinite for methods other than ``"cholesky"``.
    shape : tuple of int, optional
        Of the batch, to which the leading axes of ``mean`` and ``cov`` broadcast; by default
        those together.
    dtype : float dtype, optional
        By default that of ``mean``.
    method : {"cholesky", "eigh", "svd"}
        How to take the root of ``cov``.

    Raises
    ------
    ValueError
        For a dtype that is not a float, shapes that do not fit, or another method.
    """
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(
            "random.multivariate_normal: method must be one of 'svd', 'eigh' and 'cholesky', got "
            f"{method!r}."
        )
    working = to_inexact(jnp.promote_types(aval_of(mean).dtype, aval_of(cov).dtype))
    mean, cov = (lax.convert_element_type(x, working) for x in (mean, cov))
    dtype = dtype_of("multivariate_normal", working if dtype is None else dtype)
    n = mean.shape[-1] if mean.ndim else 0
    if not mean.ndim or cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            "random.multivariate_normal: mean must have shape (..., n) and cov (..., n, n), got "
            f"{mean.shape} and {cov.shape}."
        )
    batches = mean.shape[:-1], cov.shape[:-2]
    if shape is None:
        shape = lax.broadcast_shapes(*batches)
    else:
        shape = canonical_shape("multivariate_normal", shape)
        check_shape("multivariate_normal", shape, *batches)
    vectors = normal(key, (*shape, n), dtype)
    return mean + jnp.einsum("...ij,...j->...i", _root(cov, method), vectors)


def _root(cov: Array, method: str) -> Array:
    if method == "cholesky":
        return jnp.linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = jnp.linalg.eigh(cov)
    else:
        vectors, values, _ = jnp.linalg.svd(cov)
    return vectors * jnp.expand_dims(jnp.sqrt(values), -2)


@sampler
def orthogonal(
    key: Any, n: int, shape: Shape = (), dtype: Any = None, m: int | None = None
) -> Array:
    """Draw matrices with orthonormal columns (rows, if there are fewer), uniformly.

    Parameters
    ----------
    key : key
    n : int
        Number of rows.
    shape : tuple of int
        Of the batch.
    dtype : float or complex dtype, optional
        By default the default float.
    m : int, optional
        Number of columns; by default ``n``.

    Raises
    ------
    ValueError
        For another dtype.

    Notes
    -----
    Mezzadri, "How to generate random matrices from the classical compact groups", 2007.
    """
    dtype = dtype_of("orthogonal", dtype, "inexact")
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    shape = canonical_shape("orthogonal", shape)
    z = normal(key, (*shape, max(rows, columns), min(rows, columns)), dtype)
    q, r = jnp.linalg.qr(z)
    x = q * jnp.expand_dims(jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1)), -2)
    return jnp.swapaxes(x, -1, -2) if rows < columns else x
