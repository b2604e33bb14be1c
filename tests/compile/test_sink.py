"""Places that the program spells are known in loops that derivatives hand them to."""

from __future__ import annotations

import numpy as np

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import lax

N, TURNS = 30, 5
X, Y = np.random.default_rng(0).standard_normal((2, N, N)).astype(np.float32)


def relaxed(u):
    """Means of four neighbours, inside, and a row that is added to: linear."""

    def turn(_, u):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return u.at[1:-1, 1:-1].set(inner).at[3].add(0.5 * u[4])

    return lax.fori_loop(0, TURNS, turn, u)


def by_numpy(u):
    """The same, by NumPy."""
    for _ in range(TURNS):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        new[3] += 0.5 * u[4]
        u = new
    return u


def test_gradients_of_updates_in_loops_know_their_places():
    """They are the transposed map, and no place is read from an array."""
    slope = fa.jit(fa.grad(lambda u: fnp.vdot(relaxed(u), Y)))
    np.testing.assert_allclose(
        np.vdot(slope(X), X), np.vdot(by_numpy(X.astype(float)), Y), rtol=1e-3, atol=1e-3
    )
    assert "i64(" not in slope.lower(X).as_text(dialect="numba").partition("def main")[0]


def test_loops_that_differ_by_their_places_stay_two():
    """Two of one body, whose constants are other numbers, are not one."""

    def gathered(u, at):
        return lax.fori_loop(0, 3, lambda _, v: v * 0.5 + u[at], fnp.zeros(2))

    @fa.jit
    def run(u):
        return (
            gathered(u, fnp.array([1, 4])),
            gathered(u, fnp.arange(2) + 5),
            gathered(u, fnp.array([1, 4])),
        )

    u = X[0]
    for got, at in zip(run(u), ([1, 4], [5, 6], [1, 4]), strict=True):
        np.testing.assert_allclose(got, 1.75 * u[at], rtol=1e-5)


def test_nested_loops_and_carried_places():
    """What a turn changes is carried as before; an inner loop knows what the outer one took."""

    @fa.jit
    def run(u):
        first = fnp.arange(3)

        def outer(carry, row):
            at, total = carry
            total = lax.fori_loop(0, 2, lambda _, t: t + row[first] + row[at], total)
            return (at + 1, total), total

        return lax.scan(outer, (first, fnp.zeros(3)), u)[1]

    at, total, want = np.arange(3), np.zeros(3), []
    for row in X[:4]:
        total = total + 2 * (row[:3] + row[at])
        at = at + 1
        want.append(total)
    np.testing.assert_allclose(run(X[:4]), want, rtol=1e-5)
