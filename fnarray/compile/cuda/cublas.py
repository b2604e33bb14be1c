"""Large products of matrices by cuBLAS, on arrays where they lie: no package is between.

A contraction is a stack of products of matrices. What a group of axes spans is seen as one axis
where memory allows, so that transposes are said to the library and nothing is copied; operands of
which that cannot be said are laid out first.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_longlong, c_void_p
from math import prod
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from ...core.contraction import free_axes
from ...core.forms import Contract
from ...core.frozen import frozen
from ...errors import JaxRuntimeError
from ..emit.source import KernelSource
from ..emit.values import CODES
from ..ir import Node
from .device import DeviceArray, Gpu
from .grids import GRID, LANES, grid_of
from .libcuda import libcuda
from .values import NARROW

_log: Final = logging.getLogger("fnarray.compile")
#: Products of at least so many multiplications are the library's; smaller ones are tiles of our
#: own, which take part in CUDA graphs. By judgement: 256 x 256 by 256 x 256 takes some 5 us both
#: ways, and of halves, which have tensor cores, a quarter.
LARGE: Final = 1 << 24
#: Calls for a stack that no single stride describes; beyond, an operand is laid out.
_CALLS: Final = 32
#: Matrices of a stack in one call.
_STACK: Final = 1 << 15
_MOST: Final = 1 << 31
#: Above all versions of CUDA: programs are built here for a GPU that is elsewhere.
_ANY: Final = 1 << 10

_INT, _LONG, _POINTER = c_int, c_longlong, c_void_p
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "cublasCreate_v2": (_POINTER,),
    "cublasGetProperty": (_INT, _POINTER),
    "cublasSetStream_v2": (_POINTER, _POINTER),
    # Of each operand and the result: address, type, leading dimension, stride.
    "cublasGemmStridedBatchedEx": (
        _POINTER, *5 * (_INT,), _POINTER,
        *2 * (_POINTER, _INT, _INT, _LONG), _POINTER, _POINTER, _INT, _INT, _LONG,
        _INT, _INT, _INT,
    ),
}  # fmt: skip
#: ``cudaDataType`` by name; the last are what NumPy has no name of its own for.
_TYPES: Final = {
    "float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5, "bfloat16": 14,
}  # fmt: skip
#: ``cublasComputeType_t``: how products are formed.
_FULL, _TF32, _BF16, _DOUBLE = 68, 77, 75, 70
#: Algorithms by name whose operands are rounded; of others float32 is multiplied as it is.
_ROUNDED: Final = {"TF32_TF32_F32": _TF32, "BF16_BF16_F32": _BF16}
_STATUS: Final = {
    1: "it could not be started: has the driver the library's version of CUDA?",
    3: "it has no memory left for itself",
    8: "it has no code for this GPU: install one of another version",
    13: "its kernel failed",
    14: "an internal error",
    15: "it does not support these matrices; please report the program",
}


@functools.cache
def library() -> Any:
    """Return the library, each function typed; None where it is not installed."""
    for path in _paths():
        try:
            found = ctypes.CDLL(path)
        except OSError as error:
            _log.debug("%s", error)
            continue
        for name, types in _FUNCTIONS.items():
            function = getattr(found, name)
            function.argtypes, function.restype = types, c_int
        return found
    return None


def version() -> str:
    """Return the library's name and version."""
    numbers = [c_int() for _ in range(3)]
    for k, number in enumerate(numbers):
        library().cublasGetProperty(k, byref(number))
    return f"cuBLAS {'.'.join(str(n.value) for n in numbers)}"


def driver_major() -> int:
    """Return the newest CUDA that the driver runs libraries of; of any, where there is none."""
    try:
        return libcuda().version // 1000
    except JaxRuntimeError:
        return _ANY


def _paths() -> list[str]:
    """Return where the library may be: where packages of the index put it, or the system's."""
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [p for place in places for p in Path(place).glob("*/lib/libcublas.so.1[23]")]
    paths = sorted(map(str, found), key=lambda p: p[-2:], reverse=True)
    # JAX may have brought one version, and CuPy another.
    return [
        p for p in (*paths, "libcublas.so.13", "libcublas.so.12") if int(p[-2:]) <= driver_major()
    ]


