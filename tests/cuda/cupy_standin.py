"""The calls of CuPy that library steps make, by NumPy and SciPy on the stub's memory."""

from __future__ import annotations

import ctypes
import sys
import warnings
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg

#: What was asked: devices, streams, and bytes of the allocator in use.
asked: dict[str, list[Any]] = {"devices": [], "streams": [], "bytes": []}
_allocators: list[Any] = []


class UnownedMemory:
    """Memory of somebody else's."""

    def __init__(self, pointer: int, size: int, owner: Any, device: int):
        self.pointer, self.size, self.owner, self.device = pointer, size, owner, device


class MemoryPointer:
    """A place in memory."""

    def __init__(self, memory: UnownedMemory, offset: int):
        self.mem, self.ptr = memory, memory.pointer + offset


class ndarray(np.ndarray):  # noqa: N801 - CuPy's name
    """An array whose memory is told by a pointer."""

    def __new__(cls, shape: Any, dtype: Any, pointer: MemoryPointer) -> ndarray:
        """Return an array at a pointer."""
        size = max(pointer.mem.size, 1)
        room = (ctypes.c_char * size).from_address(pointer.ptr)
        out = np.ndarray.__new__(cls, shape, dtype, room)
        out.kept = pointer
        return out

    def __array_finalize__(self, other: Any) -> None:
        self.kept = other

    @property
    def data(self) -> Any:
        """Where the elements are."""
        return SimpleNamespace(ptr=self.ctypes.data)


def _ours(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_ours, x))
    return np.asarray(x).view(ndarray) if isinstance(x, np.ndarray | np.generic) else x


def _as_numpy(function: Any) -> Any:
    return lambda *args, **options: _ours(function(*args, **options))


def empty(shape: Any, dtype: Any) -> ndarray:
    """Return an array in memory of the allocator in use."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return ndarray(shape, dtype, _allocators[-1](size))


def ascontiguousarray(x: Any) -> ndarray:
    """Return an array's elements in memory of the allocator, where all of CuPy's results lie."""
    out = empty(x.shape, x.dtype)
    out[...] = x
    return out


@contextmanager
def _using(allocator: Any) -> Any:
    def counted(size: int) -> MemoryPointer:
        asked["bytes"].append(size)
        return allocator(size)

    _allocators.append(counted)
    yield
    _allocators.pop()


def _device(number: int) -> Any:
    asked["devices"].append(number)
    return nullcontext()


class Stream:
    """Streams of others, by the protocol that they share: to name one by number is deprecated."""

    @staticmethod
    def from_external(stream: Any) -> Any:
        """Return the stream, for the device that is current."""
        version, handle = stream.__cuda_stream__()
        assert version == 0
        asked["streams"].append((handle, asked["devices"][-1]))
        return nullcontext()


def _lu_factor(a: Any, check_finite: bool) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factors, pivots = scipy.linalg.lu_factor(np.asarray(a), check_finite=check_finite)
    if not np.diagonal(factors).all():
        warnings.warn("Diagonal number 1 is exactly zero.", RuntimeWarning, 2)
    return _ours(factors), _ours(pivots.astype(np.int32))


def _solve_triangular(a: Any, b: Any, trans: int, lower: bool, **options: Any) -> Any:
    out = np.empty(b.shape, b.dtype)
    for k in np.ndindex(a.shape[:-2]):
        out[k] = scipy.linalg.solve_triangular(
            np.asarray(a[k]), np.asarray(b[k]), trans=trans, lower=lower, **options
        )
    return _ours(out)


cuda = SimpleNamespace(
    Device=_device,
    Stream=Stream,
    using_allocator=_using,
    UnownedMemory=UnownedMemory,
    MemoryPointer=MemoryPointer,
)
linalg = SimpleNamespace(
    **{
        name: _as_numpy(getattr(np.linalg, name))
        for name in ("cholesky", "solve", "det", "slogdet", "qr", "eigh", "svd", "eig", "eigvals")
    }
)
fft = SimpleNamespace(
    **{name: _as_numpy(getattr(np.fft, name)) for name in ("fftn", "ifftn", "rfftn", "irfftn")}
)
matmul, sort, argsort, where = map(_as_numpy, (np.matmul, np.sort, np.argsort, np.where))
isfinite, tril, zeros, eye = map(_as_numpy, (np.isfinite, np.tril, np.zeros, np.eye))
maximum, ceil, log2, exp2 = map(_as_numpy, (np.maximum, np.ceil, np.log2, np.exp2))
take_along_axis = _as_numpy(np.take_along_axis)
asarray = _as_numpy(np.asarray)

#: Modules by the names that they are imported under.
MODULES: dict[str, Any] = {
    "cupy": sys.modules[__name__],
    "cupyx": SimpleNamespace(errstate=lambda **options: nullcontext()),
    "cupyx.scipy.linalg": SimpleNamespace(lu_factor=_lu_factor, solve_triangular=_solve_triangular),
}
