"""Linear algebra as ``jax.numpy.linalg`` names it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import is_complex
from ..core.eager import replayed
from ..core.hooks import cut_as
from ._linalg_factors import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from ._linalg_systems import (
    det,
    inv,
    lstsq,
    matrix_power,
    matrix_rank,
    multi_dot,
    pinv,
    slogdet,
    solve,
    tensorinv,
    tensorsolve,
)
from ._math import abs as absolute
from ._products import cross as _cross
from ._products import diagonal as _diagonal
from ._products import matmul as _matmul
from ._products import outer as _outer
from ._products import tensordot as _tensordot
from ._products import trace as _trace
from ._products import vecdot as _vecdot
from ._promote import as_operand, promote_dtypes_inexact
from ._reductions import any as any_of
from ._reductions import max as reduce_max
from ._reductions import min as reduce_min
from ._reductions import sum as reduce_sum
from ._search import where
from ._shape import array_of, axes_of, expand_dims, matrix_transpose, moveaxis, ravel

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
__dir__ = __all__.copy


# --- norms --------------------------------------------------------------------------------------


def _squares(x: Array) -> Array:
    if is_complex(x.dtype):
        return lax.square(lax.real(x)) + lax.square(lax.imag(x))
    return lax.square(x)


def _of_vectors(x: Array, ord: Any, axis: Any, keepdims: bool) -> Array:
    """Norm of vectors along axes (together), for any order but a string."""
    how = {"axis": axis, "keepdims": keepdims}
    if isinstance(ord, str):
        raise ValueError(f"numpy.linalg.norm: no order {ord!r} for vectors: use a number or inf.")
    if ord is None or ord == 2:
        return lax.sqrt(reduce_sum(_squares(x), **how))
    size = absolute(x)
    if ord == np.inf:
        return reduce_max(size, initial=0, **how)
    if ord == -np.inf:
        return reduce_min(size, **how)
    if ord == 0:
        return reduce_sum(lax.convert_element_type(x != 0, size.dtype), **how)
    if ord == 1:
        return reduce_sum(size, **how)
    return reduce_sum(size**ord, **how) ** (1 / ord)


def _of_matrices(x: Array, ord: Any, axes: tuple[int, int], keepdims: bool) -> Array:
    """Norm of matrices whose rows and columns lie along two axes."""
    row, column = axes
    if ord in (None, "f", "fro"):
        return _of_vectors(x, 2, axes, keepdims)
    if ord in ("nuc", 2, -2):
        values = svd(moveaxis(x, axes, (-2, -1)), full_matrices=False, compute_uv=False)
        reduce = {"nuc": reduce_sum, 2: reduce_max, -2: reduce_min}[ord]
        out = reduce(values, axis=-1, **({"initial": 0} if ord == 2 else {}))
        return expand_dims(out, tuple(sorted(axes))) if keepdims else out
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(
            f"numpy.linalg.norm: invalid order {ord!r} for matrices: use 'fro', 'nuc', 1, -1, 2, "
            "-2, inf or -inf."
        )
    summed, searched = (row, column) if abs(ord) == 1 else (column, row)
    sums = reduce_sum(absolute(x), axis=summed, keepdims=True)
    if ord > 0:
        out = reduce_max(sums, axis=searched, keepdims=True, initial=0)
    else:
        out = reduce_min(sums, axis=searched, keepdims=True)
    return out if keepdims else lax.squeeze(out, axes)


@replayed
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the norm of vectors along an axis, or of matrices along two.

    Parameters
    ----------
    x : array_like
    ord : optional
        Of vectors: a number (``sum(abs(x) ** ord) ** (1 / ord)``), 0 (how many are not 0), or
        plus or minus inf. Of matrices: ``"fro"``, ``"nuc"`` (sum of singular values), plus or
        minus 1 (sums of columns), 2 (singular values) or inf (sums of rows). The root of the sum
        of squares where omitted.
    axis : int or pair of int, optional
        All elements where neither this nor ``ord`` is given.
    keepdims : bool

    Raises
    ------
    ValueError
        For an order that there is not, or other numbers of axes.
    """
    (x,) = promote_dtypes_inexact(as_operand("linalg.norm", x))
    if axis is None and ord is None:
        flat = _of_vectors(ravel(x), 2, 0, False)
        return expand_dims(flat, tuple(range(x.ndim))) if keepdims else flat
    axes = axes_of("linalg.norm", axis, x.ndim)
    if len(axes) == 1:
        return _of_vectors(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _of_matrices(x, ord, axes, keepdims)
    raise ValueError(
        f"numpy.linalg.norm: axis must be one axis (vectors) or two (matrices), got {axes}."
    )


@replayed
def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: int | float | str = 2
) -> Array:
    """Return the norm of vectors along axes, of all elements where there is no ``axis``."""
    (x,) = promote_dtypes_inexact(as_operand("linalg.vector_norm", x))
    return _of_vectors(x, ord, axes_of("linalg.vector_norm", axis, x.ndim), keepdims)


