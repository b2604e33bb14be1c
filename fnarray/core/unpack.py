"""Taking a call's arguments apart, and putting results together, by code made for one structure.

Flattening asks every leaf what it is. Where the next call has the structure of the last one, it is
enough to check the containers and pick the leaves out of them, which is ten times faster.
"""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import optree

from .array import ArrayImpl
from .tree_nodes import NAMESPACE

#: Above this many leaves the code is not worth compiling.
MOST_LEAVES = 2000


def no_leaves(tree: Any) -> list[Any]:
    """Stand for code that knows no structure."""
    raise KeyError


#: Types whose values nobody can alter.
_PLAIN = frozenset({bool, int, float, str, bytes, type(None)})


@lru_cache(maxsize=1024)
def unpacker(
    spec: Any, statics: Sequence[tuple[int | str, type, Any]] = ()
) -> Callable[[Any], list[Any]]:
    """Return a function that gives the leaves of a tree of one structure.

    It raises `KeyError`, `TypeError` or `ValueError` for a tree of another structure; what stands
    in a leaf's place it does not check.

    Parameters
    ----------
    spec : optree.PyTreeSpec
        Of ``(args, kwargs)``, but for static arguments.
    statics : sequence of (int or str, type, value)
        Where those are, positions ascending, and what they have to be.
    """
    if spec.num_leaves > MOST_LEAVES:
        return no_leaves
    writer = _Writer()
    try:
        if statics:
            writer.call(spec, statics)
        else:
            writer.visit(spec, "tree")
    except TypeError:  # metadata that have no hash
        return no_leaves
    body = "".join(f"    {line}\n" for line in writer.lines)
    leaves = ", ".join(writer.leaves)
    exec(f"def leaves(tree):\n{body}    return [{leaves}]", writer.names)
    return writer.names["leaves"]


