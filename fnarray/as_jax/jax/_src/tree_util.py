"""``jax._src.tree_util``."""

from __future__ import annotations

import re as _re
from collections.abc import Callable as _Callable
from typing import Any as _Any

import optree as _optree

from fnarray.core.tree_nodes import NAMESPACE as _NAMESPACE
from fnarray.tree_util import *  # noqa: F403
from fnarray.tree_util import flatten_one_level as _flatten_one_level
from fnarray.tree_util import is_tree_node as _is_tree_node


class _Entry:
    """How nodes of a type are opened and made."""

    def __init__(self, kind: type):
        self.kind = kind

    def to_iter(self, tree: _Any) -> tuple[_Any, _Any]:
        """Return the children of a node, and its metadata."""
        return _flatten_one_level(tree)

    def from_iter(self, data: _Any, children: _Any) -> _Any:
        """Return the node of metadata and children."""
        if self.kind is dict:
            return dict(zip(data, children, strict=True))
        if self.kind in (list, tuple):
            return self.kind(children)
        made: _Any = _optree.register_pytree_node.get(self.kind, namespace=_NAMESPACE)
        return made.unflatten_func(data, children)


class _Registry:
    """Answers which types are nodes."""

    def __contains__(self, kind: type) -> bool:
        return _is_tree_node(kind)

    def __getitem__(self, kind: type) -> _Entry:
        if kind not in self:
            raise KeyError(kind)
        return _Entry(kind)


_registry = _Registry()


def prefix_errors(
    prefix_tree: _Any, full_tree: _Any, is_leaf: _Any = None
) -> list[_Callable[[str], ValueError]]:
    """Return what is wrong with a tree that is to be a prefix of another: functions of its name."""
    try:
        tree_structure(prefix_tree, is_leaf).flatten_up_to(full_tree)  # noqa: F405
    except ValueError as error:
        _, _, text = str(error).partition(": ")
        where = _re.search(r"(?<= at )\S+(?= it has)", text)  # a path, or "the root"
        path = where[0] if where else ""
        return [lambda name: ValueError(f"pytree structure error at {name}{path}: {text}")]
    return []
