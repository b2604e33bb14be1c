"""Linear systems, inverses, determinants and ranks as ``jax.numpy.linalg`` names them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, NamedTuple, cast

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import finfo, is_complex, to_real
from ..core.eager import replayed
from ..ops.contract import exact_matmul as matmul
from ..ops.kit.matrix import eye
from ..ops.linalg_determinant import det as _det
from ..ops.linalg_determinant import slogdet as _slogdet
from ..ops.linalg_least import pinv as _pinv
from ..ops.linalg_solve import linear_solve
from ._linalg_factors import inexact_matrices, square, svd
from ._products import matmul as product
from ._promote import as_operand
from ._reductions import any as any_of
from ._reductions import max as reduce_max
from ._reductions import sum as reduce_sum
from ._search import where
from ._shape import array_of, broadcast_to, moveaxis, reshape, squeeze, transpose

__all__: list[str] = []


class SlogdetResult(NamedTuple):
    """Results of `slogdet`."""

    sign: Array
    logabsdet: Array


# ---- systems -------------------------------------------------------------------------------------


@replayed
def solve(a: Any, b: Any) -> Array:
    """Solve ``a @ x = b``.

    Parameters
    ----------
    a : array_like
        Square matrices (..., n, n).
    b : array_like
        A vector (n,), or matrices (..., n, k); leading axes broadcast with those of ``a``.

    Returns
    -------
    array
        In the shape of ``b`` once broadcast. NaN or infinite where ``a`` is singular.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    a, b = inexact_matrices("solve", a, b)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            "numpy.linalg.solve: the left-hand side must have shape (..., n, n), got "
            f"{a.shape}; the right-hand side has {b.shape}."
        )
    n = a.shape[-1]
    if not b.ndim or b.shape[-2:][0] != n:
        raise ValueError(
            f"numpy.linalg.solve: inconsistent sizes, {n} unknowns by the left-hand side of shape "
            f"{a.shape}, right-hand side of shape {b.shape}, which must be ({n},) or (..., {n}, k)."
        )
    if b.ndim == 1:
        return squeeze(_solved(a, b[:, None]), -1)
    return _solved(a, b)


def _solved(a: Array, b: Array) -> Array:
    """Solve with stacks broadcast; one matrix serves many right-hand sides at once."""
    n, k = b.shape[-2:]
    if a.ndim == 2 and b.ndim > 2:
        rows = moveaxis(b, -2, 0)
        x = linear_solve(a, reshape(rows, (n, prod(rows.shape[1:]))))
        return moveaxis(reshape(x, rows.shape), 0, -2)
    batch = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return linear_solve(broadcast_to(a, (*batch, n, n)), broadcast_to(b, (*batch, n, k)))


@replayed
def inv(a: Any) -> Array:
    """Return the inverses of square matrices; `solve` is more accurate where it serves.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    (a,) = square("inv", a)
    return linear_solve(a, eye(a.shape[-1], a, a.shape[:-2]))


@replayed
def lstsq(
    a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Return the smallest solution of ``a @ x = b`` in the sense of least squares.

    Parameters
    ----------
    a : array_like
        A matrix (m, n).
    b : array_like
        A vector (m,) or matrix (m, k).
    rcond : float, optional
        Singular values below this part of the largest count as 0; by default the precision of the
        dtype times ``max(m, n)``. Negative for the precision.
    numpy_resid : bool
        Whether the residuals are empty where the rank is below n, as NumPy has it; not under
        `jit`.

    Returns
    -------
    x, residuals, rank, singular_values : arrays

    Raises
    ------
    TypeError
        For an ``a`` that is no matrix.
    ValueError
        For a ``b`` of another number of rows.
    """
    a, b = inexact_matrices("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise TypeError(
            "numpy.linalg.lstsq takes a matrix, and a vector or matrix, got arrays of shapes "
            f"{a.shape} and {b.shape}."
        )
    m, n = a.shape
    if b.shape[0] != m:
        raise ValueError(
            "numpy.linalg.lstsq: leading dimensions of input arrays must match, got shapes "
            f"{a.shape} and {b.shape}."
        )
    columns = b if b.ndim == 2 else b[:, None]
    real = to_real(a.dtype)
    eps = float(finfo(a.dtype).eps)
    cut = eps * max(m, n) if rcond is None else eps if rcond < 0 else rcond
    if a.size:
        u, s, vh = svd(a, full_matrices=False)
        kept = s >= np.asarray(cut, real) * s[0]
        rank = reduce_sum(kept)
        scale = where(kept, 1 / where(kept, s, 1), 0)
        inner = scale[:, None] * matmul(u.conj().T, columns)
        x = matmul(vh.conj().T, inner)
    else:
        s = lax.full((0,), 0, real)
        rank = lax.full((), 0, int)
        x = lax.full((n, columns.shape[1]), 0, a.dtype)
    if numpy_resid and (n == 0 or m <= n or bool(rank < n)):
        residuals = lax.full((0,), 0, real)
    else:
        error = columns - product(a, x)
        squares = error * error.conj() if is_complex(error.dtype) else error * error
        residuals = reduce_sum(squares.real, axis=0)
    return x if b.ndim == 2 else x[:, 0], residuals, rank, s


