"""Pytrees, compared with jax.tree_util on containers both know."""

from __future__ import annotations

import functools
import operator
import pickle
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import jax
import numpy as np
import pytest

import fnarray.random
import fnarray.tree
import fnarray.tree_util as ours
from fnarray.core import tree, unpack
from fnarray.core.tree import flatten_spec

theirs = jax.tree_util
Point = namedtuple("Point", "x y")


class Pair:
    """Registered without keys."""

    def __repr__(self) -> str:  # names the test: workers must agree on names
        return "Pair"

    def __init__(self, a, b, tag="aux"):
        self.a, self.b, self.tag = a, b, tag

    def tree_flatten(self):
        return (self.a, self.b), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)

    def __eq__(self, other):
        return isinstance(other, Pair) and (self.a, self.b, self.tag) == (
            other.a,
            other.b,
            other.tag,
        )

    __hash__ = None


class Named(Pair):
    """Registered with keys that differ between the two libraries."""

    keys = None

    def tree_flatten_with_keys(self):
        key = self.keys.GetAttrKey
        return ((key("a"), self.a), (key("b"), self.b)), self.tag


@dataclass
class Layer:
    """A dataclass with a static field."""

    w: object
    b: object
    name: str = fnarray.tree.static(default="layer")


@dataclass(frozen=True)
class Fixed:
    """All metadata."""

    x: int


class OurNamed(Named):
    keys = ours


class TheirNamed(Named):
    keys = theirs


for library in (ours, theirs):
    library.register_pytree_node_class(Pair)
    library.register_dataclass(Layer)
    library.register_static(Fixed)
ours.register_pytree_with_keys_class(OurNamed)
theirs.register_pytree_with_keys_class(TheirNamed)

TREES = [
    1,
    None,
    (),
    [],
    {},
    (1,),
    [1, (2, None), {"b": 3, "a": [4]}],
    {"b": [1, (2, None)], "a": 1},
    {2: 1, 1: (2,)},
    OrderedDict(b=1, a=(2, 3)),
    defaultdict(list, {"b": 1, "a": 2}),
    Point(1, (2, 3)),
    ({1: 2}, [None, Point(None, 3)]),
    Pair(1, [2, 3]),
    [Layer(1, {"k": 2}), Fixed(3)],
    Layer(1, 2, "other"),
]


def names(path):
    """Path as the strings of its keys."""
    return [str(key) for key in path]


@pytest.mark.parametrize("value", TREES, ids=str)
def test_flatten_is_jax_s(value):
    """Leaves, printed structure, node and leaf counts, paths and rebuilding agree with JAX."""
    leaves, treedef = ours.tree_flatten(value)
    wanted, their_def = theirs.tree_flatten(value)
    assert leaves == wanted == ours.tree_leaves(value)
    assert repr(treedef) == str(treedef) == repr(their_def)
    assert treedef.num_leaves == their_def.num_leaves
    assert treedef.num_nodes == their_def.num_nodes
    assert ours.tree_unflatten(treedef, iter(leaves)) == value
    assert ours.treedef_is_leaf(treedef) == theirs.treedef_is_leaf(their_def)
    got, same = ours.tree_flatten_with_path(value)
    assert same == treedef
    for (path, leaf), (their_path, their_leaf) in zip(
        got, theirs.tree_flatten_with_path(value)[0], strict=True
    ):
        assert leaf == their_leaf
        assert names(path) == names(their_path)
        assert ours.keystr(path) == theirs.keystr(their_path)


@pytest.mark.parametrize("value", TREES, ids=str)
def test_structures_are_values(value):
    """Equal structures are equal, hash alike, survive pickling, and nest with `compose`."""
    treedef = ours.tree_structure(value)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert hash(ours.tree_structure(value)) == hash(treedef)
    assert ours.tree_structure(ours.tree_map(str, value)) == treedef
    assert treedef.compose(ours.tree_structure([0])) == ours.tree_structure(
        ours.tree_map(lambda x: [x], value)
    )
    assert treedef.flatten_up_to(value) == ours.tree_leaves(value)
    rebuilt = ours.treedef_tuple([treedef, treedef])
    assert ours.treedef_children(rebuilt) == [treedef, treedef]


