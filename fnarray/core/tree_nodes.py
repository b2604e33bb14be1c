"""What the nodes of a pytree are: registration, keys of children, and a look one level down."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar, cast

import optree

from .frozen import frozen

NAMESPACE: Final = "fnarray"
#: One step of a path into a tree.
KeyEntry = TypeVar("KeyEntry", bound=Hashable)
#: The steps from a tree's root to a leaf.
KeyPath = tuple[Any, ...]
C = TypeVar("C", bound=type)

# ---- paths -------------------------------------------------------------------------------------


@frozen
class DictKey:
    """Step into a dict."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@frozen
class SequenceKey:
    """Step into a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@frozen
class GetAttrKey:
    """Step to an attribute: of a named tuple, a dataclass, a class registered with keys."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@frozen
class FlattenedIndexKey:
    """Step to a child of a class that was registered without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Print a path: ``['a'][1].x``, or with `simple` the bare keys, joined by `separator`."""
    return separator.join(_bare(key) if simple else str(key) for key in keys)


def _bare(key: Any) -> str:
    """Key without its decoration; foreign keys are printed as they print themselves."""
    field = _KEY_FIELD.get(cast("type[Any]", type(key)))
    return str(getattr(key, field) if field else key)


_KEY_FIELD: Final = {
    DictKey: "key",
    SequenceKey: "idx",
    GetAttrKey: "name",
    FlattenedIndexKey: "key",
}


class Whole:
    """What is a leaf to who maps over trees, though transforms may take it apart: arrays, Refs."""

    __slots__ = ()


#: Machine code: of 16 nodes a function of Python's took 5 us to ask, and the tree 3.
is_whole: Final = Whole.__instancecheck__


# ---- one level -----------------------------------------------------------------------------------


_registered: Final[set[type]] = set()
#: Called once values of one more class are nodes.
when_registered: Final[list[Callable[[], None]]] = []


class Level(NamedTuple):
    """A node: its type, its children in flattening order, its metadata, and a key per child."""

    kind: type
    children: Sequence[Any]
    data: Any
    keys: Sequence[Any]


# Registered classes that name their children: class -> value -> ((key, child) pairs, metadata).
_with_keys: Final[dict[type, Callable[[Any], tuple[Iterable[Any], Any]]]] = {}


def open_node(tree: Any) -> Level | None:
    """Look one level into a tree; None at a leaf."""
    kind = cast("type[Any]", type(tree))
    if kind in _with_keys:
        pairs, data = _with_keys[kind](tree)
        pairs = tuple(pairs)
        return Level(kind, [child for _, child in pairs], data, [key for key, _ in pairs])
    if optree.tree_is_leaf(tree, namespace=NAMESPACE):
        return None
    one = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    return Level(kind, one.children, node_metadata(kind, one.metadata), _keys(kind, one.entries))


def _keys(kind: Any, entries: Sequence[Any]) -> tuple[Any, ...]:
    """Keys of the children of a node, given optree's entries."""
    if kind in (dict, OrderedDict, defaultdict):
        return tuple(DictKey(e) for e in entries)
    if kind in (list, tuple, deque):
        return tuple(SequenceKey(e) for e in entries)
    if optree.is_namedtuple_class(kind) and kind not in _registered:
        return tuple(GetAttrKey(name) for name in kind._fields)
    return tuple(FlattenedIndexKey(i) for i in range(len(entries)))


def is_tree_node(typ: type) -> bool:
    """Whether values of a type are nodes."""
    builtin = (tuple, list, dict, type(None), OrderedDict, defaultdict, deque)
    return typ in builtin or typ in _registered or optree.is_namedtuple_class(typ)


def node_metadata(kind: type, data: Any) -> Any:
    """Metadata of a built-in node, with optree's lists of keys as tuples."""
    if kind in (dict, OrderedDict):
        return tuple(data)
    if kind is defaultdict:
        return data[0], tuple(data[1])
    return data


# ---- dicts in the order of their keys -----------------------------------------------------------


def ordered(spec: optree.PyTreeSpec) -> optree.PyTreeSpec:
    """Return a structure whose dicts are made in the order of their keys, as JAX's are."""
    try:
        kept, made = _ordered(spec)
    except TypeError:  # metadata of a class that cannot be hashed
        kept, made = False, None
    if kept:
        return spec if made is None else made
    return spec.transform(_in_order) if _disordered(spec) else spec