@replayed
def pinv(
    a: Any,
    rtol: Any = None,
    hermitian: bool = False,
    *,
    rcond: Any = None,
) -> Array:
    """Return Moore-Penrose inverses.

    Parameters
    ----------
    a : array_like
        Matrices (m, n) along the last two axes.
    rtol : array_like, optional
        Singular values up to this part of the largest count as 0; by default ten times the
        precision of the dtype times ``max(m, n)``.
    hermitian : bool
        Accepted; Hermitian matrices are inverted as others are.
    rcond : array_like, optional
        Another name for ``rtol``.

    Raises
    ------
    TypeError
        For ranks below 2, or both names given.
    """
    (a,) = inexact_matrices("pinv", a)
    if rtol is not None and rcond is not None:
        raise TypeError("numpy.linalg.pinv: give rtol or rcond, which are one thing, not both.")
    rtol = rcond if rtol is None else rtol
    if a.ndim < 2:
        raise ValueError(f"numpy.linalg.pinv takes matrices (..., m, n), got shape {a.shape}.")
    real = to_real(a.dtype)
    if rtol is None:
        rtol = 10 * max(a.shape[-2:]) * float(finfo(a.dtype).eps)
    rtol = lax.convert_element_type(as_operand("linalg.pinv", rtol), real)
    return _pinv(a, broadcast_to(rtol, a.shape[:-2]))


# ---- determinants --------------------------------------------------------------------------------


