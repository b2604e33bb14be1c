"""Arrays in files and in bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array, from_numpy
from ..core.dtypes import bfloat16
from ..core.eager import replayed
from ._select import as_condition
from ._shape import array_of, axis_of, ravel
from ._shape import concrete as concrete_of

__all__ = ["load", "packbits", "save", "savez", "unpackbits"]

_UINT8 = np.dtype(np.uint8)


# --- files --------------------------------------------------------------------------------------


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's ``.npy`` format.

    Parameters
    ----------
    file : path or binary file
    arr : array_like
        Concrete.
    allow_pickle : bool
        Passed on to `numpy.save`; arrays never need it.
    """
    np.save(file, concrete_of("save", "arr", arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to one ``.npz`` file, under their keywords or ``arr_<number>``."""
    named = {k: concrete_of("savez", k, v) for k, v in kwds.items()}
    arrays = [concrete_of("savez", "arrays", v) for v in args]
    np.savez(file, *arrays, allow_pickle=allow_pickle, **named)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an array from a ``.npy`` file, or a mapping of NumPy arrays from a ``.npz`` file.

    Parameters are those of `numpy.load`. Two-byte voids are read as bfloat16: that is how NumPy
    writes it.
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype == np.dtype("V2"):
        found = found.view(bfloat16)
    return from_numpy(found)


# --- bits ---------------------------------------------------------------------------------------


def _weights(name: str, bitorder: str) -> np.ndarray:
    """Return how far each of a byte's bits is shifted."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"numpy.{name}: bitorder must be 'big' or 'little', got {bitorder!r}.")
    shifts = np.arange(8, dtype=_UINT8)
    return shifts[::-1] if bitorder == "big" else shifts


@replayed
def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack the truth of each element into the bits of bytes, along an axis.

    Parameters
    ----------
    a : array_like of int or bool
    axis : int, optional
        The flattened array is packed where omitted. Zeros fill the last byte.
    bitorder : {"big", "little"}
        Which bit of a byte comes first.

    Returns
    -------
    Array
        Of uint8.

    Raises
    ------
    TypeError
        For floats.
    """
    a = array_of("packbits", a)
    if a.dtype.kind not in "biu":
        raise TypeError(f"numpy.packbits: a must be integers or bools, got dtype {a.dtype}.")
    shifts = _weights("packbits", bitorder)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of("packbits", axis, a.ndim)
    n = a.shape[axis]
    bits = lax.convert_element_type(as_condition(a), _UINT8)
    fill = [(0, -n % 8 if k == axis else 0, 0) for k in range(a.ndim)]
    bits = lax.pad(bits, _UINT8.type(0), fill)
    bits = lax.reshape(bits, (*a.shape[:axis], -(-n // 8), 8, *a.shape[axis + 1 :]))
    shape = tuple(8 if k == axis + 1 else 1 for k in range(a.ndim + 1))
    shifted = lax.shift_left(bits, lax.broadcast_in_dim(shifts.reshape(shape), bits.shape,
                                                        range(bits.ndim)))  # fmt: skip
    return lax.reduce_or(shifted, (axis + 1,))


@replayed
def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack the bits of bytes into elements 0 and 1, along an axis.

    Parameters
    ----------
    a : array_like of uint8
    axis : int, optional
        The flattened array is unpacked where omitted.
    count : int, optional
        Number of elements to return: cut, or filled with zeros. A negative one is that many less
        than all.
    bitorder : {"big", "little"}

    Returns
    -------
    Array
        Of uint8.

    Raises
    ------
    TypeError
        For elements that are not uint8.
    """
    a = array_of("unpackbits", a)
    if a.dtype != _UINT8:
        raise TypeError(f"numpy.unpackbits: a must be uint8, got dtype {a.dtype}.")
    shifts = _weights("unpackbits", bitorder)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of("unpackbits", axis, a.ndim)
    shape = (*a.shape[: axis + 1], 8, *a.shape[axis + 1 :])
    spread = lax.broadcast_in_dim(a, shape, [k for k in range(a.ndim + 1) if k != axis + 1])
    by = lax.broadcast_in_dim(shifts, shape, (axis + 1,))
    bits = lax.bitwise_and(lax.shift_right_logical(spread, by), lax.full(shape, 1, _UINT8))
    bits = lax.reshape(bits, (*a.shape[:axis], a.shape[axis] * 8, *a.shape[axis + 1 :]))
    if count is None:
        return bits
    n = bits.shape[axis]
    more = (count if count >= 0 else max(n + count, 0)) - n
    config = [(0, more if k == axis else 0, 0) for k in range(bits.ndim)]
    return lax.pad(bits, _UINT8.type(0), config)