def covers(node: Node) -> bool:
    """Whether a product is large enough, and of types that the library multiplies."""
    lhs, rhs, out = node.ins[0].aval, node.ins[1].aval, node.out.aval
    terms = prod(lhs.shape[a] for a in node.form.lhs_contract)
    if (
        not out.size
        or out.size * terms < LARGE
        or not can_multiply(lhs.dtype, rhs.dtype, out.dtype)
    ):
        return False
    return max(lhs.size, rhs.size, out.size) < _MOST and library() is not None


def can_multiply(lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> bool:
    """Whether the library multiplies operands of these dtypes: halves are added up in float32."""
    wide = out.name == "float32" and lhs.name in NARROW
    return lhs == rhs and lhs.name in _TYPES and (out == lhs or wide)


def rounding(precision: Any, dtype: np.dtype) -> int:
    """Return how products of a dtype are formed where the user asks for a precision.

    Of float32 as in JAX: by tensor cores, which round operands to ten bits after the point, unless
    the highest precision is asked for, by an operand, a setting, or an algorithm's name.
    """
    if dtype.name in ("float64", "complex128"):
        return _DOUBLE
    if dtype.name in NARROW:
        return _FULL
    named = precision if isinstance(precision, tuple) else (precision,)
    names = {getattr(p, "name", "DEFAULT") for p in named}
    if names <= {"DEFAULT", "HIGH"}:
        return _TF32
    return _ROUNDED.get(next(iter(names)), _FULL)


# ---- how operands lie ----------------------------------------------------------------------------


@frozen
class Side:
    """A stack of matrices in memory.

    Attributes
    ----------
    flipped : bool
        Whether the columns lie together, rather than the rows.
    leading : int
        From one row (or column) to the next, in elements.
    strides : tuple of int
        Of the axes of the stack.
    copied : tuple of int or None
        The order of axes in which the array is laid out first.
    """

    flipped: bool
    leading: int
    strides: tuple[int, ...]
    copied: tuple[int, ...] | None = None


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[a + 1 :]) for a in range(len(shape)))


def _as_one(axes: Sequence[int], shape: Sequence[int]) -> int | None:
    """Return the stride of axes seen as one, 1 where they have one element; None if it is none."""
    all_, held = _strides(shape), [a for a in axes if shape[a] != 1]
    for a, b in itertools.pairwise(held):
        if all_[a] != all_[b] * shape[b]:
            return None
    return all_[held[-1]] if held else 1


