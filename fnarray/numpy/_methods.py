"""Operators, methods and properties that arrays and tracers share."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..api.arrays import device_put, devices
from ..core.array import Array, ArrayImpl, asarray
from ..core.dtypes import canonicalize_dtype, is_complex
from ..core.trace import Tracer
from ..ops.convert import convert
from ..ops.convert import copy as lax_copy
from . import _ufuncs as u
from ._at import IndexUpdateHelper
from ._indexing import getitem
from ._ufunc import UFunc

__all__ = ["methods"]

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


def _operator(symbol: str, f: UFunc | Callable[..., Any]) -> Callable[..., Any]:
    call = getattr(f, "call", f)

    def method(self: Array, other: Any) -> Any:
        if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
            return call(self, other)
        return _refuse(symbol, self, other)

    return method


def _reflected(symbol: str, f: UFunc | Callable[..., Any]) -> Callable[..., Any]:
    call = getattr(f, "call", f)

    def method(self: Array, other: Any) -> Any:
        if isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__"):
            return call(other, self)
        return _refuse(symbol, self, other)

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


def _operators(matmul: Callable[..., Any] | None) -> dict[str, Callable[..., Any]]:
    binary = dict(_BINARY)
    if matmul is not None:
        binary["matmul"] = ("@", matmul)
    table = {f"__{name}__": _operator(*row) for name, row in (binary | _COMPARISONS).items()}
    table |= {f"__r{name}__": _reflected(*row) for name, row in binary.items()}
    for name, f in (("neg", u.negative), ("pos", u.positive), ("invert", u.invert)):
        table[f"__{name}__"] = _method(f)
    return table | {"__abs__": lambda self: u.absolute(self), "__getitem__": getitem}


def _method(f: Any) -> Callable[..., Any]:
    """A function as a method: its first argument is the array."""
    call = getattr(f, "call", f)
    return lambda self, *args, **kwargs: call(self, *args, **kwargs)


# ---- methods with a signature of their own -----------------------------------------------------


def _several(args: tuple[Any, ...]) -> Any:
    """``x.reshape(2, 3)`` and ``x.reshape((2, 3))`` alike."""
    one = len(args) == 1 and (args[0] is None or isinstance(args[0], list | tuple | np.ndarray))
    return args[0] if one else args


def _view(self: Array, dtype: Any = None, type: Any = None) -> Array:
    """Return the elements' bits read as another dtype; the last axis shrinks or grows."""
    from_bool = None if dtype is None else canonicalize_dtype(dtype)
    if type is not None:
        raise NotImplementedError("Array.view: type must be None; arrays have one type.")
    if from_bool is None or from_bool == self.dtype:
        return self
    return _bitcast(self, from_bool)


def _bitcast(x: Array, dtype: np.dtype) -> Array:
    if x.ndim == 0 and dtype.itemsize != x.dtype.itemsize:
        raise ValueError(
            f"Array.view: changing the element size of a rank-0 array is not possible, got "
            f"{x.dtype} to {dtype}."
        )
    if isinstance(x, Tracer):
        return _bitcast_traced(x, dtype)
    return asarray(np.asarray(x).view(dtype))


def _bitcast_traced(x: Array, dtype: np.dtype) -> Array:
    from_size, to_size = x.dtype.itemsize, dtype.itemsize
    if from_size < to_size:
        ratio = to_size // from_size
        x = _lax_reshape(x, (*x.shape[:-1], x.shape[-1] // ratio, ratio))
        return bitcast_convert_type(x, dtype)
    out = bitcast_convert_type(x, dtype)
    if from_size == to_size:
        return out
    return _lax_reshape(out, (*x.shape[:-1], x.shape[-1] * (from_size // to_size)))


from ..ops.convert import bitcast_convert_type  # noqa: E402
from ..ops.shape import reshape as _lax_reshape  # noqa: E402