def test_metadata_and_type_tell_structures_apart():
    """Trees that differ in container type, keys or metadata differ in structure."""
    different = [
        [1],
        (1,),
        {"a": 1},
        {"b": 1},
        None,
        1,
        Pair(1, 2),
        Pair(1, 2, "x"),
        Fixed(1),
        Fixed(2),
        Point(1, 2),
        [1, 2],
    ]
    structures = [ours.tree_structure(t) for t in different]
    for i, a in enumerate(structures):
        for j, b in enumerate(structures):
            assert (a == b) == (i == j)


def test_dict_order_does_not_matter():
    """Dicts with equal keys have one structure, whatever their insertion order."""
    a, b = ours.tree_structure({"a": 1, "b": 2}), ours.tree_structure({"b": 1, "a": 2})
    assert (a, hash(a)) == (b, hash(b))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"a": 1}, {"b": 1}, r"at the root .*\['b'\].*\['a'\]"),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, r"at \['a'\] it has a list of length 3 where .* 2"),
        ({"a": [1, (2,)]}, {"a": [1, [2]]}, r"at \['a'\]\[1\] it has a list where a tuple"),
        ((1, None), (1, 2), r"at \[1\] it has a int where a NoneType"),
        (Point(1, [2]), Point(1, 2), r"at \.y it has a int where a list"),
        ({"q": Pair(1, 2)}, {"q": Pair(1, 2, "other")}, r"at \['q'\] .*'other'.*'aux'"),
        ([1], 3, "at the root it has a int where a list"),
    ],
)
def test_mismatch_shows_the_path(first, second, words):
    """`map` over trees of different structure is a `ValueError` that says where they part."""
    with pytest.raises(ValueError, match=words):
        ours.tree_map(operator.add, first, second)
    with pytest.raises(ValueError, match="structure"):
        theirs.tree_map(operator.add, first, second)


def test_map_takes_subtrees_of_the_rest():
    """The first tree may be a prefix of the others; their subtrees go to the function whole."""
    assert ours.tree_map(lambda *x: x, (1, 2), (3, [4, 5]), (6, None)) == (
        (1, 3, 6),
        (2, [4, 5], None),
    )
    assert ours.tree_map(lambda x: -x, {"a": [1], "b": None}) == {"a": [-1], "b": None}
    stop = {"is_leaf": lambda x: isinstance(x, tuple)}
    assert ours.tree_map(lambda x: x * 2, [[1, 2], (3,)], **stop) == [[2, 4], (3, 3)]


def test_map_with_path_gives_path_and_leaves():
    """The function receives the path, then one leaf of each tree."""
    for library in (ours, theirs):
        got = library.tree_map_with_path(
            lambda path, x, y, keystr=library.keystr: (keystr(path), x, y),
            {"a": [1, Point(2, 3)]},
            {"a": [4, Point(5, 6)]},
        )
        assert got == {"a": [("['a'][0]", 1, 4), Point(("['a'][1].x", 2, 5), ("['a'][1].y", 3, 6))]}


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_leaf_predicate_may_take_the_path(depth):
    """With `is_leaf_takes_path` the walk stops where the predicate says, as in JAX."""
    value = {"b": [1, (2, None)], "a": (3, [4])}
    stop = {"is_leaf": lambda path, x: len(path) == depth, "is_leaf_takes_path": True}
    pairs, treedef = ours.tree_flatten_with_path(value, **stop)
    wanted, their_def = theirs.tree_flatten_with_path(value, **stop)
    assert [(names(p), x) for p, x in pairs] == [(names(p), x) for p, x in wanted]
    assert repr(treedef) == repr(their_def)
    assert ours.tree_unflatten(treedef, [x for _, x in pairs]) == value


