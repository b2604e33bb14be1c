"""Pytrees: nested containers of arrays, flattened to leaves and put together again.

Nodes are tuples, lists, dicts (keys sorted), `None` (no leaves), named tuples, `OrderedDict`,
`defaultdict`, `deque`, `Partial`, and registered classes; everything else is a leaf.  The walk is
optree's, in C++, with the registry of namespace ``"fnarray"``.

`flatten` returns a `PyTreeDef`, which prints as JAX's does.  Dispatch, where each call counts, uses
`flatten_spec` instead: the same leaves with optree's own structure object, whose hash and
comparison run in C++ and whose ``unflatten`` is a method.
"""

from __future__ import annotations

import builtins
import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, overload

import optree

from .tree_nodes import (
    NAMESPACE,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    Level,
    Partial,
    SequenceKey,
    has_classes,
    is_tree_node,
    is_whole,
    keystr,
    node_metadata,
    open_node,
    ordered,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
)
from .tree_recent import met, taken

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all",
    "all_leaves",
    "broadcast",
    "broadcast_prefix",
    "flatten",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "flatten_spec",
    "flatten_with_path",
    "is_tree_node",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
    "structure",
    "transpose",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "unflatten",
]

IsLeaf = Callable[..., bool] | None
_MISSING: Final = object()

_flatten: Final = functools.partial(optree.tree_flatten, namespace=NAMESPACE)


def flatten_spec(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], optree.PyTreeSpec]:
    """Leaves of a tree, and optree's structure of it, which makes dicts in the order of keys."""
    if is_leaf is not is_whole:
        found, spec = _flatten(tree, is_leaf)
        return found, ordered(spec)
    known = taken(tree)
    if known is None:
        found, spec = _flatten(tree, is_leaf)
        known = found, ordered(spec)
        met(tree, *known)
    return known


# ---- structures --------------------------------------------------------------------------------


