"""Refs of the elements of others, seen in another way: in another shape, order or dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from .array import Array
from .places import is_whole, place, updated
from .ref import AbstractRef, RefIndexer, TransformedRef, fitting

__all__: list[str] = []


class ViewedRef(TransformedRef):
    """A Ref seen in another way, to be read and written like one.

    Parameters
    ----------
    base : Ref or TransformedRef
    there, back : callable
        From its value to what is seen, and from that to its value.
    """

    __slots__ = ("_back", "_base", "_there", "aval")

    def __init__(
        self, base: Any, there: Callable[[Any], Array], back: Callable[[Any], Array]
    ) -> None:
        super().__init__(base.ref if isinstance(base, TransformedRef) else base, ())
        self._base, self._there, self._back = base, there, back
        self.aval = AbstractRef(there(base[...]).aval)

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.aval.dtype

    @property
    def at(self) -> RefIndexer:
        """Parts of the view."""
        return RefIndexer(cast("Any", self), ())

    def __repr__(self) -> str:
        return repr(self.aval)

    def __getitem__(self, index: Any) -> Array:
        x = self._there(self._base[...])
        return x if is_whole(index) else x[place(self.aval, x.shape, index).index]

    def __setitem__(self, index: Any, x: Any) -> None:
        self._write((index,), "set", x)

    def addupdate(self, x: Any, idx: Any = ()) -> None:
        """Add to what lies at an index of the view."""
        self._write((idx,), "add", x)

    def _write(self, path: tuple[Any, ...], name: str, x: Any) -> None:
        x = fitting(cast("Any", self), x, "set" if name == "set" else "addupdate")
        self._base[...] = self._back(updated(self.aval, self[...], path, name, x))


def reshaped(ref: Any, shape: tuple[Any, ...]) -> ViewedRef:
    before = ref.shape
    return ViewedRef(ref, lambda x: x.reshape(*shape), lambda x: x.reshape(before))


def bitcast(ref: Any, dtype: Any) -> ViewedRef:
    before, dtype = ref.dtype, np.dtype(dtype)
    if before.itemsize != dtype.itemsize:
        raise NotImplementedError(
            f"Ref.bitcast: {before} and {dtype} have different widths. Read the value, and use "
            "lax.bitcast_convert_type, along a new last axis."
        )
    return ViewedRef(ref, lambda x: x.view(dtype), lambda x: x.view(before))


def transposed(ref: Any, permutation: Any) -> ViewedRef:
    axes = [int(k) for k in (reversed(range(ref.ndim)) if permutation is None else permutation)]
    back = np.argsort(axes).tolist()
    return ViewedRef(ref, lambda x: x.transpose(axes), lambda x: x.transpose(back))