def side_of(
    shape: Sequence[int], batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> Side:
    """Return how the matrices of an array lie, whose rows and columns are groups of its axes."""
    down, along = _as_one(rows, shape), _as_one(columns, shape)
    m, n = (prod(shape[a] for a in axes) for axes in (rows, columns))
    strides = tuple(_strides(shape)[a] for a in batch)
    if down is not None and along is not None:
        if along == 1 and (down >= n or m == 1):
            return Side(False, max(down, n), strides)
        if down == 1 and (along >= m or n == 1):
            return Side(True, max(along, m), strides)
    order = (*batch, *rows, *columns)
    return Side(False, n, _strides([shape[a] for a in batch] + [m * n])[:-1], order)


def _runs(count: int) -> list[tuple[int, int]]:
    """Return every run of axes of a stack, the longest first."""
    found = [(a, b) for a in range(count + 1) for b in range(a, count + 1)]
    return sorted(found, key=lambda run: run[0] - run[1])


@frozen
class Stack:
    """Calls that go through a stack.

    Attributes
    ----------
    count : int
        Matrices of a call.
    strides : tuple of int
        From one to the next: of the left side, the right side, and the result.
    begins : tuple of (int, int, int)
        Where each call begins.
    """

    count: int
    strides: tuple[int, int, int]
    begins: tuple[tuple[int, ...], ...]


def stack_of(sizes: Sequence[int], *sides: Sequence[int]) -> Stack:
    """Return the calls for a stack, the fewest: one goes along axes that look like one."""
    best: Stack | None = None
    for first, last in _runs(len(sizes)):
        steps = [_step(sizes[first:last], s[first:last]) for s in sides]
        if any(step is None for step in steps):
            continue
        others = [a for a in range(len(sizes)) if not first <= a < last]
        places = itertools.product(*(range(sizes[a]) for a in others))
        if best is not None and prod(sizes[a] for a in others) >= len(best.begins):
            continue
        begins = tuple(
            tuple(sum(s[a] * i for a, i in zip(others, place, strict=True)) for s in sides)
            for place in places
        )
        best = Stack(prod(sizes[first:last]), tuple(steps), begins)  # type: ignore[arg-type]
    assert best is not None  # no axes at all are such a run
    return best


def _step(sizes: Sequence[int], strides: Sequence[int]) -> int | None:
    held = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    for (_, a), (n, b) in itertools.pairwise(held):
        if a != n * b:
            return None
    return held[-1][1] if held else 0


# ---- calls ---------------------------------------------------------------------------------------


@frozen
class Product:
    """``out[b] = left[b] @ right[b]``, of matrices of ``m x k`` and ``k x n`` elements."""

    m: int
    n: int
    k: int
    left: Side
    right: Side
    leading: int
    stack: Stack
    dtype: np.dtype
    out: np.dtype
    rounding: int


def product_of(node: Node) -> Product:
    """Return what the library is told of a contraction."""
    form: Contract = node.form
    lhs, rhs, out = node.ins[0].aval, node.ins[1].aval, node.out.aval
    rows = free_axes(lhs.ndim, form.lhs_contract, form.lhs_batch)
    columns = free_axes(rhs.ndim, form.rhs_contract, form.rhs_batch)
    left = side_of(lhs.shape, form.lhs_batch, rows, form.lhs_contract)
    right = side_of(rhs.shape, form.rhs_batch, form.rhs_contract, columns)
    m, n = (prod(a.shape[i] for i in axes) for a, axes in ((lhs, rows), (rhs, columns)))
    k = prod(lhs.shape[a] for a in form.lhs_contract)
    sizes = [lhs.shape[a] for a in form.lhs_batch]
    own = _strides([*sizes, m * n])[:-1]
    stack = stack_of(sizes, left.strides, right.strides, own)
    if len(stack.begins) > _CALLS:
        left = _laid_out(left, lhs.shape, (*form.lhs_batch, *rows, *form.lhs_contract), k)
        right = _laid_out(right, rhs.shape, (*form.rhs_batch, *form.rhs_contract, *columns), n)
        stack = stack_of(sizes, left.strides, right.strides, own)
    how = rounding(node.eqn.params.get("precision"), lhs.dtype)
    return Product(m, n, k, left, right, n, stack, lhs.dtype, out.dtype, how)


def _laid_out(side: Side, shape: Sequence[int], order: tuple[int, ...], columns: int) -> Side:
    """Return a side whose array is laid out first, unless its stack looks like one axis."""
    sizes = [shape[a] for a in order]
    count = len(side.strides)
    if side.copied is not None or _step(sizes[:count], side.strides) is not None:
        return side
    return Side(False, columns, _strides(sizes)[:count], order)


def step_of(node: Node, where: Gpu) -> Callable[..., Sequence[Any]]:
    """Return what computes a contraction, on arrays of a device."""
    product, aval = product_of(node), node.out.aval
    multiply, sides = multiplier(product), (product.left.copied, product.right.copied)

    def step(lhs: Any, rhs: Any) -> tuple[DeviceArray]:
        where.enter()
        out = where.empty(aval.shape, aval.dtype)
        left, right = (x if isinstance(x, DeviceArray) else where.put(x) for x in (lhs, rhs))
        if sides != (None, None):
            left, right = _copied(where, left, sides[0]), _copied(where, right, sides[1])
        multiply(where, left, right, out)
        return (out,)

    return step


def multiplier(product: Product) -> Callable[[Gpu, DeviceArray, DeviceArray, DeviceArray], None]:
    """Return what starts the calls of a product: all that addresses do not say is laid out once.

    The library has columns before rows, so that to it the result's transpose is
    ``right^T @ left^T``.
    """
    p, stack = product, product.stack
    factors = _factors(np.dtype(np.float32) if p.dtype.name in NARROW else p.dtype)
    one, none = (x.ctypes.data for x in factors)
    kind, made = _TYPES[p.dtype.name], _TYPES[p.out.name]
    flips, ends = (int(p.right.flipped), int(p.left.flipped)), (p.rounding, -1)
    by_left, by_right, by_out = stack.strides
    sizes = p.dtype.itemsize, p.dtype.itemsize, p.out.itemsize
    calls = [
        (
            min(stack.count - first, _STACK),
            *(n * (b + first * s) for n, b, s in zip(sizes, begin, stack.strides, strict=True)),
        )
        for begin, first in itertools.product(stack.begins, range(0, stack.count, _STACK))
    ]

    def multiply(where: Gpu, lhs: DeviceArray, rhs: DeviceArray, out: DeviceArray) -> None:
        handle, lock = _handle(where)
        gemm = library().cublasGemmStridedBatchedEx
        with lock:
            for count, a, b, c in calls:
                status = gemm(
                    handle, *flips, p.n, p.m, p.k, one,
                    rhs.pointer + b, kind, p.right.leading, by_right,
                    lhs.pointer + a, kind, p.left.leading, by_left, none,
                    out.pointer + c, made, p.leading, by_out, count, *ends,
                )  # fmt: skip
                if status:
                    raise _error("cublasGemmStridedBatchedEx", status)

    return multiply


@functools.cache
def _factors(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return one and nothing: what a product is multiplied by, and what was there before."""
    return np.ones((), dtype), np.zeros((), dtype)


_handles: Final[WeakKeyDictionary[Gpu, tuple[c_void_p, threading.Lock]]] = WeakKeyDictionary()
_starting: Final = threading.Lock()


def _handle(where: Gpu) -> tuple[c_void_p, threading.Lock]:
    """Return the library's handle for a device, on its stream, and who may use it."""
    found = _handles.get(where)
    if found is None:
        with _starting:
            found = _handles.get(where) or _started(where)
            _handles[where] = found
    return found


def _started(where: Gpu) -> tuple[c_void_p, threading.Lock]:
    handle = c_void_p()
    if status := library().cublasCreate_v2(byref(handle)):
        raise _error("cublasCreate", status)
    if status := library().cublasSetStream_v2(handle, where.stream):
        raise _error("cublasSetStream", status)
    return handle, threading.Lock()


def _error(what: str, status: int) -> JaxRuntimeError:
    return JaxRuntimeError(f"{what}: {_STATUS.get(status, 'an error')} ({status}).")


# ---- operands that are laid out first ------------------------------------------------------------


def _copied(where: Gpu, x: DeviceArray, order: tuple[int, ...] | None) -> DeviceArray:
    """Return an array with its axes in an order, in memory as well."""
    if order is None:
        return x
    shape = tuple(x.shape[a] for a in order)
    strides = _strides(x.shape)
    out = where.empty(shape, x.dtype)
    run = where.kernel(_layout(len(order), _code(x.dtype)))
    grid = grid_of(x.size, LANES, GRID)
    run(grid.blocks, grid.lanes, x, out, x.size, *shape[1:], *(strides[a] for a in order))
    return out


def _code(dtype: np.dtype) -> str:
    return NARROW[dtype.name].code if dtype.name in NARROW else CODES[dtype.name]


@functools.cache
def _layout(rank: int, code: str) -> KernelSource:
    """Return a kernel that lays out an array: sizes of axes but the first, and strides."""
    sizes, strides = [f"n{a}" for a in range(1, rank)], [f"s{a}" for a in range(rank)]
    lines = ["i = thread()", "while i < size:", "    rest = i", "    at = 0"]
    for a in reversed(range(1, rank)):
        lines += [f"    at += rest % n{a} * s{a}", f"    rest = rest // n{a}"]
    lines += ["    out[u(i)] = x[u(at + rest * s0)]", "    i += threads()"]
    text = f"def kernel(x, out, size, {', '.join((*sizes, *strides))}):\n"
    text += "".join(f"    {line}\n" for line in lines)
    return KernelSource(text, (f"{code}[1]", f"{code}[1]", *["i64"] * (2 * rank)))
