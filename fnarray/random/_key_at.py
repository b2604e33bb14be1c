"""``keys.at[index]``: random keys read and replaced where numbers are, by the same rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.kit.moves import Overlay


class KeyAt:
    """The keys of ``keys.at``; ``[index]`` gives what reads and replaces them.

    Options are those of the places of numbers (``mode``, ``indices_are_sorted``, ...).
    """

    __slots__ = ("index", "keys")

    def __init__(self, keys: Any, index: Any = ()):
        self.keys, self.index = keys, index

    @property
    def dtype(self) -> Any:
        """Of the keys."""
        return self.keys.dtype

    @property
    def _words(self) -> Any:
        return self.keys._base.at[self.index]

    def __getitem__(self, index: Any) -> KeyAt:
        return KeyAt(self.keys, self.keys._index(index))

    def get(self, **options: Any) -> Any:
        """Return the keys at the index."""
        return self.keys.over(self._words.get(**options))

    def set(self, keys: Any, **options: Any) -> Any:
        """Return all keys, with those at the index replaced."""
        return self.keys.over(self._words.set(words_like(self.keys, keys), **options))


def refusing(name: str) -> Callable[..., Any]:
    """Return the method of an operation on numbers, which keys are not."""

    def refuse(self: Any, *others: Any, **options: Any) -> Any:
        raise TypeError(
            f"{name} does not accept dtype {self.dtype.name}: random keys are no numbers. Draw "
            "from them (random.bits, ...), or use random.key_data(key) for the words."
        )

    return refuse


for _name in ("add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply"):
    setattr(KeyAt, _name, refusing(f"at[...].{_name}"))


def is_mask(index: Any) -> bool:
    """Whether an index is of bools."""
    return getattr(index, "dtype", None) == np.bool_


def words_like(keys: Any, other: object) -> Any:
    """Return the words of other keys of the same generator; raise `TypeError` for what is none."""
    if not isinstance(other, Overlay):
        raise TypeError(
            f"random keys combine only with random keys, got {type(other).__name__}. "
            "Use random.key_data(key) for the words."
        )
    if other.dtype != keys.dtype:
        raise TypeError(
            f"random keys combine only with keys of their generator: {keys.dtype.impl!r} and "
            f"{getattr(other.dtype, 'impl', None)!r} do not."
        )
    return other._base
