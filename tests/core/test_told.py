"""Graphs that were asked for say what their functions call their arguments, as JAX's do."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import jax
import numpy as np
import pytest

import fnarray

X = np.ones(3, np.float32)


def plain(x):
    """One of each."""
    return x + 1


def named(alpha, beta=2.0, *rest, last):
    """All kinds of parameters, and a tree of results."""
    return {"sum": alpha * beta + last["k"][1], "rest": [*rest, alpha]}


def chosen(n, x):
    """A static argument, which is none of the graph's."""
    return x, [x] * n


CALLS = {
    "plain": (plain, {}, (X,), {}),
    "all kinds": (named, {}, (X, X, X, X), {"last": {"k": (X, X)}}),
    "a default": (named, {}, (X,), {"last": {"k": [X, X]}}),
    "static": (chosen, {"static_argnums": 0}, (2, X), {}),
    "partial": (partial(named, 2.0), {}, (X, 3.0), {"last": {"k": (X, X)}}),
    "lambda": (lambda x: (x, {"y": x * 2}), {}, (X,), {}),
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("staged", [False, True])
def test_names_of_arguments_and_results_are_those_of_jax(case, staged):
    """`debug_info` of `make_jaxpr(f)(...)` and of `jit(f).trace(...)`: names, paths, file, line."""
    fun, settings, args, kwargs = CALLS[case]

    def told(jnp):
        if staged:
            return jnp.jit(fun, **settings).trace(*args, **kwargs).jaxpr.jaxpr.debug_info
        return jnp.make_jaxpr(fun, **settings)(*args, **kwargs).jaxpr.debug_info

    ours, wanted = told(fnarray), told(jax)
    assert ours.arg_names == wanted.arg_names
    assert ours.result_paths == wanted.result_paths
    assert ours.func_src_info == wanted.func_src_info
    assert ours.traced_for == wanted.traced_for


def test_names_are_those_of_the_graph_at_hand():
    """A graph with other inputs or results has no names; with other equations it keeps them."""
    graph = fnarray.make_jaxpr(named)(X, last={"k": (X, X)}).jaxpr
    assert graph.replace(eqns=graph.eqns).debug_info == graph.debug_info
    fewer = graph.replace(outvars=graph.outvars[:1])
    assert fewer.debug_info.result_paths == () == fewer.debug_info.arg_names
    assert fewer.debug_info.func_name == "named"


def test_captured_arrays_come_first_and_have_no_names():
    """`trace` gives a graph that takes what the function captured before its arguments."""
    held = fnarray.numpy.asarray(X)
    graph = fnarray.jit(lambda x: x + held).trace(X).jaxpr.jaxpr
    assert graph.debug_info.arg_names == ("", "x")
    assert len(graph.invars) == 2


AVALS = """
    a.to_tangent_aval() i.to_tangent_aval() i.to_ct_aval() k.to_tangent_aval() k.strip_weak_type()
    w.strip_weak_type() w.update_weak_type(False) a.update_weak_type(True) a.inc_rank(4,0)
    a.inc_rank(4,1) a.dec_rank(2,0) a.dec_rank(3,1) a.dec_rank(None,None) a.lo_ty() a.is_high
    a.has_qdd a.normalize()
"""


@pytest.mark.parametrize("expression", AVALS.split())
def test_avals_answer_as_those_of_jax(expression):
    """What JAX's types of arrays and keys have under names of their own."""

    def answer(lib):
        x = np.ones((2, 3), np.float32)
        values = {"a": x, "i": lib.numpy.arange(3), "w": 1.0, "k": lib.random.key(0)}
        types = {name: lib.typeof(value) for name, value in values.items()}
        return repr(eval(expression, types))

    assert answer(fnarray) == answer(jax)


def test_names_of_jax_need_no_import():
    """What JAX's graphs and equations have is there in a program that imports nothing else."""
    program = (
        "import fnarray as fa\n"
        "c = fa.make_jaxpr(lambda x: fa.numpy.sin(x) * 2)(1.0)\n"
        "e = c.eqns[0]\n"
        "assert c.invars == c.jaxpr.invars and not c.jaxpr.is_high and not e.effects\n"
        "assert c.jaxpr.debug_info.arg_names == ('x',)\n"
        "assert str(e.source_info.name_stack) == '' and e.replace(params={}).params == {}\n"
        "assert not fa.typeof(fa.numpy.ones(3)).strip_weak_type().is_high\n"
        "assert not hasattr(c, 'nothing') and not hasattr(e, '_nothing')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not done.returncode, done.stderr
