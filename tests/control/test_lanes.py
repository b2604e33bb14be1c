"""Loops whose lanes end at different times are one equation, under every transform."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import effects
from fnarray.core.forms import Map
from fnarray.core.primitive import Missing, Primitive
from fnarray.core.trace import bind

N = np.array([3, 0, 5, 1], np.int32)
X = np.array([1.5, -0.5, 0.75, 2.0], np.float32)
M = np.arange(12, dtype=np.float32).reshape(4, 3) / 8


NO_RULE = Missing("it is only batched")


def power(m):
    """Return ``x`` multiplied ``n`` times, by a loop."""

    def f(n, x):
        start = m.numpy.int32(0), 1.0
        return m.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), start)[1]

    return f


def scaled(m):
    """Return a vector of ones multiplied ``n`` times, by another."""

    def f(n, row):
        def turn(c):
            return c[0] + 1, c[1] * row

        return m.lax.while_loop(lambda c: c[0] < n, turn, (0, m.numpy.ones(3)))[1].sum()

    return f


def rows(m, f):
    """All pairs of both arguments."""
    return m.vmap(m.vmap(f, (None, 0)), (0, None))


def columns(m, f):
    """The same, transposed: the inner axis is of numbers of turns."""
    return m.vmap(m.vmap(f, (0, None)), (None, 0))


def multiplied_sum(m):
    """Return ``n`` times the sum of a vector, by a loop."""
    return lambda n, row: m.lax.fori_loop(0, n, lambda i, c: c + row.sum(), 0.0)


PROGRAMS = {
    "grid": lambda m: rows(m, power(m))(N, X),
    "grid by columns": lambda m: columns(m, power(m))(N, X),
    "grid of vectors": lambda m: rows(m, scaled(m))(N, M),
    "grid of vectors by columns": lambda m: columns(m, scaled(m))(N, M),
    "grid of long rows": lambda m: columns(m, multiplied_sum(m))(N, np.tile(M, (1, 100))),
    "three axes": lambda m: m.vmap(lambda x: rows(m, power(m))(N, X * x))(X),
    "both of both": lambda m: m.vmap(m.vmap(power(m)))(np.stack([N, N]), np.stack([X, -X])),
    "tangents": lambda m: m.jvp(lambda x: m.vmap(power(m))(N, x), (X,), (X,)),
    "tangents inside": lambda m: m.vmap(m.grad_of(power(m)))(N, X),
    "tangents of a grid": lambda m: m.jvp(lambda x: rows(m, power(m))(N, x), (X,), (X,)),
    "a grid of tangents": lambda m: rows(m, m.grad_of(power(m)))(N, X),
    "second tangents": lambda m: m.vmap(m.grad_of(m.grad_of(power(m))))(N, X),
    "of the start": lambda m: m.vmap(
        lambda x: m.jvp(
            lambda y: m.lax.while_loop(lambda c: c < 9, lambda c: c * 2 + 1, y), (x,), (x,)
        )
    )(np.abs(X)),
    "linearized": lambda m: m.linearize(lambda x: m.vmap(power(m))(N, x), X)[1](X),
    "a loop in a loop": lambda m: m.vmap(
        lambda n: m.lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + power(m)(c[0], 2.0)), (0, 0.0)
        )
    )(N),
    "in a scan": lambda m: m.lax.scan(
        lambda c, x: (c + m.vmap(power(m), (0, None))(N, x).sum(), x), 0.0, X
    ),
    "lanes that exchange": lambda m: m.vmap(
        lambda x: m.lax.while_loop(
            lambda c: m.lax.psum(c, "i") < 40, lambda c: c + m.lax.pmax(c, "i"), x
        ),
        axis_name="i",
    )(X),
    "rows that exchange, of lanes": lambda m: m.vmap(
        lambda x: m.vmap(
            lambda n: m.lax.while_loop(
                lambda c: c[0] < n, lambda c: (c[0] + 1, m.lax.psum(c[1], "i") * x), (0, x)
            )[1]
        )(N),
        axis_name="i",
    )(X),
}


class Package:
    """A package with ``grad_of``, the tangent by the last argument: reverse mode has none."""

    def __init__(self, m):
        self.m = m

    def __getattr__(self, name):
        return getattr(self.m, name)

    def grad_of(self, f):
        """Return the derivative of a function by its second argument."""
        return lambda n, x: self.m.jvp(lambda x: f(n, x), (x,), (self.m.numpy.ones_like(x),))[1]


@pytest.mark.parametrize("how", ["eager", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_jax(name, how):
    """Lanes compose with themselves and with every other transform."""
    outs = []
    for m in map(Package, (fnarray, jax)):
        f = PROGRAMS[name]
        with effects("off"):
            outs.append(m.jit(lambda m=m, f=f: f(m))() if how == "jit" else f(m))
    for a, b in zip(*map(fnarray.tree.leaves, outs), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


def lanes_of(graph):
    """Return the numbers of lanes of a graph's equations."""
    return [e.params["axis_size"] for e in graph.eqns if e.primitive.name == "lanes"]


def test_one_equation_without_a_width():
    """However many lanes there are, what is recorded is the loop of one, and their number."""
    f = fnarray.vmap(power(fnarray))
    for n in (1, 128, 1000):
        graph = fnarray.make_jaxpr(f)(np.zeros(n, np.int32), np.zeros(n, np.float32))
        assert lanes_of(graph) == [n]
        (eqn,) = (e for e in graph.eqns if e.primitive.name == "lanes")
        assert eqn.params["body_jaxpr"].out_avals[1].shape == ()