class PyTreeDef:
    """Structure of a pytree: its nodes without its leaves.

    Equal structures are equal and hash alike; metadata of registered classes must be comparable.
    """

    __slots__ = ("spec",)

    spec: optree.PyTreeSpec

    def __init__(self, spec: optree.PyTreeSpec) -> None:
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        # Not by name: libraries ask as the process ends, when names are gone.
        return isinstance(other, type(self)) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return PyTreeDef, (self.spec,)

    @property
    def num_leaves(self) -> int:
        """Number of leaves."""
        return self.spec.num_leaves

    @property
    def num_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return self.spec.num_nodes

    def children(self) -> list[PyTreeDef]:
        """Structures of the children of the root."""
        return [PyTreeDef(child) for child in self.spec.children()]

    def node_data(self) -> tuple[type, Any] | None:
        """Type and metadata of the root, or None if it is a leaf."""
        if self.spec.is_leaf():
            return None

        def root(node: type, data: Any, children: Any) -> tuple[type, Any]:
            return node, data

        return self.walk(root, None, range(self.num_leaves))

    def walk(
        self,
        f_node: Callable[..., Any] | None,
        f_leaf: Callable[..., Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Fold bottom up: ``f_leaf(leaf)``, then ``f_node(type, metadata, children)``."""
        return self.spec.walk(leaves, f_node, f_leaf)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Put leaves into the structure; ``ValueError`` if their number is wrong."""
        row: list[Any] = leaves if isinstance(leaves, list) else list(leaves)
        if len(row) != self.spec.num_leaves:
            raise ValueError(
                f"tree.unflatten: {self} has {self.num_leaves} leaves, got {len(row)}."
            )
        return self.spec.unflatten(row)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Subtrees of `tree` that stand where this structure has leaves.

        Raises
        ------
        ValueError
            The structure is no prefix of `tree`; the message shows the path.
        """
        return _up_to(self.spec, tree, "flatten_up_to", "the tree")

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Structure with `inner` in place of every leaf."""
        return PyTreeDef(self.spec.compose(inner.spec))

    def __repr__(self) -> str:
        return f"PyTreeDef({self.walk(_print_node, str, '*' * self.num_leaves)})"


def _print_node(kind: type, data: Any, children: Sequence[str]) -> str:
    inside = ", ".join(children)
    if kind is type(None):
        return "None"
    if kind is tuple:
        return f"({inside},)" if len(children) == 1 else f"({inside})"
    if kind is list:
        return f"[{inside}]"
    if kind is dict:
        pairs = zip(data, children, strict=True)
        return "{" + ", ".join(f"{key!r}: {child}" for key, child in pairs) + "}"
    if kind is data:
        return f"CustomNode(namedtuple[{kind.__name__}], [{inside}])"
    return f"CustomNode({kind.__name__}[{node_metadata(kind, data)}], [{inside}])"


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Structure of a tuple whose items have the given structures."""
    return PyTreeDef(optree.treespec_tuple((t.spec for t in treedefs), namespace=NAMESPACE))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Structures of the children of the root."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single node: a leaf, or an empty container."""
    return treedef.num_nodes == 1


# ---- flatten, unflatten, map -------------------------------------------------------------------


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Leaves of a tree from left to right, and its structure.

    Parameters
    ----------
    tree
        Any pytree.
    is_leaf
        Predicate asked at every node before its children; true makes the node a leaf.
    """
    found, spec = flatten_spec(tree, is_leaf)
    return found, PyTreeDef(spec)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Inverse of `flatten`; ``ValueError`` if the number of leaves is wrong."""
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Leaves of a tree from left to right."""
    return flatten_spec(tree, is_leaf)[0] if is_leaf is is_whole else _flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Structure of a tree."""
    return PyTreeDef(flatten_spec(tree, is_leaf)[1])


# By number of trees, so that the arguments of a lambda have a type.
@overload
def map(f: Callable[[Any], Any], tree: Any, /, *, is_leaf: IsLeaf = None) -> Any: ...


@overload
def map(f: Callable[[Any, Any], Any], tree: Any, a: Any, /, *, is_leaf: IsLeaf = None) -> Any: ...


@overload
def map(
    f: Callable[[Any, Any, Any], Any], tree: Any, a: Any, b: Any, /, *, is_leaf: IsLeaf = None
) -> Any: ...


@overload
def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any: ...


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to corresponding leaves; the result has the structure of `tree`.

    Parameters
    ----------
    f
        Takes one leaf of `tree` and the subtree of each of `rest` at the same place.
    tree
        The tree whose leaves decide.
    *rest
        Trees of which `tree` is a prefix.
    is_leaf
        As in `flatten`.

    Raises
    ------
    ValueError
        A tree of `rest` differs from `tree`; the message shows the path.
    """
    first, spec = flatten_spec(tree, is_leaf)
    others = [_beside(spec, t, "tree.map", f"tree {i}") for i, t in enumerate(rest, start=2)]
    return spec.unflatten(list(builtins.map(f, first, *others)))


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether every leaf is true."""
    return builtins.all(leaves(tree, is_leaf))


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Fold the leaves from left to right, as `functools.reduce` does.

    Raises
    ------
    TypeError
        The tree has no leaves and there is no initializer.
    """
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Fold the leaves pairwise in a balanced tree, keeping their order.

    The result depends on `operation` being associative, and for floats is the more accurate
    of the two folds: the error grows with the logarithm of the number of leaves.

    Raises
    ------
    TypeError
        The tree has no leaves and there is no identity.
    """
    row = leaves(tree, is_leaf)
    if not row:
        if identity is _MISSING:
            raise TypeError("tree.reduce_associative: the tree has no leaves. Pass identity=.")
        return identity
    while len(row) > 1:
        paired = [operation(a, b) for a, b in zip(row[::2], row[1::2], strict=False)]
        row = paired + row[2 * len(paired) :]
    return row[0]


def transpose(
    outer_treedef: PyTreeDef,
    inner_treedef: PyTreeDef | None,
    pytree_to_transpose: Any,
    is_leaf: IsLeaf = None,
) -> Any:
    """Turn an outer tree of inner trees into an inner tree of outer trees.

    Parameters
    ----------
    outer_treedef
        Structure at the top of the tree.
    inner_treedef
        Structure at each of its leaves; None takes that of the first.
    pytree_to_transpose
        The tree.
    is_leaf
        As in `flatten`.

    Raises
    ------
    TypeError
        The tree does not have the structure ``outer_treedef.compose(inner_treedef)``.
    """
    outer, inner, tree = outer_treedef, inner_treedef, pytree_to_transpose
    found, treedef = flatten(tree, is_leaf)
    if inner is None:
        inner = structure(outer.flatten_up_to(tree)[0], is_leaf)
    expected = outer.compose(inner)
    if treedef != expected:
        raise TypeError(f"tree.transpose: the tree must have structure {expected}, got {treedef}.")
    n = inner.num_leaves
    return inner.unflatten(outer.unflatten(found[i::n]) for i in range(n))


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Leaves of a prefix, each repeated for every leaf of `full_tree` below it.

    ``is_leaf`` is asked of the prefix alone: of `None` in it, which then stands for a subtree.

    Raises
    ------
    ValueError
        `prefix_tree` is no prefix of `full_tree`; the message shows the path.
    """
    tops, spec = flatten_spec(prefix_tree, is_leaf)
    parts = _up_to(spec, full_tree, "broadcast_prefix", "the full tree")
    return [
        top
        for top, part in zip(tops, parts, strict=True)
        for _ in range(len(flatten_spec(part)[0]))
    ]


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Tree of the structure of `full_tree` that holds the leaf of the prefix above each leaf.

    Raises
    ------
    ValueError
        `prefix_tree` is no prefix of `full_tree`; the message shows the path.
    """
    spread = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return structure(full_tree).unflatten(spread)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every item is a leaf."""
    return builtins.all(flatten_spec(x, is_leaf)[1].is_leaf() for x in iterable)


# ---- one level, paths, and the explanation of a mismatch ----------------------------------------


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """Children and metadata of the root; ``ValueError`` at a leaf."""
    level = _root(tree)
    return tuple(level.children), level.data


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """Pairs of key and child, and metadata of the root; ``ValueError`` at a leaf."""
    level = _root(tree)
    return list(zip(level.keys, level.children, strict=True)), level.data


def _root(tree: Any) -> Level:
    level = open_node(tree)
    if level is None:
        raise ValueError(
            f"tree: a {type(tree).__name__} is a leaf and has no children. "
            f"Register the class with register_pytree_node to make it a node."
        )
    return level


def flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Pairs of path and leaf from left to right, and the structure.

    Parameters
    ----------
    tree
        Any pytree.
    is_leaf
        As in `flatten`.
    is_leaf_takes_path
        Call ``is_leaf(path, node)`` instead of ``is_leaf(node)``.
    """
    if is_leaf is None or is_leaf is is_whole:
        found, spec = flatten_spec(tree, is_leaf)
        paths = _known_paths(spec)
        if paths is not None:
            return list(zip(paths, found, strict=True)), PyTreeDef(spec)
    stops: list[bool] = []  # the predicate's answers, in the order of the walk

    def stop(path: KeyPath, node: Any) -> bool:
        asked: Any = is_leaf
        stops.append(bool(asked(path, node) if is_leaf_takes_path else asked(node)))
        return stops[-1]

    pairs = list(_walk(tree, (), stop if is_leaf is not None else None))
    # optree walks in the same order, so replaying the answers gives the same structure.
    answers = iter(stops)

    def replay(node: Any) -> bool:
        return next(answers)

    return pairs, structure(tree, is_leaf and replay)


def _walk(
    node: Any, path: KeyPath, stop: Callable[[KeyPath, Any], bool] | None = None
) -> Iterator[tuple[KeyPath, Any]]:
    """Yield path and leaf from left to right; ``stop(path, node)`` says what else is a leaf."""
    level = None if stop is not None and stop(path, node) else open_node(node)
    if level is None:
        yield path, node
        return
    for key, child in zip(level.keys, level.children, strict=True):
        yield from _walk(child, (*path, key), stop)


def _known_paths(spec: optree.PyTreeSpec) -> Sequence[KeyPath] | None:
    """Return the paths of leaves, or None where a walk over the tree has to say them."""
    try:
        return _paths(spec)
    except TypeError:  # metadata of a class that cannot be hashed
        return None


# 20 dicts of two took 260 us to walk, and take 30.
@functools.lru_cache(1024)
def _paths(spec: optree.PyTreeSpec) -> Sequence[KeyPath] | None:
    if has_classes(spec):  # whose equal metadata need not be the same, and whose code would run
        return None
    return tuple(path for path, _ in _walk(spec.unflatten([0] * spec.num_leaves), ()))


def leaves_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Pairs of path and leaf from left to right."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply ``f(path, leaf, ...)`` to corresponding leaves; otherwise as `map`."""
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    if not rest:
        return treedef.unflatten([f(path, leaf) for path, leaf in pairs])
    others = [
        _beside(treedef.spec, t, "tree.map_with_path", f"tree {i}")
        for i, t in enumerate(rest, start=2)
    ]
    columns = zip(pairs, *others, strict=True)
    return treedef.unflatten([f(path, leaf, *xs) for (path, leaf), *xs in columns])


def _beside(spec: optree.PyTreeSpec, tree: Any, where: str, name: str) -> list[Any]:
    """As `_up_to`, where most trees have the structure itself."""
    known = taken(tree)
    return known[0] if known and known[1] is spec else _up_to(spec, tree, where, name)


def _up_to(spec: optree.PyTreeSpec, tree: Any, where: str, name: str) -> list[Any]:
    """``spec.flatten_up_to(tree)``, with an error that says where the two part."""
    try:
        return spec.flatten_up_to(tree)
    except ValueError as error:
        marks = [object() for _ in range(spec.num_leaves)]
        found = _difference(spec.unflatten(marks), tree, frozenset(builtins.map(id, marks)), ())
        raise ValueError(f"{where}: {name} has another structure: {found or error}") from None


def _difference(prefix: Any, tree: Any, marks: frozenset[int], path: KeyPath) -> str | None:
    """Describe the first place where a tree departs from a prefix whose leaves are `marks`."""
    if id(prefix) in marks:
        return None
    wanted, got = open_node(prefix), open_node(tree)
    at = f"at {keystr(path)}" if path else "at the root"
    if wanted is None:
        return None
    if got is None or wanted.kind is not got.kind:
        return f"{at} it has a {type(tree).__name__} where a {wanted.kind.__name__} is expected."
    if len(wanted.children) != len(got.children) or wanted.data != got.data:
        found = f"{at} it has {_describe(got)} where {_describe(wanted)} is expected."
        words = _SEARCHED_FOR.get(wanted.kind)  # that programs look for in this error
        return f"{words}: {found}" if words else found
    for key, a, b in zip(wanted.keys, wanted.children, got.children, strict=True):
        found = _difference(a, b, marks, (*path, key))
        if found:
            return found
    return None


_SEARCHED_FOR: Final = {
    dict: "Dict key mismatch",
    list: "List arity mismatch",
    tuple: "Tuple arity mismatch",
}


def _describe(level: Level) -> str:
    name = level.kind.__name__
    if level.kind in (dict, OrderedDict, defaultdict):
        return f"a {name} with keys {[key.key for key in level.keys]}"
    if level.kind in (list, tuple, deque):
        return f"a {name} of length {len(level.children)}"
    return f"a {name} with {len(level.children)} children and metadata {level.data!r}"
