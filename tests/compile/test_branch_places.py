"""Where a branch's results lie: over operands only where every arm can write them there."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax

pytestmark = pytest.mark.cpu

A = np.arange(20, dtype=np.float32).reshape(4, 5)


def test_an_arm_that_reads_what_it_updates_leaves_it():
    """It has a buffer of its own: over the operand, the other result was made of the new one."""

    def arm(a, b):
        new = a.at[1:-1, 1:-1].set(a[1:-1, 1:-1] * 3)
        return new, 2 * a - new

    @fnarray.jit
    def run(a, b, n):
        turn = lambda t, c: lax.cond(t < n, arm, lambda a, b: (a, b), *c)  # noqa: E731
        return lax.fori_loop(0, 3, turn, (a, b))

    for turns in range(4):
        a, b = A, A
        for _ in range(turns):
            new = a.copy()
            new[1:-1, 1:-1] *= 3
            a, b = new, 2 * a - new
        for got, want in zip(run(A, A, turns), (a, b), strict=True):
            np.testing.assert_array_equal(got, want)


def test_arms_that_exchange_their_operands():
    @fnarray.jit
    def run(p, a, b):
        a, b = a + 0, b + 1
        return lax.cond(p, lambda a, b: (b.at[0].set(7), a.at[1].add(1)), lambda a, b: (a, b), a, b)

    for p in (False, True):
        a, b = A.copy(), A + 1
        if p:
            a, b = b, a
            a[0], b[1] = 7, b[1] + 1
        for got, want in zip(run(p, A, A), (a, b), strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_wave_on_two_arrays_keeps_its_border():
    """The step updates the older one, which the newer one becomes."""

    def step(older, newer, at):
        inner = newer[2:, 1:-1] + newer[:-2, 1:-1] + newer[1:-1, 2:] + newer[1:-1, :-2]
        return newer, at(older, inner - 2 * newer[1:-1, 1:-1] - older[1:-1, 1:-1])

    def put(x, new):
        return x.at[1:-1, 1:-1].set(new)

    def put_in_numpy(x, new):
        x = x.copy()
        x[1:-1, 1:-1] = new
        return x

    pair = A % 3, (A * 2) % 5
    for turns in (1, 2, 5):
        want = pair
        for _ in range(turns):
            want = step(*want, put_in_numpy)
        got = fnarray.jit(
            lambda a, b, n=turns: lax.fori_loop(0, n, lambda _, c: step(*c, put), (a, b))
        )(*pair)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(x, y)
    rows = fnp.stack(lax.scan(lambda c, _: (c * 2, c.at[0].set(0)), pair[0], None, length=2)[1])
    want = np.stack([pair[0], pair[0] * 2])
    want[:, 0] = 0
    np.testing.assert_array_equal(rows, want)
