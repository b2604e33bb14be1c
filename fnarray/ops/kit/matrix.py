"""What operations on matrices share: checks, evaluation over stacks, and the products rules need.

A stack is an array whose last two axes are a matrix's; the axes before count matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from math import cbrt, isqrt, prod
from typing import Any

import numpy as np

from ...config import config
from ...core.avals import ShapedArray
from ...core.dtypes import bfloat16, float16, is_complex
from ...core.forms import HOST, KernelRef, Library
from ...core.libraries import library
from ...errors import ShapeError
from ...threads.cores import available_cores
from ...threads.onethread import one_thread
from ...threads.shards import Coordinates, here, run_shards
from . import calls
from .calls import (
    add,
    broadcast_in_dim,
    concatenate,
    conj,
    convert_like,
    div,
    eq,
    full,
    ge,
    iota,
    le,
    mul,
    pad,
    permute,
    reduce_sum,
    reshape,
    select,
    sub,
)
from .checks import INEXACT, check_kind

#: Sizes up to which LAPACK uses no threads by itself.
SMALL = 24
#: Orders up to which LAPACK keeps to one thread, or of as many numbers in other matrices: on two
#: busy cores a Cholesky factor of 650 rows took 5 ms so, and 1.1 s on two threads that wait for
#: each other by spinning; a triangular system of 16 with 3,000 right-hand sides .2 and 20.
ALONE = 1024
#: Numbers from which stacks of small matrices are NumPy's, whose loop is in C: 10 us and 0.3 us for
#: each, where SciPy takes 2 us and 2 us.
MANY = 16
#: Sums of cubes of rows that are worth a thread: a third of a millisecond.
PART = 1 << 20


# ---- checks --------------------------------------------------------------------------------------


def check_inexact(name: str, dtype: np.dtype) -> None:
    """Raise `TypeError` for dtypes that LAPACK has no routines for."""
    check_kind(name, dtype, INEXACT)
    if dtype in (float16, bfloat16):
        raise TypeError(
            f"lax.linalg.{name} does not accept dtype {dtype.name}; it takes float32, float64, "
            "complex64 and complex128. Convert the matrix to float32."
        )


def check_matrix(name: str, x: ShapedArray) -> tuple[tuple[int, ...], int, int]:
    """Return the shape of the stack and of its matrices; raise unless ``x`` is one.

    Raises
    ------
    TypeError
        For ranks below 2, and dtypes that are not inexact.
    """
    if x.ndim < 2:
        raise TypeError(
            f"lax.linalg.{name} takes matrices, or stacks of them: the array must have rank at "
            f"least 2, got shape {x.shape}."
        )
    check_inexact(name, x.dtype)
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def check_square(name: str, x: ShapedArray) -> tuple[tuple[int, ...], int]:
    """Return the shape of the stack and the size of its matrices.

    Raises
    ------
    ShapeError
        For matrices that are not square.
    """
    batch, m, n = check_matrix(name, x)
    if m != n:
        raise ShapeError(f"lax.linalg.{name} takes square matrices, got shape {x.shape}.")
    return batch, n


# ---- evaluation ----------------------------------------------------------------------------------


@cache
def lapack(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """Return the LAPACK routine of a name for a dtype."""
    return library("scipy.linalg.lapack").get_lapack_funcs(name, dtype=dtype)


@cache
def blas(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """Return the BLAS routine of a name for a dtype."""
    return library("scipy.linalg.blas").get_blas_funcs(name, dtype=dtype)


@cache
def workspace(name: str, dtype: np.dtype, *sizes: int, **flags: int) -> tuple[int, ...]:
    """Return the lengths of the working arrays with which a routine is fastest."""
    *lengths, _ = lapack(f"{name}_lwork", dtype)(*sizes, **flags)
    return tuple(int(n.real) for n in lengths)


def per_matrix(
    f: Callable[..., Sequence[np.ndarray]],
    operands: Sequence[np.ndarray],
    ranks: Sequence[int],
    outs: Sequence[tuple[tuple[int, ...], Any]],
    *,
    finite: bool = False,
) -> tuple[np.ndarray, ...]:
    """Evaluate ``f`` on each matrix of stacks; results of given shapes and dtypes.

    Results are filled with NaN where ``f`` raises `numpy.linalg.LinAlgError`, as no decomposition
    exists or the iteration did not converge; and where an operand is not ``finite``, if it must
    be: LAPACK's iterations need not end on NaN.
    """
    batch = operands[0].shape[: operands[0].ndim - ranks[0]]
    if not batch and max([max(x.shape, default=0) for x in operands]) <= SMALL:
        return _of_one(f, operands, outs, finite)
    results = tuple([np.empty((*batch, *shape), dtype) for shape, dtype in outs])
    usable: Any = None
    if finite:
        good = [
            np.isfinite(x).all(tuple(range(-r, 0))) for x, r in zip(operands, ranks, strict=True)
        ]
        usable = np.logical_and.reduce(good)
    shapes = [x.shape[x.ndim - rank :] for x, rank in zip(operands, ranks, strict=True)]
    takes_threads = max(max(shape, default=0) for shape in shapes) > SMALL
    is_brief = isqrt(max(map(prod, shapes))) <= ALONE
    with one_thread if takes_threads and is_brief else nullcontext():
        for i in np.ndindex(batch):
            try:
                if usable is not None and not usable[i]:
                    raise np.linalg.LinAlgError
                values = f(*[x[i] for x in operands])
            except np.linalg.LinAlgError:
                values = [np.nan if r.dtype.kind in "fc" else 0 for r in results]
            for result, value in zip(results, values, strict=True):
                result[i] = value
    return results


def _of_one(
    f: Callable[..., Sequence[np.ndarray]],
    operands: Sequence[np.ndarray],
    outs: Sequence[tuple[tuple[int, ...], Any]],
    finite: bool,
) -> tuple[np.ndarray, ...]:
    """Return what `per_matrix` does for one small matrix: what goes around takes as long."""
    try:
        # A third of what `numpy.all` takes.
        if finite and any(b"\0" in np.isfinite(x).tobytes() for x in operands):
            raise np.linalg.LinAlgError
        found = zip(f(*operands), outs, strict=True)
        return tuple([np.asarray(x, dtype, order="C") for x, (_, dtype) in found])
    except np.linalg.LinAlgError:
        return tuple(
            [np.full(shape, np.nan if np.dtype(d).kind in "fc" else 0, d) for shape, d in outs]
        )


def are_small(*operands: ShapedArray) -> bool:
    """Whether operands are single matrices of few numbers, and of any."""
    return all(x.ndim == 2 and x.size and max(x.shape) <= SMALL for x in operands)


def alone(build: Callable[..., Any], *, finite: bool = False) -> Callable[..., Any]:
    """Return what `known_of` asks of an operation of matrices: how one small matrix is evaluated.

    ``build(shape, dtype, **params)`` gives what `per_matrix` takes: ``f`` and ``outs``.
    """

    def known(x: ShapedArray, **params: Any) -> Callable[..., Any] | None:
        if not are_small(x):
            return None
        f, outs = build(x.shape, x.dtype, **params)

        def evaluate(a: np.ndarray) -> tuple[np.ndarray, ...]:
            return _of_one(f, (a,), outs, finite)

        return evaluate

    return known


def both_alone(build: Callable[..., Callable[..., np.ndarray]]) -> Callable[..., Any]:
    """Return what `known_of` asks of a system: what solves one small one.

    ``build(dtype, **params)`` gives it, a function of matrix and right-hand sides.
    """

    def known(a: ShapedArray, b: ShapedArray, **params: Any) -> Callable[..., Any] | None:
        return build(b.dtype, **params) if are_small(a, b) else None

    return known


def stacks(f: Callable[..., np.ndarray], *operands: np.ndarray) -> np.ndarray:
    """Evaluate a function of NumPy's, whose result is like the last operand, on stacks of matrices.

    Each core takes a part of a long stack, where BLAS keeps to one thread: on two that wait for
    each other 32 systems of 150 rows took 84 ms of the processor, and so 24.

    Raises
    ------
    numpy.linalg.LinAlgError
        If `f` does for one of the matrices.
    """
    x = operands[-1]
    n = max(operand.shape[-2] for operand in operands)
    if n <= SMALL:
        return f(*operands)
    batch = count(x.shape[:-2])
    flat = [operand.reshape(batch, *operand.shape[-2:]) for operand in operands]
    result = np.empty_like(flat[-1])
    cores = max(1, (config.num_threads or available_cores()) // here.sharing)
    parts = max(1, min(cores, batch * n**3 // PART))

    def work(at: Coordinates) -> None:
        first, end = (batch * k // parts for k in (at["part"], at["part"] + 1))
        try:
            result[first:end] = f(*(operand[first:end] for operand in flat))
        except np.linalg.LinAlgError as error:
            # Raised here it would end all shards of a program around this one, which goes on.
            errors.append(error)

    errors: list[np.linalg.LinAlgError] = []
    with one_thread:
        run_shards(work, (("part", parts),), f.__name__)
    if errors:
        raise errors[0]
    return result.reshape(x.shape)


def native(function: str, size: int, statics: Sequence[Any], flops: float | None = None) -> Library:
    """Return how a stack of matrices lowers: to a kernel or to LAPACK, as the target likes.

    ``statics`` begin with how many there are; ``flops`` are the operations that one takes.
    """
    total = None if flops is None else round(statics[0] * flops)
    return Library(KernelRef("linalg", function), tuple(statics), size, flops=total, stacked=True)


def parted(function: str, x: ShapedArray) -> str:
    """Return the name of a kernel that has a form of its own for complex numbers."""
    return f"{function}_complex" if is_complex(x.dtype) else function


def order_of_system(n: int, k: int) -> int:
    """Return the order of the square system that is as much work: n equations, k right-hand sides.

    A kernel solves one of 3 by 3 for 300 of them in 3 us, BLAS in 60.
    """
    return max(n, round(cbrt(n * n * k)))


def lu_flops(m: int, n: int) -> float:
    """Return the operations of elimination in a matrix of m by n."""
    k = min(m, n)
    return k * (2 * m * n - k * (m + n) + 2 * k * k / 3)


def by_lapack(function: str, x: ShapedArray, *statics: Any, exact: bool = True) -> Library:
    """Return how decompositions lower that are LAPACK's in kernels too, which call its routines.

    The kernel is told how many matrices there are, and ``statics``. One that does more than call
    the routine is not ``exact``.
    """
    if not x.size:
        return HOST
    m, n = x.shape[-2:]
    threads = max(m, n) > SMALL
    given = (count(x.shape[:-2]), *statics)
    op = KernelRef("lapack", parted(function, x))
    return Library(op, given, isqrt(m * n), blas=threads, exact=exact and not threads)


def count(batch: tuple[int, ...]) -> int:
    """Return the number of matrices in a stack."""
    return prod(batch)


# ---- products and parts of matrices, as rules use them -------------------------------------------


def swap(x: Any) -> Any:
    """Transpose the matrices."""
    n = x.ndim
    return permute(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """Transpose and conjugate the matrices."""
    return conj(swap(x))


def hermitian_part(x: Any) -> Any:
    """``(x + x^H) / 2``."""
    return div(add(x, adjoint(x)), 2)


def where_entries(relation: Callable[..., Any], x: Any, offset: int = 0, other: Any = 0) -> Any:
    """Keep the entries whose row plus ``offset`` is in a relation to their column.

    ``relation`` is the call `ge` for those on and below a diagonal, `le` on and above, `eq` on
    it; the other entries are those of ``other``, a number or array.
    """
    shape = x.shape[-2:]
    row, column = (iota(shape, k) for k in (0, 1))
    if offset:
        row = add(row, offset)
    which = relation(row, column)
    if x.ndim > 2:
        axes = (x.ndim - 2, x.ndim - 1)
        which = broadcast_in_dim(which, x.shape, axes)
    return select(which, x, other)


def tril(x: Any, offset: int = 0) -> Any:
    """Zero what is above a diagonal."""
    return where_entries(ge, x, offset)


def triu(x: Any, offset: int = 0) -> Any:
    """Zero what is below a diagonal."""
    return where_entries(le, x, offset)


def unit_diagonal(x: Any) -> Any:
    """Replace the diagonal by ones."""
    shape = x.shape[-2:]
    one = full(x.aval.update(shape=x.shape), 1)
    return where_entries(eq, one, 0, x) if shape[0] and shape[1] else x


def eye(n: int, like: Any, batch: tuple[int, ...] = ()) -> Any:
    """Return identity matrices in the dtype of an array."""
    return where_entries(eq, full(ShapedArray((*batch, n, n), like.dtype), 1))


def diagonal(x: Any) -> Any:
    """Return the diagonals of square matrices."""
    return reduce_sum(where_entries(eq, x), (x.ndim - 1,))


def scale_columns(x: Any, d: Any) -> Any:
    """``x @ diag(d)``."""
    return mul(x, _along(x, d, (*range(d.ndim - 1), x.ndim - 1)))


def scale_rows(d: Any, x: Any) -> Any:
    """``diag(d) @ x``."""
    return mul(_along(x, d, tuple(range(x.ndim - 1))), x)


def _along(x: Any, d: Any, axes: tuple[int, ...]) -> Any:
    return broadcast_in_dim(convert_like(d, x), x.shape, axes)


def cut(x: Any, axis: int, start: int, stop: int) -> Any:
    """Return what lies between two places along an axis, which may count from the end."""
    low, high = [0] * x.ndim, list(x.shape)
    low[axis], high[axis] = start, stop
    return calls.slice(x, tuple(low), tuple(high))


def shift(x: Any, axis: int, places: int) -> Any:
    """Move elements along an axis by one place or more, zeros following; the size stays."""
    edges = [(0, 0, 0)] * x.ndim
    edges[axis] = (places, -places, 0)
    return pad(x, 0, edges)


def extend(x: Any, axis: int, places: int) -> Any:
    """Append zeros along an axis."""
    edges = [(0, 0, 0)] * x.ndim
    edges[axis] = (0, places, 0)
    return pad(x, 0, edges) if places else x


def join(parts: Sequence[Any], axis: int) -> Any:
    """Concatenate along an axis that counts from the end."""
    return concatenate(parts, parts[0].ndim + axis)


def with_columns_folded(size: int, b: Any, solve: Callable[[Any], Any]) -> Any:
    """Solve for many right-hand sides with one matrix: the mapped axis becomes more columns."""
    n, k = b.shape[1:]
    flat = reshape(permute(b, (1, 2, 0)), (n, k * size))
    return permute(reshape(solve(flat), (n, k, size)), (2, 0, 1))


def differences(w: Any) -> Any:
    """Return ``w[j] - w[i]`` at ``(i, j)``."""
    shape = (*w.shape, w.shape[-1])
    lead = tuple(range(w.ndim - 1))
    row = broadcast_in_dim(w, shape, (*lead, w.ndim))
    column = broadcast_in_dim(w, shape, (*lead, w.ndim - 1))
    return sub(row, column)


def inverse_off_diagonal(x: Any) -> Any:
    """Return reciprocals off the diagonal, and zeros on it."""
    safe = unit_diagonal(x)
    reciprocal = div(full(x.aval, 1), safe)
    return sub(reciprocal, where_entries(eq, full(x.aval, 1)))
