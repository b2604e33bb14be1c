"""Making arrays: from Python values, by filling, by counting, by pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from .. import lax
from ..core.apart import another
from ..core.array import Array, ArrayImpl, aval_of, default, from_numpy, is_placed
from ..core.array import asarray as core_asarray
from ..core.avals import ShapedArray
from ..core.dtypes import (
    canonicalize_dtype,
    dtype_and_weak,
    is_complex,
    is_inexact,
    is_integer,
    lattice_result_type,
    result_type,
)
from ..core.eager import replayed
from ..core.hooks import cut_as, placed_like
from ..core.quiet import quietly
from ..core.trace import Tracer, state
from ..errors import ConcretizationTypeError
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array, canonical_shape
from ..ops.kit.moves import Overlay, check_kept, moving
from ._promote import as_operand, broadcast_to

__all__ = [
    "array",
    "asarray",
    "astype",
    "copy",
    "empty",
    "empty_like",
    "from_dlpack",
    "frombuffer",
    "fromfile",
    "fromiter",
    "fromstring",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

DTypeLike = Any
_SCALARS = (bool, int, float, complex)


# ---- from Python values ------------------------------------------------------------------------


@moving
def array(
    object: Any,
    dtype: DTypeLike = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of numbers, arrays, and nested lists of them.

    Parameters
    ----------
    object : array_like
        Tracers may be anywhere in nested lists.
    dtype : dtype-like, optional
        That of the elements together by default; a Python scalar alone makes a weak array.
    copy : bool
        Accepted; arrays are immutable, and NumPy arrays are always copied.
    order : {"K", "A", "C"}, optional
        Arrays have one layout, C.
    ndmin : int
        Least number of axes; new ones are in front.
    device : Device or Sharding, optional
        Where the array is to be.
    out_sharding
        Accepted for compatibility.

    Raises
    ------
    TypeError
        For strings, dicts and other objects.
    ValueError
        For None, or lists of uneven lengths.
    NotImplementedError
        For order "F": arrays have no layout.
    OverflowError
        For a Python int outside the dtype.
    """
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, array, object, dtype, copy, order, ndmin)
    if order not in (None, "K", "A", "C"):
        raise NotImplementedError(
            f"numpy.array: only implemented for order 'K', 'A', 'C' or None, got {order!r}."
        )
    check_kept("numpy.array", object, dtype)
    out = _array(object, None if dtype is None else canonicalize_dtype(dtype))
    if state.stages_bools and state.trace is not None and isinstance(object, bool | np.bool_):
        out = lax.copy(out)
    if out.ndim < ndmin:
        out = lax.reshape(out, (1,) * (ndmin - out.ndim) + out.shape)
    if default.find is None or state.trace is not None or isinstance(object, Array):
        return another(out) if copy and out is object else out
    return default.put(out) if type(out) is ArrayImpl else out


def _array(value: Any, dtype: np.dtype | None) -> Array:
    if hasattr(value, "__jax_array__") and not isinstance(value, Array):
        value = value.__jax_array__()
    if isinstance(value, Array):
        return value if dtype is None else convert(value, dtype)
    if value is None:
        raise ValueError("numpy.array: None is not a number and makes no array.")
    if isinstance(value, list | tuple):
        return _array_of_list(value, dtype)
    if isinstance(value, _SCALARS):
        if dtype is None:
            return core_asarray(value)
        if is_integer(dtype) and isinstance(value, float):
            return convert(core_asarray(value), dtype)
        return ArrayImpl(quietly(np.array, value, dtype), ShapedArray((), dtype))
    if type(value) is not np.ndarray and hasattr(value, "__cuda_array_interface__"):
        return _array(_borrowed(value), dtype)
    data = np.asarray(value)
    if data.dtype.kind in "OSUmM":
        raise TypeError(
            f"numpy.array: {value!r} of dtype {data.dtype} is no array of numbers. "
            "Convert it with numpy first."
        )
    if dtype is None:
        return from_numpy(data)
    return convert(from_numpy(data), dtype)


