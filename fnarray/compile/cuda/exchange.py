"""Memory of a GPU, shared with other libraries: DLPack, and the interface that Numba began.

Streams are honoured both ways: the reader's waits for what fills the memory.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
    py_object,
)
from typing import Any, Final

import ml_dtypes
import numpy as np

from .device import DeviceArray, Gpu, gpu

#: Memory of a GPU, and that which its driver moves to and fro, as DLPack numbers them.
CUDA, CUDA_HOST, MANAGED = 2, 3, 13
#: DLPack's codes of kinds of numbers, by NumPy's.
_KINDS: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT: Final = 4
_NAME: Final = b"dltensor"


class _Device(Structure):
    _fields_ = (("kind", c_int32), ("number", c_int32))


class _Type(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class _Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", _Device),
        ("ndim", c_int32),
        ("dtype", _Type),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    )


class _Managed(Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", _Deleter))

_python: Final = ctypes.pythonapi
_python.PyCapsule_New.restype = py_object
_python.PyCapsule_New.argtypes = c_void_p, c_char_p, c_void_p
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_GetPointer.argtypes = py_object, c_char_p
_python.PyCapsule_SetName.argtypes = py_object, c_char_p
_python.PyCapsule_IsValid.argtypes = c_void_p, c_char_p
_python.PyCapsule_IsValid.restype = c_int

#: What is lent, by the address of its description, until the borrower gives it back.
_lent: Final[dict[int, Any]] = {}


@_Deleter
def _returned(managed: Any) -> None:
    _lent.pop(ctypes.addressof(managed.contents), None)


@ctypes.CFUNCTYPE(None, c_void_p)
def _unclaimed(capsule: int) -> None:
    """Take back what nobody took out of its capsule."""
    if _python.PyCapsule_IsValid(capsule, _NAME):
        get = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(
            ("PyCapsule_GetPointer", ctypes.pythonapi)
        )
        _lent.pop(get(capsule, _NAME), None)


def _code(dtype: np.dtype) -> int:
    return _BFLOAT if dtype.name == "bfloat16" else _KINDS[dtype.kind]


def capsule_of(x: DeviceArray, stream: int | None) -> Any:
    """Return an array as DLPack's capsule, for a reader on a stream.

    Parameters
    ----------
    stream : int or None
        The reader's; 1 or None for the default one, -1 for no wait.
    """
    x.show()
    if stream != -1:
        x.device.let_wait(1 if stream is None else stream)
    rank = len(x.shape)
    sizes = (c_int64 * max(rank, 1))(*x.shape)
    kind = _Type(_code(x.dtype), 8 * x.dtype.itemsize, 1)
    tensor = _Tensor(
        x.pointer, _Device(CUDA, x.device.number), rank, kind, ctypes.cast(sizes, POINTER(c_int64))
    )
    managed = _Managed(tensor, None, _returned)
    address = ctypes.addressof(managed)
    _lent[address] = managed, sizes, x
    return _python.PyCapsule_New(address, _NAME, ctypes.cast(_unclaimed, c_void_p))


class _Borrowed:
    """Another library's memory, given back when nothing that runs here needs it.

    Its owner takes it for other things at once, on a stream that is not ours: so what was started
    here is waited for.
    """

    def __init__(self, where: Gpu, owner: Any, deleter: Any = None):
        self._where, self._owner, self._deleter = where, owner, deleter

    def __del__(self) -> None:
        if sys and not sys.is_finalizing():
            self._where.let_go()
        if self._deleter:
            self._deleter(ctypes.pointer(self._owner))


def from_capsule(x: Any) -> DeviceArray:
    """Return an array of an object of DLPack's protocol that lies on a GPU, in its memory.

    Raises
    ------
    TypeError
        Its elements do not lie in order, or are of a type that we have not.
    """
    _, number = x.__dlpack_device__()
    where = gpu(number)
    capsule = x.__dlpack__(stream=where.stream)
    address = _python.PyCapsule_GetPointer(capsule, _NAME)
    managed = _Managed.from_address(address)
    _python.PyCapsule_SetName(capsule, b"used_dltensor")
    owner, tensor = _Borrowed(where, managed, managed.deleter), managed.tensor
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    dtype = _dtype(tensor.dtype)
    strides = [tensor.strides[k] for k in range(tensor.ndim)] if tensor.strides else None
    _check_order(shape, strides)
    return DeviceArray(where, shape, dtype, owner, (tensor.data or 0) + tensor.offset)


def _dtype(kind: _Type) -> np.dtype:
    letters = {code: letter for letter, code in _KINDS.items()}
    if (kind.code, kind.bits, kind.lanes) == (_BFLOAT, 16, 1):
        return np.dtype(ml_dtypes.bfloat16)
    if kind.lanes != 1 or kind.code not in letters or kind.bits % 8:
        raise TypeError(
            f"from_dlpack: elements of {kind.bits} bits, DLPack's kind {kind.code} with "
            f"{kind.lanes} lanes, have no dtype here. Convert the array first."
        )
    return np.dtype(f"{letters[kind.code]}{kind.bits // 8}")


def _check_order(shape: tuple[int, ...], strides: Any) -> None:
    """Check that elements lie in C order."""
    step = 1
    for n, stride in zip(reversed(shape), reversed(strides or []), strict=False):
        if n > 1 and stride != step:
            raise TypeError(
                f"an array of shape {shape} and strides {tuple(strides)} on a GPU does not lie in "
                "C order. Make it contiguous in the library that it comes from."
            )
        step *= n


def from_interface(x: Any) -> DeviceArray:
    """Return an array of an object with ``__cuda_array_interface__``, in its memory.

    Raises
    ------
    TypeError
        Its elements do not lie in order.
    """
    face = x.__cuda_array_interface__
    shape, dtype = tuple(face["shape"]), np.dtype(face["typestr"])
    strides = face.get("strides")
    if strides is not None:
        _check_order(shape, [s // dtype.itemsize for s in strides])
    pointer, _ = face["data"]
    where = Gpu.of_pointer(pointer)
    if (stream := face.get("stream")) is not None:
        where.wait_for(stream)
    return DeviceArray(where, shape, dtype, _Borrowed(where, x), pointer)