@replayed
def det(a: Any) -> Array:
    """Return the determinants of square matrices.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    (a,) = square("det", a)
    n = a.shape[-1]
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if n == 3:
        return (
            a[..., 0, 0] * a[..., 1, 1] * a[..., 2, 2]
            + a[..., 0, 1] * a[..., 1, 2] * a[..., 2, 0]
            + a[..., 0, 2] * a[..., 1, 0] * a[..., 2, 1]
            - a[..., 0, 2] * a[..., 1, 1] * a[..., 2, 0]
            - a[..., 0, 0] * a[..., 1, 2] * a[..., 2, 1]
            - a[..., 0, 1] * a[..., 1, 0] * a[..., 2, 2]
        )
    if n == 0:
        return lax.full(a.shape[:-2], 1, a.dtype)
    return _det(a)


@replayed
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Return signs (phases, of complex matrices) and logarithms of sizes of determinants.

    Parameters
    ----------
    a : array_like
        Square matrices along the last two axes.
    method : {None, "lu", "qr"}
        Accepted for compatibility; the factorisation is LU.

    Raises
    ------
    ValueError
        For matrices that are not square, or another method.
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"numpy.linalg.slogdet: method must be None, 'lu' or 'qr', got {method}.")
    (a,) = square("slogdet", a)
    return SlogdetResult(*_slogdet(a))


# ---- ranks and powers ----------------------------------------------------------------------------


@replayed
def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Array:
    """Return the number of singular values that are not negligible.

    Parameters
    ----------
    M : array_like
        Matrices along the last two axes; of a vector or number, whether it is not 0.
    rtol : array_like, optional
        Part of the largest value up to which one is negligible; by default the precision of the
        dtype times the larger size.
    hermitian : bool
        Whether eigenvalues may serve.
    tol : array_like, optional
        Deprecated: the absolute bound in place of the relative one.
    """
    (M,) = inexact_matrices("matrix_rank", M)
    if M.ndim < 2:
        return lax.convert_element_type(any_of(M != 0), np.int32)
    s = svd(M, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if tol is None:
        if rtol is None:
            rtol = max(M.shape[-2:]) * float(finfo(s.dtype).eps)
        largest = reduce_max(s, axis=-1, initial=0)
        tol = as_operand("linalg.matrix_rank", rtol) * largest
    bound = lax.expand_dims(array_of("linalg.matrix_rank", tol), (-1,)) if np.ndim(tol) else tol
    return reduce_sum(s > bound, axis=-1)


@replayed
def matrix_power(a: Any, n: int) -> Array:
    """Multiply square matrices with themselves, by repeated squaring.

    Parameters
    ----------
    a : array_like
        Matrices along the last two axes, of any dtype.
    n : int
        Concrete. Negative powers are those of the inverse.

    Raises
    ------
    TypeError
        For a power that is no integer, or matrices that are not square.
    """
    a = array_of("linalg.matrix_power", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise TypeError(
            f"numpy.linalg.matrix_power takes matrices (..., n, n), got shape {a.shape}."
        )
    try:
        n = index(n)
    except TypeError as error:
        raise TypeError(
            f"numpy.linalg.matrix_power: the exponent must be an integer, got {n}."
        ) from error
    if n == 0:
        return broadcast_to(eye(a.shape[-1], a), a.shape)
    if n < 0:
        a, n = inv(a), -n
    result, square_ = None, a
    while n:
        if n % 2:
            result = square_ if result is None else product(result, square_)
        n //= 2
        if n:
            square_ = product(square_, square_)
    return cast("Array", result)


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
    """Multiply a chain of matrices in the order that takes the fewest products.

    Parameters
    ----------
    arrays : sequence of array_like
        Matrices; the first and last may be vectors.
    precision : optional
        As of `fnarray.numpy.matmul`.

    Raises
    ------
    ValueError
        For fewer than two arrays, or ranks that do not fit.
    """
    chain = [array_of("linalg.multi_dot", x, i) for i, x in enumerate(arrays)]
    shapes = [x.shape for x in chain]
    fits = len(chain) > 1 and all(len(s) == 2 for s in shapes[1:-1])
    if not fits or any(len(shapes[k]) not in (1, 2) for k in (0, -1)):
        raise ValueError(
            "numpy.linalg.multi_dot takes at least two matrices, the first and last of which may "
            f"be vectors, got arrays of shapes {shapes}."
        )
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0]]
    sizes += [s[0] for s in shapes[1:]]
    sizes.append(1 if len(shapes[-1]) == 1 else shapes[-1][1])
    splits = _order(sizes)

    def multiply(i: int, j: int) -> Array:
        if i == j:
            return chain[i]
        k = splits[i, j]
        return product(multiply(i, k), multiply(k + 1, j), precision=precision)

    return multiply(0, len(chain) - 1)


def _order(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each part of a chain of matrices (Cormen et al., matrix chains)."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], splits[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return splits


# ---- tensors -------------------------------------------------------------------------------------


@replayed
def tensorinv(a: Any, ind: int = 2) -> Array:
    """Invert an array as the matrix of its first ``ind`` axes and the others.

    Raises
    ------
    ValueError
        For an ``ind`` that is not positive, or parts of different sizes.
    """
    (a,) = inexact_matrices("tensorinv", a)
    ind = index(ind)
    if ind <= 0:
        raise ValueError(f"numpy.linalg.tensorinv: ind must be a positive integer, got {ind}.")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if prod(rows) != prod(columns):
        raise ValueError(
            "numpy.linalg.tensorinv: the first ind axes must hold as many elements as the others, "
            f"got ind={ind} for shape {a.shape}."
        )
    flat = reshape(a, (prod(rows), prod(columns)))
    return reshape(inv(flat), (*columns, *rows))


def tensorsolve(a: Any, b: Any, axes: tuple[int, ...] | None = None) -> Array:
    """Solve ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a, b : array_like
        ``a`` has the axes of ``b`` and then those of ``x``.
    axes : tuple of int, optional
        Axes of ``a`` to move to its end first.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    a, b = inexact_matrices("tensorsolve", a, b)
    if axes is not None:
        last = [index(i) % a.ndim for i in axes]
        a = transpose(a, [i for i in range(a.ndim) if i not in last] + last)
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or prod(shape) != b.size:
        raise ValueError(
            "numpy.linalg.tensorsolve: the first must have the axes of the second, then as many "
            f"elements again, got shapes {a.shape} and {b.shape}."
        )
    x = solve(reshape(a, (b.size, b.size)), reshape(b, (b.size,)))
    return reshape(x, shape)
