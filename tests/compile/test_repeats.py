"""What repeats in a program is found, and compiled once."""

import random

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray.compile.pipeline import compile_graph
from fnarray.compile.schedule.repeats import Stretch, stretches, turns_together


def farthest(marks: str, at: int, longest: int) -> tuple[int, int]:
    """Return how far a stretch of at least three turns goes from a place, and its period."""
    best = 0, 0
    for p in range(1, longest + 1):
        end = at + p
        while end < len(marks) and marks[end] == marks[end - p]:
            end += 1
        if end - at >= 3 * p and end - at > best[0]:
            best = end - at, p
    return best


@pytest.mark.parametrize("seed", range(30))
def test_stretches_are_those_that_a_search_by_hand_finds(seed):
    """From the left: the longest stretch at a place, by its shortest period, then what follows."""
    draw = random.Random(seed)
    marks = "".join(draw.choice("abc") * draw.randint(1, 3) for _ in range(12))
    marks += marks[:5] * draw.randint(1, 5) + marks[3:] + "ab" * draw.randint(0, 9)
    longest, least = draw.randint(1, 9), draw.randint(1, 8)
    expected, at = [], 0
    while at < len(marks):
        far, p = farthest(marks, at, longest)
        if not p or far < least:
            at += 1
            continue
        expected.append(Stretch(at, p, far // p))
        at += far // p * p
    assert stretches(marks, [1] * len(marks), longest, least) == expected


def test_nothing_repeats_in_nothing():
    """A program of nothing, or of what never repeats, has no stretches."""
    assert stretches("", [], 100, 1) == []
    assert stretches("abcdefgh", [1] * 8, 100, 1) == []


@pytest.mark.parametrize(
    ("count", "cost", "expected"),
    [(50, 4, 7), (51, 4, 7), (3, 400, 1), (3, 1, 3), (100, 0.01, 100), (7, 30, 1), (11, 6, 5)],
)
def test_turns_of_a_kernel_leave_little_over(count, cost, expected):
    """Of 25 to 100 operations, the turns that are fewest together with those left over."""
    assert turns_together(count, cost, 25, 100) == expected


def net(params, x):
    for w, b in params:
        x = x + fnp.tanh(x @ w + b) / 10
    return fnp.sum(x * x)


def drawn(layers: int):
    rng = np.random.default_rng(0)
    params = [(rng.standard_normal((9, 9)) / 3, rng.standard_normal(9)) for _ in range(layers)]
    return params, rng.standard_normal((5, 9))


def test_layers_are_one_kernel():
    """Twice the layers are called more often, and are hardly more text."""

    def texts(layers: int) -> tuple[int, int]:
        kernels = compile_graph(fa.make_jaxpr(fa.grad(net))(*drawn(layers))).source.kernels
        return len(kernels), sum(map(len, {k.source.text for k in kernels}))

    (few, short), (many, long) = texts(60), texts(120)
    assert many > 1.5 * few
    assert long < 1.3 * short


def test_what_layers_give_is_what_a_loop_gives():
    """Gradients of sixty layers are those of sixty lines of NumPy."""
    params, x = drawn(60)
    got = fa.jit(fa.grad(net))(params, x)
    xs, zs = [x], []
    for w, b in params:
        zs.append(np.tanh(xs[-1] @ w + b))
        xs.append(xs[-1] + zs[-1] / 10)
    g = 2 * xs[-1]
    for (w, _), (gw, gb), before, z in zip(
        params[::-1], got[::-1], xs[-2::-1], zs[::-1], strict=True
    ):
        inside = g * (1 - z * z) / 10
        np.testing.assert_allclose(gb, inside.sum(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gw, before.T @ inside, rtol=1e-4, atol=1e-5)
        g = g + inside @ w.T


def driven(steps: int, fixed: float = 0.0):
    """Return a wave that is driven by a number of each step, and damped by one of the text."""

    def f(x, v, drive, weights):
        for t in range(steps):
            pull = fnp.sin(x) + drive[t] * fnp.cos(fnp.roll(x, 1)) + weights[3 * t + 1] * x
            v = (0.9 + (fixed or t / 500)) * v + 0.01 * (fnp.roll(x, 1) + fnp.roll(x, -1) - 2 * x)
            v = v - 0.01 * pull + 0.001 * fnp.exp(-x * x) * fnp.tanh(v) / (1 + x * x)
            x = x + 0.1 * v / fnp.sqrt(1 + v * v) + 0.001 * weights[3 * t : 3 * t + 3].sum()
            x = x + 0.01 * fnp.log1p(x * x) - 0.02 * fnp.arctan(v * drive[t])
        return x, v

    rng = np.random.default_rng(1)
    return f, tuple(rng.standard_normal(n).astype(np.float32) for n in (50, 50, steps, 3 * steps))


def test_steps_that_differ_in_a_place_or_a_number_are_one_kernel():
    """Twice the steps, each of which reads places and has a number of its own, are no more text."""

    def texts(steps: int) -> tuple[int, int]:
        f, args = driven(steps)
        kernels = compile_graph(fa.make_jaxpr(f)(*args)).source.kernels
        return len(kernels), sum(map(len, {k.source.text for k in kernels}))

    (few, short), (many, long) = texts(24), texts(48)
    assert many > 1.5 * few > 6
    assert long < 1.3 * short


@pytest.mark.parametrize("fixed", [0.0, 0.05])
def test_what_such_steps_give_is_what_numpy_gives(fixed):
    """Each step reads its own places and is given its own numbers."""
    f, args = driven(24, fixed)
    x, v, drive, weights = (a.astype(np.float64) for a in args)
    for t in range(24):
        pull = np.sin(x) + drive[t] * np.cos(np.roll(x, 1)) + weights[3 * t + 1] * x
        v = (0.9 + (fixed or t / 500)) * v + 0.01 * (np.roll(x, 1) + np.roll(x, -1) - 2 * x)
        v = v - 0.01 * pull + 0.001 * np.exp(-x * x) * np.tanh(v) / (1 + x * x)
        x = x + 0.1 * v / np.sqrt(1 + v * v) + 0.001 * weights[3 * t : 3 * t + 3].sum()
        x = x + 0.01 * np.log1p(x * x) - 0.02 * np.arctan(v * drive[t])
    for got, want in zip(fa.jit(f)(*args), (x, v), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def newton(turns: int):
    """Return Newton's method for the least place of a valley, its turns written out."""

    def valley(x):
        return fnp.sum(10 * (x[1:] - x[:-1] ** 2) ** 2) + fnp.sum(fnp.exp(-(x**2)) * fnp.sin(x))

    def f(x):
        for _ in range(turns):
            damped = fa.hessian(valley)(x) + 5 * fnp.eye(x.size)
            x = x - fnp.linalg.solve(damped, fa.grad(valley)(x))
        return x

    return f


def descent(turns: int):
    """Return steps of a matrix times what is made of a place and of its neighbours."""

    def f(x):
        a = fnp.eye(x.size) / 9 + fnp.tril(fnp.ones((x.size, x.size))) / 99
        for _ in range(turns):
            moved = [fnp.concatenate([x[k:], x[:k]]) for k in range(1, 6)]
            slope = sum((x + m) * (x * m - 1) for m in moved)
            x = x - a @ slope
        return x

    return f


@pytest.mark.parametrize(("program", "length"), [(newton, 8), (descent, 8), (descent, 30)])
def test_steps_are_one_text(program, length):
    """What a turn hands to the next is one small array, and not all that came before."""
    x = np.linspace(-0.5, 0.7, length)

    def texts(turns: int) -> int:
        kernels = compile_graph(fa.make_jaxpr(program(turns))(x)).source.kernels
        return sum(map(len, {k.source.text for k in kernels}))

    assert texts(6) < 1.3 * texts(2)
    few = program(2)
    np.testing.assert_allclose(fa.jit(few)(x), few(x), rtol=1e-4)