# Of 200 leaves looking it up takes 2.5 us, of 3 it takes .2.
@functools.lru_cache(1024)
def _ordered(spec: optree.PyTreeSpec) -> tuple[bool, optree.PyTreeSpec | None]:
    """Say whether all equal structures may share one, which is then returned where it differs.

    Those with classes may not: equal metadata, as 1 and True, need not be the same.
    """
    kinds: set[Any] = set()

    def visit(node: optree.PyTreeSpec) -> optree.PyTreeSpec:
        kinds.add(node.kind)
        return _in_order(node)

    made = spec.transform(visit)
    if not kinds & _DICTS:
        return True, None
    return (True, made) if optree.PyTreeKind.CUSTOM not in kinds else (False, None)


def has_classes(spec: optree.PyTreeSpec) -> bool:
    """Whether a node is of the user's class: a registered one, or a named tuple."""
    kinds: set[Any] = set()
    spec.transform(lambda node: kinds.add(node.kind) or node)
    return not kinds.isdisjoint((optree.PyTreeKind.CUSTOM, optree.PyTreeKind.NAMEDTUPLE))


_DICTS: Final = {optree.PyTreeKind.DICT, optree.PyTreeKind.DEFAULTDICT}


def _disordered(spec: optree.PyTreeSpec) -> bool:
    """Whether a dict was made in another order than that of its keys, by what pickling keeps.

    Looking takes a sixth of flattening, and making a structure anew four times as long as that.
    """
    # Of each node: its keys third, and a dict of them as it was made last.
    nodes: Sequence[tuple[Any, ...]] = cast("Any", spec).__getstate__()[0]
    return any(type(n[-1]) is dict and list(cast("Any", n[-1])) != n[2] for n in nodes)


def _in_order(node: optree.PyTreeSpec) -> optree.PyTreeSpec:
    """Return a node whose keys are in order: as JAX's do, its dicts forget how they were made."""
    if node.kind not in _DICTS:
        return node
    leaf = optree.treespec_leaf(namespace=NAMESPACE)
    items = dict.fromkeys(node.entries(), leaf)
    if node.type is dict:
        return optree.treespec_dict(items, namespace=NAMESPACE)
    factory: Any = cast("Any", node.unflatten([None] * node.num_leaves)).default_factory
    return optree.treespec_defaultdict(factory, items, namespace=NAMESPACE)


