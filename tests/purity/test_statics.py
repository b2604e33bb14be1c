"""What a static argument holds is read, and guarded: the next call sees whatever is changed."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import errors

pytestmark = pytest.mark.cpu

X = np.array([1.0, 2.0], np.float32)


class Layer:
    """Held by others."""

    def __init__(self, k=1.5):
        self.k = k


class Slotted:
    """Holds what slots do."""

    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0


class Model:
    """A plain class, whose objects may change and hash by identity."""

    rate = 2.0
    shared = {"a": 1.0}  # noqa: RUF012 - what is changed

    def __init__(self):
        self.n = 1.0
        self.table = {"a": [1.0]}
        self.w = np.ones(2, np.float32)
        self.layer = Layer()
        self.layers = [Layer(), Layer(2.0)]
        self.pair = ([1.0], 2.0)
        self.act = jnp.sin
        self.slotted = Slotted()
        self.log = []

    @property
    def twice(self):
        return 2 * self.n

    def deep(self):
        return sum(layer.k for layer in self.layers)

    def __len__(self):
        return len(self.layers)

    def run(self, x):
        """Return what everything that the object holds goes into."""
        y = x * self.n * self.table["a"][0] * self.w * self.layer.k * self.layers[1].k
        y = y * self.pair[0][0] * self.act(1.0) * self.rate * self.twice * self.deep()
        return y * self.shared["a"] * self.slotted.k * getattr(self, "n") * len(self)  # noqa: B009

    jitted = fnarray.jit(run, static_argnums=0)

    @functools.partial(fnarray.jit, static_argnums=0)
    def logged(self, x):
        self.log.append(x)
        return x

    @functools.partial(fnarray.jit, static_argnames=("self",))
    def set(self, x):
        self.n = x
        return x

    @functools.partial(fnarray.jit, static_argnums=0)
    def counted(self, x):
        return x * len(self)


CHANGES = (
    "m.n = 3.0", "m.table['a'][0] = 5.0", "m.table['a'] = [7.0]", "m.table = {'a': [9.0]}",
    "m.w[0] = 5.0", "m.w = np.full(2, 7.0, np.float32)", "m.layer.k = 9.0", "m.layer = Layer(4.0)",
    "m.layers[1].k = 8.0", "m.layers.append(Layer())", "m.layers = m.layers[::-1]",
    "m.pair[0][0] = 6.0", "m.pair = ([3.0], 1.0)", "m.act = jnp.cos", "m.rate = 6.0",
    "m.deep = lambda: 3.0", "m.slotted.k = 5.0", "m.slotted = Layer(7.0)", "m.shared = {'a': 3.0}",
    "m.__dict__.update(n=17.0)", "vars(m)['n'] = 19.0", "m.layer.__class__ = Other",
    "m.__class__ = Below", "m.layers[0].__dict__['k'] = 3.0",
)  # fmt: skip


class Other(Layer):
    """Of another class the attribute is another."""

    k = property(lambda self: 11.0, lambda self, k: None)  # type: ignore[assignment]


class Below(Model):
    """A class below."""

    rate = 5.0

    def deep(self):
        return 4.0


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_by_the_next_call(change):
    """Whichever attribute, however deep, and whoever sets it; Python's own call is the oracle."""
    m, space = Model(), globals()
    first = np.asarray(m.jitted(X))
    np.testing.assert_allclose(first, np.asarray(m.run(X)), rtol=1e-5)
    exec(change, {**space, "m": m})
    expected = np.asarray(m.run(X))
    assert not np.allclose(first, expected)
    np.testing.assert_allclose(np.asarray(m.jitted(X)), expected, rtol=1e-5)


def test_what_is_not_read_may_change():
    """Nothing is traced again for an attribute that the function does not ask for."""
    traced = []

    class Counted:
        def __init__(self):
            self.n, self.log = 2.0, []

        @functools.partial(fnarray.jit, static_argnums=0)
        def run(self, x):
            return note(x) * self.n

    @fnarray.assume_pure
    def note(x):
        traced.append(1)
        return x

    m = Counted()
    for i in range(4):
        assert m.run(np.float32(1.5)) == 3.0
        m.log.append(i)
        m.step = i
    assert len(traced) == 1