def packer(spec: Any, avals: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that makes arrays of buffers, and of those a tree of one structure.

    Forty arrays in a tuple took 9 us where each was made by a call, and take 3.

    Parameters
    ----------
    spec : optree.PyTreeSpec
    avals : sequence of ShapedArray
    """
    names: dict[str, Any] = {"new": object.__new__, "kind": ArrayImpl, "unflatten": spec.unflatten}
    names.update((f"v{k}", aval) for k, aval in enumerate(avals))
    lines = [f"[{', '.join(f'b{k}' for k in range(len(avals)))}] = buffers"]
    for k in range(len(avals)):
        lines += f"a{k} = new(kind)", f"a{k}._data = b{k}", f"a{k}.aval = v{k}"
    arrays = [f"a{k}" for k in range(len(avals))]
    tree = _packed(spec, iter(arrays), names) or f"unflatten([{', '.join(arrays)}])"
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def pack(buffers):\n{body}    return {tree}", names)
    return names["pack"]


def _packed(spec: Any, arrays: Iterator[str], names: dict[str, Any]) -> str:
    """Return the text of a tree of tuples, lists and dicts by plain keys; none of another one."""
    if spec.is_leaf():
        return next(arrays)
    kind, texts = spec.type, [_packed(child, arrays, names) for child in spec.children()]
    if not all(texts):
        return ""
    if kind is tuple:
        return f"({''.join(f'{text}, ' for text in texts)})"
    if kind is list:
        return f"[{', '.join(texts)}]"
    if kind is dict and all(type(key) in (str, int) for key in spec.entries()):
        pairs = zip(spec.entries(), texts, strict=True)
        return f"{{{', '.join(f'{key!r}: {text}' for key, text in pairs)}}}"
    if kind is type(None):
        return "None"
    if spec.kind == optree.PyTreeKind.NAMEDTUPLE:
        names[f"k{len(names)}"] = kind
        return f"k{len(names) - 1}({', '.join(texts)})"
    return ""


class _Writer:
    """The text of what takes a tree apart: its lines, and the names that it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.names: dict[str, Any] = {}

    def bound(self, value: Any) -> str:
        """Return the name of a value."""
        self.names[f"c{len(self.names)}"] = value
        return f"c{len(self.names) - 1}"

    def same(self, text: str, value: Any) -> str:
        """Return a test of whether something is what a program was made for.

        What may have been altered since has the same hash, too, as where programs are looked up.
        """
        kind, known = type(value), self.bound(value)
        if kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__:
            return f"{text} is {known}"
        equal = f"type({text}) is {self.bound(kind)} and {text} == {known}"
        if kind in _PLAIN:
            return f"({text} is {known} or {equal})"
        return f"(hash({text}) == {hash(value)} and {equal})"

    def sequence(self, kind: type, text: str, size: int) -> list[str]:
        """Write what takes a list or tuple apart; return the names of its items."""
        x = f"x{len(self.lines)}"
        self.lines.append(f"{x} = {text}")
        self.lines.append(f"if type({x}) is not {self.bound(kind)}: raise KeyError")
        items = [f"{x}_{i}" for i in range(size)]
        self.lines.append(f"[{', '.join(items)}] = {x}")
        return items

    def mapping(self, text: str, keys: Sequence[Any]) -> list[str]:
        """Write what takes a dict apart; return texts of its values."""
        x = f"x{len(self.lines)}"
        self.lines.append(f"{x} = {text}")
        differs = f"type({x}) is not {self.bound(dict)} or len({x}) != {len(keys)}"
        self.lines.append(f"if {differs}: raise KeyError")
        return [f"{x}[{self.bound(key)}]" for key in keys]

    def node(self, node: Any, text: str) -> list[str]:
        """Write what takes a value of a registered class apart, as it says itself."""
        x, kind = f"x{len(self.lines)}", node.type
        entry: Any = optree.register_pytree_node.get(kind, namespace=NAMESPACE)
        one = node.one_level()
        data = one.walk(range(one.num_leaves), lambda _, data, children: data)
        self.lines.append(f"{x} = {text}")
        self.lines.append(f"if type({x}) is not {self.bound(kind)}: raise KeyError")
        self.lines.append(f"{x}_all, {x}_data, *_ = {self.bound(entry.flatten_func)}({x})")
        self.lines.append(f"if not {self.same(f'{x}_data', data)}: raise KeyError")
        items = [f"{x}_{i}" for i in range(node.num_children)]
        self.lines.append(f"[{', '.join(items)}] = {x}_all")
        return items

    def visit(self, node: Any, text: str) -> None:
        """Write what takes apart the tree that a text stands for."""
        kind = node.type
        if node.is_leaf():
            self.leaves.append(text)
            return
        if kind is type(None):
            self.lines.append(f"if {text} is not None: raise KeyError")
            return
        if kind is dict:
            items = self.mapping(text, node.entries())
        elif node.kind == optree.PyTreeKind.CUSTOM:
            items = self.node(node, text)
        elif kind in (tuple, list) or optree.is_namedtuple_class(kind):
            items = self.sequence(kind, text, node.num_children)
        else:
            self.lines.append("raise KeyError")  # a deque, an OrderedDict
            items = []
        for child, item in zip(node.children() if items else (), items, strict=True):
            self.visit(child, item)

    def call(self, spec: Any, statics: Sequence[tuple[int | str, type, Any]]) -> None:
        """Write what takes apart the arguments of a call of which some are static."""
        args, kwargs = spec.children()
        places = [where for where, _, _ in statics if isinstance(where, int)]
        names = [where for where, _, _ in statics if isinstance(where, str)]
        given, named = self.sequence(tuple, "tree", 2)
        items = self.sequence(tuple, given, args.num_children + len(places))
        keys = [*kwargs.entries(), *names]
        texts = dict(zip(keys, self.mapping(named, keys), strict=True))
        for where, _, value in statics:
            text = items[where] if isinstance(where, int) else texts[where]
            self.lines.append(f"if not {self.same(text, value)}: raise KeyError")
        free = [x for i, x in enumerate(items) if i not in places]
        free += [texts[k] for k in kwargs.entries()]
        for child, item in zip([*args.children(), *kwargs.children()], free, strict=True):
            self.visit(child, item)