def test_keys_print_as_in_jax():
    """Each kind of key, decorated and simple."""
    for kwargs in ({}, {"simple": True, "separator": "/"}):
        text = [
            k.keystr(
                (k.DictKey("a"), k.SequenceKey(1), k.GetAttrKey("x"), k.FlattenedIndexKey(3)),
                **kwargs,
            )
            for k in (ours, theirs)
        ]
        assert text[0] == text[1]
    assert repr(ours.DictKey("a")) == repr(theirs.DictKey("a"))
    assert len({ours.SequenceKey(1), ours.SequenceKey(1), ours.DictKey(1)}) == 2


def test_classes_name_their_children():
    """A class registered with keys, and a dataclass, show their own keys in paths."""
    (a, _), (b, _) = ours.tree_leaves_with_path([OurNamed(1, 2)])
    (c, _), (d, _) = theirs.tree_leaves_with_path([TheirNamed(1, 2)])
    assert [names(a), names(b)] == [names(c), names(d)]
    assert ours.keystr(ours.tree_leaves_with_path(Layer(1, 2))[1][0]) == ".b"


def test_one_level():
    """One level gives children and metadata; leaves have none."""
    for value in (
        {"b": 1, "a": [2]},
        [1, [2]],
        None,
        OrderedDict(a=1),
        Pair(1, [2]),
        Layer(1, [2]),
    ):
        children, data = ours.flatten_one_level(value)
        wanted, their_data = theirs.flatten_one_level(value)
        assert list(children) == list(wanted)
        assert data == their_data
        pairs, _ = ours.flatten_one_level_with_keys(value)
        their_pairs, _ = theirs.flatten_one_level_with_keys(value)
        assert [(str(k), x) for k, x in pairs] == [(str(k), x) for k, x in their_pairs]
    with pytest.raises(ValueError, match="int is a leaf"):
        ours.flatten_one_level(1)
    key = fnarray.random.key(0)  # a node of two words for transforms, a leaf for who looks at trees
    assert not ours.is_tree_node(type(key))
    for level in (ours.flatten_one_level, ours.default_registry.flatten_one_level_with_keys):
        with pytest.raises(ValueError, match="is a leaf"):
            level(key)


def test_node_types():
    """Node types are JAX's, and `node_data` names the root's."""
    for kind in (dict, list, tuple, type(None), int, Point, OrderedDict, Pair, str, np.ndarray):
        assert ours.is_tree_node(kind) == theirs.is_tree_node(kind)
    assert ours.tree_structure(1).node_data() is None
    assert ours.tree_structure(Pair(1, 2)).node_data() == (Pair, "aux")
    for items in ([1, 2], [1, None], [1, [2]], []):
        assert ours.all_leaves(items) == theirs.all_leaves(items)


@pytest.mark.parametrize("items", [[5], [1, 2, [3]], list(range(7))], ids=str)
def test_reductions(items):
    """Left folds are those of Python, balanced folds keep the order and equal JAX's."""
    pair = lambda a, b: (a, b)  # noqa: E731
    assert ours.tree_reduce(pair, items) == theirs.tree_reduce(pair, items)
    assert ours.tree_reduce(pair, items, 0) == theirs.tree_reduce(pair, items, 0)
    add = operator.add
    strings = ours.tree_map(str, items)
    assert ours.tree_reduce_associative(add, strings) == "".join(ours.tree_leaves(strings))
    assert ours.tree_reduce_associative(add, items) == sum(ours.tree_leaves(items))


def test_reductions_of_nothing():
    """Without leaves there must be a start value."""
    assert ours.tree_reduce(operator.add, [], 3) == 3
    assert ours.tree_reduce_associative(operator.add, None, identity=3) == 3
    with pytest.raises(TypeError):
        ours.tree_reduce(operator.add, [])
    with pytest.raises(TypeError, match="identity"):
        ours.tree_reduce_associative(operator.add, [])
    assert ours.tree_all([])
    assert not ours.tree_all({"a": 1, "b": 0})


def test_transpose():
    """A list of dicts becomes a dict of lists; the inner structure may be inferred."""
    value = [{"a": 1, "b": (2,)}, {"a": 3, "b": (4,)}]
    outer, inner = ours.tree_structure([0, 0]), ours.tree_structure({"a": 0, "b": (0,)})
    wanted = {"a": [1, 3], "b": ([2, 4],)}
    assert ours.tree_transpose(outer, inner, value) == wanted
    assert ours.tree_transpose(outer, None, value) == wanted
    with pytest.raises(TypeError, match="must have structure"):
        ours.tree_transpose(outer, outer, value)