def test_each_object_has_a_program_of_its_own():
    """Objects that hash by identity differ; one that is gone leaves the others' alone."""
    one, two = Model(), Model()
    two.n = 3.0
    for m in (one, two, one):
        np.testing.assert_allclose(np.asarray(m.jitted(X)), np.asarray(m.run(X)), rtol=1e-5)


def test_a_whole_object_is_guarded_to_the_end():
    """``len`` of an object may look at anything that it holds."""
    m = Model()
    assert m.counted(np.float32(1.0)) == 2.0
    m.layers.append(Layer())
    assert m.counted(np.float32(1.0)) == 3.0


@pytest.mark.parametrize("name", ["logged", "set"])
def test_writes_are_refused_as_ever(name):
    """A static object outlives the call as any other does."""
    with pytest.raises(errors.WriteEffectError):
        getattr(Model(), name)(X)


class Equal:
    """As JAX's documentation has it: equal by what the method reads."""

    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return isinstance(other, Equal) and self.n == other.n

    @functools.partial(fnarray.jit, static_argnums=0)
    def run(self, x):
        return x * self.n


def test_equal_objects_share_a_program_until_one_changes():
    """An object whose hash changes with what it holds is found by what it holds now."""
    one, two = Equal(2.0), Equal(2.0)
    assert one.run(np.float32(1.0)) == two.run(np.float32(1.0)) == 2.0
    size = Equal.run._cache_size()
    assert size == 1
    one.n = 3.0
    assert (one.run(np.float32(1.0)), two.run(np.float32(1.0))) == (3.0, 2.0)


@functools.lru_cache
def _nodes(n):
    return np.polynomial.hermite.hermgauss(n)


@functools.partial(fnarray.jit, static_argnums=0, static_argnames=("m",))
def _expected(n, x, *, m=3):
    return (_nodes(n)[1] * x).sum() + _nodes(m)[0].sum()


def test_a_cache_may_keep_what_is_made_of_static_numbers():
    """Only what is traced must not be kept: the number of nodes is none."""
    for n in (3, 4):
        points = np.polynomial.hermite.hermgauss(n)
        np.testing.assert_allclose(_expected(n, 2.0), 2 * points[1].sum(), rtol=1e-5)
        np.testing.assert_allclose(_expected(n, 2.0, m=4), 2 * points[1].sum(), rtol=1e-5)
    with pytest.raises(errors.WriteEffectError, match="keeps a traced value"):
        fnarray.jit(lambda n: _nodes(n)[0])(3)


def test_a_bound_method_is_called_by_its_name():
    """The repair is to make its object static."""

    class Scale:
        def __init__(self):
            self.k = 2.0

        def times(self, x):
            return x * self.k

    with pytest.raises(errors.ReadEffectError, match="jit: times is not pure") as caught:
        fnarray.jit(Scale().times)(X)
    assert "static_argnums=0" in caught.value.findings[0].repair
    assert fnarray.jit(Scale.times, static_argnums=0)(Scale(), np.float32(1.0)) == 2.0


class Local(threading.local):
    """Each thread has attributes of its own."""

    def __init__(self):
        self.k = 2.0

    @functools.partial(fnarray.jit, static_argnums=0)
    def run(self, x):
        return x * self.k


class Drawn:
    """Holds what every use advances."""

    def __init__(self, source):
        self.source = source

    @functools.partial(fnarray.jit, static_argnums=0)
    def drawn(self, x):
        return x * next(self.source)

    @functools.partial(fnarray.jit, static_argnums=0)
    def random(self, x):
        return x * self.source.normal()

    @functools.partial(fnarray.jit, static_argnums=0)
    def large(self, x):
        return (x * self.source).sum()


@pytest.mark.parametrize(
    "call",
    [
        lambda: Local().run(X),
        lambda: Drawn(iter([1.0])).drawn(X),
        lambda: Drawn(np.random.default_rng(0)).random(X),
        lambda: Drawn(np.ones((2**19, 2))).large(X),
    ],
)
def test_what_no_guard_can_tell_is_refused(call):
    """Attributes of each thread, iterators, generators, arrays over the limit."""
    with pytest.raises(errors.EffectError):
        call()