def _array_of_list(value: Sequence[Any], dtype: np.dtype | None) -> Array:
    traced, arrays, dtypes = False, False, set()
    for leaf in _leaves(value):
        traced |= isinstance(leaf, Tracer)
        arrays |= isinstance(leaf, Array)
        dtypes.add(_dtype_of(leaf))
    if dtype is None:
        found = result_type(*_weakest(dtypes)) if dtypes else canonicalize_dtype(float)
        dtype = canonicalize_dtype(found)
    # NumPy makes ml_dtypes' numbers of Python's alone, not of arrays without axes.
    if traced or (arrays and cast("np.dtype", dtype).kind == "V"):
        # Elements are stacked level by level; those that are known are constants.
        parts = [_array(v, dtype) for v in value]
        shapes = {p.shape for p in parts}
        if len(shapes) > 1:
            raise ValueError(f"numpy.array: elements of one list differ in shape: {shapes}.")
        return lax.concatenate([lax.expand_dims(p, (0,)) for p in parts], 0)
    data = quietly(np.array, value, _numpy_dtype(cast("np.dtype", dtype)))
    if data.dtype.kind in "OSUmM":
        raise TypeError(f"numpy.array: a list of dtype {data.dtype} is no array of numbers.")
    return from_numpy(data, copy=False)


def _numpy_dtype(dtype: np.dtype) -> np.dtype:
    return dtype


def _leaves(value: Any) -> Iterator[Any]:
    """Elements of nested lists; of a list of Python scalars, one of each type."""
    if not isinstance(value, list | tuple):
        yield value
        return
    kinds = {type(v): v for v in value}
    if kinds.keys() <= set(_SCALARS):
        # The largest int decides whether all fit.
        yield from kinds.values()
        return
    for v in value:
        yield from _leaves(v)


def _dtype_of(leaf: Any) -> tuple[np.dtype, bool]:
    if leaf is None:
        raise ValueError("numpy.array: None is not a number and makes no array.")
    if type(leaf) in _SCALARS:
        return canonicalize_dtype(type(leaf)), type(leaf) is not bool
    if hasattr(leaf, "__jax_array__") and not isinstance(leaf, Array):
        leaf = leaf.__jax_array__()
    if not isinstance(leaf, Array | np.ndarray | np.generic | complex | float | int):
        data = np.asarray(leaf)
        if data.dtype.kind in "OSUmM":
            raise TypeError(
                f"numpy.array: {leaf!r} of type {type(leaf).__name__} is no number and no array."
            )
        leaf = data
    return dtype_and_weak(leaf)


def _weakest(dtypes: set[tuple[np.dtype, bool]]) -> list[Any]:
    dtype, weak = lattice_result_type(sorted(dtypes, key=str))
    if not weak:
        return [dtype]
    kind = complex if is_complex(dtype) else float if is_inexact(dtype) else int
    return [kind]


