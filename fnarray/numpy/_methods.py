"""Operators, methods and properties that arrays and tracers share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .. import numpy
from ..core.apart import another
from ..core.array import Array, ArrayElsewhere, asarray
from ..core.dtypes import bool_, canonicalize_dtype, is_complex, uint8
from ..core.source import boundary, tidy
from ..core.trace import Tracer
from ..ops.convert import bitcast_convert_type
from ..ops.convert import copy as lax_copy
from ..ops.kit.calls import convert
from ..ops.parts import complex as lax_complex
from ..ops.parts import imag, real
from ..ops.shape import reshape, transpose
from ..ops.slicing import concatenate, rev
from ..runtime import where as where  # and so where values are that are nowhere yet
from . import _ufuncs as u
from ._at import IndexUpdateHelper
from ._indexing import getitem
from ._ufunc import ufunc

__all__ = ["array_methods"]

_OPERANDS = (Array, int, float, complex, np.ndarray, np.generic)
# Python would otherwise try their own operators: [1] + x, x == [1].
_REFUSED = (list, tuple, set, dict)


# ---- operators ---------------------------------------------------------------------------------


def _refuse(symbol: str, x: Any, y: Any) -> Any:
    """Answer for an operand that is no array: not ours, or an error that says what to do."""
    if isinstance(y, _REFUSED):
        raise TypeError(
            f"unsupported operand type(s) for {symbol}: {type(x).__name__!r} and "
            f"{type(y).__name__!r}. Convert it with fnarray.numpy.asarray."
        )
    return NotImplemented


def _operator(symbol: str, f: ufunc | Callable[..., Any]) -> Callable[..., Any]:
    call = getattr(f, "call", f)

    def method(self: Array, other: Any) -> Any:
        try:
            if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
                return call(self, other)
            return _refuse(symbol, self, other)
        except Exception as error:
            tidy(error)
            raise

    return method


def _reflected(symbol: str, f: ufunc | Callable[..., Any]) -> Callable[..., Any]:
    call = getattr(f, "call", f)

    def method(self: Array, other: Any) -> Any:
        try:
            if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
                return call(other, self)
            return _refuse(symbol, self, other)
        except Exception as error:
            tidy(error)
            raise

    return method


_BINARY: dict[str, tuple[str, Any]] = {
    "add": ("+", u.add),
    "sub": ("-", u.subtract),
    "mul": ("*", u.multiply),
    "truediv": ("/", u.true_divide),
    "floordiv": ("//", u.floor_divide),
    "mod": ("%", u.remainder),
    "divmod": ("divmod()", u.divmod),
    "pow": ("**", u.power),
    "and": ("&", u.bitwise_and),
    "or": ("|", u.bitwise_or),
    "xor": ("^", u.bitwise_xor),
    "lshift": ("<<", u.left_shift),
    "rshift": (">>", u.right_shift),
}
_COMPARISONS: dict[str, tuple[str, Any]] = {
    "eq": ("==", u.equal),
    "ne": ("!=", u.not_equal),
    "lt": ("<", u.less),
    "le": ("<=", u.less_equal),
    "gt": (">", u.greater),
    "ge": (">=", u.greater_equal),
}


_UNARY = {"neg": u.negative, "pos": u.positive, "invert": u.invert, "abs": u.absolute}


def _operators() -> dict[str, Callable[..., Any]]:
    binary = _BINARY | {"matmul": ("@", _late("matmul"))}
    table = {f"__{name}__": _operator(*row) for name, row in (binary | _COMPARISONS).items()}
    table |= {f"__r{name}__": _reflected(*row) for name, row in binary.items()}
    table |= {f"__{name}__": _method(f) for name, f in _UNARY.items()}
    return table | {"__getitem__": getitem}


@cache
def _found(name: str) -> Callable[..., Any]:
    f = getattr(numpy, name)
    return getattr(f, "call", f)


def _late(name: str) -> Callable[..., Any]:
    """A function of `fnarray.numpy`, imported when it is first called."""
    return lambda *args, **kwargs: _found(name)(*args, **kwargs)


def _method(f: Any) -> Callable[..., Any]:
    """A function as a method: its first argument is the array."""
    call = getattr(f, "call", f)
    return lambda self, *args, **kwargs: call(self, *args, **kwargs)


# ---- methods with a signature of their own -----------------------------------------------------


def _one_or_many(args: tuple[Any, ...]) -> Any:
    """Read ``x.reshape(2, 3)`` as ``x.reshape((2, 3))``."""
    kinds = list | tuple | np.ndarray | Array
    alone = len(args) == 1 and (args[0] is None or isinstance(args[0], kinds))
    return args[0] if alone else args


def _round(self: Array, ndigits: int | None = None) -> Array:
    """Round half to even; without ``ndigits``, to integers."""
    rounded = self.round(ndigits or 0)
    return rounded if ndigits is not None else convert(rounded, canonicalize_dtype(int))


def _view(self: Array, dtype: Any = None, type: Any = None) -> Array:
    """Read the elements' bits as another dtype; the last axis shrinks or grows with their size.

    Raises
    ------
    ValueError
        The last axis does not divide, or there is none and the size changes; ``type`` is given.
    """
    if type is not None:
        raise ValueError("Array.view: type must be None; arrays have one type.")
    new = self.dtype if dtype is None else canonicalize_dtype(dtype)
    old_size, new_size = self.dtype.itemsize, new.itemsize
    if old_size != new_size and (not self.shape or self.shape[-1] * old_size % new_size):
        raise ValueError(
            f"Array.view: an array of shape {self.shape} cannot be read as {new}, whose elements "
            f"take {new_size} bytes, not {old_size}: the last axis must fill whole elements."
        )
    if not isinstance(self, Tracer):
        return asarray(np.asarray(self).view(new))
    shape = (*self.shape[:-1], self.shape[-1] * old_size // new_size) if self.shape else ()
    bits = self
    if self.dtype == bool_:
        bits = convert(self, uint8, False)
    elif is_complex(self.dtype) and new != self.dtype:
        rows = [reshape(f(self), (*self.shape, 1)) for f in (real, imag)]
        bits = concatenate(rows, self.ndim)
    kind = uint8 if new == bool_ else new
    if is_complex(new) and new != self.dtype:
        kind = np.dtype(f"f{new_size // 2}")
    # All sizes are powers of two: one of the two counts is 1, or both are.
    ratio = max(kind.itemsize // bits.dtype.itemsize, 1)
    if ratio > 1:
        bits = reshape(bits, (bits.size // ratio, ratio))
    if bits.dtype != kind:  # else values go through, and their derivatives
        bits = bitcast_convert_type(bits, kind)
    if new == bool_:
        bits = _found("not_equal")(bits, 0)
    elif kind != new:
        pairs = reshape(bits, (bits.size // 2, 2))
        bits = lax_complex(pairs[:, 0], pairs[:, 1])
    return reshape(bits, shape)


def _to_device(self: Array, device: Any, *, stream: Any = None) -> Array:
    """Return the array on a device."""
    from ..api.arrays import device_put  # an import that few need

    return device_put(self, device)


def _contains(self: Array, item: Any) -> bool:
    """Say whether any element equals a number."""
    return bool(_found("any")(_found("equal")(self, item)))


def _namespace(self: Array, *, api_version: str | None = None) -> Any:
    """Return the namespace of the array API standard: ``fnarray.numpy``."""
    if api_version is not None and api_version not in _API_VERSIONS:
        raise ValueError(
            f"Array.__array_namespace__: api_version must be None or one of "
            f"{', '.join(_API_VERSIONS)}, got {api_version!r}."
        )
    return numpy


_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

#: Functions of `fnarray.numpy` that are methods under the same name, the array first.
_DELEGATED = """
all any argmax argmin argpartition argsort astype choose clip conj conjugate copy cumprod cumsum
diagonal dot max mean min nonzero prod ptp ravel repeat round searchsorted sort squeeze std sum
swapaxes take trace var
""".split()  # noqa: SIM905 - a table of words


def _methods() -> dict[str, Any]:
    table: dict[str, Any] = {name: _late(name) for name in _DELEGATED}
    to_shape, permute, compress = _late("reshape"), _late("transpose"), _late("compress")
    return table | {
        "reshape": lambda self, *shape, **kwargs: to_shape(
            self, *(() if "shape" in kwargs else (_one_or_many(shape),)), **kwargs
        ),
        "transpose": lambda self, *axes: permute(self, _one_or_many(axes) if axes else None),
        "flatten": _late("ravel"),
        "compress": lambda self, condition, *args, **kwargs: compress(
            condition, self, *args, **kwargs
        ),
        "byteswap": lambda self: _view_of_bytes(self),
        "clone": lambda self: lax_copy(self),
        "view": _view,
        "to_device": _to_device,
        "__contains__": _contains,
        "__round__": _round,
        "__array_namespace__": _namespace,
        "on_device_size_in_bytes": lambda self: self.nbytes,
        "copy_to_host_async": lambda self: None,
        "platform": lambda self: "gpu" if isinstance(self, ArrayElsewhere) else "cpu",
        "unsafe_buffer_pointer": lambda self: self._data.ctypes.data,
        "addressable_data": lambda self, index: _of_places("shards_of")(self)[index].data,
    }


def _view_of_bytes(x: Array) -> Array:
    """Return elements with their bytes in reverse order."""
    if x.dtype.itemsize == 1:
        return another(x)
    shape = (*x.shape, x.dtype.itemsize)
    octets = reshape(_view(reshape(x, (x.size,)), np.uint8), shape)
    return reshape(_view(reshape(rev(octets, (x.ndim,)), (x.nbytes,)), x.dtype), x.shape)


# ---- properties --------------------------------------------------------------------------------


def _transposed(x: Array) -> Array:
    """The array with its axes in reverse order."""
    return transpose(x, range(x.ndim)[::-1])


def _matrix_transposed(x: Array) -> Array:
    """The array with its last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"Array.mT: two axes or more are needed, got shape {x.shape}.")
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _of_places(name: str) -> Callable[[Any], Any]:
    """Return a function of where arrays are, which most programs never ask."""

    def late(x: Any) -> Any:
        from ..runtime import placed

        return getattr(placed, name)(x)

    return late


