"""Maxima and minima of loops are found among integers: the same numbers, NaN and zeros too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.cpu.build import KernelSource
from fnarray.compile.cpu.native import kernel
from fnarray.compile.cpu.native.reader import read_kernel
from tests.compilers.compare import Report, both

pytestmark = pytest.mark.cpu

#: Rows of 24 are folded in a register, columns in an array of the kernel's; both by both functions.
FOLDS = """
def kernel(x_, least, most, w0, w1, n):
    x = flat(x_)
    for i in range(n):
        acc0 = {0}(inf)
        for j in range(24):
            acc0 = sc.minimum(acc0, x[u(24 * i + j)])
        least[i] = acc0
    for j in range(24):
        w0[j] = {0}(-inf)
        w1[j] = {0}(0.0)
    for i in range(n):
        for j in range(24):
            w0[j] = sc.maximum(w0[j], x[u(24 * i + j)])
    for j in range(24):
        w1[j] = sc.radd(w1[j], w0[j])
        most[j] = w1[j]
"""


def awkward(dtype) -> np.ndarray:
    """Return rows that hold zeros of either sign, infinities, the least numbers, and NaN."""
    nan = np.array([np.nan], dtype)
    info = np.finfo(dtype)
    values = [0.0, -0.0, np.inf, -np.inf, info.max, -info.max, info.tiny, -info.tiny, 1.5, -1.5]
    x = np.random.default_rng(0).choice(np.array(values, dtype), (60, 24))
    x[::3] = np.where(np.isinf(x[::3]), x.dtype.type(2), x[::3])
    x[1::6, 5], x[2::6, 23] = nan, -nan
    x[40], x[41, ::2], x[41, 1::2], x[42] = -np.inf, 0.0, -0.0, -nan
    return x


def agree(src: KernelSource, calls: list[tuple[Any, ...]]) -> None:
    """Compare what the two compilers' kernels do with the same arguments, to the bit."""
    report = Report()
    for args in calls:
        both(report, src)(*args)
    assert not report.fallbacks
    assert not report.differences, report.differences[0]


