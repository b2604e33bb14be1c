"""Contractions of NumPy arrays: what `core.forms.Contract` means, by products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ..config import enable_x64
from .dtypes import (
    float32,
    float64,
    is_complex,
    is_float,
    is_half,
    is_inexact,
    is_integer,
    promote_types,
)
from .forms import Contract
from .small import to_wider

Axes = tuple[int, ...]


@lru_cache(maxsize=1024)
def free_axes(ndim: int, *taken: Axes) -> Axes:
    """Return the axes that no group has taken."""
    return tuple(a for a in range(ndim) if not any(a in axes for axes in taken))


@lru_cache(maxsize=512)
def working_dtype(lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> np.dtype:
    """Return the dtype in which products are formed and added up.

    It holds operands and result alike; half precision and small types work in 32 bits.
    """
    lhs, rhs, out = (to_wider(d) for d in (lhs, rhs, out))
    # A program compiled under enable_x64 may run after it: nothing here depends on the setting.
    with enable_x64(True):
        natural = promote_types(lhs, rhs)
        if is_integer(natural) and is_integer(out):
            wide = out
        elif is_inexact(natural) and (not is_inexact(out) or is_complex(natural)):
            wide = natural
        else:
            wide = promote_types(natural, out)
    return float32 if is_half(wide) else wide


def _matrices(x: np.ndarray, batch: Axes, rows: Axes, columns: Axes) -> np.ndarray:
    """Return a stack of matrices: a view wherever each group's axes lie together in memory."""
    shape = x.shape
    sizes = (*(shape[a] for a in batch), _size(shape, rows), _size(shape, columns))
    return x.transpose(batch + rows + columns).reshape(sizes)


def _size(shape: Axes, axes: Axes) -> int:
    size = 1
    for a in axes:
        size *= shape[a]
    return size


#: Multiplications up to which NumPy's loop takes integers and bools as they are.
_SMALL: Final = 4096


def _integer_matmul(
    lhs: np.ndarray, rhs: np.ndarray, wide: np.dtype, product: Callable[..., Any]
) -> np.ndarray:
    """Multiply integer matrices, as floats where every sum is exact.

    That is about 20 times faster than NumPy's loop over integers; small ones are so in float32.
    """
    if lhs.size * rhs.shape[-1] > _SMALL:
        reach = _reach(lhs) * _reach(rhs) * max(lhs.shape[-1], 1)
        if reach <= 2.0**53:
            real = float32 if reach <= 2.0**24 else float64
            exact = product(lhs.astype(real), rhs.astype(real))
            if wide.kind == "u" or reach > np.iinfo(wide).max:  # what is beyond it wraps
                exact = exact.astype(np.int64)
            return exact.astype(wide)
    return np.matmul(lhs.astype(wide, copy=False), rhs.astype(wide, copy=False))


def _reach(x: np.ndarray) -> float:
    """Return what no number of an array is larger than, in size; of small types without a look."""
    if x.itemsize == 1 or not x.size:
        return float(-np.iinfo(x.dtype).min or np.iinfo(x.dtype).max)
    return float(max(abs(int(x.min())), abs(int(x.max()))))


