"""A primitive that holds a graph is declared in a few lines: its family gives the rules."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray import numpy as jnp
from fnarray.control._bodies import Holding, holding
from fnarray.control._looping import Looping, looping
from fnarray.core.forms import Scan
from fnarray.core.trace import bind
from fnarray.ops.kit.registry import registry

X = jnp.array([0.3, -0.7, 1.2], dtype=jnp.float32)
Y = jnp.array([1.5, 0.5, -2.0], dtype=jnp.float32)


@pytest.fixture
def declared():
    """Forget, after the test, what it declares; families that it asks for first stay."""
    yield
    for name in [n for n in registry if n.startswith("test_")]:
        del registry[name]


def f(x, y):
    return jnp.sin(x) * y, x * x * 2.0


def transforms(fun):
    """What every rule of a primitive takes part in, alone and one around the other."""

    def total(x, y):
        return sum(map(jnp.sum, fun(x, y)))

    rows = jnp.stack([X, Y]), jnp.stack([Y, X])
    yield fun(X, Y)
    yield fnarray.jit(fun)(X, Y)
    yield fnarray.jvp(fun, (X, Y), (Y, X))
    yield fnarray.grad(total, (0, 1))(X, Y)
    yield fnarray.vmap(fun)(*rows)
    yield fnarray.vmap(fun, in_axes=(0, None))(rows[0], Y)
    yield fnarray.jit(fnarray.vmap(fnarray.grad(total)))(*rows)
    yield fnarray.grad(lambda x: jnp.sum(fnarray.grad(total)(x, Y) ** 2))(X)
    yield fnarray.grad(fnarray.checkpoint(total))(X, Y)


def same(ours, plain):
    for a, b in zip(transforms(ours), transforms(plain), strict=True):
        for x, y in zip(fnarray.tree.leaves(a), fnarray.tree.leaves(b), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)


def test_a_call_is_one_declaration(declared):
    """A primitive that runs its graph on its operands has derivatives and batches."""
    prim = holding("test_call", Holding("held"))

    def ours(x, y):
        return tuple(bind(prim, x, y, held=fnarray.make_jaxpr(f)(x, y)))

    same(ours, f)


def test_a_loop_is_one_declaration(declared):
    """A loop that says what its carry is has forward derivatives and batches."""
    family = Looping(
        "body",
        lambda params: (0, 0, params["carried"]),
        lambda params, body, consts, carried: {**params, "body": body, "carried": carried},
    )
    three = looping(
        "test_three_turns",
        family,
        aval=lambda *avals, body, carried: body.out_avals,
        form=lambda ins, outs, *, body, carried: Scan(body, 3, False, 0, carried, 1),
    )

    def turn(c):
        return jnp.sin(c) * 2.0

    def ours(x):
        return bind(three, x, body=fnarray.make_jaxpr(turn)(x), carried=1)[0]

    def plain(x):
        return lax.fori_loop(0, 3, lambda i, c: turn(c), x)

    rows = jnp.stack([X, Y])
    for run in (
        lambda g: g(X),
        lambda g: fnarray.jit(g)(X),
        lambda g: fnarray.jvp(g, (X,), (Y,)),
        lambda g: fnarray.vmap(g)(rows),
        lambda g: fnarray.vmap(fnarray.jacfwd(g))(rows),
    ):
        for a, b in zip(*(fnarray.tree.leaves(run(g)) for g in (ours, plain)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
