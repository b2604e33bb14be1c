"""Library steps on the device: products by cuBLAS; factorisations, transforms and sorts by CuPy.

CuPy is found where it is installed, and imported when a program that wants it is bound. It works
on our arrays where they lie, on our stream, and takes memory from our pool.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...core.forms import Contract
from ..emit.source import KernelSource
from ..ir import Node
from . import cublas, exponential
from .device import DeviceArray, Gpu
from .grids import ONE
from .recording import left
from .values import NARROW

_log: Final = logging.getLogger("fnarray.compile")
#: Arrays of at least so many elements are sorted by CuPy's radix and merge sorts.
LARGE: Final = 1 << 16
#: What names of Fourier transforms end with: of all sizes, of lines side by side, of powers of two.
_WAYS: Final = ("", "_beside", "_twos")
_CUDA: Final = re.compile(r"cupy_cuda(\d+)x-")

Run = Callable[..., Sequence[Any]]
#: ``call(library, node, where, *arrays) -> results``, on CuPy's arrays.
Call = Callable[..., Any]


@functools.cache
def installed() -> bool:
    """Whether CuPy is there to be imported, for a CUDA that the driver runs, and its libraries."""
    spec = importlib.util.find_spec("cupy")
    if spec is None:
        return False
    major = _cuda_of(spec.submodule_search_locations or ())
    if major > cublas.driver_major():
        _log.warning(
            "CuPy is for CUDA %d, and the driver is older: install fnarray[cuda%d-libraries].",
            major, cublas.driver_major(),
        )  # fmt: skip
        return False
    if cublas.library() is None:
        _log.warning("CuPy has no CUDA libraries to call: install fnarray[cuda-libraries].")
    return cublas.library() is not None


def _cuda_of(places: Iterable[str]) -> int:
    """Return the CUDA that an installed CuPy is for, by its distribution's name; 0 if not told.

    CuPy would say so as well, but takes a second to import.
    """
    found = [p.name for place in places for p in Path(place).parent.glob("cupy_cuda*.dist-info")]
    return max((int(m[1]) for name in found if (m := _CUDA.match(name))), default=0)


def module(name: str) -> Any:
    """Return a module of CuPy's."""
    return importlib.import_module(name)


def covers(node: Node) -> bool:
    """Whether a library computes a step."""
    if isinstance(node.form, Contract):
        return cublas.covers(node)
    if not installed() or any(a.aval.dtype.name == "bfloat16" for a in (*node.ins, *node.outs)):
        return False
    if not all(a.aval.size for a in (*node.ins, *node.outs)):
        return False
    known = _CALLS.get((node.form.op.module, node.form.op.function))
    return known is not None and known[1](node)


def name_of(node: Node) -> str:
    """Return the name of the library that computes a step."""
    return "cuBLAS" if isinstance(node.form, Contract) else "CuPy"


def is_better(node: Node) -> bool:
    """Whether CuPy is faster at what kernels of our own compute as well."""
    return node.form.op.module == "sort" and node.ins[0].aval.size >= LARGE and covers(node)


def step_of(node: Node, where: Gpu) -> Run:
    """Return what computes a step, on arrays of a device."""
    if isinstance(node.form, Contract):
        return cublas.step_of(node, where)
    library = module("cupy")
    call = _CALLS[node.form.op.module, node.form.op.function][0]
    avals = [v.aval for v in node.outs]

    def step(*arrays: Any) -> tuple[DeviceArray, ...]:
        given = [x if isinstance(x, DeviceArray) else where.put(x) for x in arrays]
        where.enter()
        with (
            library.cuda.Device(where.number),
            library.cuda.Stream.from_external(_Stream(where.stream)),
            library.cuda.using_allocator(functools.partial(_room, library, where)),
        ):
            outs = call(library, node, where, *(_view(library, where, x) for x in given))
            outs = outs if isinstance(outs, tuple) else (outs,)
            results = tuple(
                _ours(library, where, x, aval) for x, aval in zip(outs, avals, strict=True)
            )
        left()
        return results

    return step


# ---- arrays ------------------------------------------------------------------------------------


