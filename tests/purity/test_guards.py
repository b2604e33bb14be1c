"""Guards: an accepted read is of the same object at the next call, or known not to be."""

from __future__ import annotations

import fnarray.numpy as jnp
from fnarray.purity.guards import Guards
from fnarray.purity.live import verify

SCALE = 2.0
weights = jnp.ones(2)


def helper(x):
    return x + SCALE


def test_rebinding_a_constant_an_array_or_a_function(monkeypatch):
    """Each of the three makes the guards fail, and names itself."""

    def step(x):
        return helper(x) * weights

    guards = verify(step, "jit")
    assert guards.holds()
    for name, new in (("SCALE", 3.0), ("weights", jnp.zeros(2)), ("helper", lambda x: x)):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, new)
            assert not guards.holds()
            assert guards.changed() == [name]
        assert guards.holds()


def test_cells():
    """A closure's variable is guarded, also when it is emptied."""
    k = 1.0

    def step(x):
        return x * k  # noqa: F821 - deleted below

    guards = verify(step, "jit")
    assert guards.holds()
    k = 2.0
    assert not guards.holds()
    del k
    assert not guards.holds()


def test_a_builtin_that_is_shadowed(monkeypatch):
    """A global that comes to hide a builtin is noticed."""
    guards = verify(lambda x: x * len(x.shape), "jit")
    assert guards.holds()
    monkeypatch.setitem(globals(), "len", lambda x: 7)
    assert not guards.holds()


def test_module_and_class_attributes(monkeypatch):
    """Constants read through a class are guarded where they live."""

    class Config:
        RATE = 0.1

    guards = verify(lambda x: x * Config.RATE, "jit")
    assert guards.holds()
    Config.RATE = 0.2
    assert not guards.holds()


def test_equal_is_not_the_same():
    """Identity decides: an equal object may still differ in what it is."""
    space = {"K": [1.0]}
    guards = Guards()
    guards.add_name(space, "K")
    space["K"] = [1.0]
    assert not guards.holds()
