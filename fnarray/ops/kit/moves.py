"""Functions that move elements, whatever those are: random keys too, which are rows of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

from ...core import tree
from ...core.array import Array
from ...core.avals import OverlayAval, ShapeDtypeStruct
from ...core.dtypes import ExtendedDType, uint32
from ...core.source import tidy
from ...core.trace import bind
from .calls import reshape
from .registry import registry

F = TypeVar("F", bound=Callable[..., Any])


class Overlay(Array):
    """An array each of whose elements is a row of another, its words."""

    __slots__ = ("_base",)

    _base: Any
    #: Makes a Ref of such an array, where there are Refs of its kind.
    ref_of: ClassVar[Callable[[Any], Any] | None] = None

    @property
    def words(self) -> int:
        """How many words an element has."""
        return self._base.shape[-1]

    def column(self, k: int) -> Any:
        """Return one word of each element."""
        base = self._base
        if isinstance(base, ShapeDtypeStruct):  # of elements of which no more is known
            return ShapeDtypeStruct(base.shape[:-1], base.dtype)
        return base[..., k]

    @property
    def kind(self) -> OverlayAval:
        """What is known of it without its words."""
        return OverlayAval(self.shape, self.dtype)

    def over(self, words: Any) -> Any:
        """Return the array of this kind over other words."""
        raise TypeError(f"{type(self).__name__} does not say how it is made of words")


def _is_overlay(x: Any) -> bool:
    return isinstance(x, Overlay)


def as_seen(leaves: Sequence[Any], value: Any) -> list[Any]:
    """Return the leaves of a tree, words replaced by the array that is over them.

    Axes that a program names are counted along these: that of the words is no axis of theirs.
    """
    if not any(getattr(x, "dtype", None) == uint32 for x in leaves):
        return list(leaves)
    nodes = tree.leaves(value, is_leaf=_is_overlay)
    return [n if isinstance(n, Overlay) else x for n, x in zip(nodes, leaves, strict=True)]


def over_words(value: Any) -> Any:
    """Return a tree whose stand-ins for elements of words are arrays over stand-ins for words.

    The tree itself where it has none. A `ShapeDtypeStruct` of random keys is a leaf to its user,
    and functions get keys, which are nodes over what is traced.
    """
    leaves, spec = tree.flatten_spec(value)
    if not any(isinstance(getattr(x, "dtype", None), ExtendedDType) for x in leaves):
        return value
    return spec.unflatten(map(_over_words, leaves))


def _over_words(x: Any) -> Any:
    if not isinstance(dtype := getattr(x, "dtype", None), ExtendedDType):
        return x
    one = dtype.blank()
    words = one._base.aval  # pyright: ignore[reportPrivateUsage]
    where = x.sharding if isinstance(x, ShapeDtypeStruct) else None
    # The shape is taken as it is: sizes may be symbolic.
    return one.over(ShapeDtypeStruct((*x.shape, *words.shape), words.dtype, sharding=where))


def without_words(leaves: Sequence[Any], value: Any) -> Any:
    """Return the tree of stand-ins whose arrays over some are stand-ins for their elements."""
    if not any(isinstance(x, Overlay) for x in as_seen(leaves, value)):
        return value
    return tree.map(_without_words, value, is_leaf=_is_overlay)


def _without_words(x: Any) -> Any:
    if not isinstance(x, Overlay):
        return x
    words = x._base  # pyright: ignore[reportPrivateUsage]
    return ShapeDtypeStruct(x.shape, x.dtype, sharding=words.sharding)


def moving(f: F) -> F:
    """Declare that a function moves elements and computes nothing with them.

    What it refuses because it is no number it then does with each column of its words: no call on
    numbers is any slower.
    """

    @wraps(f)
    def face(*args: Any, **settings: Any) -> Any:
        try:
            return f(*args, **settings)
        except Exception as error:
            leaves, spec = tree.flatten_spec((args, settings), _is_overlay)
            kinds = {str(x.dtype) for x in leaves if isinstance(x, Overlay)}
            if len(kinds) > 1:
                raise TypeError(
                    f"{f.__name__}: elements of one array are of one kind, got {sorted(kinds)}. "
                    "Make all keys for one generator: random.key(seed, impl=...)."
                ) from None
            one = next((e for e in map(_element, leaves) if e is not None), None)
            if one is None or not isinstance(error, TypeError):
                tidy(error)
                raise
        columns: list[Any] = []
        for k in range(one.words):
            some, given = spec.unflatten([_part(x, k, one) for x in leaves])
            columns.append(tree.flatten_spec(f(*some, **given)))
        (_, out), *_ = columns
        rows = zip(*(found for found, _ in columns), strict=True)
        return out.unflatten([one.over(_rows(row)) for row in rows])

    return cast(F, face)


def check_kept(name: str, x: Any, dtype: Any) -> None:
    """Raise `ValueError` where elements that are no numbers are to be converted to some."""
    if isinstance(x, Overlay) and dtype is not None and dtype != x.dtype:
        raise ValueError(
            f"{name}: {x.dtype.name} cannot be converted to {dtype}: random keys are no numbers. "
            "Use random.key_data(key) for the words."
        )


def _element(x: Any) -> Overlay | None:
    """Return elements of words: the argument, or what its dtype is the dtype of."""
    if isinstance(x, Overlay):
        return x
    kind = x if isinstance(x, ExtendedDType) else getattr(x, "dtype", None)
    return kind.blank() if isinstance(kind, ExtendedDType) else None


def _part(x: Any, k: int, one: Overlay) -> Any:
    """Return the word of an argument, or the dtype of words where it is the elements' dtype."""
    if isinstance(x, Overlay):
        return x.column(k)
    if isinstance(x, ExtendedDType):
        return one.column(k).dtype if one.dtype == x else x
    if isinstance(x, ShapeDtypeStruct) and one.dtype == x.dtype:
        return ShapeDtypeStruct(x.shape, one.column(k).dtype)
    return x


def _rows(columns: Sequence[Any]) -> Any:
    """Return the array whose rows are made of an element of each."""
    each = [reshape(c, (*c.shape, 1)) for c in columns]
    return bind(registry["concatenate"], *each, dimension=len(columns[0].shape))