class _Stream:
    """A stream as other libraries ask for it, by the protocol that CUDA's Python packages share."""

    def __init__(self, handle: int):
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def _room(library: Any, where: Gpu, size: int) -> Any:
    """Allocate for CuPy: what it makes is ours, and counted."""
    room = where.empty(size, np.dtype(np.uint8))
    memory = library.cuda.UnownedMemory(room.pointer, size, room, where.number)
    return library.cuda.MemoryPointer(memory, 0)


def _view(library: Any, where: Gpu, x: DeviceArray) -> Any:
    memory = library.cuda.UnownedMemory(x.pointer, x.nbytes, x, where.number)
    return library.ndarray(x.shape, x.dtype, library.cuda.MemoryPointer(memory, 0))


def _ours(library: Any, where: Gpu, x: Any, aval: Any) -> DeviceArray:
    x = library.ascontiguousarray(library.asarray(x, dtype=aval.dtype))
    if x.data.ptr % 16:  # kernels load four elements at once
        x = x.copy()
    return DeviceArray(where, aval.shape, aval.dtype, x, x.data.ptr)


# ---- matrices ----------------------------------------------------------------------------------


def _each(cp: Any, node: Node, compute: Callable[..., Any], *stacks: Any) -> tuple[Any, ...]:
    """Compute for stacks of matrices; where one has no result, one by one, with NaN for that."""
    try:
        return tuple(compute(*stacks))
    except np.linalg.LinAlgError:
        return _one_by_one(cp, node, compute, *stacks)


def _one_by_one(cp: Any, node: Node, compute: Callable[..., Any], *stacks: Any) -> tuple[Any, ...]:
    avals = [v.aval for v in node.outs]
    flat = [x.reshape(-1, *x.shape[-2:]) for x in stacks]
    outs = [cp.empty((len(flat[0]), *a.shape[stacks[0].ndim - 2 :]), a.dtype) for a in avals]
    for k in range(len(flat[0])):
        try:
            values = compute(*(x[k] for x in flat))
        except np.linalg.LinAlgError:
            values = [np.nan if a.dtype.kind in "fc" else 0 for a in avals]
        for out, value in zip(outs, values, strict=True):
            out[k] = value
    return tuple(x.reshape(a.shape) for x, a in zip(outs, avals, strict=True))


def _raising() -> Any:
    """Let failures of a factorisation be errors: CuPy leaves them unseen otherwise."""
    return module("cupyx").errstate(linalg="raise")


def _cholesky(cp: Any, node: Node, where: Gpu, x: Any) -> Any:
    with _raising():
        return cp.tril(_each(cp, node, lambda a: (cp.linalg.cholesky(a),), x)[0])


def _dense(cp: Any) -> Any:
    return module("cupyx.scipy.linalg")


#: What is warned of is set for the process: shards take turns.
_quietly: Final = threading.Lock()


def _lu(cp: Any, node: Node, where: Gpu, x: Any) -> Any:
    _, pivots, order = node.outs
    dense = _dense(cp)
    factors = cp.empty(x.shape, x.dtype)
    exchanged = cp.empty(pivots.aval.shape, np.int32)
    with _quietly, warnings.catch_warnings():
        # A matrix that is singular has factors as any other; CuPy warns of it.
        warnings.simplefilter("ignore", RuntimeWarning)
        for k in np.ndindex(x.shape[:-2]):
            factors[k], exchanged[k] = dense.lu_factor(x[k], check_finite=False)
    return factors, exchanged, _permutation(cp, where, exchanged, order.aval.shape)


def _permutation(cp: Any, where: Gpu, pivots: Any, shape: tuple[int, ...]) -> Any:
    """Order of rows that exchanges make: one after the other, by a kernel of our own."""
    order = cp.empty(shape, np.int32)
    batch = prod(shape[:-1])
    run = where.kernel(_PERMUTATION)
    given = (
        DeviceArray(where, x.shape, np.dtype(np.int32), x, x.data.ptr) for x in (pivots, order)
    )
    run(ONE.blocks, ONE.lanes, *given, batch, pivots.shape[-1], shape[-1])
    return order


