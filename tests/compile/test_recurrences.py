"""What the native compiler says of the short loops in a recurrence, and that bits stay Numba's."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

import fnarray
import fnarray.numpy
from fnarray.compile.cpu.build import KernelSource
from fnarray.compile.cpu.native import kernel, shared
from tests.compilers.compare import Report, both

pytestmark = pytest.mark.cpu

#: Two variables stand for two arrays in turn; ``TURN`` is the body of a loop over their elements.
TEXT = """
def kernel(x, w0, w1, w2, n, steps):
    mode = fk.rounding.flush_subnormal()
    c0 = f32(0.5)
    p0 = w0
    q0 = w1
    odd0 = False
    for s0 in range(steps):
        for i0 in range(n):
            TURN
        p0, q0 = q0, p0
        odd0 = not odd0
    if odd0:
        for i1 in range(n):
            q0[i1] = p0[i1]
    fk.rounding.restore(mode)
"""
#: What LLVM is told of a loop in which no turn meets another one in memory.
FREE = "llvm.loop.parallel_accesses"
SIGNATURE = ("f32[1]", "f32[1]", "f32[1]", "f32[1]", "i64", "i64")
LINES = "\n            "

FREE_TURNS = (
    "q0[i0] = p0[i0] * c0 + x[i0]",
    "q0[i0] = p0[u(i0 + 1)] * c0 + x[u(i0 + 2)]",
    f"t0 = p0[i0]{LINES}q0[i0] = t0 + x[u(i0 + n - n)]{LINES}w2[u(n + i0)] = t0",
    "q0[i0] = fk.complexmath.abs(fk.complexmath.make(p0[i0], x[i0]))",
    f"t0 = fk.complexmath.make(c0, x[i0]){LINES}q0[i0] = fk.complexmath.div(t0, t0 * t0).imag",
    f"t0 = (p0[i0], c0, x[i0]){LINES}q0[i0] = t0[i0 % 3] + x[u(i0 + 1)]",
)
BOUND_TURNS = (
    "q0[u(i0 + 1)] = q0[i0] * c0 + x[i0]",
    "q0[i0] = p0[i0] * c0 + w0[i0]",
    "q0[u(i0 // 2)] = p0[i0] * c0",
    "q0[u(2 * i0)] = p0[i0] * c0",
    "q0[u(min(i0, 3))] = p0[i0] * c0",
    f"q0[i0] = p0[i0] * c0{LINES}if i0 > 2:{LINES}    q0[u(i0 - 1)] = c0",
)


def text_of(turn: str) -> KernelSource:
    return KernelSource(TEXT.replace("TURN", turn), SIGNATURE)


@pytest.mark.parametrize("turn", [*FREE_TURNS, *BOUND_TURNS])
def test_a_recurrence_has_the_bits_of_numba(turn):
    """Whatever LLVM is told of its loops, for even and odd steps, and turns that fill no vector."""
    report = Report()
    run = both(report, text_of(turn))
    numbers = np.random.default_rng(0).uniform(1.0, 2.0, 200).astype(np.float32)
    for n in (0, 1, 3, 8, 31, 64, 90):
        for steps in (1, 2, 5):
            run(numbers, numbers[::-1].copy(), *np.zeros((2, 200), np.float32), n, steps)
    assert not report.differences, report.differences[0]
    assert not report.fallbacks


@pytest.mark.parametrize("turn", FREE_TURNS)
def test_turns_that_do_not_meet_are_told(turn):
    """LLVM needs no test of whether the arrays overlap, which it would make before each loop."""
    assert kernel.lower("k", text_of(turn), 512).count(FREE) == 2


def test_so_are_turns_beside_a_product():
    """A step with a product in it is no short loop, but two variables stand for arrays there too.

    With more arrays than LLVM makes tests for, an LSTM's step was not vectorised.
    """
    product = "fk.gemm.batched(x, x, w2, 1, 1, 1, 1, 0, 0)\n        for i0"
    for turns, told in ((FREE_TURNS, 2), (BOUND_TURNS, 1)):
        for turn in turns:
            src = KernelSource(text_of(turn).text.replace("for i0", product), SIGNATURE)
            assert kernel.lower("k", src, 512).count(FREE) == told


@pytest.mark.parametrize("turn", BOUND_TURNS)
def test_turns_that_may_meet_are_not_told(turn):
    """One reads what another writes, two write one element, or an array has two names."""
    assert kernel.lower("k", text_of(turn), 512).count(FREE) == 1  # the last loop


@pytest.mark.parametrize("times", [5, 60])
def test_long_turns_are_not_written_out(times):
    """A long body that LLVM writes out inside of a loop takes it seconds, and runs no faster."""
    body = LINES.join(["t0 = w0[i0]", *["t0 = t0 * c0 + x[i0]"] * times, "q0[i0] = t0 + p0[i0]"])
    short = KernelSource(text_of(body).text.replace("range(n)", "range(2)", 1), SIGNATURE)
    assert ("unroll.disable" in kernel.lower("k", short, 512)) == (times > 5)


@pytest.mark.parametrize(
    ("turns", "inner", "stays"),
    [("3", "4", False), ("8", "4", False), ("8", "16", False), ("16", "4", True), ("3", "n", True)],
)
def test_short_loops_around_much_are_not_written_out(turns, inner, stays):
    """Nor are those around loops of which each copy would be a loop, however few their turns."""
    text = (
        "def kernel(x, y, w, n):\n    mode = fk.rounding.flush_subnormal()\n"
        f"    for i in range({turns}):\n        t0 = y[i]\n        for j in range({inner}):\n"
        "            t1 = x[j]\n            t2 = w[u(n * i + j)]\n            t3 = (t0 * t1)\n"
        "            t4 = (t2 - t3)\n            w[u(n * i + j)] = t4\n"
    )
    src = KernelSource(text, ("f32[1]", "f32[1]", "f32[1]", "i64"))
    assert ("unroll.disable" in kernel.lower("k", src, 512)) is stays


def test_functions_used_very_often_are_called():
    """Or the time to compile a long body has no measure; bits are those of the pasted text."""
    step = "t0 = vm.exp(t0 * c0)"
    few, many = (
        text_of(LINES.join(["t0 = x[i0]", *[step] * n, "q0[i0] = t0 + p0[i0]"]))
        for n in (shared.MANY - 1, shared.MANY)
    )
    assert "vector-function-abi-variant" not in kernel.lower("k", few, 512)
    assert "vector-function-abi-variant" in kernel.lower("k", many, 512)
    report = Report()
    run = both(report, many)
    numbers = np.random.default_rng(0).uniform(-1.0, 1.0, 100).astype(np.float32)
    for n in (1, 16, 37):
        run(numbers, *np.zeros((3, 100), np.float32), n, 2)
    assert not report.differences, report.differences[0]


def rows_of(np_, a):
    """Return numbers that a loop's turns compute, of an array that is overwritten afterwards."""
    places = np_.arange(a.shape[0])
    return (
        a[:-1] + a[1:],
        np_.pad(a, 1)[:-2] - a,
        np_.where(places % 2 == 0, a, -a)[::-1],
        a[(places * 3) % a.shape[0]],
        np_.repeat(a[:4], 5) + 1,  # of an array that would lie in registers
        np_.exp(a),  # which a function computes beforehand
    )


