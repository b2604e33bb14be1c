"""Matrix products on the pool's threads.

OpenBLAS has threads of its own, which keep spinning for some time after a product in the hope of
the next; with as many kernels' threads as cores they take turns with those, and a training step of
alternating products and kernels ran three times slower than its parts. So a product is cut into one
block of rows or columns for each of our threads, and BLAS works on one thread in each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import prod
from typing import Any, Final

import numpy as np

from ...core.contraction import LONG, contracted, stacks
from ...core.forms import Contract
from ...core.lines import LARGE, aligned
from ...core.quiet import quietly
from ...threads.onethread import one_thread
from ..target import Limits, weighed
from .launch import threads, together
from .native.codes import DATA

#: What BLAS calls numbers of a dtype.
LETTERS: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
#: Stacks of more matrices than this are left to NumPy, which needs no time for each in Python.
_FEW: Final = 16
#: Columns that each thread gets at least of a vector times a matrix: it reads as many neighbours of
#: each row. Halves of 25 took twice the processor time of the whole, of 125 1.3 times (2.5M terms).
_WIDE: Final = 128
#: Rows of a symmetric product's blocks at least, and how few and how many blocks there are.
_BLOCK: Final = 96
_BLOCKS: Final = (4, 8)
Block = tuple[np.ndarray, np.ndarray, np.ndarray]


def product_of(
    form: Contract, dtype: np.dtype, limits: Limits
) -> Callable[..., tuple[np.ndarray, ...]]:
    """Return what multiplies arrays as a form says."""
    multiply = partial(matmul, limits)
    # A step's operands have the same sizes in every call.
    ours: list[Callable[[np.ndarray, np.ndarray], np.ndarray] | None] = []

    def product(lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, ...]:
        if not ours:
            ours.append(laid_out(lhs, rhs, form, dtype, limits))
        if ours[0] is not None and lhs.flags.c_contiguous and rhs.flags.c_contiguous:
            return (ours[0](lhs, rhs),)
        out = quietly(contracted, lhs, rhs, form, dtype, multiply)
        return (np.asarray(out, dtype, order="C"),)

    return product


def matmul(limits: Limits, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Multiply matrices, or stacks of them, of one dtype; as `numpy.matmul`."""
    *stack, rows, _ = lhs.shape
    columns = rhs.shape[-1]
    work = weighed(lhs.size * columns, lhs.dtype)
    plain = lhs.dtype.char in LETTERS and lhs.shape[:-2] == rhs.shape[:-2]
    if work <= limits.serial or not plain:
        return np.matmul(lhs, rhs)
    count = max(1, min(threads(), work // limits.share))
    if rows == 1 and not stack and rhs.strides[1] == rhs.itemsize:
        count = max(1, min(count, columns // _WIDE))
    size = prod(stack) * rows * columns * lhs.dtype.itemsize
    out = aligned((*stack, rows, columns), lhs.dtype, size)
    below = _below(lhs, rhs, out)
    blocks = below or [b for whole in _stacks(lhs, rhs, out) for b in _blocks(*whole, count)]
    if not (_suited(rows * lhs.shape[-1] * columns) and _ours(blocks, count)):
        _of_blas(blocks, count)
    for _, _, some in below:
        rest = some[:, : -len(some)]
        out[: rest.shape[1], rest.shape[1] : some.shape[1]] = rest.T
    return out


def _of_blas(blocks: list[Block], count: int) -> None:
    """Compute products by BLAS."""
    calls = _calls(blocks, count) if len(blocks) > 1 else None
    with one_thread:
        if calls is not None:
            from .native import pool  # which few programs need

            pool.call(calls[0], count)
        else:

            def multiply(k: int) -> None:
                np.matmul(blocks[k][0], blocks[k][1], out=blocks[k][2])

            together(multiply, len(blocks))


def _below(lhs: np.ndarray, rhs: np.ndarray, out: np.ndarray) -> list[Block]:
    """Cut what is below the diagonal of a matrix times its own transpose; nothing of others.

    Blocks of rows go as far as the diagonal of their last: of covariances, 0.6 of the work. What is
    above is the same to the bit, as each entry is added up in the same order.
    """
    rows, turned = len(out), rhs.T
    if out.ndim > 2 or address(lhs) != address(rhs) or lhs.strides != turned.strides:
        return []
    if lhs.shape != turned.shape or rows < _BLOCKS[0] * _BLOCK:
        return []
    starts = range(0, rows, max(_BLOCK, -(-rows // _BLOCKS[1])))
    ends = [*starts[1:], rows]
    return [(lhs[a:b], rhs[:, :b], out[a:b, :b]) for a, b in zip(starts, ends, strict=True)][::-1]


def _stacks(lhs: np.ndarray, rhs: np.ndarray, out: np.ndarray) -> list[Block]:
    """Return a product as products of stacks along one axis, of which each is a view."""
    if out.ndim <= 3:
        return [(lhs, rhs, out)]
    one, two, both = (x.reshape(-1, *x.shape[-2:]) for x in (lhs, rhs, out))
    if address(one) == address(lhs) and address(two) == address(rhs):
        return [(one, two, both)]
    return [stack for block in zip(lhs, rhs, out, strict=True) for stack in _stacks(*block)]


def _blocks(lhs: np.ndarray, rhs: np.ndarray, out: np.ndarray, count: int) -> Iterator[Block]:
    """Cut a product into blocks: of the stack, of rows or of columns."""
    *stack, rows, columns = out.shape
    every = (slice(None),) * len(stack)

    def parts(extent: int) -> Iterator[slice]:
        step = -(-extent // count)
        return (slice(k, k + step) for k in range(0, extent, step))

    if stack and stack[0] >= count:
        yield from ((lhs[some], rhs[some], out[some]) for some in parts(stack[0]))
    elif rows >= columns:
        for some in parts(rows):
            yield lhs[(*every, some)], rhs, out[(*every, some)]
    else:
        for some in parts(columns):
            last = (*every, slice(None), some)
            yield lhs, rhs[last], out[last]


def laid_out(
    lhs: np.ndarray, rhs: np.ndarray, form: Contract, dtype: np.dtype, limits: Limits
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Return what multiplies C-ordered arrays of these shapes on the calling thread.

    All but their addresses is known beforehand: asked anew, a product of 1,500 x 16 by 16 x 16
    takes the host 7 us beside the 6 that it computes, and 2 so. None where it is not for our own
    routine, or for threads.
    """
    if not lhs.dtype == rhs.dtype == dtype or dtype.char not in "fd":
        return None
    code = _product(dtype.char)
    a, b, shape = stacks(lhs, rhs, form)
    (*_, m, k), n = a.shape, b.shape[-1]
    if code is None or 1 in (m, n) or not a.size * n or a.size * n >= 2 * limits.share:
        return None
    if k >= LONG:  # parts of it are added up apart
        return None
    a, b = a.reshape(-1, m, k), b.reshape(-1, k, n)
    left, right = _layout(a), _layout(b)
    if left is None or right is None or address(a) != address(lhs) or address(b) != address(rhs):
        return None  # axes that do not lie together were copied
    call, steps = _function(code), (a.strides[0], b.strides[0], m * n * dtype.itemsize)
    size = len(a) * steps[-1]
    words = m, k, n, left[1], right[1], n, not left[0], not right[0], len(a), *steps

    def multiply(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        out = aligned(shape, dtype, size) if size >= LARGE else np.empty(shape, dtype)
        call(address(lhs), address(rhs), address(out), *words)
        return out

    return multiply


# ---- calls without Python's threads --------------------------------------------------------------


def _ours(blocks: list[Block], count: int) -> bool:
    """Compute products by our own routine; return whether there is one for them."""
    code = _product(blocks[0][2].dtype.char)
    if code is None or 1 in blocks[0][2].shape[-2:]:
        return False
    calls: list[tuple[int, ...]] = []
    for lhs, rhs, out in blocks:
        a, b, (*stack, m, n), width = _layout(lhs), _layout(rhs), out.shape, out.itemsize
        if a is None or b is None:
            return False
        steps = (x.strides[0] if stack else 0 for x in (lhs, rhs, out))
        calls.append((
            address(lhs), address(rhs), address(out), m, lhs.shape[-1], n, a[1], b[1],
            max(out.strides[-2] // width, 1), not a[0], not b[0], stack[0] if stack else 1, *steps,
        ))  # fmt: skip
    if len(calls) == 1:
        _function(code)(*calls[0])
        return True
    from .native import pool, sharing

    if not pool.prepare(count):
        return False
    frames = np.zeros((len(calls), sharing.POINTERS + 1), np.int64)
    frames[:, : len(calls[0]) + 1] = [(code, *words) for words in calls]
    pool.call(frames, count)
    return True


def _suited(multiplications: int) -> bool:
    """Whether our own routine is at least as fast as BLAS for matrices of a size."""
    from .native import gemm

    return multiplications < gemm.large()


@cache
def _function(code: int) -> Callable[..., None]:
    from .native import gemm

    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(gemm.PARAMETERS))(code)


@cache
def _product(char: str) -> int | None:
    """Return the address of our own product of a kind of number; None where there is none."""
    from .native import gemm, load
    from .native.call import layout_is_known

    name = gemm.symbol(LETTERS[char])
    return load.product(name) if name and layout_is_known() else None


def _calls(blocks: list[Block], count: int) -> tuple[np.ndarray, object] | None:
    """Return calls of BLAS for the pool of machine code, and what must live until then, if it can.

    Handing over to a thread of Python's costs 30 us and up, in which both wait for the GIL.
    """
    from .native import pool, sharing
    from .native.call import layout_is_known

    stacked = blocks[0][2].ndim == 3
    single = [m for b in blocks for m in (zip(*b, strict=True) if stacked else (b,))]
    if len(single) > _FEW or not layout_is_known() or not pool.prepare(count):
        return None
    frames = np.zeros((len(single), sharing.POINTERS + 1), np.int64)
    kept = [_call(frame, *block) for frame, block in zip(frames, single, strict=True)]
    return (frames, (single, kept)) if all(kept) else None


def _call(
    frame: np.ndarray, lhs: np.ndarray, rhs: np.ndarray, out: np.ndarray
) -> tuple[object, ...]:
    """Fill a call's frame; return what must live until then, nothing where there is no routine."""
    # BLAS reads columns where we have rows: it is asked for the transposed product.
    (m, k), n, width = lhs.shape, rhs.shape[1], out.itemsize
    a, b = _layout(lhs), _layout(rhs)
    vector = m == 1 or n == 1
    routine = _routine(out.dtype.char, vector)
    if routine is None or a is None or b is None or max(m, k, n) > np.iinfo(routine[1]).max:
        return ()
    code, integer = routine
    letters, one, zero = _constants(out.dtype)
    (rows, lda), (columns, ldb) = a, b
    step = max(out.strides[0] // width, 1)
    sizes: np.ndarray[Any, Any] = np.array([n, m, k, ldb, lda, step, 1], integer)
    at = [address(sizes) + sizes.itemsize * j for j in range(7)]
    n_, m_, k_, ldb_, lda_, step_, unit_ = at
    left, right, result = address(lhs), address(rhs), address(out)
    if not vector:
        frame[:14] = (
            code, letters + (not columns), letters + (not rows), n_, m_, k_, one, right, ldb_,
            left, lda_, zero, result, step_,
        )  # fmt: skip
        return (sizes,)
    # A vector that lies apart in memory is read with its stride.
    if n == 1:
        matrix, ld, plain, vector_, x = left, lda_, not rows, right, rhs.strides[0]
        shape, y = ((k_, m_) if rows else (m_, k_)), step_
    else:
        matrix, ld, plain, vector_, x = right, ldb_, columns, left, lhs.strides[1]
        shape, y = ((n_, k_) if columns else (k_, n_)), unit_
    stride: np.ndarray[Any, Any] = np.array([max(x // width, 1)], integer)
    frame[:12] = (
        code, letters + (not plain), *shape, one, matrix, ld, vector_, address(stride), zero,
        result, y,
    )  # fmt: skip
    return sizes, stride


def _layout(x: np.ndarray) -> tuple[bool, int] | None:
    """Return whether rows lie together, or else columns, and how far apart they begin."""
    (rows, columns), (down, along), width = x.shape[-2:], x.strides[-2:], x.itemsize
    if along == width or columns == 1:
        ld = down // width if rows > 1 else columns
        if ld >= columns and down % width == 0:
            return True, max(ld, 1)
    if down == width or rows == 1:
        ld = along // width if columns > 1 else rows
        if ld >= rows and along % width == 0:
            return False, max(ld, 1)
    return None


def address(x: np.ndarray) -> int:
    """Return where an array's elements begin."""
    # Read where machine code reads it: NumPy takes 1.5 us to say it, and a product asks ten times.
    return _Word.from_address(id(x) + DATA).value


@cache
def _routine(char: str, vector: bool) -> tuple[int, type] | None:
    """Return the address of a routine and the type of its integers: NumPy's, or else SciPy's."""
    from .native import blas

    name = f"{LETTERS[char]}gem{'v' if vector else 'm'}"
    code = blas.of_numpy(name)
    if code is not None:
        return code, np.int64
    code = blas.address(f"fnarray_{name}")
    return None if code is None else (code, np.int32)


_Word: Final = ctypes.c_int64
_kept: Final[list[np.ndarray]] = []


@cache
def _constants(dtype: np.dtype) -> tuple[int, int, int]:
    """Return the addresses of the letters ``n`` and ``t``, of one, and of zero."""
    _kept.extend((np.frombuffer(b"nt", np.uint8), np.ones(1, dtype), np.zeros(1, dtype)))
    letters, one, zero = map(address, _kept[-3:])
    return letters, one, zero