_PERMUTATION: Final = KernelSource(
    "def kernel(pivots, order, batch, size, rows):\n"
    "    fk.linalg.permutation(pivots, order, batch, size, rows)\n",
    ("i32[1]", "i32[1]", "i64", "i64", "i64"),
)


def _triangular(cp: Any, node: Node, where: Gpu, a: Any, b: Any) -> Any:
    _, _, _, left, lower, transposed, conjugated, unit = node.form.statics
    dense = _dense(cp)
    if conjugated and not transposed:
        a, conjugated = a.conj(), False
    trans = 2 if transposed and conjugated else int(transposed)

    flags = {"unit_diagonal": unit, "check_finite": False}
    if left:
        return dense.solve_triangular(a, b, trans, lower, **flags)
    # X op(A) = B is op(A)^T X^T = B^T.
    matrix, turned = (a.conj(), 0) if trans == 2 else (a, 1 - trans)
    return dense.solve_triangular(matrix, b.swapaxes(-1, -2), turned, lower, **flags).swapaxes(
        -1, -2
    )


def _solve(cp: Any, node: Node, where: Gpu, a: Any, b: Any) -> Any:
    return cp.linalg.solve(a, b)


def _factored(cp: Any, node: Node, where: Gpu, a: Any, factors: Any, order: Any, b: Any) -> Any:
    """Solve ``op(A) X = B`` by the factors of ``A`` and the order of its rows."""
    *_, transposed, conjugated = node.form.statics
    solve = functools.partial(_dense(cp).solve_triangular, check_finite=False)
    if conjugated and not transposed:
        factors, conjugated = factors.conj(), False
    trans = 2 if conjugated else int(transposed)

    rows = order[..., None]
    if not transposed:
        b = solve(factors, cp.take_along_axis(b, rows, -2), 0, lower=True, unit_diagonal=True)
        return solve(factors, b, 0, lower=False)
    b = solve(factors, b, trans, lower=False)
    b = solve(factors, b, trans, lower=True, unit_diagonal=True)
    return cp.take_along_axis(b, cp.argsort(rows, -2), -2)


def _determinant(cp: Any, node: Node, where: Gpu, a: Any) -> Any:
    return cp.linalg.det(a)


def _log_determinant(cp: Any, node: Node, where: Gpu, a: Any) -> Any:
    return tuple(cp.linalg.slogdet(a))


def _qr(cp: Any, node: Node, where: Gpu, a: Any) -> Any:
    full = node.eqn.params["full_matrices"]
    return tuple(cp.linalg.qr(a, "complete" if full else "reduced"))


def _finite(cp: Any, a: Any, outs: Sequence[Any]) -> tuple[Any, ...]:
    """NaN where an operand is not finite: the library's iterations need not end on it."""
    bad = ~cp.isfinite(a).all((-2, -1))
    return tuple(
        cp.where(bad.reshape(bad.shape + (1,) * (x.ndim - bad.ndim)), np.nan, x) for x in outs
    )


def _eigh(cp: Any, node: Node, where: Gpu, a: Any) -> Any:
    params = node.eqn.params
    low, high = params["subset_by_index"] or (0, a.shape[-1])
    safe = cp.where(cp.isfinite(a), a, 0)
    w, v = cp.linalg.eigh(safe, "L" if params["lower"] else "U")
    return _finite(cp, a, (v[..., low:high], w[..., low:high]))


def _eig(cp: Any, node: Node, where: Gpu, a: Any) -> Any:
    safe = cp.where(cp.isfinite(a), a, 0)
    if node.eqn.params["compute_right_eigenvectors"]:
        return _finite(cp, a, cp.linalg.eig(safe))
    return _finite(cp, a, (cp.linalg.eigvals(safe),))


