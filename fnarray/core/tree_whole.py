"""Trees as their users see them: arrays that are nodes of what transforms flatten are leaves here.

Random keys are such (``docs/decisions/0005-random-keys-are-pytrees.md``): `jit` and loops carry
their words, while a library that maps over leaves finds the keys, which it may split and pass on.
So are Refs of keys.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from . import tree as nodes
from .source import boundary, tidy
from .tree_nodes import Whole, is_whole

F = TypeVar("F", bound=Callable[..., Any])


def _array_at(path: Any, x: Any) -> bool:
    return isinstance(x, Whole)


def _or_array(is_leaf: Callable[..., bool] | None, takes_path: bool) -> Callable[..., bool]:
    if is_leaf is None:
        return _array_at if takes_path else is_whole
    # It is asked of every leaf as well: libraries look for what occurs twice.
    return lambda *args: is_leaf(*args) or isinstance(args[-1], Whole)


def _whole(fun: F) -> F:
    """Return a function of trees that takes arrays for leaves, whatever they are."""
    position = list(inspect.signature(fun).parameters).index("is_leaf")
    if inspect.signature(fun).parameters["is_leaf"].kind is inspect.Parameter.KEYWORD_ONLY:
        position = -1

    @boundary
    def general(*args: Any, **settings: Any) -> Any:
        takes_path = settings.get("is_leaf_takes_path", False)
        if 0 <= position < len(args):
            leaf = _or_array(args[position], *args[position + 1 :] or (takes_path,))
            return fun(*args[:position], leaf, *args[position + 1 :], **settings)
        settings["is_leaf"] = _or_array(settings.get("is_leaf"), takes_path)
        return fun(*args, **settings)

    @wraps(fun)
    def call(*args: Any, **settings: Any) -> Any:
        if settings or 0 <= position < len(args):
            return general(*args, **settings)
        try:  # as `boundary` does, for a call less
            return fun(*args, is_leaf=is_whole)
        except Exception as error:
            tidy(error)
            raise

    call.__module__ = __name__  # where it is found again, by who unpickles it
    return cast(F, call)


all = _whole(nodes.all)
all_leaves = _whole(nodes.all_leaves)
broadcast = _whole(nodes.broadcast)
flatten = _whole(nodes.flatten)
flatten_with_path = _whole(nodes.flatten_with_path)
leaves = _whole(nodes.leaves)
leaves_with_path = _whole(nodes.leaves_with_path)
map = _whole(nodes.map)
map_with_path = _whole(nodes.map_with_path)
reduce = _whole(nodes.reduce)
reduce_associative = _whole(nodes.reduce_associative)
structure = _whole(nodes.structure)
transpose = _whole(nodes.transpose)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Children and metadata of the root; ``ValueError`` at a leaf."""
    return nodes.flatten_one_level(_opened(tree))


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Pairs of key and child, and metadata of the root; ``ValueError`` at a leaf."""
    return nodes.flatten_one_level_with_keys(_opened(tree))


def _opened(tree: Any) -> Any:
    if is_whole(tree):
        raise ValueError(f"tree: a {type(tree).__name__} is a leaf and has no children.")
    return tree


def is_tree_node(typ: type) -> bool:
    """Whether values of a type are nodes."""
    return nodes.is_tree_node(typ) and not issubclass(typ, Whole)


class _Registry:
    """The registry as an object: the few methods ``jax.tree_util.default_registry`` is used for."""

    flatten = staticmethod(flatten)
    flatten_one_level = staticmethod(flatten_one_level)
    flatten_one_level_with_keys = staticmethod(flatten_one_level_with_keys)
    flatten_with_path = staticmethod(flatten_with_path)


default_registry: Final = _Registry()