# ---- registration ------------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make instances of a class nodes.

    Parameters
    ----------
    nodetype
        The class itself; subclasses stay leaves.
    flatten_func
        Value to ``(children, metadata)``; metadata must be hashable and comparable.
    unflatten_func
        ``(metadata, children)`` to value.  Children may be any objects, so it must not check them.
    flatten_with_keys_func
        Value to ``((key, child) pairs, metadata)``, used where paths are asked for.

    Raises
    ------
    ValueError
        The class is registered already.
    """
    if nodetype in _registered:
        raise ValueError(f"register_pytree_node: {nodetype} is registered already.")
    # optree leaves a type parameter of this one out.
    register: Any = optree.register_pytree_node  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    with warnings.catch_warnings():
        # optree warns of named tuples, which are nodes already: to override that is what is asked.
        warnings.filterwarnings("ignore", message="PyTree type", category=UserWarning)
        register(nodetype, flatten_func, unflatten_func, namespace=NAMESPACE)
    _registered.add(nodetype)
    for tell in when_registered:
        tell()
    if flatten_with_keys_func is not None:
        _with_keys[nodetype] = flatten_with_keys_func


def node_functions(cls: type) -> tuple[Callable[..., Any], ...]:
    """Return the functions by which instances of a registered class are taken apart, and made."""
    if not any(cls is one for one in _registered):
        return ()
    look_up: Any = optree.register_pytree_node.get  # type: ignore[attr-defined]
    entry = look_up(cls, namespace=NAMESPACE)
    return entry.flatten_func, entry.unflatten_func


def register_pytree_node_class(cls: C) -> C:
    """Register a class by its ``tree_flatten`` and class method ``tree_unflatten``."""
    node: Any = cls
    register_pytree_node(cls, lambda x: x.tree_flatten(), node.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Iterable[Any]], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Register a class whose children have keys of its own; see `register_pytree_node`.

    Without `flatten_func` the keys are computed and dropped at every flattening.
    """

    def without_keys(x: Any) -> tuple[tuple[Any, ...], Any]:
        pairs, data = flatten_with_keys(x)
        return tuple(child for _, child in pairs), data

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: C) -> C:
    """Register a class by its ``tree_flatten_with_keys`` and class method ``tree_unflatten``."""
    node: Any = cls
    register_pytree_with_keys(
        cls,
        lambda x: x.tree_flatten_with_keys(),
        node.tree_unflatten,
        (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Register a dataclass; also usable as a decorator.

    Parameters
    ----------
    nodetype
        A dataclass, or any class whose ``__init__`` takes the fields by keyword.
    data_fields
        Fields that are children; by default all but the static ones (see `static`).
    meta_fields
        Fields that are metadata; by default the static ones.
    drop_fields
        Fields left out and given their defaults by ``__init__``.

    Raises
    ------
    ValueError
        The names are not exactly the ``__init__`` fields of the dataclass.
    TypeError
        Only one of the two lists is given, or neither and `nodetype` is no dataclass.
    """
    fields = _init_fields(nodetype)
    if data_fields is None and meta_fields is None and fields is not None:
        is_static = {f.name: f.metadata.get("static", False) for f in fields}
        kept = [name for name in is_static if name not in drop_fields]
        data_fields = [name for name in kept if not is_static[name]]
        meta_fields = [name for name in kept if is_static[name]]
    if data_fields is None or meta_fields is None:
        raise TypeError(
            f"register_dataclass: pass both data_fields and meta_fields for {nodetype!r}; "
            f"both may be left out only for a dataclass."
        )
    data, meta = tuple(data_fields), tuple(meta_fields)
    if fields is not None:
        _check_fields(nodetype, {f.name for f in fields}, {*data, *meta}, {*drop_fields})

    def flatten(x: Any) -> tuple[tuple[Any, ...], Any]:
        return get_data(x), get_meta(x)

    def flatten_with_keys(x: Any) -> tuple[Any, Any]:
        return tuple(zip(keys, get_data(x), strict=True)), get_meta(x)

    def unflatten(metadata: Any, children: Iterable[Any]) -> Any:
        named = zip((*meta, *data), (*metadata, *children), strict=True)
        return nodetype(**dict(named))

    get_data, get_meta = _getter(data), _getter(meta)
    keys = tuple(GetAttrKey(name) for name in data)
    register_pytree_node(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def _init_fields(cls: type) -> tuple[dataclasses.Field[Any], ...] | None:
    if not dataclasses.is_dataclass(cls):
        return None
    return tuple(f for f in dataclasses.fields(cls) if f.init)


def _check_fields(cls: type, init: set[str], named: set[str], dropped: set[str]) -> None:
    missing, foreign = init - named - dropped, named - init
    if missing or foreign:
        raise ValueError(
            f"register_dataclass: data_fields and meta_fields of {cls.__name__} must together be "
            f"its __init__ fields; missing {sorted(missing)}, unknown {sorted(foreign)}. "
            f"Name the missing ones, or put them in drop_fields."
        )


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Read some attributes as a tuple, whatever their number."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: tuple(getattr(x, name) for name in names)


def static(**field: Any) -> Any:
    """Declare a dataclass field that `register_dataclass` takes for metadata.

    Parameters
    ----------
    **field
        Arguments of `dataclasses.field`.
    """
    given: dict[Any, Any] = field.pop("metadata", None) or {}
    metadata = {**given, "static": True}
    return dataclasses.field(metadata=metadata, **field)


def register_static(cls: C) -> C:
    """Register a class whose instances are all metadata: hashable, comparable, without leaves."""
    register_pytree_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


class _Opaque:
    """A plain `functools.partial`, seen as a mere callable so that its arguments stay inside."""

    __slots__ = ("func",)

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self.func == other.func

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


class Partial(functools.partial[Any]):
    """A `functools.partial` that is a pytree: its arguments are children, its function metadata.

    A function with arrays bound to it can so be passed to, and returned from, a compiled function.
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Partial:
        """Bind arguments; those of an inner `Partial` join, those of a plain partial stay in it."""
        if isinstance(func, functools.partial) and not isinstance(func, Partial):
            func = _Opaque(cast("Callable[..., Any]", func))
        return super().__new__(cls, cast("Callable[..., Any]", func), *args, **kwargs)


def _partial(func: Any, args: Any, keywords: Any) -> Partial:
    return Partial(func, *args, **keywords)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: _partial(func, *children),
)
