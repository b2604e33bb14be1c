"""Functions of the user's as parts of a program: held as params, called on copies of buffers.

A program that holds one calls it between kernels, on whole arrays; loops and branches around it
run step by step. Functions are known by identity, in every cache, and never written to the disk.
"""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Callable, Sequence
from traceback import format_exception_only
from types import MethodType
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import ArrayImpl, asarray, aval_of
from ..core.avals import ShapedArray
from ..core.primitive import Missing, Primitive
from ..core.source import user_source
from ..core.trace import bind, no_trace, state, wrap
from ..errors import JaxRuntimeError
from .scan import map as map_rows
from .signature import fun_text

__all__ = []

NOT_LINEAR = Missing("a Python function is not known to be linear. Use custom_vjp around it.")


class ByIdentity:
    """A Python object as a param: known by identity, as equal objects may act differently."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def _key(self) -> Any:
        value = self.value
        if type(value) is MethodType:  # made anew at each access
            return id(value.__self__), id(value.__func__)
        return value if type(value) is str else id(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self.value!r} is part of a traced program that calls it: such a program cannot be "
            "pickled, since a function of the same name may be another one elsewhere."
        )

    def __repr__(self) -> str:
        return repr(self.value)


class FlatCallback:
    """A function of the user's, to be called with the leaves of its arguments.

    Parameters
    ----------
    callback : callable
    in_tree : PyTreeDef
        Structure of ``(args, kwargs)``.
    statics : tuple of (int, ByIdentity)
        Leaves that are no arrays, by position.
    out_tree : PyTreeDef, optional
        Structure of the result, to name its leaves in messages.
    """

    __slots__ = ("callback", "in_tree", "out_tree", "source", "statics")

    def __init__(
        self,
        callback: Callable[..., Any],
        in_tree: tree.PyTreeDef,
        statics: tuple[tuple[int, ByIdentity], ...] = (),
        out_tree: tree.PyTreeDef | None = None,
    ):
        self.callback = ByIdentity(callback)
        self.in_tree = in_tree
        self.statics = statics
        self.out_tree = out_tree
        self.source = user_source()

    @property
    def runs(self) -> Callable[..., Any]:
        """The user's function."""
        return self.callback.value

    def _key(self) -> Any:
        return self.callback, self.in_tree, self.statics

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FlatCallback) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={self.callback!r}, in_tree={self.in_tree})"

    def where(self) -> str:
        """Say which function this is and which line of the user's calls it."""
        text = self.source.text()
        return f"{fun_text(self.callback.value)}, called at {self.source}" + (text and f": {text}")

    def call(self, *leaves: np.ndarray) -> Any:
        """Call the function on copies of the leaves; their buffers will be written over."""
        args, kwargs = arguments(self.in_tree, self.statics, leaves)
        with no_trace():
            return self.callback.value(*args, **kwargs)

    def __call__(self, *leaves: np.ndarray) -> Any:
        """Call the function for a program: its errors are the program's, `JaxRuntimeError`."""
        try:
            return self.call(*leaves)
        except BdbQuit:  # whoever is at the debugger stops the program
            raise
        except Exception as error:
            said = "".join(format_exception_only(error)).rstrip()
            raise JaxRuntimeError(f"the callback {self.where()} raised\n  {said}") from error


def arguments(
    in_tree: tree.PyTreeDef, statics: Sequence[tuple[int, ByIdentity]], leaves: Sequence[np.ndarray]
) -> tuple[tuple, dict[str, Any]]:
    """Return ``(args, kwargs)`` with copies of the arrays, and static leaves, in their places."""
    fixed = {i: held.value for i, held in statics}
    rest = iter(leaves)
    return in_tree.unflatten(
        [fixed[i] if i in fixed else _copied(next(rest)) for i in range(in_tree.num_leaves)]
    )


def _copied(x: np.ndarray) -> ArrayImpl:
    data = np.array(x, order="C")
    return ArrayImpl(data, ShapedArray(data.shape, data.dtype))


def split_arguments(
    args: tuple, kwargs: dict[str, Any]
) -> tuple[list[Any], tree.PyTreeDef, tuple[tuple[int, ByIdentity], ...]]:
    """Return leaves that are arrays, the structure, and the other leaves with their positions."""
    leaves, in_tree = tree.flatten((args, kwargs))
    arrays, statics = [], []
    for i, leaf in enumerate(leaves):
        try:
            aval_of(leaf)
        except (TypeError, OverflowError):
            statics.append((i, ByIdentity(leaf)))
        else:
            arrays.append(leaf)
    return arrays, in_tree, tuple(statics)


def act(prim: Primitive, leaves: Sequence[Any], **params: Any) -> list[Any]:
    """Record a callback in the trace in progress, or call it at once.

    `bind` remembers avals by params, and would keep each function that was ever called alive.
    """
    if state.trace is not None:
        return bind(prim, *leaves, **params)
    arrays = [asarray(x) for x in leaves]
    avals = prim.aval(*(a.aval for a in arrays), **params)
    outs = prim.eval(*(a._data for a in arrays), **params)
    return [wrap(out, aval, prim) for out, aval in zip(outs, avals, strict=True)]


def check_callable(where: str, callback: Any) -> None:
    """Raise `TypeError` for a callback that is no function."""
    if not callable(callback):
        raise TypeError(
            f"{where}: the first argument must be callable, got {callback!r} of type "
            f"{type(callback)}."
        )


def act_by_row(
    prim: Primitive, args: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]
) -> tuple[list[Any], tuple[bool, ...]]:
    """Act once for each row of the batched operands, in order: a loop around the operation."""

    def row(rows: list[Any]) -> list[Any]:
        rest = iter(rows)
        return act(prim, [next(rest) if b else a for a, b in zip(args, batched, strict=True)],
                   **params)  # fmt: skip

    outs = map_rows(row, [a for a, b in zip(args, batched, strict=True) if b])
    return outs, (True,) * len(outs)