def stacks(
    lhs: np.ndarray, rhs: np.ndarray, form: Contract
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return operands as stacks of matrices, views where strides allow, and the result's shape."""
    lhs_contract, rhs_contract = form.lhs_contract, form.rhs_contract
    lhs_batch, rhs_batch = form.lhs_batch, form.rhs_batch
    free_lhs = free_axes(lhs.ndim, lhs_contract, lhs_batch)
    free_rhs = free_axes(rhs.ndim, rhs_contract, rhs_batch)
    shape = (
        *(lhs.shape[a] for a in lhs_batch),
        *(lhs.shape[a] for a in free_lhs),
        *(rhs.shape[a] for a in free_rhs),
    )
    a = _matrices(lhs, lhs_batch, free_lhs, lhs_contract)
    b = _matrices(rhs, rhs_batch, rhs_contract, free_rhs)
    return a, b, shape


def contracted(
    lhs: np.ndarray,
    rhs: np.ndarray,
    form: Contract,
    dtype: np.dtype,
    product: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.matmul,
) -> np.ndarray:
    """Contract NumPy arrays by BLAS, without copies where strides allow.

    Parameters
    ----------
    lhs, rhs : numpy.ndarray
        Of any strides and of dtypes that may differ.
    form : Contract
    dtype : numpy.dtype
        Of the result.
    product : callable
        Multiplies stacks of float matrices.

    Returns
    -------
    numpy.ndarray
        Axes: batch, what remains of ``lhs``, what remains of ``rhs``.
    """
    sums = form.lhs_contract, form.rhs_contract
    if lhs.ndim == rhs.ndim == 2 and sums == ((1,), (0,)) and not form.lhs_batch:
        a, b, wide = _widened(lhs, rhs, dtype)  # a plain product, as most are
        return narrow(matmul(a, b, product, wide), dtype)
    lhs, rhs, wide = _widened(lhs, rhs, dtype)
    a, b, shape = stacks(lhs, rhs, form)
    (m, k), n = a.shape[-2:], b.shape[-1]
    if m == n == 1 and k > LINE and a.dtype.kind in "fc":
        return narrow(_of_vectors(a.reshape(-1, k), b.reshape(-1, k)).reshape(shape), dtype)
    return narrow(matmul(a, b, product, wide).reshape(shape), dtype)


#: Terms of a product of vectors that BLAS adds up in one go. It makes some 32 sums of them, as
#: kernels do; of 1,000,000 in one go the result is off by 43 ULP.
LINE: Final = 1024


def _of_vectors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Add up the products of parts of pairs of vectors in pairs, in double precision."""
    (n, k), wide = a.shape, np.result_type(a.dtype, np.float64)
    whole = k - k % LINE
    parts = np.matmul(
        a[:, :whole].reshape(n, -1, 1, LINE), b[:, :whole].reshape(n, -1, LINE, 1)
    ).reshape(n, -1)
    rest = np.matmul(a[:, None, whole:], b[:, whole:, None]).reshape(n)
    return np.asarray(np.add.reduce(parts, axis=1, dtype=wide) + rest, a.dtype)


def _widened(
    lhs: np.ndarray, rhs: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.dtype]:
    """Return operands and their working dtype, in which floats are; integers may be smaller."""
    wide = working_dtype(lhs.dtype, rhs.dtype, dtype)
    if lhs.dtype.kind in "iu" and rhs.dtype.kind in "iu" and wide.kind in "iu":
        return lhs, rhs, wide
    return lhs.astype(wide, copy=False), rhs.astype(wide, copy=False), wide


#: Terms that BLAS adds up one after another, and entries of a result that has many more of them.
_TERMS, _THIN = 1 << 12, 1 << 10
#: Terms from which on a product of few entries is made of parts that are added up.
LONG = 4 * _TERMS


def matmul(
    lhs: np.ndarray,
    rhs: np.ndarray,
    product: Callable[..., Any] = np.matmul,
    wide: np.dtype | None = None,
) -> Any:
    """Multiply stacks of matrices of one working dtype; of integers it is ``wide``."""
    if lhs.dtype.kind in "iu":
        return _integer_matmul(lhs, rhs, lhs.dtype if wide is None else wide, product)
    if lhs.dtype.kind == "b" and lhs.size * rhs.shape[-1] > _SMALL:
        return product(lhs.astype(float32), rhs.astype(float32)) != 0  # no sum of ones is zero
    if lhs.ndim == rhs.ndim == 2 and lhs.shape[1] >= LONG:
        (m, k), n = lhs.shape, rhs.shape[1]
        if min(m, n) > 1 and m * n <= _THIN:
            return _in_blocks(lhs, rhs, k - k % _TERMS, product)
    return product(lhs, rhs)


def _in_blocks(
    lhs: np.ndarray, rhs: np.ndarray, whole: int, product: Callable[..., Any]
) -> np.ndarray:
    """Multiply by blocks of terms: the covariance of 100,000 rows had twice the error else."""
    rows = lhs[:, :whole].reshape(lhs.shape[0], -1, _TERMS).swapaxes(0, 1)
    columns = rhs[:whole].reshape(-1, _TERMS, rhs.shape[1])
    total: np.ndarray[Any, Any] = np.add.reduce(product(rows, columns), axis=0)
    return total + product(lhs[:, whole:], rhs[whole:])


def narrow(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert a sum to the result's dtype; of a complex one a real dtype takes the real part."""
    if x.dtype == dtype:
        return x
    if is_complex(x.dtype) and not is_complex(dtype):
        x = np.real(x)
    return x.astype(dtype)


#: Elements of a vector from which on products of vectors take less time than of matrices.
_SLID = 48


def slides_along_lines(lhs: Any, rhs: Any, params: dict[str, Any]) -> bool:
    """Whether a long vector slides along others: `numpy.correlate` is best for it.

    Its products are of vectors: sums of 64 terms are off by 0.4 ULP, of 1,000 by 0.2, as JAX's are;
    of windows laid out as a matrix, by 1 and 1.9. 1,000 terms at 1,999 places take 78 us in place
    of 495 (JAX 4,270); 16 at 100,000 take 1,270, and others' products of matrices 485.
    """
    layout = params["dimension_numbers"]
    features = lhs.shape[layout.lhs_spec[1]], rhs.shape[layout.rhs_spec[0]]
    near = params["window_strides"] == params["rhs_dilation"] == (1,)
    alone = features == (1, 1) and params["batch_group_count"] == 1
    return near and alone and rhs.size >= _SLID and is_float(lhs.dtype)
