"""Quotients by known numbers: products with inverses, which round as divisions do."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray as fa
from fnarray.compile.cpu.build import KernelSource
from fnarray.compile.inverses import _near_halves, inverse_of
from tests.compilers.compare import Report, both

DIVISORS = (3, 5, 7, 9, 10, 255, -3, 0.75, 0.1, 0.01, 2 * np.pi, 32**0.5, 1e-3, 1e9, 2**24 - 1, 0.2)
DTYPES = ("float32", "float64")


def numbers(dtype, divisor):
    """Return numbers over the whole range, and those whose quotients are almost halfway."""
    rng, info = np.random.default_rng(0), np.finfo(dtype)
    least, most = info.minexp + 2 * info.nmant + 40, info.maxexp - 1
    wide = rng.choice([-1, 1], 5000) * np.exp2(rng.uniform(least, most, 5000))
    fraction = abs(np.frexp(np.asarray(divisor, dtype))[0])
    odd = int(np.ldexp(fraction, info.nmant + 1))
    odd //= odd & -odd
    near = np.array([float(x) for x in _near_halves(odd, info.nmant + 1)])
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, -info.max, 1.0, float(divisor)]
    return np.concatenate([wide, np.ldexp(near, -5), special]).astype(dtype)


def divided(x, divisor):
    """Return what a compiled division gives."""
    with fa.enable_x64(True):
        return np.asarray(fa.jit(lambda x: x / divisor)(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_are_rounded_as_divisions_are(dtype):
    """The same bits as NumPy's division, infinities, zeros and what overflows included."""
    with np.errstate(all="ignore"):
        for divisor in DIVISORS:
            x = numbers(dtype, divisor)
            got = divided(x, divisor)
            np.testing.assert_array_equal(got, x / x.dtype.type(divisor), err_msg=str(divisor))
            np.testing.assert_array_equal(np.signbit(got), np.signbit(x / x.dtype.type(divisor)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_smallest_quotients_are_off_by_a_unit_at_most(dtype):
    """Where the product with the rest of the inverse has lost its digits."""
    info = np.finfo(dtype)
    x = np.exp2(np.random.default_rng(1).uniform(info.minexp + 8, info.minexp + 60, 5000))
    x = x.astype(dtype)
    for divisor in (3, 0.75, 255):
        got = divided(x, divisor)
        np.testing.assert_array_max_ulp(got, x / x.dtype.type(divisor), 1)


def test_all_significands_of_float32_round_alike():
    """All 2**23 fractions, by products in double precision, whose sum is rounded once more."""
    x = np.arange(2**23, 2**24, dtype=np.float64)
    for divisor in (3.0, 0.1, 0.01, 5.656854):
        number = np.float32(divisor)
        high, low = (np.float64(v) for v in inverse_of(float(number), np.dtype("float32")))
        rest = (x * low).astype(np.float32).astype(np.float64)
        # x * high has 48 bits. The sum in doubles is inexact, but for its sign beside a midpoint:
        total, product = x * high + rest, x * high
        error = (product - total) + rest
        found = total.astype(np.float32)
        gap = found.astype(np.float64) - total
        tie = np.abs(gap) * 2 == np.spacing(found).astype(np.float64)
        assert not np.any(tie & (error != 0))
        np.testing.assert_array_equal(found, x.astype(np.float32) / number)


def test_a_divisor_that_some_quotients_would_not_round_by_stays():
    """Seven of a hundred numbers of float32 have no such inverse, and halves need one product."""
    short = {d: inverse_of(float(np.float32(d)), np.dtype("float32")) for d in (0.89354914, 0.1)}
    assert not short[0.89354914]
    assert len(short[0.1]) == 2
    assert inverse_of(-8.0, np.dtype("float64")) == (-0.125,)
    assert not any(inverse_of(d, np.dtype("float64")) for d in (0.0, np.inf, np.nan, 1e300))


def test_the_text_has_a_product():
    """Divisions by what the text does not know are divisions, and so are those by sizes."""
    x = np.ones(4000, np.float32)
    known = fa.jit(lambda x: x / 3).lower(x).as_text(dialect="numba")
    assert "sc.by_inverse(" in known
    assert "sc.div(" not in known
    assert "sc.div(" in fa.jit(lambda x, y: x / y).lower(x, x).as_text(dialect="numba")
    mean = [fa.jit(lambda x: x / x.size).lower(v).as_text(dialect="numba") for v in (x, x[:2300])]
    kernels = [text.partition("def main")[0] for text in mean]
    assert "sc.div(" in kernels[0]
    assert kernels[0] == kernels[1]
    assert "* c" in fa.jit(lambda x: x / 4).lower(x).as_text(dialect="numba")


@pytest.mark.parametrize(("code", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_both_compilers_give_the_same_bits(code, dtype):
    """In a loop of vectors, the smallest numbers included."""
    x = np.concatenate([numbers(dtype, 3), np.finfo(dtype).tiny * np.arange(1, 200, dtype=dtype)])
    high, low = inverse_of(3.0, np.dtype(dtype))
    text = f"""
def kernel(x0, out0, n0):
    c0 = {code}({float(high)!r})
    c1 = {code}({float(low)!r})
    for i0 in range(n0):
        out0[i0] = sc.by_inverse(x0[i0], c0, c1)
"""
    report = Report()
    source = KernelSource(text, (f"{code}[1]", f"{code}[1]", "i64"))
    both(report, source)(x, np.zeros_like(x), len(x))
    assert not report.fallbacks
    assert not report.differences, report.differences[0]


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
@pytest.mark.parametrize("dtype", [*DTYPES, "float16"])
@pytest.mark.parametrize("divisor", [None, 2 * np.pi, -256.0, 1e-30])
def test_remainders_of_floats_are_exact(dtype, size, divisor):
    """They are C's, of numbers of any size, in a loop of its own and in turns of another."""
    rng = np.random.default_rng(size)
    x, y = (rng.choice([-1, 1], size) * np.exp2(rng.uniform(-14, 15, size)) for _ in "xy")
    if dtype != "float16":
        x *= np.exp2(rng.uniform(-100, 100, size))
    x[: size // 2] = np.round(x[: size // 2] / y[: size // 2]) * y[: size // 2]  # multiples
    x, y = x.astype(dtype), y.astype(dtype)
    x[3:7] = [np.inf, np.nan, -0.0, 0.0][: max(size - 3, 0)]
    y = y if divisor is None else np.full_like(y, divisor)

    def turns(x, y):
        return fa.lax.fori_loop(0, 3, lambda i, c: fa.lax.rem(x + (c - c), y), x)

    with fa.enable_x64(True), np.errstate(all="ignore"):
        want = np.fmod(x, y)
        wanted = np.where(np.isfinite(want), want, np.nan)
        got = np.asarray(fa.jit(fa.lax.rem)(x, y))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[want == want], np.signbit(want)[want == want])
        np.testing.assert_array_equal(np.asarray(fa.jit(turns)(x, y)), wanted)


@pytest.mark.parametrize("size", [0, 33, 256])
@pytest.mark.parametrize(
    ("dtype", "divisor"),
    [
        *((t, d) for t in (*DTYPES, "float16") for d in (1, 64, 2.0**100, 2.0**101, -64, 0.5, 48)),
        *((t, d) for t in ("int8", "int32", "uint32") for d in (1, 64, 48)),
    ],
)
def test_remainders_by_what_the_text_knows_are_exact(dtype, size, divisor):
    """By powers of two too, and by one that is the array's size, whatever is divided."""
    dtype = np.dtype(dtype)
    divisor = 256 if size == 256 and dtype.itemsize > 1 else divisor
    rng = np.random.default_rng(size)
    x = rng.uniform(-1, 1, size) * np.exp2(rng.uniform(-20, 30, size))
    x[: size // 3] = np.round(x[: size // 3])
    with fa.enable_x64(True), np.errstate(all="ignore"):
        x = x.astype(dtype)
        if dtype.kind == "f":
            ends = [np.inf, -np.inf, np.nan, -0.0, 0.0, np.finfo(dtype).max, np.finfo(dtype).tiny]
            x[:7] = ends[: min(size, 7)]
        d = dtype.type(divisor)
        want = [np.fmod(x, d), np.remainder(x, d)]
        got = [np.asarray(fa.jit(f)(x)) for f in (lambda x: fa.lax.rem(x, d), lambda x: x % d)]
        vectors = np.asarray(fa.jit(fa.vmap(lambda x: fa.lax.rem(x, d)))(x.reshape(size, 1)))
    for g, w in ((got[0], want[0]), (vectors[:, 0], want[0])):
        np.testing.assert_array_equal(g, w)
        if dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(g)[w == w], np.signbit(w)[w == w])
    np.testing.assert_array_equal(got[1], want[1])


def test_a_remainder_by_a_power_of_two_is_spelled_though_it_is_a_size():
    """Others that are sizes are arguments: more elements are the same text."""
    texts = [
        fa.jit(lambda x: x % x.size).lower(np.zeros(n, np.int32)).as_text(dialect="numba")
        for n in (2048, 2300, 2400)
    ]
    kernels = [text.partition("def main")[0] for text in texts]
    assert "i32(2048)" in kernels[0]
    assert kernels[1] == kernels[2]
    single = fa.jit(lambda x: x % 256.0).lower(np.zeros(256, np.float32))
    assert "sc.rem_by_power(" in single.as_text(dialect="numba")