sharding_of = _of_places("sharding_of")


def _format(x: Array) -> Any:
    """How the array lies in memory, the last axis fastest, and where it is."""
    from ..runtime.layout import format_of

    return format_of(x)


def _device(x: Array) -> Any:
    """The device the array is on; of several, the sharding."""
    where = sharding_of(x)
    return where if where.num_devices > 1 else next(iter(where.device_set))


def _properties() -> dict[str, property]:
    return {
        "T": property(_transposed),
        "mT": property(_matrix_transposed),
        "real": property(_late("real")),
        "imag": property(_late("imag")),
        "at": property(IndexUpdateHelper),
        "flat": property(lambda x: iter(_found("ravel")(x))),
        "device": property(_device),
        "sharding": property(sharding_of),
        "format": property(_format),
        "addressable_shards": property(_of_places("shards_of")),
        "global_shards": property(_of_places("shards_of")),
        "committed": property(_of_places("is_committed")),
        "is_fully_addressable": property(lambda x: True),
        "is_fully_replicated": property(lambda x: sharding_of(x).is_fully_replicated),
    }


#: What `help` says of methods and properties; of the others that they are `fnarray.numpy`'s.
_SAID = {
    "flatten": "Return the elements in one axis, as ``ravel``.",
    "byteswap": "Return the elements with their bytes in reverse order.",
    "clone": "Return a copy.",
    "on_device_size_in_bytes": "Return the bytes of all elements.",
    "copy_to_host_async": "Do nothing: to read an array of a GPU copies it.",
    "platform": "Return ``'cpu'`` or ``'gpu'``.",
    "unsafe_buffer_pointer": "Return the address of the first element.",
    "addressable_data": "Return the part of the array on one of its devices, by number.",
    "devices": "Return the devices the array is on.",
    "flat": "An iterator over all elements, the last axis fastest.",
    "sharding": "How the array is cut over devices.",
    "addressable_shards": "The parts of the array, with the device and the index of each.",
    "global_shards": "The parts of the array, as ``addressable_shards``.",
    "committed": "Whether the array was put on its device, and so stays there.",
    "is_fully_addressable": "Whether this process can read all of it: True.",
    "is_fully_replicated": "Whether every device has all of it.",
    "real": "The real parts.",
    "imag": "The imaginary parts.",
}


def array_methods() -> dict[str, Any]:
    """Return what arrays answer to: operators, methods and properties, by name."""
    methods = {name: boundary(f) for name, f in _methods().items()}
    table = _operators() | methods | _properties()
    table["devices"] = lambda self: sharding_of(self).device_set
    for name, member in table.items():
        if callable(member):
            member.__name__ = name
            member.__qualname__ = f"Array.{name}"
        if not member.__doc__ and not name.startswith("_"):
            member.__doc__ = _SAID.get(name, f"Return ``fnarray.numpy.{name}`` of the array.")
    return table
