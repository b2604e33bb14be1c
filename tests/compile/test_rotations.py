"""What is turned round along an axis is read where it lies, at the remainder of a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import lax

from .helpers import code, compiled

R = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


def laplacian(m: Any, x: Any) -> Any:
    return sum(m.roll(x, s, a) for a in range(x.ndim) for s in (1, -1)) - 2 * x.ndim * x


def far(m: Any, x: Any) -> Any:
    return m.roll(x, 5, 0) * 2 - m.roll(x, -3, 0)


def corners(m: Any, x: Any) -> Any:
    """Turned round along both axes, in either order; and what is one number all over."""
    both = m.roll(x, (1, -2), (0, 1)) * m.roll(x, (-1, -2), (0, 1)) + m.roll(x, (-2, 3), (1, 0))
    return both + m.roll(x, -2, 1) + m.roll(m.full_like(x, 2), (1, 1), (0, 1))


def made(m: Any, x: Any) -> Any:
    return m.sin(m.roll(m.cos(x) + 1, 1, 0))


def summed(m: Any, x: Any) -> Any:
    return m.sum(m.roll(x, 2, 0) * x, axis=0)


def cut(m: Any, x: Any) -> Any:
    return m.roll(x, 1, 0)[1:, ::2] * 3


def joined(m: Any, x: Any) -> Any:
    """No rotation: what is cut off is not what is joined."""
    return m.concatenate([x[2:], x[:1], x[:1]]) + m.concatenate([x[:2], x[2:]])


def two(m: Any, x: Any) -> Any:
    """No rotation: the pieces are of two arrays."""
    y = m.cos(x)
    return m.concatenate([x[2:], y[:2]]) * 2 + m.concatenate([x[1:], x[:1]])


PROGRAMS = (laplacian, far, corners, made, summed, cut, joined, two)


@pytest.mark.parametrize("shape", [(20, 30), (7, 33), (2, 64), (7, 5, 16), (6, 16, 3)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_turned_arrays_are_numpys(
    program: Callable[[Any, Any], Any], shape: tuple[int, ...]
) -> None:
    """Whatever the axis, and what follows it: as NumPy rolls, and so what the gradient reads."""
    x = numbers(*shape)
    run = fa.jit(lambda x: program(fnp, x))
    want = program(np, x)
    np.testing.assert_allclose(run(x), want, rtol=1e-4, atol=1e-5)
    # d sum(c * f(x)) along d is what f changes by along d.
    c, d = numbers(*want.shape), numbers(*shape)
    slope = fa.jit(fa.grad(lambda x: fnp.sum(c * program(fnp, x))))
    exact, e = x.astype(np.float64), 1e-4 * d.astype(np.float64)
    change = np.sum(c * (program(np, exact + e) - program(np, exact - e))) / 2e-4
    np.testing.assert_allclose(np.sum(slope(x) * d), change, rtol=1e-3, atol=1e-3)


def test_turns_of_a_loop() -> None:
    """A stencil with ends that meet, iterated: each turn reads the one before."""
    x = numbers(12, 40)
    got = fa.jit(lambda x: lax.fori_loop(0, 5, lambda _, y: y + 0.1 * laplacian(fnp, y), x))(x)
    for _ in range(5):
        x = x + np.float32(0.1) * laplacian(np, x)
    np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-5)


def test_rows_are_not_copied() -> None:
    """Only what is turned along its rows is laid out anew; short rows are, too."""
    text = code(compiled(lambda x: fnp.roll(x, 1, 0) + x, numbers(40, 64)))
    assert "if i0 + 39 < 40 else" in text
    assert text.count("for ") == 2
    for axis, shape in ((1, (40, 64)), (0, (640, 4))):
        rolled = compiled(lambda x, axis=axis: fnp.roll(x, 1, axis) + x, numbers(*shape))
        assert " if " not in code(rolled)


def test_turns_along_rows_come_first() -> None:
    """Corners share what is laid out for an edge, row by row; one number is not laid out at all."""
    text = code(compiled(lambda x: corners(fnp, x), numbers(40, 64)))
    assert text.count("for ") == 5  # rows of two runs each; and the loops that read them
    assert text.count("w0[") == 2 + 4
