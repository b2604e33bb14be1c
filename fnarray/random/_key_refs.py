"""Refs of random keys: over a Ref of their words, as keys are over an array of them."""

# A Ref of keys does what Refs do, with the words.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.avals import OverlayAval
from ..core.ref import AbstractRef, Ref, new_ref
from ..core.tree import register_pytree_node_class
from ._keys import KeyTy, PRNGKeyArray, wrap

__all__: list[str] = []


@register_pytree_node_class
class KeyRef(Ref):
    """A mutable array of random keys, made by `new_ref`: ``ref[i]`` is read and written as keys.

    As a pytree it is a node whose leaf is the Ref of the words.

    Attributes
    ----------
    words : Ref
    impl : str
        Name of the generator that the keys are for.
    """

    __slots__ = ("impl", "words")

    def __init__(self, words: Ref, impl: str):
        self.words = words
        self.impl = impl

    def tree_flatten(self) -> tuple[tuple[Ref], str]:
        """Return the Ref of words, and the name of the generator."""
        return (self.words,), self.impl

    @classmethod
    def tree_unflatten(cls, metadata: str, children: Sequence[Any]) -> Any:
        """Make a Ref of keys of one of words; what else is put there is in its place."""
        (words,) = children
        return cls(words, metadata) if isinstance(words, Ref) else words

    @property
    def aval(self) -> AbstractRef:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Shape and dtype of the keys."""
        kind: Any = OverlayAval(self.words.shape[:-1], KeyTy(self.impl))
        return AbstractRef(kind)

    def __repr__(self) -> str:
        return f"{self.aval} over {self.words!r}"

    def __getitem__(self, index: Any) -> Any:
        return wrap(self.words[self._index(index)], self.impl)

    def _index(self, index: Any) -> tuple[Any, ...]:
        index = index if isinstance(index, tuple) else (index,)
        # Indices behind an ellipsis count from the end, where the axis of words is.
        return (*index, slice(None)) if any(i is ... for i in index) else index

    def _write(self, path: tuple[Any, ...], name: str, x: Any) -> None:
        if name != "set" or not isinstance(x, PRNGKeyArray) or x.impl != self.impl:
            raise TypeError(
                f"A {self.aval} holds random keys of {self.impl!r}, which are replaced by such "
                f"keys and not added to: got {name} of {x!r}."
            )
        self.words._write(tuple(map(self._index, path)), name, x._base)

    def _end(self) -> Any:
        return wrap(self.words._end(), self.impl)

    @property
    def sharding(self) -> Any:
        """Where the words lie."""
        return self.words.sharding

    @property
    def format(self) -> Any:
        """How the words are laid out, and where they lie."""
        return self.words.format

    def unsafe_buffer_pointer(self) -> int:
        """Address of the words."""
        return self.words.unsafe_buffer_pointer()


def _ref_of(keys: PRNGKeyArray) -> KeyRef:
    return KeyRef(new_ref(keys._base), keys.impl)


PRNGKeyArray.ref_of = staticmethod(_ref_of)