def test_broadcast_spreads_a_prefix():
    """Each prefix leaf is repeated below it; a tree that is no prefix is a `ValueError`."""
    prefix, full = (1, None, 2), ((3, 4), None, [5, {"a": 6}])
    assert ours.tree_broadcast(prefix, full) == theirs.tree_broadcast(prefix, full)
    assert tree.broadcast_prefix(prefix, full) == [1, 1, 2, 2]
    # `None` is a leaf of the prefix, as of shardings, and no leaf of what it is spread over.
    none = {"is_leaf": lambda x: x is None}
    assert tree.broadcast_prefix(prefix, full, **none) == [1, 1, 2, 2]
    assert tree.broadcast_prefix((None, None), ((3, 4), None), **none) == [None, None]
    assert ours.tree_broadcast((None, 2), full[1:], **none) == theirs.tree_broadcast(
        (None, 2), full[1:], **none
    )
    with pytest.raises(ValueError, match="at the root it has a tuple of length 1"):
        ours.tree_broadcast((1, 2), ((3, 4),))


def test_unflatten_counts_leaves():
    """Too few and too many leaves are a `ValueError` with both numbers."""
    treedef = ours.tree_structure((1, 2))
    for given in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"has 2 leaves, got {len(given)}"):
            treedef.unflatten(given)


def test_registration_is_checked():
    """Registering twice, and naming the wrong fields, are errors that say so."""
    with pytest.raises(ValueError, match="registered already"):
        ours.register_pytree_node_class(Pair)

    @dataclass
    class Two:
        x: int
        y: int

    with pytest.raises(ValueError, match=r"missing \['y'\], unknown \['z'\]"):
        ours.register_dataclass(Two, ["x"], ["z"])
    with pytest.raises(TypeError, match="both data_fields and meta_fields"):
        ours.register_dataclass(Two, ["x"])
    with pytest.raises(TypeError, match="both data_fields and meta_fields"):
        ours.register_dataclass(int)
    ours.register_dataclass(Two, ["x"], ["y"])
    assert ours.tree_map(lambda x: x + 1, Two(1, 2)) == Two(2, 2)


def test_dropped_fields_take_their_defaults():
    """A dropped field is neither leaf nor metadata, and comes back as its default."""

    @dataclass
    class Cached:
        x: int
        memo: int = 7

    ours.register_dataclass(Cached, ["x"], [], drop_fields=["memo"])
    assert ours.tree_map(lambda x: x, Cached(1, 2)) == Cached(1, 7)


def test_partial():
    """`Partial` calls like `functools.partial`, keeps its arguments as leaves."""
    f = ours.Partial(operator.mul, 3)
    assert f(4) == 12
    assert ours.tree_leaves(f) == [3]
    assert ours.tree_map(lambda x: x + 1, f)(4) == 16
    assert isinstance(ours.tree_map(lambda x: x, f), ours.Partial)
    assert repr(ours.tree_structure(ours.Partial(print, 1, a=2))) == repr(
        theirs.tree_structure(theirs.Partial(print, 1, a=2))
    )
    hidden = ours.Partial(functools.partial(operator.mul, "ab"), 2)
    assert (hidden(), ours.tree_leaves(hidden)) == ("abab", [2])
    assert ours.tree_leaves(ours.Partial(f, 4)) == [3, 4]


def test_dispatch_form_agrees():
    """`flatten_spec` gives the same leaves, and a spec that rebuilds them."""
    value = {"b": [1, (2, None)], "a": Pair(3, 4)}
    leaves, spec = flatten_spec(value)
    assert leaves == ours.tree_leaves(value)
    assert spec.unflatten(leaves) == value
    assert ours.PyTreeDef(spec) == ours.tree_structure(value)


