"""Recurrences of second order, whose arrays exchange names: two turns at a time, none copied."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import lax

N = 12
FIRST, SECOND = np.random.default_rng(0).standard_normal((2, N, N)).astype(np.float32)


def around(x):
    """Four neighbours of what is inside."""
    return x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]


def inside(x):
    """What is not at an edge."""
    return x[1:-1, 1:-1]


def put(x, value):
    """Replace what is inside: of NumPy's arrays, and of ours."""
    if not isinstance(x, np.ndarray):
        return x.at[1:-1, 1:-1].set(value)
    x = x.copy()
    x[1:-1, 1:-1] = value
    return x


def wave(t, a, b):
    """What is older is updated, place by place."""
    return b, put(a, 0.5 * around(b) - inside(a))


def counted(t, a, b):
    """The same, by the number of the turn."""
    return b, put(a, 0.5 * around(b) - inside(a) * (t % 3))


def backwards(t, a, b):
    """Named the other way round."""
    return put(b, 0.5 * around(a) - inside(b)), a


def neighbours(t, a, b):
    """The update reads what it replaces at other places."""
    return b, put(a, 0.25 * around(a) + 0.1 * around(b))


def kept(t, a, b):
    """An update of what the other name takes."""
    return b, put(b, 0.25 * around(a))


def both(t, a, b):
    """Each updates the other."""
    return put(b, 0.25 * around(a)), put(a, 0.25 * around(b))


STEPS = (wave, counted, backwards, neighbours, kept, both)


def loop(step, turns, a, b):
    """Python's loop."""
    for t in range(turns):
        a, b = step(t, a, b)
    return a, b


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 6, 7])
def test_any_number_of_turns_is_numpys(step, turns):
    """Even numbers and odd ones, and the arguments stay as they were."""
    first, second = FIRST.copy(), SECOND.copy()

    @fa.jit
    def run(a, b):
        return lax.fori_loop(0, turns, lambda t, ab: step(t, *ab), (a, b))

    for got, want in zip(run(first, second), loop(step, turns, FIRST, SECOND), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal((first, second), (FIRST, SECOND))


@pytest.mark.parametrize("turns", [4, 5])
def test_more_is_carried_beside(turns):
    """Sums that turns add to, and an array that stays; the two may begin as one."""

    @fa.jit
    def run(a):
        def turn(t, carry):
            a, b, total, c = carry
            a, b = wave(t, a, b)
            return a, b, total + fnp.sum(b), c

        return lax.fori_loop(0, turns, turn, (a, a, fnp.float32(0), a + 1))

    a, b, total, c = run(FIRST)
    want, x, y = 0.0, FIRST, FIRST
    for t in range(turns):
        x, y = wave(t, x, y)
        want += y.sum(dtype=np.float64)
    for got, expected in ((a, x), (b, y), (total, want), (c, FIRST + 1)):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_loops_within_loops_and_maps():
    """Inside of another loop, of branches, for each of a batch, and differentiated."""

    def run(a, b):
        def outer(ab, t):
            ab = lax.cond(t > 0, lambda ab: lax.fori_loop(0, 3, inner, ab), lambda ab: ab, ab)
            return ab, ab[0][3]

        def inner(t, ab):
            return wave(t, *ab)

        return lax.scan(outer, (a, b), fnp.arange(3))

    x, y = FIRST, SECOND
    rows = []
    for t in range(3):
        x, y = loop(wave, 3 if t else 0, x, y)
        rows.append(x[3])
    (a, b), found = fa.jit(run)(FIRST, SECOND)
    for got, want in ((a, x), (b, y), (found, rows)):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    (many, _), _ = fa.jit(fa.vmap(run))(np.stack([FIRST, SECOND]), np.stack([SECOND, FIRST]))
    np.testing.assert_allclose(many[0], x, rtol=2e-5, atol=2e-5)
    slope = fa.jit(fa.grad(lambda a, b: fnp.vdot(run(a, b)[0][0], SECOND)))(FIRST, SECOND)
    start = np.random.default_rng(1).standard_normal((N, N)).astype(np.float32)
    moved = start, np.zeros_like(start)  # the map is linear
    for t in range(3):
        moved = loop(wave, 3 if t else 0, *moved)
    np.testing.assert_allclose(np.vdot(slope, start), np.vdot(moved[0], SECOND), 1e-3, 1e-3)


def test_nothing_is_copied_within_a_turn():
    """The loop has its two sweeps and no other."""
    a = np.zeros((40, 40), np.float32)
    run = fa.jit(lambda a, b: lax.fori_loop(0, 6, lambda t, ab: wave(t, *ab), (a, b)))
    text = run.lower(a, a).as_text(dialect="numba").partition("for s0 in range(3)")[2]
    turn = [x.strip() for x in text.partition("def main")[0].splitlines()]
    assert sum(x.startswith("for i") for x in turn) == 4  # rows and columns, twice
    assert not any(x.startswith("odd") for x in turn)
