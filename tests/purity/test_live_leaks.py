"""The second line: tracers that leak where the checker is off, and traces that differ."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import errors, lax
from fnarray.config import check_determinism, effects

X = jnp.float32(1.5)


@pytest.fixture(autouse=True)
def off():
    """Leave the checker out: what is tested is what catches the rest."""
    with effects("off"):
        yield


class Box:
    value = None


def by_list(keep):
    kept = []
    fnarray.jit(lambda x: kept.append(x * 2) or x)(X)
    return kept[0]


def by_attribute(keep):
    def f(x):
        Box.value = x + 1
        return x

    fnarray.jit(f)(X)
    return Box.value


def by_argument(keep):
    kept = []
    fnarray.jit(lambda x: kept.append(x) or x)(X)
    return kept[0]


def by_generator(keep):
    def drawn():
        x = yield
        yield x * 3

    source = drawn()
    next(source)
    kept = []
    fnarray.jit(lambda x: kept.append(source.send(x)) or x)(X)
    return kept[0]


def by_inner_jit(keep):
    kept = []
    inner = fnarray.jit(lambda x: kept.append(x * 2) or x)
    fnarray.jit(lambda x: inner(x))(X)
    return kept[0]


def by_loop_body(keep):
    kept = []
    lax.fori_loop(0, 3, lambda i, c: kept.append(i * c) or c, X)
    return kept[0]


def by_scan_body(keep):
    kept = []
    fnarray.jit(lambda x: lax.scan(lambda c, _: (kept.append(c + 1) or c, c), x, None, 2))(X)
    return kept[0]


def by_branch(keep):
    kept = []
    fnarray.jit(lambda x: lax.cond(x > 0, lambda y: kept.append(y) or y, lambda y: y, x))(X)
    return kept[0]


def by_grad(keep):
    kept = []
    fnarray.grad(lambda x: kept.append(x * x) or x)(X)
    return kept[0]


def by_vmap(keep):
    kept = []
    fnarray.vmap(lambda x: kept.append(x * x) or x)(jnp.ones(3))
    return kept[0]


def by_make_jaxpr(keep):
    kept = []
    fnarray.make_jaxpr(lambda x: kept.append(x * x) or x)(X)
    return kept[0]


LEAKS = [by_list, by_attribute, by_argument, by_generator, by_inner_jit, by_loop_body, by_scan_body,
         by_branch, by_grad, by_vmap, by_make_jaxpr]  # fmt: skip
USES = {
    "add": lambda t: t + 1,
    "function": lambda t: jnp.sin(t),
    "lax": lambda t: lax.neg(t),
    "in jit": lambda t: fnarray.jit(lambda x: x + t)(X),
    "argument": lambda t: fnarray.jit(lambda x: x)(t),
    "returned": lambda t: fnarray.jit(lambda x: t)(X),
    "loop": lambda t: lax.fori_loop(0, 2, lambda i, c: c + t, X),
    "index": lambda t: jnp.arange(3)[t.astype(int)],
    "numpy": lambda t: np.sin(t),
    "numpy array": lambda t: np.asarray(t),
    "jnp array": lambda t: jnp.asarray([t, t]),
    "truth": bool,
    "float": float,
    "int": int,
    "item": lambda t: t.item(),
    "grad": lambda t: fnarray.grad(lambda x: x * t)(X),
    "vmap": lambda t: fnarray.vmap(lambda x: x * t)(jnp.ones(2)),
}


@pytest.mark.cpu
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("leak", LEAKS, ids=lambda f: f.__name__)
def test_a_leaked_tracer_is_always_named(leak, use):
    """Any use of a tracer after its trace is an UnexpectedTracerError that says its origin."""
    tracer = leak(None)
    with pytest.raises(errors.UnexpectedTracerError, match=r"after|outside") as caught:
        USES[use](tracer)
    assert "test_live_leaks.py" in str(caught.value)


def test_a_loop_tracer_used_in_the_function_around():
    """It is as dead there as outside."""

    def f(x):
        kept = []
        lax.fori_loop(0, 2, lambda i, c: kept.append(c) or c, x)
        return kept[0] + x

    with pytest.raises(errors.UnexpectedTracerError, match="the argument"):
        fnarray.jit(f)(X)


# ---- determinism ---------------------------------------------------------------------------------

counter = itertools.count()
state = {"n": 0}


def bump():
    state["n"] += 1
    return state["n"]


def grows(x):
    for _ in range(bump() % 2 + 1):
        x = jnp.sin(x)
    return x


DIFFERENT = {
    "literal": (lambda x: x * next(counter), "mul"),
    "operation": (lambda x: jnp.sin(x) if bump() % 2 else jnp.cos(x), "sin"),
    "length": (grows, "sin"),
    "order": (lambda x: (x - 1) * x if bump() % 2 else x * (x - 1), "mul"),
    "constant": (lambda x: x + jnp.asarray(np.arange(2.0) + bump()), "constant"),
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * next(counter), x), "mul"),
    "length of a loop": (lambda x: lax.fori_loop(0, bump(), lambda i, c: c * 2.0, x), "scan"),
    "result": (lambda x: (x + 1, x * 2)[bump() % 2], "returned"),
}


@pytest.mark.cpu
@pytest.mark.parametrize("what", DIFFERENT)
def test_differing_traces(what):
    """The error names the first equation that differs, and its lines."""
    fun, named = DIFFERENT[what]
    with check_determinism(True), pytest.raises(errors.NondeterminismError, match=named) as caught:
        fnarray.jit(fun)(X)
    if what in ("literal", "operation", "order", "loop"):
        assert "test_live_leaks.py" in str(caught.value)
    fnarray.jit(fun)(X)


@pytest.mark.cpu
def test_equal_traces():
    """A pure function is the same program each time, loops, constants and inner calls included."""

    def pure(x):
        table = jnp.asarray(np.arange(3.0))
        y = lax.fori_loop(0, 3, lambda i, c: c * 2.0 + i, x)
        y = lax.cond(y > 0, jnp.sin, lambda z: z, y)
        y = fnarray.jit(lambda z: z + table.sum())(y)
        return fnarray.grad(lambda z: (z * table).sum())(y) + fnarray.vmap(jnp.cos)(table)

    with check_determinism(True):
        fnarray.jit(pure)(X)
        fnarray.make_jaxpr(pure)(X)


# ---- copies are no leaks -------------------------------------------------------------------------


class Holder:
    def __init__(self, w):
        self.w = w


def copied_argument(tree):
    mine = copy.deepcopy(tree)
    mine["a"].append(mine["b"])
    mine["b"] = mine["a"][0] * 2
    return mine["b"] + tree["b"]


def copied_object(tree):
    mine = copy.deepcopy(Holder(tree))
    mine.w["b"] = mine.w["b"] * 2
    return mine.w["b"] + tree["b"]


def copied_in_a_loop(tree):
    def step(carry, _):
        mine = copy.deepcopy(carry)
        mine["b"] = mine["b"] * 2
        return mine, None

    return lax.scan(step, tree, None, length=1)[0]["b"] + tree["b"]


def copied_from_outside_the_gradient(tree):
    def loss(y):
        mine = copy.deepcopy(tree)
        mine["b"] = mine["b"] * y
        return mine["b"]

    return fnarray.grad(loss)(X) * 2 + tree["b"]


@pytest.mark.parametrize(
    "fun", [copied_argument, copied_object, copied_in_a_loop, copied_from_outside_the_gradient]
)
def test_a_copy_is_no_leak(fun):
    """``copy.deepcopy`` of a tree of tracers is the trace's own, and may be changed."""
    tree = {"a": [X], "b": X}
    assert float(fnarray.jit(fun)(tree)) == 3 * float(X)
    assert float(fun(tree)) == 3 * float(X)
