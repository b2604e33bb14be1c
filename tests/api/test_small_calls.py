"""Calls that take arguments apart, and put results together, by code of their own."""

from __future__ import annotations

import collections
import threading

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import tree_util
from fnarray.core.trace import state

Pair = collections.namedtuple("Pair", "b a")
OFTEN = 25


class Named:
    """A setting whose hash and equality are those of a name that may be changed."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


@tree_util.register_pytree_node_class
class Scaled:
    """A registered class with metadata."""

    def __init__(self, x, by):
        self.x, self.by = x, by

    def tree_flatten(self):
        return (self.x,), self.by

    @classmethod
    def tree_unflatten(cls, by, children):
        return cls(*children, by)


@pytest.fixture
def x():
    return jnp.arange(3.0)


def test_static_values_are_told_apart(x):
    """Each value of a static argument has its program, equal ones of other types too."""
    f = fnarray.jit(lambda x, n: x + len(repr(n)), static_argnums=1)
    for _ in range(3):
        for n in (1, True, 1.0, "1", None, (1, 2), 10**6, "long" * 5):
            assert float(f(x, n)[0]) == len(repr(n))
    assert float(f(x, n=12)[0]) == 2


def test_static_values_that_change(x):
    """A static value whose hash has changed since is another one."""
    f = fnarray.jit(lambda x, n: x + len(n.name), static_argnames="n", effects="off")
    given = Named("ab")
    assert [float(f(x, n=given)[0]) for _ in range(3)] == [2, 2, 2]
    given.name = "abc"
    assert [float(f(x, n=given)[0]) for _ in range(3)] == [3, 3, 3]
    with pytest.raises(ValueError, match="not hashable"):
        f(x, n=[1])


def test_static_positions(x):
    """Static arguments between others, from the end, by name, and left out."""
    f = fnarray.jit(lambda a, k, b, m=2: a * k + b["y"] * m, static_argnums=(1, 3))
    for _ in range(3):
        for k, m in ((2, 3), (3, 2)):
            assert np.array_equal(f(x, k, {"y": x}, m), x * (k + m))
            assert np.array_equal(f(x, k, b={"y": x}, m=m), x * (k + m))
            assert np.array_equal(f(x, k, {"y": x}), x * (k + 2))


def test_metadata_of_classes(x):
    """A registered class is taken apart as it says; other metadata are another program."""
    f = fnarray.jit(lambda s: s.x * s.by)
    for _ in range(4):
        for by in (2, 3.0, 2):
            assert np.array_equal(f(Scaled(x, by)), x * by)
    assert np.array_equal(f(Scaled(x + 1, 2)), (x + 1) * 2)


def test_arrays_after_containers(x):
    """A function is called with containers and with arrays in turn, numbers among them."""
    f = fnarray.jit(lambda a, b=0: a["x"] if isinstance(a, dict) else a + b)
    for _ in range(4):
        assert np.array_equal(f({"x": x}), x)
        assert np.array_equal(f(x), x)
        assert np.array_equal(f(x, 1.5), x + 1.5)
        assert np.array_equal(f(x, np.ones(3)), x + 1)
        assert np.array_equal(f(x, b=x), x + x)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: {"b": x, "a": (x + 1, [x + 2, None], {})},
        lambda x: (),
        lambda x: {2: x, 1: x},
        lambda x: {"z": Pair(x, None), "k": [x, Pair(1.5, x)]},
        lambda x: collections.OrderedDict(z=x, a=x),
        lambda x: {"a'\"\n": x, "": x},
        lambda x: Scaled(x, 3),
    ],
)
def test_results_are_the_first_ones(x, make):
    """Results of a program that is called often have the structure and values of the first."""
    f = fnarray.jit(make)
    first = f(x)
    for _ in range(OFTEN):
        again = f(x)
    assert type(again) is type(first)
    assert tree_util.tree_structure(again) == tree_util.tree_structure(first)
    if isinstance(first, dict):
        assert list(again) == list(first)
    for a, b in zip(tree_util.tree_leaves(again), tree_util.tree_leaves(first), strict=True):
        assert a.aval is b.aval
        assert np.array_equal(a, b)


def test_threads_have_traces_of_their_own(x):
    """While one thread traces, others evaluate; their settings are theirs, too."""
    inside, go_on, seen = threading.Event(), threading.Event(), []

    def traced(a):
        inside.set()
        assert go_on.wait(60)
        return jnp.sin(a) + jnp.sum(a)

    def other():
        seen.append(fnarray.jit(traced, effects="off")(x))

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(60)
    assert state.trace is None
    out = [jnp.sin(x), jnp.sum(x), x + 1, fnarray.jit(jnp.cos)(x)]
    with fnarray.enable_x64(True):
        assert (jnp.arange(2.0) + 1).dtype == np.float64
    go_on.set()
    thread.join()
    assert all(isinstance(np.asarray(a), np.ndarray) for a in out)
    assert np.array_equal(seen[0], np.sin(np.asarray(x)) + 3)


def test_warnings_are_off_in_all_threads(x):
    """Threads that evaluate at once each have a context without warnings."""
    failed = []

    def work():
        try:
            for _ in range(300):
                assert np.isnan(np.asarray(jnp.log(-1 - x))).all()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
