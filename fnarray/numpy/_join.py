"""Joining arrays and cutting them apart."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .. import lax
from ..core.apart import apart
from ..core.array import Array
from ..core.dtypes import as_dtype, canonicalize_dtype
from ..core.eager import replayed
from ..core.source import user_source
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import moving
from ._promote import no_out, promote_dtypes
from ._shape import (
    array_of,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    axis_of,
    concrete,
    expand_dims,
    ravel,
    reshape,
    sequence_of,
)

__all__ = [
    "append",
    "array_split",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "split",
    "stack",
    "unstack",
    "vsplit",
    "vstack",
]


# --- joining ------------------------------------------------------------------------------------


def _common(name: str, arrays: Any, dtype: Any) -> list[Array]:
    found = list(sequence_of(name, arrays))
    if not found:
        raise ValueError(f"numpy.{name}: need at least one array.")
    if dtype is None:
        return [as_array(x) for x in promote_dtypes(*found)]
    to = canonicalize_dtype(as_dtype(dtype))
    return [lax.convert_element_type(x, to) for x in found]


@moving
@replayed(same=True)
def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Join arrays along an axis they have.

    Parameters
    ----------
    arrays : sequence of array_like, or array
        The rows of an array count as a sequence. Dtypes promote.
    axis : int or None
        With None, arrays are flattened first.
    dtype : dtype-like, optional
        Of the result.

    Raises
    ------
    ValueError
        For no arrays, scalars, or an axis out of range.
    TypeError
        Where ranks, or sizes along other axes, differ.
    """
    found = _common("concatenate", arrays, dtype)
    if axis is None:
        return lax.concatenate([ravel(x) for x in found], 0)
    if not found[0].ndim:
        raise ValueError("numpy.concatenate: arrays of rank 0 have no axis to join along: stack.")
    return lax.concatenate(found, axis_of("concatenate", axis, found[0].ndim))


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis they have; see `concatenate`."""
    return concatenate(arrays, axis)


@moving
@replayed
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Array:
    """Join arrays of one shape along a new axis, which becomes axis ``axis`` of the result.

    Raises
    ------
    ValueError
        For no arrays, different shapes, or an axis out of range.
    """
    no_out("stack", out)
    found = _common("stack", arrays, dtype)
    if any(x.shape != found[0].shape for x in found):
        raise ValueError(
            f"numpy.stack: all arrays must have the same shape, got {[x.shape for x in found]}."
        )
    axis = axis_of("stack", axis, found[0].ndim + 1)
    return lax.concatenate([expand_dims(x, axis) for x in found], axis)


def _raised(name: str, tup: Any, grow: Callable[..., Any]) -> list[Array]:
    return [grow(x) for x in sequence_of(name, tup)]


@moving
@replayed
def vstack(tup: Any, dtype: Any = None) -> Array:
    """Join along axis 0; vectors are rows."""
    return concatenate(_raised("vstack", tup, atleast_2d), 0, dtype)


@moving
@replayed
def hstack(tup: Any, dtype: Any = None) -> Array:
    """Join along axis 1; vectors along their one axis."""
    found = _raised("hstack", tup, atleast_1d)
    return concatenate(found, 0 if found and found[0].ndim == 1 else 1, dtype)


@replayed
def dstack(tup: Any, dtype: Any = None) -> Array:
    """Join along axis 2, which vectors and matrices are given."""
    return concatenate(_raised("dstack", tup, atleast_3d), 2, dtype)


@replayed
def column_stack(tup: Any) -> Array:
    """Join along axis 1; vectors are columns."""
    columns = _raised("column_stack", tup, atleast_1d)
    return concatenate([lax.expand_dims(x, (1,)) if x.ndim == 1 else x for x in columns], 1)


@moving
@replayed
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Return ``arr`` with values joined at the end; both are flattened where ``axis`` is None."""
    arr, values = array_of("append", arr), array_of("append", values, 1)
    return concatenate([arr, values], axis)


@moving
@replayed
def block(arrays: Any) -> Array:
    """Assemble an array from nested lists of blocks: the innermost lists join along the last axis.

    Raises
    ------
    ValueError
        For lists of different depths, or empty ones.
    """
    depth = _depth(arrays)
    leaves = _leaves(arrays)
    rank = max(depth, *(np.ndim(x) for x in leaves))
    return apart(_assemble(arrays, 0, depth, rank), arrays)


def _leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, list) else [x]


def _depth(x: Any) -> int:
    if isinstance(x, tuple):
        raise ValueError("numpy.block: only lists nest blocks, got a tuple.")
    if not isinstance(x, list):
        return 0
    depths = {_depth(part) for part in x}
    if len(depths) != 1:
        what = "have one depth" if x else "not be empty"
        raise ValueError(f"numpy.block: lists must {what}.")
    return depths.pop() + 1


def _assemble(x: Any, level: int, depth: int, rank: int) -> Array:
    if level == depth:
        return lax.broadcast_to_rank(array_of("block", x), rank)
    parts = [_assemble(part, level + 1, depth, rank) for part in x]
    return concatenate(parts, rank - depth + level)


# --- cutting ------------------------------------------------------------------------------------


def _split(name: str, ary: Any, where: Any, axis: int) -> list[Array]:
    ary = array_of(name, ary)
    axis = axis_of(name, axis, ary.ndim)
    n = ary.shape[axis]
    if np.ndim(where):
        points = concrete(name, "indices_or_sections", where)
        if points.dtype.kind not in "iu" and points.size:
            raise TypeError(
                f"numpy.{name}: where to cut must be integers, got {where!r}, at {user_source()}."
            )
        at = [slice(int(i)).indices(n)[1] for i in points]
        edges = [0, *at, n]
        # A point before the one to its left gives an empty part, as a slice does.
        return [
            lax.slice_in_dim(ary, min(a, n), max(min(a, n), b), axis=axis)
            for a, b in pairwise(edges)
        ]
    sections = concrete(name, "indices_or_sections", where)[()]
    # A number of sections is often computed, `n / 2`: any number that is whole will do.
    count = int(sections) if sections == np.floor(sections) else operator.index(sections)
    if count <= 0:
        raise ValueError(f"numpy.{name}: the number of sections must be positive, got {count}.")
    size, more = divmod(n, count)
    if more and name != "array_split":
        raise ValueError(
            f"numpy.{name}: array split does not result in an equal division: axis {axis} of "
            f"size {n} into {count}. Use array_split."
        )
    return list(lax.split(ary, [size + (k < more) for k in range(count)], axis))


@moving
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut an array into equal parts, or at the indices given.

    Raises
    ------
    ValueError
        Where the axis does not divide equally.
    """
    return _split("split", ary, indices_or_sections, axis)


@moving
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut an array into parts whose sizes differ by at most 1, or at the indices given."""
    return _split("array_split", ary, indices_or_sections, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Cut along axis 0; see `split`."""
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Cut along axis 1, a vector along its one axis; see `split`."""
    ary = array_of("hsplit", ary)
    return _split("hsplit", ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Cut along axis 2; see `split`."""
    return _split("dsplit", ary, indices_or_sections, 2)


@moving
@replayed
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of an array along an axis, which they lack."""
    x = array_of("unstack", x)
    if not x.ndim:
        raise ValueError("numpy.unstack: a scalar has no axis to unstack along.")
    axis = axis_of("unstack", axis, x.ndim)
    if not x.shape[axis]:
        return ()
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    return tuple(reshape(part, shape) for part in lax.split(x, [1] * x.shape[axis], axis))
