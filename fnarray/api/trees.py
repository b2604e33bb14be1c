"""Structures of arguments and results as plain data, and back; classes by registered names."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

import optree

from ..core import tree
from ..core.tree_nodes import NAMESPACE, node_metadata

__all__: list[str] = []


class _Registered(NamedTuple):
    """How a class is written: its name, its metadata to bytes and back, and itself from parts."""

    kind: type
    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]
    make: Callable[[Any, Any], Any]


_by_kind: dict[type, _Registered] = {}
_by_name: dict[str, _Registered] = {}


def _register(row: _Registered) -> None:
    for known, key in ((_by_kind.get(row.kind), row.kind), (_by_name.get(row.name), row.name)):
        if known is not None:
            raise ValueError(
                f"Duplicate serialization registration for {key!r}: {known.kind} is registered as "
                f"{known.name!r}."
            )
    _by_kind[row.kind] = _by_name[row.name] = row


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Say how a class that is a pytree node is written in exported programs.

    Parameters
    ----------
    nodetype : type
        Registered by `register_pytree_node`.
    serialized_name : str
        What it is called in the bytes, everywhere and always.
    serialize_auxdata, deserialize_auxdata : callable
        Metadata to bytes, and back.
    from_children : callable, optional
        ``from_children(metadata, children)``; by default as registered.

    Raises
    ------
    ValueError
        The class is no node, or it or the name is registered already.
    """
    entry = optree.register_pytree_node.get(nodetype, namespace=NAMESPACE)
    if entry is None:
        raise ValueError(
            f"register_pytree_node_serialization: {nodetype} is no pytree node. Call "
            "register_pytree_node first."
        )
    make = from_children or entry.unflatten_func
    _register(_Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, make))
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Say what a named tuple is called in exported programs.

    Raises
    ------
    ValueError
        It is none, or it or the name is registered already.
    """
    if not optree.is_namedtuple_class(nodetype):
        raise ValueError(f"register_namedtuple_serialization: {nodetype} is no named tuple.")
    make = lambda _, children: nodetype(*children)  # noqa: E731
    _register(_Registered(nodetype, serialized_name, lambda _: b"", lambda _: None, make))
    return nodetype


def encoded_tree(structure: tree.PyTreeDef) -> Any:
    """Return a structure as data.

    Raises
    ------
    ValueError
        A class in it is not registered.
    """

    def node(kind: type, data: Any, children: Any) -> Any:
        inner = list(children)
        if kind is type(None):
            return ["none"]
        if kind in (tuple, list):
            return [kind.__name__, *inner]
        if kind is dict:
            keys = node_metadata(kind, data)
            if all(type(k) in (str, int) for k in keys):
                return ["dict", list(keys), *inner]
        row = _by_kind.get(kind)
        if row is None:
            raise ValueError(
                f"serialize: {kind} is in the structure of arguments or results, and how to write "
                "it is not known. Call export.register_pytree_node_serialization, or "
                "register_namedtuple_serialization."
            )
        aux = base64.b64encode(bytes(row.to_bytes(data))).decode()
        return ["node", row.name, aux, *inner]

    return structure.walk(node, lambda _: "*", range(structure.num_leaves))


def decoded_tree(data: Any) -> tree.PyTreeDef:
    """Return the structure that `encoded_tree` was given."""
    return tree.structure(_filled(data))


def _filled(data: Any) -> Any:
    if data == "*":
        return 0
    kind, *parts = data
    match kind:
        case "none":
            return None
        case "tuple":
            return tuple(map(_filled, parts))
        case "list":
            return list(map(_filled, parts))
        case "dict":
            return dict(zip(parts[0], map(_filled, parts[1:]), strict=True))
        case "node":
            name, aux, *children = parts
            row = _by_name.get(name)
            if row is None:
                raise ValueError(
                    f"the program takes or gives instances of the class {name!r}, which is not "
                    "registered here: see export.register_pytree_node_serialization"
                )
            data = row.from_bytes(base64.b64decode(aux, validate=True))
            return row.make(data, list(map(_filled, children)))
    raise ValueError(f"{kind!r} is no kind of node")