@pytest.mark.parametrize("module", ["tree", "tree_util"])
def test_every_public_name_of_jax_is_here(module):
    """The surfaces have the names of jax.tree and jax.tree_util, and `__all__` lists them."""
    surface = __import__(f"fnarray.{module}", fromlist=["*"])
    public = {n for n in dir(getattr(jax, module)) if not n.startswith("_")}
    assert public <= set(surface.__all__)
    assert all(hasattr(surface, n) for n in surface.__all__)


@pytest.mark.parametrize(
    ("a", "b"), [({"a": 1}, {"b": 1}), ({"a": 1, "b": 2}, {"a": 1}), ([1], [1, 2]), ((1, 2), (1,))]
)
def test_words_of_a_mismatch(a, b):
    """Where keys or lengths differ, the error has the words of JAX's that programs look for."""
    with pytest.raises(ValueError, match="mismatch") as wanted:
        jax.tree.structure(a).flatten_up_to(b)
    words = str(wanted.value).partition(" mismatch")[0] + " mismatch"
    for f in (lambda: tree.structure(a).flatten_up_to(b), lambda: tree.map(max, a, b)):
        with pytest.raises(ValueError, match=words):
            f()


def test_trees_that_are_met_often_are_told_apart():
    """What is taken apart by code of its own has the leaves and structure that others have."""
    key = fnarray.random.key(0)
    kinds = [
        {"a": [1, 2.0], "b": (3, None)}, {"a": [1], "b": (3, None)},
        {"a": (1, 2.0), "b": (3, None)},
        {"b": (3, None), "a": [1, 2.0]}, {"a": [1, (2, 4)], "b": (3, None)}, {"a": 1, "b": 2},
        {"a": [key, np.ones(2)], "b": (3, None)}, {"a": [None, 2.0], "b": (3, None)},
        {"a": [1, 2.0], "b": Point(3, None)}, {"a": [Point(1, 2), 2.0], "b": (3, None)},
        {"a": [Pair(1, 2), 2.0], "b": (3, None)}, {1: 2, 0: 3}, {True: 2, False: 3}, [1, 2], (1, 2),
        [[], ()], [], (), {}, [1, [2]], [OrderedDict(z=1, a=2), 3], [1, {2: 3}], [1, {True: 3}],
    ]  # fmt: skip
    wanted = [fnarray.tree.flatten(x, is_leaf=lambda x: False) for x in kinds]
    for _ in range(25):
        for x, (leaves, structure) in zip(kinds, wanted, strict=True):
            got = fnarray.tree.flatten(x)
            assert got[1] == structure
            assert len(got[0]) == len(leaves)
            assert all(a is b for a, b in zip(got[0], leaves, strict=True))
            assert all(a is b for a, b in zip(fnarray.tree.leaves(x), leaves, strict=True))
            assert repr(fnarray.tree.map(lambda leaf: leaf, x)) == repr(got[1].unflatten(leaves))
            pairs = fnarray.tree.map(lambda *both: both, x, x)
            assert repr(pairs) == repr(got[1].unflatten([(leaf, leaf) for leaf in leaves]))
    with pytest.raises(ValueError, match="another structure"):
        fnarray.tree.map(lambda *both: both, kinds[0], kinds[1])


def test_a_class_registered_after_its_values_were_leaves():
    """They are nodes from then on, in trees that were met often, too."""

    class Late:
        value = 5

    tree_ = {"x": Late(), "y": [1]}
    for _ in range(25):
        assert fnarray.tree.leaves(tree_)[0] is tree_["x"]
    ours.register_pytree_node(Late, lambda x: ((x.value,), None), lambda data, children: Late())
    assert fnarray.tree.leaves(tree_) == [5, 1]


def test_insides_that_differ_from_call_to_call_get_no_code_of_their_own(monkeypatch):
    made = []
    monkeypatch.setattr(unpack, "unpacker", lambda spec: made.append(spec) or unpack.no_leaves)
    for k in range(100):
        tree_ = {"ever": [float(k)] * (k + 1), "other": k}
        assert fnarray.tree.leaves(tree_) == [*tree_["ever"], k]
    assert len(made) == 1