@pytest.mark.parametrize(("code", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_same_bits_as_numba(code, dtype):
    """Integers stand for the numbers in both places, and nothing else tells the two compilers."""
    text = FOLDS.format(code)
    src = KernelSource(text, (f"{code}[2]", *[f"{code}[1]"] * 4, "i64"))
    lowered = kernel.lower("k", src, 512)
    assert "llvm.smax.i" + code[1:] in lowered
    assert "llvm.maximum" not in lowered
    out = [np.zeros(60, dtype), *(np.zeros(24, dtype) for _ in range(3))]
    agree(src, [(awkward(dtype), *out, 60)])


#: An array that goes by another name, that is added to, that the caller sees; a number of two
#: functions, and one that no loop folds.
OTHERS = (
    "    for i in range(n):\n        w0[0] = sc.maximum(w0[0], x[i])\n    x, w0 = w0, x\n",
    "    for i in range(n):\n        w0[0] = sc.maximum(w0[0], x[i])\n        w0[0] += 1.0\n",
    "    for i in range(n):\n        x[0] = sc.maximum(x[0], w0[i])\n",
    "    for i in range(n):\n        c = sc.maximum(c, x[i])\n        c = sc.minimum(c, w0[i])\n",
    "    c = sc.maximum(x[0], x[1])\n    c = sc.maximum(c, x[2])\n",
)


@pytest.mark.parametrize("fold", OTHERS)
def test_what_others_read_is_no_rank(fold):
    """It is kept as a number."""
    text = f"def kernel(x, w0, n):\n    c = 0.0\n{fold}    x[1] = w0[1]\n"
    assert not read_kernel(text, {}).ranks


#: What a variable will be has a name of its own: of both functions, in either place.
RUNNING = """
def kernel(x, least, most, last, n):
    c0 = x[0]
    c1 = x[0]
    for s0 in range(n):
        t0 = x[s0]
        t1 = sc.maximum(t0, c0)
        t2 = sc.minimum(c1, t1 * t0)
        least[s0] = c1 - t2
        most[s0] = t1
        c0 = t1
        c1 = t2
    last[0] = c0
    last[1] = c1
"""


@pytest.mark.parametrize(("code", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_running_choices_are_ranks(code, dtype):
    assert read_kernel(RUNNING, {}).ranks == dict.fromkeys(("c0", "t1"), "maximum") | dict.fromkeys(
        ("c1", "t2"), "minimum"
    )
    src = KernelSource(RUNNING, (*[f"{code}[1]"] * 4, "i64"))
    lowered = kernel.lower("k", src, 512)
    assert "llvm.smin.i" + code[1:] in lowered
    assert "llvm.m" not in lowered
    agree(src, [(x, *(np.zeros(n, dtype) for n in (24, 24, 2)), 24) for x in awkward(dtype)])


#: The other number is made of the variable; the variable takes another name's value; there are two
#: of it; what it will be is a variable itself.
WAITING = (
    "        t0 = c + x[i]\n        t = sc.maximum(c, t0)\n        c = t\n",
    "        t = sc.maximum(c, x[i])\n        c = x[i]\n",
    "        t = sc.maximum(c, c)\n        c = t\n",
    "        t = sc.maximum(c, x[i])\n        c = t\n    x[2] = t\n",
    "        t = sc.maximum(c, x[i])\n        c = t\n        c = sc.minimum(c, w0[i])\n",
)


@pytest.mark.parametrize("turn", WAITING)
def test_what_waits_for_the_number_is_no_rank(turn):
    text = f"def kernel(x, w0, n):\n    c = 0.0\n    for i in range(n):\n{turn}    x[1] = c\n"
    assert not read_kernel(text, {}).ranks


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_running_extremes_are_those_of_numpy(dtype, reverse):
    with fnarray.enable_x64(True):
        for x in (*awkward(np.dtype(dtype)), awkward(np.dtype(dtype)).T.copy()):
            for mine, theirs in ((lax.cummax, np.maximum), (lax.cummin, np.minimum)):
                got = np.asarray(mine(x, axis=0, reverse=reverse))
                turned = x[::-1] if reverse else x
                expected = theirs.accumulate(turned)
                np.testing.assert_array_equal(got, expected[::-1] if reverse else expected)


def test_programs_of_maxima():
    """Whole arrays, rows, columns, windows and recurrences agree with NumPy."""
    x = awkward(np.float32)

    def run(x):
        top = fnp.max(x, 1)
        low = fnarray.lax.fori_loop(0, 3, lambda _, c: fnp.minimum(c, fnp.min(x - c, 0)), x[0])
        return top, fnp.min(x, 0), fnp.max(x[3::6]), low

    got = fnarray.jit(run)(x)
    low = x[0]
    with np.errstate(all="ignore"):
        for _ in range(3):
            low = np.minimum(low, np.min(x - low, 0))
    for a, b in zip(got, (np.max(x, 1), np.min(x, 0), np.max(x[3::6]), low), strict=True):
        np.testing.assert_array_equal(a, b)
    zeros = np.array([[0.0, -0.0], [-0.0, 0.0]], np.float32)
    least, most = fnarray.jit(lambda x: (fnp.min(x, 1), fnp.max(x, 1)))(zeros)
    assert np.signbit(least).all()
    assert not np.signbit(most).any()


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u4", "f4", "f2"])
def test_positions_are_those_of_numpy(dtype, wide):
    """Of rows, columns and all: the first of equals, of NaN, and of zeros of either sign."""
    x = awkward(np.float32)
    if dtype[0] != "f":
        info = np.iinfo(dtype) if dtype != "?" else None
        x = np.where(np.nan_to_num(x) > 1, info.max if info else 1, info.min if info else 0)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    axes = (0, 1, None)
    with fnarray.enable_x64(wide):
        f = fnarray.jit(lambda x: [g(x, axis=a) for g in (fnp.argmax, fnp.argmin) for a in axes])
        got = f(x)
    assert {g.dtype for g in got} == {np.dtype(np.int64 if wide else np.int32)}
    want = [g(x, axis=a) for g in (np.argmax, np.argmin) for a in axes]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
