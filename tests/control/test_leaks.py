"""config.check_tracer_leaks: a trace ends, and nobody has its tracers any more."""

from __future__ import annotations

import gc

import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.errors import UnexpectedTracerError

KEPT = []


@pytest.fixture(autouse=True, scope="module")
def _all_objects():
    """Whoever holds a tracer is looked for among all objects (tests/conftest.py freezes some)."""
    gc.unfreeze()


def in_a_list(x):
    """Keep a value in a list."""
    KEPT.append(x + 1)
    return x


def in_a_loop(x):
    """Keep a value of a loop's body."""

    def body(c, _):
        KEPT.append(2 * c)
        return c + 1, None

    return lax.scan(body, x, None, 3)[0]


def in_a_gradient(x):
    """Keep a value that is derived."""
    return fnarray.grad(in_a_list)(x)


@pytest.mark.parametrize("f", [in_a_list, in_a_loop, in_a_gradient])
def test_what_is_kept_is_told(f):
    """With the line that made it, and what holds it; what was kept before is not told again."""
    with fnarray.effects("off"), fnarray.check_tracer_leaks():
        with pytest.raises(UnexpectedTracerError, match=r"(?s)computed at .*held by .*list"):
            fnarray.jit(f)(1.0)
        assert fnarray.jit(lambda x: x + 1)(1.0) == 2
    KEPT.clear()


def test_what_ends_with_the_trace_is_no_leak():
    """Containers, exceptions and closures of the function, loops and transforms within it."""

    def f(x):
        held = {"a": [2 * x, x + 1]}
        try:
            raise ValueError(x)
        except ValueError as error:
            again = error
        held["again"] = again  # a cycle
        y = lax.fori_loop(0, 3, lambda _, c: c + x, sum(held["a"]))
        return fnarray.grad(lambda z: jnp.sum(fnarray.vmap(jnp.sin)(z * jnp.ones(3))))(y)

    with fnarray.effects("off"), fnarray.checking_leaks():
        assert fnarray.jit(f)(1.0).shape == ()


def test_nothing_is_searched_where_traces_die(monkeypatch):
    """A program of many traces looks at all objects in memory for none of those that are gone."""

    def f(x):
        inner = [fnarray.jit(lambda z, k=k: jnp.sin(z) * k) for k in range(3)]
        y = lax.scan(lambda c, _: (sum(g(c) for g in inner), c), x, None, 3)[0]
        return fnarray.grad(lambda z: lax.cond(z > 0, jnp.cos, jnp.tan, z))(y)

    def searched():
        raise AssertionError("all objects in memory are looked at")

    monkeypatch.setattr("gc.get_objects", searched)
    with fnarray.effects("off"), fnarray.checking_leaks():
        assert fnarray.jit(f)(1.0).shape == ()
