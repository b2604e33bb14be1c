"""Trees as their users see them: arrays that are nodes of what transforms flatten are leaves here.

Random keys are such (``docs/decisions/0005-random-keys-are-pytrees.md``): `jit` and loops carry
their words, while a library that maps over leaves finds the keys, which it may split and pass on.
So are Refs of keys.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from . import tree
from .array import Array
from .ref import Ref
from .source import boundary

F = TypeVar("F", bound=Callable[..., Any])


def _is_array(x: Any) -> bool:
    return isinstance(x, Array | Ref)


def _array_at(path: Any, x: Any) -> bool:
    return isinstance(x, Array | Ref)


def _or_array(is_leaf: Callable[..., bool] | None, takes_path: bool) -> Callable[..., bool]:
    if is_leaf is None:
        return _array_at if takes_path else _is_array
    # It is asked of every leaf as well: libraries look for what occurs twice.
    return lambda *args: is_leaf(*args) or isinstance(args[-1], Array | Ref)


def _whole(fun: F) -> F:
    """Return a function of trees that takes arrays for leaves, whatever they are."""
    position = list(inspect.signature(fun).parameters).index("is_leaf")
    if inspect.signature(fun).parameters["is_leaf"].kind is inspect.Parameter.KEYWORD_ONLY:
        position = -1

    @boundary
    @wraps(fun)
    def call(*args: Any, **settings: Any) -> Any:
        takes_path = settings.get("is_leaf_takes_path", False)
        if 0 <= position < len(args):
            leaf = _or_array(args[position], *args[position + 1 :] or (takes_path,))
            return fun(*args[:position], leaf, *args[position + 1 :], **settings)
        settings["is_leaf"] = _or_array(settings.get("is_leaf"), takes_path)
        return fun(*args, **settings)

    call.__module__ = __name__  # where it is found again, by who unpickles it
    return cast(F, call)


all = _whole(tree.all)
all_leaves = _whole(tree.all_leaves)
broadcast = _whole(tree.broadcast)
flatten = _whole(tree.flatten)
flatten_with_path = _whole(tree.flatten_with_path)
leaves = _whole(tree.leaves)
leaves_with_path = _whole(tree.leaves_with_path)
map = _whole(tree.map)
map_with_path = _whole(tree.map_with_path)
reduce = _whole(tree.reduce)
reduce_associative = _whole(tree.reduce_associative)
structure = _whole(tree.structure)
transpose = _whole(tree.transpose)