def _svd(cp: Any, node: Node, where: Gpu, a: Any) -> Any:
    params = node.eqn.params
    low, high = params["subset_by_index"] or (0, min(a.shape[-2:]))
    safe = cp.where(cp.isfinite(a), a, 0)
    if not params["compute_uv"]:
        s = cp.linalg.svd(safe, compute_uv=False)
        return _finite(cp, a, (s[..., low:high],))
    u, s, vh = cp.linalg.svd(safe, full_matrices=params["full_matrices"])
    if params["subset_by_index"]:
        u, vh = u[..., low:high], vh[..., low:high, :]
    return _finite(cp, a, (s[..., low:high], u, vh))


def _pinv(cp: Any, node: Node, where: Gpu, a: Any, rtol: Any) -> Any:
    u, s, vh = cp.linalg.svd(cp.where(cp.isfinite(a), a, 0), full_matrices=False)
    small = s <= rtol[..., None] * s[..., :1]
    inverse = cp.where(small, 0, 1 / cp.where(small, 1, s)).astype(a.dtype)
    v = vh.swapaxes(-1, -2).conj() * inverse[..., None, :]
    return _finite(cp, a, (cp.matmul(v, u.swapaxes(-1, -2).conj()),))


# ---- transforms and sorts ----------------------------------------------------------------------


def _fft(cp: Any, node: Node, where: Gpu, x: Any) -> Any:
    kind, lengths = node.eqn.params["fft_type"].name, node.eqn.params["fft_lengths"]
    axes = tuple(range(-len(lengths), 0))
    names = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}
    sizes = lengths if kind == "IRFFT" else None
    return getattr(cp.fft, names[kind])(x, sizes, axes)


def _sort(cp: Any, node: Node, where: Gpu, *operands: Any) -> Any:
    axis = node.eqn.params["dimension"]
    if len(operands) == 1:
        return cp.sort(operands[0], axis)
    order = cp.argsort(operands[0], axis, kind="stable")
    return tuple(cp.take_along_axis(x, order, axis) for x in operands)


def _always(node: Node) -> bool:
    return True


def _has_lengths(node: Node) -> bool:
    return bool(node.eqn.params["fft_lengths"])


def _by_one_key(node: Node) -> bool:
    key = node.ins[0].aval.dtype
    return node.eqn.params["num_keys"] == 1 and key.kind in "iuf" and key.name not in NARROW


_CALLS: Final[dict[tuple[str, str], tuple[Call, Callable[[Node], bool]]]] = {
    ("linalg", "cholesky"): (_cholesky, _always),
    ("linalg", "cholesky_complex"): (_cholesky, _always),
    ("linalg", "lu"): (_lu, _always),
    ("linalg", "triangular_solve"): (_triangular, _always),
    ("linalg", "linear_solve"): (_solve, _always),
    ("linalg", "linear_solve_complex"): (_solve, _always),
    ("linalg", "factored_solve"): (_factored, _always),
    ("linalg", "determinant"): (_determinant, _always),
    ("linalg", "determinant_complex"): (_determinant, _always),
    ("linalg", "log_determinant"): (_log_determinant, _always),
    ("linalg", "log_determinant_complex"): (_log_determinant, _always),
    ("linalg", "qr"): (_qr, _always),
    ("host", "eigh"): (_eigh, _always),
    ("host", "svd"): (_svd, _always),
    **{
        ("lapack", f"{name}{kind}"): (call, _always)
        for kind in ("", "_complex")
        for name, call in (
            ("eigh", _eigh),
            ("eigvals", _eig),
            ("eig_right", _eig),
            ("svd", _svd),
            ("svdvals", _svd),
            ("pinv", _pinv),
        )
    },
    ("exponential", "expm"): (exponential.expm, _always),
    ("exponential", "expm_frechet"): (exponential.expm_frechet, _always),
    ("host", "fft"): (_fft, _has_lengths),
    **{
        ("fft", f"{kind}_{real}"): (_fft, _always)
        for kind in (
            *(f"{kind}{way}" for kind in ("full", "forward", "back") for way in _WAYS),
            *("lines", "real_lines", "lines_twos", "real_lines_twos"),
        )
        for real in ("float32", "float64")
    },
    ("sort", "sort_1"): (_sort, _by_one_key),
    ("sort", "sort_2"): (_sort, _by_one_key),
}
