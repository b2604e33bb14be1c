"""XLA's C interface for foreign functions, of which this is the calling side: its structs, filled.

The layouts are those of ``xla/ffi/api/c_api.h``, version 0.3, which is stable: each struct begins
with its size. Kernels compiled with those headers are called as XLA calls them on a CPU.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.dtypes import bfloat16
from ..errors import JaxRuntimeError

_VERSION = 0, 3
_EXECUTE = 3
_BUFFER, (_ARRAY, _DICTIONARY, _SCALAR, _STRING) = 1, (1, 2, 3, 4)
_DTYPES = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8,
    "uint64": 9, "float16": 10, "float32": 11, "float64": 12, "complex64": 15, "complex128": 18,
    bfloat16.name: 16,
}  # fmt: skip
_CAPSULE = b"xla._CUSTOM_CALL_TARGET"


def _struct(name: str, *fields: tuple[str, Any], sized: bool = True) -> Any:
    head = [("struct_size", c_size_t), ("extension_start", c_void_p)] if sized else []
    return type(name, (Structure,), {"_fields_": [*head, *fields]})


def _made(kind: Any, **values: Any) -> Any:
    return kind(struct_size=ctypes.sizeof(kind), **values)


_List = _struct(
    "List", ("size", c_int64), ("types", POINTER(c_int)), ("items", POINTER(c_void_p))
)  # fmt: skip
_Named = _struct(
    "Named", ("size", c_int64), ("types", POINTER(c_int)), ("names", POINTER(c_void_p)),
    ("items", POINTER(c_void_p)),
)  # fmt: skip
_Buffer = _struct(
    "Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64))
)
_Span = _struct("Span", ("ptr", c_void_p), ("len", c_size_t), sized=False)
_Scalar = _struct("Scalar", ("dtype", c_int), ("value", c_void_p), sized=False)
_Array = _struct("Array", ("dtype", c_int), ("size", c_size_t), ("data", c_void_p), sized=False)
_Version = _struct("Version", ("major", c_int), ("minor", c_int))
_Frame = _struct(
    "Frame", ("api", c_void_p), ("ctx", c_void_p), ("stage", c_int), ("args", _List),
    ("rets", _List), ("attrs", _Named), ("future", c_void_p),
)  # fmt: skip
_ErrorArgs = _struct("ErrorArgs", ("message", c_char_p), ("code", c_int))
_MessageArgs = _struct("MessageArgs", ("error", c_void_p), ("message", c_char_p))
#: The interface's functions, in order.
_FUNCTIONS = """
    Error_Create Error_GetMessage Error_Destroy Handler_Register Stream_Get Type_Register
    ExecutionContext_Get State_Set State_Get DeviceMemory_Allocate DeviceMemory_Free
    ThreadPool_Schedule ThreadPool_NumThreads Future_Create Future_SetAvailable Future_SetError
    RunId_Get DeviceOrdinal_Get
""".split()  # noqa: SIM905 - words are read more easily
_Api = _struct(
    "Api", ("version", _Version), ("internal", c_void_p), *((n, c_void_p) for n in _FUNCTIONS)
)
_Function = ctypes.CFUNCTYPE(c_void_p, c_void_p)

# ---- errors that kernels make --------------------------------------------------------------------

_lock = threading.Lock()
_errors: dict[int, ctypes.Array[Any]] = {}


def _keep(message: bytes) -> int:
    """Keep an error's text; return the address that stands for it."""
    text = ctypes.create_string_buffer(message)
    with _lock:
        _errors[ctypes.addressof(text)] = text
    return ctypes.addressof(text)


def _create(args: int) -> int:
    return _keep(ctypes.cast(args, POINTER(_ErrorArgs)).contents.message or b"no message")


def _message(args: int) -> int | None:
    given = ctypes.cast(args, POINTER(_MessageArgs)).contents
    given.message = ctypes.cast(given.error, c_char_p)
    return None


def _destroy(args: int) -> int | None:
    with _lock:
        _errors.pop(ctypes.cast(args, POINTER(_MessageArgs)).contents.error, None)
    return None


def _absent(name: str) -> Callable[[int], int]:
    return lambda args: _keep(
        f"XLA_FFI_{name} is not there: arrays are passed, and neither state, streams nor a thread "
        "pool of XLA's. Write the kernel without, or call it by fnarray.pure_callback.".encode()
    )


@lru_cache(maxsize=1)
def _api() -> tuple[Any, list[Any]]:
    """Return the interface's table, and the functions in it, to be kept alive."""
    own = {"Error_Create": _create, "Error_GetMessage": _message, "Error_Destroy": _destroy}
    functions = [_Function(own.get(name) or _absent(name)) for name in _FUNCTIONS]
    places = {n: ctypes.cast(f, c_void_p).value for n, f in zip(_FUNCTIONS, functions, strict=True)}
    version = _made(_Version, major=_VERSION[0], minor=_VERSION[1])
    return _made(_Api, version=version, **places), functions


# ---- frames --------------------------------------------------------------------------------------


