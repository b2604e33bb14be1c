"""What JAX's compiler is told of a program: names of parts, order, what not to drop."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..control.debugging import debug_callback
from ..core import tree
from ..core.array import Array
from ..ops.convert import copy

__all__ = ["after_all", "composite", "create_token", "dce_sink", "stage"]


class Token:
    """Stands for the order of effects, which is the program's."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token)

    def __hash__(self) -> int:
        return hash(Token)


tree.register_pytree_node(Token, lambda _: ((), None), lambda _, __: Token())


def create_token(_: Any = None) -> Token:
    """Return a token, to be handed from effect to effect."""
    return Token()


def after_all(*operands: Token) -> Token:
    """Return the token of what comes after all of some."""
    if bad := [x for x in operands if not isinstance(x, Token)]:
        raise TypeError(f"lax.after_all: operands must be tokens, got {type(bad[0])}.")
    return Token()


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep what computes a value from being dropped, though nothing reads it."""
    debug_callback(_read, *tree.leaves(val))


def _read(*values: Any) -> None:
    """Read values, for their sake."""


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """Give a function a name that a compiler may know; here it is what it computes.

    Parameters
    ----------
    decomposition : callable
        Of arrays, and of attributes by name.
    name : str
    version : int
    """
    if not callable(decomposition):
        raise TypeError(f"lax.composite: {name} must be a function, got {type(decomposition)}.")

    @wraps(decomposition)
    def call(*args: Any, **attributes: Any) -> Any:
        return decomposition(*args, **attributes)

    return call


def stage(x: Any) -> Array:
    """Return an array or a number as a value of the trace in progress, which is then not known.

    Outside of all traces it is an array.

    Parameters
    ----------
    x : array or number

    Returns
    -------
    array
        A copy of ``x``, of its shape and dtype.
    """
    return copy(x)
