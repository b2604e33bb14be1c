"""What a turn of a loop waits for comes last; results are those of the loop as it is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu.target import CPU
from fnarray.compile.simplify import simplified
from fnarray.core.avals import ShapedArray
from fnarray.core.forms import Map, Scan
from fnarray.core.trace import trace_graph

pytestmark = pytest.mark.cpu

f4 = np.float32
#: Recurrences ``(carry, x, y) -> carry``, and how many operations stand between carries then.
BODIES = {
    "scores": (lambda m, c, x, y: m.maximum(m.maximum(f4(0), x), m.maximum(y, c) - f4(1)), 2),
    "left": (lambda m, c, x, y: m.minimum(m.minimum(m.minimum(c, x), y), f4(3)), 1),
    "decay": (lambda m, c, x, y: m.maximum(f4(0.5) * m.maximum(c, x), y), 2),
    "up": (lambda m, c, x, y: m.maximum(y, f4(2) + m.maximum(x, c)), 2),
    "twice": (lambda m, c, x, y: m.minimum(y, (m.minimum(x, c) - f4(1)) * f4(0.25)), 3),
}
#: Those that stay as they are: other choices in between, what turns the order, what is not known.
STAYING = {
    "mixed": (lambda m, c, x, y: m.maximum(m.minimum(c, x), y), 2),
    "turned": (lambda m, c, x, y: m.maximum(f4(1) - m.maximum(c, x), y), 3),
    "negative": (lambda m, c, x, y: m.maximum(f4(-2) * m.maximum(c, x), y), 3),
    "zero": (lambda m, c, x, y: m.maximum(f4(0) * m.maximum(c, x), y), 3),
    "infinite": (lambda m, c, x, y: m.maximum(m.maximum(c, x) + f4(np.inf), y), 3),
    "array": (lambda m, c, x, y: m.maximum(m.maximum(c, x) + y, y), 3),
    "both": (lambda m, c, x, y: m.maximum(m.maximum(c, x), c + y), 2),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 2.0)


def numbers(seed, n=400):
    """Return numbers of which a third are special; what is not a number comes late."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=n).astype(f4)
    some = draw.random(n) < 0.33
    x[some] = draw.choice(np.array(SPECIAL, f4), some.sum())
    x[: n // 2][np.isnan(x[: n // 2])] = 0
    return x


def scanned(body):
    def run(c, x, y):
        return lax.scan(lambda c, t: (body(fnp, c, *t),) * 2, c, (x, y))

    return run


def waiting(run, *avals):
    """Return how many operations stand one after the other from a carry to the next one."""
    nodes = simplified(trace_graph(run, avals).jaxpr, CPU).nodes
    (loop,) = [n for n in nodes if isinstance(n.form, Scan)]
    (body,) = loop.bodies
    depth: dict[Any, int] = dict.fromkeys(body.inputs[-loop.form.num_carry :], 0)
    for node in body.nodes:
        if found := [depth[a] for a in node.ins if a in depth]:
            depth[node.out] = max(found) + isinstance(node.form, Map)
    return depth[body.outputs[0]]


NUMBER, ROW = ShapedArray((), np.dtype(f4)), ShapedArray((400,), np.dtype(f4))


@pytest.mark.parametrize("name", [*BODIES, *STAYING])
def test_as_few_operations_wait_as_keep_the_order(name):
    body, least = (BODIES | STAYING)[name]
    assert waiting(scanned(body), NUMBER, ROW, ROW) == least


def test_integers_wrap_and_are_not_moved_past_a_sum():
    def body(m, c, x, y):
        return m.maximum(m.maximum(c, x) + np.int32(1), y)

    x = np.array([2**31 - 1, 5, -(2**31), 7], np.int32)
    got = fnarray.jit(scanned(body))(np.int32(0), x, x[::-1].copy())[1]
    c, expected = np.int32(0), []
    with np.errstate(over="ignore"):
        for a, b in zip(x, x[::-1], strict=True):
            c = np.maximum(np.maximum(c, a) + np.int32(1), b)
            expected.append(c)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("start", [0.0, -np.inf, -0.0, np.nan])
@pytest.mark.parametrize("name", [*BODIES, *STAYING])
def test_results_are_those_of_the_loop_as_written(name, start):
    body = (BODIES | STAYING)[name][0]
    x, y = numbers(1), numbers(2)
    x[np.abs(x) < 1e-38] = 0  # what flushes is another matter
    y[np.abs(y) < 1e-38] = 0
    got = np.asarray(fnarray.jit(scanned(body))(f4(start), x, y)[1])
    c, expected = f4(start), []
    with np.errstate(all="ignore"):
        for a, b in zip(x, y, strict=True):
            c = f4(body(np, c, a, b))
            expected.append(c)
    np.testing.assert_array_equal(got, expected)


def test_a_value_that_others_read_is_there():
    def run(c, x, y):
        def turn(c, t):
            first = fnp.maximum(c, t[0]) - f4(1)
            best = fnp.maximum(first, t[1])
            return best, (first, best)

        return lax.scan(turn, c, (x, y))

    x, y = np.sin(np.arange(400, dtype=f4)), np.cos(np.arange(400, dtype=f4))
    firsts, bests = map(np.asarray, fnarray.jit(run)(f4(0), x, y)[1])
    c = f4(0)
    for k in range(400):
        first = np.maximum(c, x[k]) - f4(1)
        c = np.maximum(first, y[k])
        assert (firsts[k], bests[k]) == (first, c)


def test_loops_that_end_when_they_like_and_lanes_are_the_same():
    def run(x, y):
        def turn(s):
            k, c = s
            return k + 1, fnp.maximum(fnp.maximum(c, x[k]) - f4(1), y[k])

        return lax.while_loop(lambda s: (s[0] < 50) & (s[1] < 2.5), turn, (0, f4(0)))[1]

    xs = np.random.default_rng(0).normal(size=(8, 50)).astype(f4)
    ys = np.random.default_rng(1).normal(size=(8, 50)).astype(f4)
    expected = []
    for x, y in zip(xs, ys, strict=True):
        k, c = 0, f4(0)
        while k < 50 and c < 2.5:
            k, c = k + 1, np.maximum(np.maximum(c, x[k]) - f4(1), y[k])
        expected.append(c)
    np.testing.assert_array_equal(fnarray.jit(fnarray.vmap(run))(xs, ys), expected)