def turned(m, reverse, a):
    """Take turns that each overwrite the array by what loops over such numbers make of it."""

    def turn(a, _):
        total = a[0] * 0
        for k in range(6):
            xs, back = rows_of(m.numpy, a)[k], reverse and k % 2 == 0
            last, ys = m.lax.scan(lambda c, x: ((c + x) / 3,) * 2, a[k] * 0, xs, reverse=back)
            a = a.at[: ys.shape[0]].set(ys)
            total = total + last
        return a, total

    return m.lax.scan(turn, a, None, length=3)


@pytest.mark.parametrize("reverse", [False, True])
def test_turns_compute_the_numbers_that_they_take(reverse):
    """What each turn takes of an array is computed there, before the array is overwritten."""
    a = np.random.default_rng(0).standard_normal(20).astype(np.float32)
    want = jax.jit(partial(turned, jax, reverse))(a)
    for got, wanted in zip(fnarray.jit(partial(turned, fnarray, reverse))(a), want, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_what_turns_compute_is_kept_nowhere():
    """Of a sum of neighbours, of which a loop takes one after the other, no array is made."""
    lax = fnarray.lax

    def turn(a, _):
        return lax.scan(lambda c, x: ((c + x) / 3,) * 2, a[0], a + a[::-1])[1], None

    lowered = fnarray.jit(lambda a: lax.scan(turn, a, None, length=3)[0]).lower(np.zeros(20))
    assert "w1" not in lowered.compile().as_text()
