"""What is computed and padded, or laid over most of an array, is read under a mask."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax

#: Rows that have vectors, that end within one, and that live in registers.
SHAPES = ((5, 40), (9, 33), (16,), (3, 7, 20))


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def inner(m, x, y):
    """A step whose neighbours are computed, padded, and laid over another array."""
    within = tuple(slice(1, -1) for _ in x.shape)
    low, high = ((1, 1),) * x.ndim, ((2, 0),) * x.ndim
    small = 0.5 * x[within] - y[within]
    padded = m.pad(small, low) + x
    return padded, m.pad(0.25 * padded[within], high, constant_values=1.0) - y


def over(x, y):
    """A step that lays what it computes over most of an array."""
    within = tuple(slice(1, None) for _ in x.shape)
    z = 0.5 * x.at[within].set(y[within] * x[within]) + y
    return z, y.at[within].set(0.0) - z


def over_by_numpy(x, y):
    """The same, by NumPy."""
    within = tuple(slice(1, None) for _ in x.shape)
    a, b = x.copy(), y.copy()
    a[within], b[within] = y[within] * x[within], 0
    z = np.float32(0.5) * a + y
    return z, b - z


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turns", [0, 1, 4])
def test_steps_are_those_of_numpy(shape, turns):
    """Alone and in a loop, in which a mask stands for what the turn before it made."""
    x, y = numbers(shape), numbers(shape, 1)

    def repeated(step, x, y):
        if not turns:
            return step(x, y)
        return lax.fori_loop(0, turns, lambda _, xy: step(*xy), (x, y))

    for step, want in ((lambda x, y: inner(fnp, x, y), lambda x, y: inner(np, x, y)),
                       (over, over_by_numpy)):  # fmt: skip
        got, expected = fnarray.jit(repeated, static_argnums=0)(step, x, y), (x, y)
        for _ in range(max(turns, 1)):
            expected = want(*expected)
        for g, e in zip(got, expected, strict=True):
            np.testing.assert_allclose(np.asarray(g), e, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [16, 21, 64])
def test_gradient_of_a_relaxation(n):
    """The transpose of a linear step, applied turn by turn, is its matrix's."""

    def run(u):
        def turn(_, u):
            return u.at[1:-1].set(0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:])

        return fnp.sum(lax.fori_loop(0, 7, turn, u) ** 2)

    step = np.eye(n)
    for i in range(1, n - 1):
        step[i, i - 1 : i + 2] = 0.25, 0.5, 0.25
    whole, u = np.linalg.matrix_power(step, 7), numbers((n,)).astype(np.float64)
    got = fnarray.jit(fnarray.grad(run))(u.astype(np.float32))
    np.testing.assert_allclose(np.asarray(got), 2 * whole.T @ (whole @ u), rtol=1e-4, atol=1e-5)
