"""Abstract values: what tracing knows of an array."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from . import hooks
from .dtypes import ExtendedDType, as_dtype, dtype_and_weak, short_name
from .frozen import frozen

_interned: dict[tuple[Any, ...], ShapedArray] = {}

#: For each axis of an array, the axes of a mesh that it is cut along.
Cuts = tuple[tuple[Hashable, ...], ...]
Names = frozenset[Hashable]
#: Axes along which there are partial sums, and along which there were.
Sums = tuple[Names, Names]
NO_SUMS: Sums = (frozenset(), frozenset())


@frozen
class ManualAxisType:
    """How an array differs along the axes of the `shard_map` around.

    Attributes
    ----------
    varying : frozenset of names
        Axes along which the values differ.
    unreduced, reduced : frozenset of names
        Axes along which there are partial sums, and along which there were.
    """

    varying: Names = frozenset()
    unreduced: Names = frozenset()
    reduced: Names = frozenset()


@frozen
class Place:
    """How an array lies on a mesh, where that is part of its type; made by `place`.

    Attributes
    ----------
    mesh : tuple of (name, size)
        Empty where nothing is cut.
    cuts : tuple of tuple of names
        By axis; those of type Explicit alone.
    varying : frozenset of names
        Axes of type Manual along which the values differ.
    sums : tuple of two frozensets of names
        Axes along which devices have partial sums, and along which they had: what has `sums` of one
        kind has cotangents of the other.
    """

    mesh: tuple[tuple[Hashable, int], ...]
    cuts: Cuts
    varying: Names
    sums: Sums


@lru_cache(maxsize=4096)
def _place(mesh: tuple[tuple[Hashable, int], ...], cuts: Cuts, varying: Names, sums: Sums) -> Place:
    return Place(mesh, cuts, varying, sums)


def place(
    mesh: Any, cuts: Cuts, varying: Names = frozenset(), sums: Sums = NO_SUMS
) -> Place | None:
    """Return the one place of these four; None where they say nothing."""
    if sums != NO_SUMS:
        return _place(tuple(mesh), cuts if any(cuts) else (), varying, sums)
    if not any(cuts):
        return _place((), (), varying, NO_SUMS) if varying else None
    return _place(tuple(mesh), cuts, varying, NO_SUMS)


def _grouped(names: Any) -> str:
    text = ",".join(map(str, names))
    return f"({text})" if len(names) > 1 else text


@frozen
class OverlayAval:
    """Shape and dtype of an array over words, such as random keys, as `typeof` gives them."""

    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool = False

    __getattr__ = hooks.extension_name

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def sharding(self) -> Any:
        """How it is cut: it is not, its words may be."""
        return ShapedArray(self.shape, np.uint32).sharding

    def update(self, **changes: Any) -> OverlayAval:
        """Return the aval with some of its fields replaced."""
        return replace(self, **changes)

    def words(self) -> ShapedArray:
        """Return the aval of the words."""
        words = self.dtype.blank()._base.aval
        return words.update(shape=(*self.shape, *words.shape))

    def over(self, words: Any) -> Any:
        """Return the array of this kind over an array of words."""
        return self.dtype.blank().over(words)

    def str_short(self, short_dtypes: bool = False) -> str:
        """``key<fry>[3]``."""
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    __str__ = str_short

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_short()})"


class ShapedArray:
    """Shape, dtype and weak type of an array.

    Instances are interned: equal avals are one object, so comparing and hashing them is comparing
    and hashing an address, which is what the dispatch of compiled functions relies on.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    weak_type : bool
        Whether the dtype gives way in promotion, as that of a Python scalar does.
    sharding : NamedSharding, optional
        How it is cut; axes of type Explicit are part of the type.
    place : Place, optional
        The same, and along which axes of a `shard_map` values differ.
    """

    __slots__ = ("dtype", "place", "shape", "weak_type")

    __getattr__ = hooks.extension_name

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    place: Place | None

    def __new__(
        cls,
        shape: Any,
        dtype: Any,
        weak_type: bool = False,
        *,
        sharding: Any = None,
        place: Place | None = None,
    ) -> ShapedArray:
        """Return the one aval of all these."""
        exact: Any = dtype
        if isinstance(dtype, ExtendedDType):
            return OverlayAval(tuple(shape), dtype)  # type: ignore[return-value]
        if not isinstance(dtype, np.dtype):
            exact = np.dtype(dtype)
        if sharding is not None:
            place = hooks.place_of(sharding, len(tuple(shape)))
        key: tuple[Any, ...] = (tuple(shape), exact, weak_type)
        if place is not None:
            key = (*key, place)
        found = _interned.get(key)
        if found is None:
            self = object.__new__(cls)
            object.__setattr__(self, "shape", tuple(int(n) for n in key[0]))
            object.__setattr__(self, "dtype", key[1])
            object.__setattr__(self, "weak_type", bool(weak_type))
            object.__setattr__(self, "place", place)
            # setdefault is atomic: two threads that race agree on one object.
            found = _interned.setdefault(key, self)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"ShapedArray is immutable: cannot set {name!r}")

    def __reduce__(self):
        if self.place is None:
            return ShapedArray, (self.shape, self.dtype, self.weak_type)
        where = self.place.mesh, self.place.cuts, self.place.varying, self.place.sums
        return _placed, (self.shape, self.dtype, self.weak_type, where)

    @property
    def sharding(self) -> Any:
        """How it is cut: a NamedSharding on a mesh without devices."""
        return hooks.sharding_of_type(self)

    @property
    def vma(self) -> Names:
        """Axes of the `shard_map` around along which values differ."""
        return self.place.varying if self.place is not None else frozenset()

    @property
    def mat(self) -> ManualAxisType:
        """How it differs along the axes of the `shard_map` around: `manual_axis_type`."""
        return self.manual_axis_type

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """How it differs along the axes of the `shard_map` around."""
        # Outside of a program on devices a place names its mesh, and its shardings say the sums.
        sums = self.sums if self.place is not None and not self.place.mesh else NO_SUMS
        return ManualAxisType(self.vma, *sums)

    @property
    def sums(self) -> Sums:
        """Axes along which devices have partial sums, and along which they had."""
        return self.place.sums if self.place is not None else NO_SUMS

    def of_cotangents(self) -> ShapedArray:
        """Return the aval of cotangents: those of partial sums are whole, and the other way round.

        To hand a whole value to devices is free, and the transpose of that is a sum over them: it
        is put off where the type says so.
        """
        where = self.place
        if where is None or where.sums == NO_SUMS:
            return self
        unreduced, reduced = where.sums
        return self.update(place=place(where.mesh, where.cuts, where.varying, (reduced, unreduced)))

    @property
    def cuts(self) -> Cuts:
        """For each axis the axes of a mesh, of type Explicit, that it is cut along."""
        known = self.place.cuts if self.place is not None else ()
        return known or ((),) * len(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def update(self, **changes: Any) -> ShapedArray:
        """Return the aval with some of ``shape``, ``dtype``, ``weak_type``, ``place`` replaced.

        A ``sharding`` says the place too.

        In a new shape it varies as before. It is cut as before if the shape is the old one with an
        axis more, or less, in front; else it is not.
        """
        shape = changes.get("shape", self.shape)
        where = changes.get("place", self.place)
        if (sharding := changes.get("sharding")) is not None:
            where = hooks.place_of(sharding, len(shape))
        if where is not None and where is self.place and where.cuts and shape != self.shape:
            where = self._moved(shape)
        return ShapedArray(
            shape,
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
            place=where,
        )

    def _moved(self, shape: tuple[int, ...]) -> Place | None:
        assert self.place is not None
        mesh, cuts = self.place.mesh, self.place.cuts
        others = self.place.varying, self.place.sums
        if tuple(shape) == self.shape[1:]:
            return place(mesh, cuts[1:], *others)
        if tuple(shape[1:]) == self.shape:
            return place(mesh, ((), *cuts), *others)
        return place(mesh, (), *others)

    def str_short(self, short_dtypes: bool = False) -> str:
        """``float32[3,4]``, or ``f32[3,4]`` with short dtype names; weak types begin with ``~``."""
        short = short_dtypes or self.dtype.names  # NumPy's name of a float0 is void
        name = short_name(self.dtype) if short else self.dtype.name
        weak = "~" if self.weak_type and not short_dtypes else ""
        if self.place is None:
            return f"{weak}{name}[{','.join(map(str, self.shape))}]"
        sizes = (
            f"{n}@{_grouped(names)}" if names else str(n)
            for n, names in zip(self.shape, self.cuts, strict=True)
        )
        kinds = zip("VUR", (self.place.varying, *self.place.sums), strict=True)
        said = ", ".join(
            f"{kind}:{_grouped(self._in_order(names))}" for kind, names in kinds if names
        )
        return f"{weak}{name}[{','.join(sizes)}]" + (f"{{{said}}}" if said else "")

    def _in_order(self, names: Names) -> list[str]:
        assert self.place is not None
        order = {name: k for k, (name, _) in enumerate(self.place.mesh)}
        return sorted(map(str, names), key=lambda n: (order.get(n, len(order)), n))

    def __str__(self) -> str:
        return self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short().lstrip('~')}{weak})"


def _placed(shape: Any, dtype: Any, weak_type: bool, where: Any) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type, place=place(*where))


class ShapeDtypeStruct:
    """A stand-in for an array argument: its shape and dtype, and no data.

    Parameters
    ----------
    shape : sequence of int
    dtype : dtype-like
    sharding : Sharding or PartitionSpec, optional
        How it is cut.
    weak_type : bool, optional
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified, got None.")
        self.shape = tuple(shape)
        self.dtype = as_dtype(dtype)
        self.weak_type = weak_type
        self.sharding = None if sharding is None else hooks.named("ShapeDtypeStruct", sharding)

    @staticmethod
    def like(x: Any) -> ShapeDtypeStruct:
        """Return what stands in for an array, or for what says a shape and a dtype."""
        known = hasattr(x, "weak_type")
        dtype, weak = (x.dtype, x.weak_type) if known else dtype_and_weak(x)
        where = getattr(x, "sharding", None)
        if not hasattr(where, "spec"):  # one device is where an array is by chance
            where = None
        return ShapeDtypeStruct(np.shape(x), dtype, sharding=where, weak_type=weak)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """Return one that differs in ``shape``, ``dtype``, ``sharding`` or ``weak_type``."""
        same = {name: getattr(self, name) for name in self.__slots__}
        return ShapeDtypeStruct(**(same | changes))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct of rank 0")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (
            (self.shape, self.dtype, self.weak_type) == (other.shape, other.dtype, other.weak_type)
            and self.sharding == other.sharding
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{where})"


def ambiguous(shape: tuple[int, ...]) -> str:
    """Say that an array of this shape has no truth value, in the words that NumPy and JAX use."""
    if 0 in shape:
        return (
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an "
            f"array is not empty; its shape is {shape}."
        )
    return (
        "The truth value of an array with more than one element is ambiguous. Use a.any() or "
        f"a.all(); its shape is {shape}."
    )


#: Ints below it in size are of the default dtype.
SMALL_INT = 1 << 31


@lru_cache
def aval_of_number(kind: type, wide: bool) -> ShapedArray:
    """Return the aval of Python numbers of a type, small ones for int, under ``enable_x64``."""
    dtype, weak = dtype_and_weak(kind())
    return ShapedArray((), dtype, weak)