@replayed
def cond(x: Any, p: Any = None) -> Array:
    """Return the condition number: the norm of a matrix times that of its inverse.

    Parameters
    ----------
    x : array_like
        Matrices along the last two axes; square ones unless the order is 2 or -2.
    p : optional
        Order of the norm, as of `norm`; 2 where omitted.

    Returns
    -------
    array
        Infinite for singular matrices.

    Raises
    ------
    ValueError
        For an order that there is not, or arrays that hold no matrices.
    """
    (x,) = promote_dtypes_inexact(as_operand("linalg.cond", x))
    if x.ndim < 2:
        raise ValueError(f"numpy.linalg.cond takes matrices (..., m, n), got shape {x.shape}.")
    if p in (None, 2, -2):
        s = svd(x, compute_uv=False)
        largest, smallest = s[..., 0], s[..., -1]
        r = smallest / largest if p == -2 else largest / smallest
    else:
        axis = (-2, -1)
        r = norm(x, ord=p, axis=axis) * norm(inv(x), ord=p, axis=axis)
    # Where NaN came of dividing zeros, not of the matrix, the matrix is singular.
    lost = lax.bitwise_and(r != r, lax.bitwise_not(any_of(x != x, axis=(-2, -1))))
    return where(lost, np.inf, r)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return the norm of matrices along the last two axes; `norm` has the orders."""
    return norm(x, ord, axis=(-2, -1), keepdims=keepdims)


# --- products -----------------------------------------------------------------------------------


def matmul(
    x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Matrix product over the last two axes; see `fnarray.numpy.matmul`."""
    return _matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Sum the products of conjugates and elements; see `fnarray.numpy.vecdot`."""
    return _vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum products over paired axes; see `fnarray.numpy.tensordot`."""
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            tensordot,
            x1,
            x2,
            axes=axes,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    return _tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def outer(x1: Any, x2: Any, /) -> Array:
    """Multiply each element of a vector by each of another.

    Raises
    ------
    ValueError
        For operands that are not vectors.
    """
    shapes = np.shape(x1), np.shape(x2)
    if any(len(s) != 1 for s in shapes):
        raise ValueError(f"numpy.linalg.outer: operands must be vectors, got shapes {shapes}.")
    return _outer(x1, x2)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Vector product of vectors of 3 components.

    Raises
    ------
    ValueError
        For other numbers of components.
    """
    a, b = (array_of("linalg.cross", x, i) for i, x in enumerate((x1, x2)))
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(
            "numpy.linalg.cross: vectors must have 3 components, got shapes "
            f"{a.shape} and {b.shape}."
        )
    return _cross(a, b, axis=axis)


# --- diagonals ----------------------------------------------------------------------------------


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sum a diagonal of the matrices along the last two axes."""
    return _trace(x, offset, -2, -1, dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return a diagonal of the matrices along the last two axes."""
    return _diagonal(x, offset, -2, -1)