def test_a_batch_of_lanes_is_more_lanes():
    """Axes are merged, unless large rows were repeated for it."""
    assert lanes_of(fnarray.make_jaxpr(columns(fnarray, power(fnarray)))(N, X)) == [16]
    long = np.zeros((4, 300), np.float32)
    (eqn,) = fnarray.make_jaxpr(columns(fnarray, multiplied_sum(fnarray)))(N, long).eqns[-1:]
    assert eqn.primitive.name == "scan"
    assert lanes_of(eqn.params["jaxpr"]) == [4]


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_prints_as_in_jax(in_axes):
    """A loop whose condition gives a value for each lane."""
    args = [x if a == 0 else x[0] for a, x in zip(in_axes, (N, X), strict=True)]
    texts = [str(m.make_jaxpr(m.vmap(power(m), in_axes))(*args)) for m in (fnarray, jax)]
    assert texts[0] == texts[1]
    assert "while[" in texts[0]


def test_reverse_mode_says_why():
    """As of one loop."""
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        fnarray.grad(lambda x: fnarray.vmap(power(fnarray))(N, x).sum())(X)


def test_reverse_mode_of_what_a_loop_hands_on():
    """A part of the carry that every turn returns as it is, is what it was before the loop."""

    def find(x, n):
        """The first place where x is n or more, found by a loop that carries x."""
        turn = lambda c: (c[0] + 1, c[1], -fnarray.lax.stop_gradient(c[2]))  # noqa: E731
        k, kept, _ = fnarray.lax.while_loop(lambda c: c[1][c[0]] < n, turn, (0, x, -n))
        return fnarray.numpy.sum(kept**2) * k

    x = fnarray.numpy.arange(4.0)
    both = fnarray.jit(lambda x, n: (fnarray.grad(find)(x, n), fnarray.jacfwd(find)(x, n)))
    for found in (*both(x, 2.0), fnarray.vmap(fnarray.grad(find), (None, 0))(x, x[1:3])[1]):
        np.testing.assert_array_equal(found, 4 * x)


def test_lanes_at_rest_do_not_act(capsys):
    """A grid of loops prints what each of them alone prints."""

    def f(n, x):
        def turn(c):
            fnarray.debug.print("{} {}", c, x)
            return c + 1

        return fnarray.lax.while_loop(lambda c: c < n, turn, 0)

    with effects("off"):
        grid = columns(fnarray, f)(N, X)
    assert grid.tolist() == [N.tolist()] * 4
    said = sorted(capsys.readouterr().out.splitlines())
    assert said == sorted(f"{c} {x}" for n in N for x in X for c in range(n))


def test_few_lanes():
    """A batch of nothing, and one lane, run like others."""
    f = fnarray.vmap(power(fnarray))
    assert f(N[:0], X[:0]).shape == (0,)
    assert f(N[:1], X[:1]).tolist() == [1.5**3]


def test_arrays_that_rules_make_belong_to_the_whole_batch():
    """Where a rule of batching makes one, all lanes turn together: no group could be cut of it."""
    same = Primitive(
        "test_same",
        aval=lambda x: x,
        eval=lambda x: x,
        form=lambda ins, outs: Map("{0}"),
        jvp=NO_RULE,
        transpose=NO_RULE,
        batch=lambda axis, xs, batched: xs[0] + np.zeros(axis, np.float32),
    )

    def f(n, x):
        def turn(c):
            return c[0] + 1, bind(same, c[1]) * x

        return fnarray.lax.while_loop(lambda c: c[0] < n, turn, (np.int32(0), np.float32(1)))[1]

    with effects("off"):
        graph = fnarray.make_jaxpr(fnarray.vmap(f))(N, X)
        got = fnarray.vmap(f)(N, X)
    assert lanes_of(graph) == []
    np.testing.assert_allclose(got, X**N)


def _branch(i, b, s):
    return lax.cond(i > 3, lambda b, s: (b, s + 1), lambda b, s: (b, s), b, s)


def _heavy_branch(i, b, s):
    def slow(b, s):
        return b, lax.fori_loop(0, 3, lambda _, c: c + 1, s)

    return lax.cond(i > 3, slow, lambda b, s: (b, s), b, s)


def _one_of_three(i, b, s):
    cases = [lambda b, s: (b, s + 1), lambda b, s: (b, s), lambda b, s: (b, -s)]
    return lax.switch(i % 3, cases, b, s)


def _turns(i, b, s):
    b, i, s = lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1, c[2] + 1), (b, i, s))
    return b, s


@pytest.mark.parametrize("f", [_branch, _heavy_branch, _one_of_three, _turns])
@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_passed_on_stays_unmapped(f, compiled):
    """It is the same for all examples, whatever branch or number of turns each takes."""
    i, s = np.arange(8), np.arange(8, dtype=np.float32)
    mapped = fnarray.vmap(f, (0, None, 0), (None, 0))
    run = fnarray.jit(mapped) if compiled else mapped
    b, out = run(i, np.float32(2), s)
    assert b.shape == ()
    assert float(b) == 2
    alone = [f(i[k], np.float32(2), s[k])[1] for k in range(8)]
    np.testing.assert_array_equal(np.asarray(out), np.asarray(alone, np.float32))
    with pytest.raises(ValueError, match=r"out_axes\[1\], got axis spec None"):
        fnarray.vmap(f, (0, None, 0), None)(i, np.float32(2), s)
    both = fnarray.vmap(f)(i, s + 1, s)
    np.testing.assert_array_equal(np.asarray(both[0]), s + 1)