@moving
def asarray(
    a: Any,
    dtype: DTypeLike = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of a value; arrays stay as they are, unless a copy is asked for.

    Parameters are those of `array`; ``copy=False`` is refused where a copy is needed.

    Raises
    ------
    ValueError
        With ``copy=False``, for a NumPy array: it may change, so it is always copied.
    """
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, asarray, a, dtype, order, copy=copy)
    if copy is False and isinstance(a, np.ndarray):
        raise ValueError(
            "numpy.asarray: copy=False is not possible for a NumPy array, which may change."
        )
    return array(a, dtype, bool(copy), order)


@moving
def copy(a: Any, order: str | None = None) -> Array:
    """Return a copy of an array."""
    return lax.copy(as_array(as_operand("copy", a)))


@moving
@replayed(same=True)
def astype(x: Any, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """Convert elements to a dtype.

    Integers wrap around; floats are cut towards zero and saturate; complex numbers lose their
    imaginary part, with a `ComplexWarning`; bools tell what is not zero.

    Parameters
    ----------
    x : array_like
    dtype : dtype-like
        None is the default float.
    """
    if device is not None:
        return cut_as(device, astype, x, dtype, copy=copy)
    check_kept("numpy.astype", x, dtype)
    x = as_array(as_operand("astype", x))
    target = canonicalize_dtype(float if dtype is None else dtype)
    if target == np.bool_ and x.dtype != np.bool_:
        return lax.ne(x, convert(0, x.dtype, x.weak_type))
    out = convert(x, target)
    return another(out) if copy and out is x else out


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Make an array of an object of the DLPack protocol, where that lies.

    Parameters
    ----------
    x : object
        With ``__dlpack__``, on the processor or on a GPU.
    device : Device, optional
        Where the array is to be.
    copy : bool, optional
        Elements are copied, as their owner may change them; False promises that nobody does.
    """
    kind, _ = x.__dlpack_device__()
    if kind == 1:
        out: Array = from_numpy(np.from_dlpack(x), copy=copy is not False)
    else:
        out = _borrowed(x, copy=copy is not False)
    if device is None:
        return out
    from ..api.arrays import device_put  # an import that few need

    return device_put(out, device)


def _borrowed(x: Any, *, copy: bool = True) -> Array:
    from ..runtime import gpu  # asked for by whoever has one

    found = gpu.borrowed(x, copy=copy)
    if found is None:
        raise TypeError(
            f"an array of {type(x).__module__} lies on a kind of device that there is none of "
            f"here, {x.__dlpack_device__()}. Bring it to the processor or a GPU."
        )
    return found


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Make an array of rank 1 of a buffer's bytes."""
    return from_numpy(np.frombuffer(buffer, _full_width(dtype), count, offset))


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """Make an array of rank 1 of what an iterator yields; not under a trace, as it is not pure."""
    if state.trace is not None:
        raise ConcretizationTypeError(
            f"numpy.fromiter consumes an iterator, which tracing {state.trace.name} would do once "
            "only. Pass an array."
        )
    return from_numpy(np.fromiter(iter, _full_width(dtype), count), copy=False)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Make an array of rank 1 of numbers written in a string."""
    return from_numpy(np.fromstring(string, _full_width(dtype), count, sep=sep), copy=False)


def fromfile(file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "") -> Array:
    """Make an array of rank 1 of a file's bytes, or of numbers written in it."""
    return from_numpy(np.fromfile(file, _full_width(dtype), count, sep=sep), copy=False)


def _full_width(dtype: DTypeLike) -> np.dtype:
    return np.dtype(getattr(dtype, "dtype", dtype))


# ---- filled ------------------------------------------------------------------------------------


def _dtype(dtype: DTypeLike, default: Any = float) -> np.dtype:
    return canonicalize_dtype(default if dtype is None else dtype)


@moving
def zeros(
    shape: Any,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Array of zeros, float32 by default.

    Raises
    ------
    TypeError
        For a shape that is not of concrete integers, or negative.
    """
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, zeros, shape, dtype)
    return full(shape, 0, _dtype(dtype))


@moving
def ones(
    shape: Any,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Array of ones, float32 by default; see `zeros`."""
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, ones, shape, dtype)
    return full(shape, 1, _dtype(dtype))


@moving
def empty(
    shape: Any,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Array of unspecified elements: zeros, so that results never depend on chance."""
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, empty, shape, dtype)
    return full(shape, 0, _dtype(dtype))


@moving
def full(
    shape: Any,
    fill_value: Any,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Array filled with a value, which may be an array that broadcasts to the shape.

    The dtype is that of the value unless given, weak for a Python scalar.
    """
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, full, shape, fill_value, dtype)
    sizes = canonical_shape("full", shape)
    value = as_operand("full", fill_value)
    if dtype is not None:
        value = convert(value, canonicalize_dtype(dtype))
    elif not isinstance(value, Array):
        value = core_asarray(value)
    return broadcast_to("full", value, sizes)


def _like(name: str, a: Any, value: Any, dtype: DTypeLike, shape: Any) -> Array:
    check_kept(name, value, dtype)
    if isinstance(a, Overlay) and dtype is not None and dtype != a.dtype:
        a = a.kind
    if not hasattr(a, "dtype") or not hasattr(a, "shape"):
        a = aval_of(as_operand(name, a))
    sizes = tuple(a.shape) if shape is None else canonical_shape(name, shape)
    weak = dtype is None and getattr(a, "weak_type", False)
    target = canonicalize_dtype(a.dtype if dtype is None else dtype)
    out = broadcast_to(name, convert(as_operand(name, value, 1), target, weak), sizes)
    return out if shape is not None or not is_placed(a) else placed_like(out, a)


@moving
def zeros_like(
    a: Any,
    dtype: DTypeLike = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Zeros of the shape and dtype of ``a``, where not given."""
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, zeros_like, a, dtype, shape)
    return _like("zeros_like", a, 0, dtype, shape)


@moving
def ones_like(
    a: Any,
    dtype: DTypeLike = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Ones of the shape and dtype of ``a``, where not given."""
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, ones_like, a, dtype, shape)
    return _like("ones_like", a, 1, dtype, shape)


@moving
def empty_like(
    prototype: Any, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None
) -> Array:
    """Unspecified elements (zeros) of the shape and dtype of ``prototype``, where not given."""
    if device is not None:
        return cut_as(device, empty_like, prototype, dtype, shape)
    return _like("empty_like", prototype, 0, dtype, shape)


@moving
def full_like(
    a: Any,
    fill_value: Any,
    dtype: DTypeLike = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Array of the shape and dtype of ``a``, where not given, filled with a value."""
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, full_like, a, fill_value, dtype, shape)
    return _like("full_like", a, fill_value, dtype, shape)
