"""Graphs are cut and reordered without a look at what their equations do."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import numpy as jnp
from fnarray.core.graph import eval_graph
from fnarray.core.surgery import (
    closed_over,
    closed_over_nothing,
    independent,
    live,
    one_equation,
    rearranged,
    substituted,
)
from fnarray.core.trace import bind
from fnarray.ops.kit.registry import registry

X = jnp.array([1.0, 2.0, 3.0])


def f(x, y, z):
    return jnp.sin(x) + 1.0, x * y, z


def run(closed, *args):
    return eval_graph(closed.jaxpr, closed.consts, [jnp.asarray(a) for a in args], bind)


@pytest.fixture
def graph():
    return fnarray.make_jaxpr(f)(1.0, 2.0, 3.0)


def test_the_same_order_is_the_same_graph(graph):
    """Only another order makes another graph, and the same other order always the same one."""
    assert rearranged(graph, (0, 1, 2)) is graph
    assert rearranged(graph, (0, 1, 2), (0, 1, 2)) is graph
    other = rearranged(graph, (2, 1, 0))
    assert other is not graph
    assert other is rearranged(graph, (2, 1, 0))


def test_inputs_and_results_are_reordered(graph):
    """Inputs may be unused, results repeated or inputs handed on."""
    aval = graph.in_avals[0]
    other = rearranged(graph, (1, aval, 2, 0), (1, 1, -3))
    assert [float(v) for v in run(other, 5.0, np.nan, 7.0, 3.0)] == [15.0, 15.0, 7.0]


def test_what_is_closed_over_is_opened_and_closed():
    """Captured arrays become the first inputs, and what held them again."""
    graph = fnarray.make_jaxpr(lambda y: X * y)(X)
    opened = closed_over_nothing(graph)
    assert not opened.consts
    assert opened.in_avals == (X.aval, X.aval)
    assert str(closed_over(opened, graph.consts)) == str(graph)
    assert closed_over_nothing(opened) is opened
    assert closed_over(opened, ()) is opened


def test_one_equation_is_remembered():
    """The graph of an operation is one object for the same operands and params."""
    aval = X.aval
    graph = one_equation(registry["mul"], (aval, aval), ())
    assert graph is one_equation(registry["mul"], (aval, aval), ())
    np.testing.assert_array_equal(run(graph, X, X)[0], X * X)


def test_live_equations_are_those_needed_or_acting():
    """What nobody reads is left out, unless it acts, if only within a graph that it holds."""
    said = fnarray.jit(lambda x: fnarray.debug.print("{}", x))

    def g(x):
        said(x)
        return jnp.sin(x), jnp.cos(x)

    jaxpr = fnarray.make_jaxpr(g)(1.0).jaxpr
    names = [eqn.primitive.name for eqn in live(jaxpr.eqns, jaxpr.outvars[1:])]
    assert names == ["jit", "cos"]


def test_independent_results_are_told_and_cut_out(graph):
    """Results of the first inputs alone have a graph of their own."""
    flags, part = independent(graph, 1)
    assert flags == (True, False, False)
    assert [eqn.primitive.name for eqn in part.eqns] == ["sin", "add"]
    assert len(part.in_avals) == 1


def test_substituted_equations_read_other_values(graph):
    """Equations read what a value is replaced by; graphs are joined by it."""
    x, y, _ = graph.jaxpr.invars
    eqns = substituted(graph.eqns, {x: y})
    assert all(x not in eqn.invars for eqn in eqns)
    assert [e.outvars for e in eqns] == [e.outvars for e in graph.eqns]