class _Pool:
    """What a call's structs point to, alive for as long as the call."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def at(self, x: Any) -> int:
        """Keep a struct; return its address."""
        self.kept.append(x)
        return ctypes.addressof(x)

    def row(self, kind: Any, values: Sequence[Any]) -> Any:
        """Keep an array of C values; return it."""
        self.kept.append((kind * max(len(values), 1))(*values))
        return self.kept[-1]

    def data(self, x: np.ndarray) -> int:
        """Keep an array; return the address of its elements."""
        self.kept.append(x)
        return x.ctypes.data

    def span(self, text: str) -> int:
        """Return the address of a text."""
        raw = text.encode()
        held = ctypes.create_string_buffer(raw, len(raw) + 1)
        return self.at(_Span(self.at(held), len(raw)))

    def buffer(self, x: np.ndarray) -> int:
        """Return the address of what describes an array."""
        dims = self.row(c_int64, x.shape)
        return self.at(_made(_Buffer, dtype=_dtype(x), data=self.data(x), rank=x.ndim, dims=dims))

    def buffers(self, xs: Sequence[np.ndarray]) -> Any:
        """Return a list of arrays."""
        types = self.row(c_int, [_BUFFER] * len(xs))
        return _made(
            _List, size=len(xs), types=types, items=self.row(c_void_p, [*map(self.buffer, xs)])
        )

    def attribute(self, x: Any) -> tuple[int, int]:
        """Return kind and address of an attribute."""
        if isinstance(x, str):
            return _STRING, self.span(x)
        if isinstance(x, Mapping):
            return _DICTIONARY, self.at(self.attributes(x))
        value = np.ascontiguousarray(x) if isinstance(x, np.ndarray | list | tuple) else None
        if value is not None and value.ndim:
            return _ARRAY, self.at(_Array(_dtype(value), value.size, self.data(value)))
        scalar = np.asarray(x)
        return _SCALAR, self.at(_Scalar(_dtype(scalar), self.data(scalar)))

    def attributes(self, named: Mapping[str, Any]) -> Any:
        """Return attributes by name; kernels look for them in the order of names."""
        order = sorted(named)
        found = [self.attribute(named[n]) for n in order]
        return _made(
            _Named,
            size=len(order),
            types=self.row(c_int, [k for k, _ in found]),
            names=self.row(c_void_p, [self.span(n) for n in order]),
            items=self.row(c_void_p, [a for _, a in found]),
        )


def _dtype(x: np.ndarray) -> int:
    if x.dtype.name not in _DTYPES:
        raise TypeError(f"ffi_call: XLA's interface has no dtype {x.dtype}.")
    return _DTYPES[x.dtype.name]


# ---- calls ---------------------------------------------------------------------------------------


def address(fn: Any) -> int:
    """Return the address of a C function: of a capsule, or of a function of ctypes.

    Raises
    ------
    TypeError
        For something else.
    """
    if type(fn).__name__ == "PyCapsule":
        name = ctypes.pythonapi.PyCapsule_GetName
        name.restype, name.argtypes = c_char_p, [ctypes.py_object]
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        return pointer(fn, name(fn))
    if isinstance(fn, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(fn, c_void_p).value or 0
    raise TypeError(
        f"a target is a PyCapsule, as ffi.pycapsule makes of a function of ctypes, got {type(fn)}. "
        "A Python function is called by fnarray.pure_callback."
    )


def capsule(fn: Any) -> Any:
    """Return the capsule of a C function of ctypes."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
    return new(ctypes.cast(fn, c_void_p), _CAPSULE, None)


def call_typed(
    name: str, at: int, args: Sequence[np.ndarray], outs: Sequence[np.ndarray], attrs: Any
) -> None:
    """Call a handler of the typed interface; raise what it reports.

    Raises
    ------
    JaxRuntimeError
        The handler returned an error.
    """
    pool, (api, _) = _Pool(), _api()
    # The size that is said leaves the last field out, which is for kernels that return early.
    frame = _Frame(
        struct_size=_Frame.future.offset,
        api=ctypes.addressof(api),
        stage=_EXECUTE,
        args=pool.buffers(args),
        rets=pool.buffers(outs),
        attrs=pool.attributes(attrs),
    )
    error = ctypes.CFUNCTYPE(c_void_p, c_void_p)(at)(byref(frame))
    if error:
        with _lock:
            text = _errors.pop(error).value.decode()
        raise JaxRuntimeError(f"ffi_call: {name} reports: {text}")


def call_untyped(at: int, args: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
    """Call ``void f(void* out, const void** in)``; of several results ``out`` is their array."""
    pool = _Pool()
    ins = pool.row(c_void_p, [x.ctypes.data for x in args])
    several = pool.row(c_void_p, [x.ctypes.data for x in outs])
    out = outs[0].ctypes.data if len(outs) == 1 else ctypes.addressof(several)
    ctypes.CFUNCTYPE(None, c_void_p, c_void_p)(at)(out, ctypes.addressof(ins))
