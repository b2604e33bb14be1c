"""Vector math keeps its stated bounds, in units in the last place, over the whole range."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fnarray_kernels import vmath as vm

Wide = np.longdouble
PI = 4 * np.arctan(Wide(1))


def wide_erf(x):
    """Erf by its series of positive terms (DLMF 7.6.2)."""
    term = 2 / np.sqrt(PI) * x * np.exp(-x * x)
    total = term
    for n in range(1, 120):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return np.where(np.abs(x) < 3, total, np.sign(x) * (1 - wide_erfc_tail(np.abs(x))))


def wide_erfc_tail(x):
    """Erfc by its continued fraction (DLMF 7.9.1), for x above 2 or so."""
    tail = x
    for n in range(200, 0, -1):
        tail = x + n / Wide(2) / tail
    return np.where(x > 1, np.exp(-x * x) / np.sqrt(PI) / tail, np.where(x == x, Wide(0), x))


def wide_erfc(x):
    """Erfc from whichever of the two does not cancel."""
    return np.where(x < 2, 1 - wide_erf(np.minimum(x, 2)), wide_erfc_tail(x))


def wide_erf_inv(x):
    """Inverse of erf: bisection, then Newton, on the complement where that is the smaller."""
    a = np.abs(x)
    low, high = np.zeros_like(a), np.full_like(a, 7)
    for _ in range(20):
        middle = (low + high) / 2
        above = wide_erfc(middle) < 1 - a
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    y = np.where(a < 0.01, a, low)
    for _ in range(5):
        gap = np.where(y < 0.5, wide_erf(y) - a, (1 - a) - wide_erfc(y))
        y = y - gap * np.sqrt(PI) / 2 * np.exp(y * y)
    y = np.where(a < 1, y, np.where(a == 1, np.inf, np.nan))
    return np.copysign(y, x)


# name: (reference, its arguments' intervals, bound in ULP for float32 and float64)
UNARY = {
    "acos": (np.arccos, [(-1, 1), (0.99, 1)], 0.51, 1),
    "acosh": (np.arccosh, [(1, 3), (1, 1.1), (1, 1e5)], 0.51, 2.75),
    "asin": (np.arcsin, [(-1, 1), (0.49, 0.52)], 0.51, 1),
    "asinh": (np.arcsinh, [(-3, 3), (-1e9, 1e9)], 0.51, 2),
    "atan": (np.arctan, [(-3, 3), (-100, 100)], 0.51, 1.75),
    "atanh": (np.arctanh, [(-1, 1), (-0.1, 0.1)], 0.51, 2),
    "cbrt": (np.cbrt, [(-8, 8), (1, 2)], 0.51, 1),
    "cos": (np.cos, [(-10, 10), (-1e6, 1e7)], 0.51, 1),
    "cosh": (np.cosh, [(-711, 711), (-90, 90), (-2, 2)], 0.51, 2),
    "erf": (wide_erf, [(-6, 6), (-1, 1)], 1, 2),
    "erf_inv": (wide_erf_inv, [(-1, 1), (0.99, 1), (0.9999999, 1)], 1, 3),
    "erfc": (wide_erfc, [(-6, 27.3), (0, 3)], 0.51, 3),
    "exp": (np.exp, [(-750, 712), (-105, 90), (-1, 1)], 1, 1),
    "exp2": (np.exp2, [(-1080, 1030), (-151, 130), (-1, 1)], 1.25, 1.25),
    "expm1": (np.expm1, [(-40, 712), (-20, 90), (-1, 1)], 1.25, 1.25),
    "log": (np.log, [(0, 10), (0.5, 2), (0.99, 1.01)], 1, 1),
    "log1p": (np.log1p, [(-1, 3), (-0.5, 0.5), (0, 1e5)], 1, 1),
    "log2": (np.log2, [(0, 10), (0.5, 2), (0.99, 1.01)], 2, 2),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), [(-750, 40), (-105, 20), (-5, 5)], 1.5, 1.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), [(0, 10), (1, 4)], 1.5, 1.5),
    "sin": (np.sin, [(-10, 10), (-1e6, 1e7)], 0.51, 1),
    "sinh": (np.sinh, [(-711, 711), (-90, 90), (-2, 2)], 0.51, 2.25),
    "sqrt": (np.sqrt, [(0, 10)], 0.5, 0.5),
    "tan": (np.tan, [(-10, 10), (-1e5, 1e5)], 0.51, 2.25),
    "tanh": (np.tanh, [(-20, 20), (-1, 1)], 1.25, 2),
}
BINARY = {
    "atan2": (np.arctan2, 0.51, 2),
    "hypot": (np.hypot, 0.51, 1.25),
    "pow": (np.power, 0.51, 1),
}
FLOATS = ("float32", "float64")
NEAR = (0, 1, 0.5, 2, 3, np.inf, 708.4, 709.78, 709.79, 745.13, 745.14, 87.33, 88.72, 88.73, 103.97)
FAR = (104, 1e-45, 1e-40, 2e-38, 1e30, 3e38, 5e-324, 1e-310, 2.3e-308, 1e300, 1e-300, 2.0**20)


def specials(dtype):
    """Return zeros, infinities, NaN, thresholds, subnormals, and neighbours of 1."""
    with np.errstate(over="ignore", under="ignore"):
        x = np.array([*NEAR, *FAR, 1 - np.finfo(dtype).eps, 1 + np.finfo(dtype).eps], dtype)
    return np.concatenate([x, -x, np.array([np.nan], dtype)])


def everywhere(dtype, count, seed=0):
    """Return floats of random bits: every exponent is as likely."""
    kind = np.dtype(dtype.replace("float", "uint"))
    top = np.iinfo(kind).max
    return np.random.default_rng(seed).integers(0, top, count, kind, endpoint=True).view(dtype)


def errors(got, want):
    """Return the errors of `got` in ULP; infinite where only one is NaN or infinite."""
    rounded = want.astype(got.dtype)
    size = np.abs(rounded)
    ulp = np.nextafter(size, got.dtype.type(np.inf)).astype(Wide) - size
    off = np.abs(got.astype(Wide) - want) / ulp
    alike = (got == rounded) | ((got != got) & (rounded != rounded))
    finite = np.isfinite(got) & np.isfinite(rounded)
    return np.where(finite, off, np.where(alike, 0, np.inf)).astype(float)


def assert_within(bound, got, want, *args):
    """No error exceeds `bound`, and zeros have the right sign."""
    off = errors(got, want)
    worst = np.argmax(off)
    where = [a[worst] for a in args]
    assert off[worst] <= bound, f"{off[worst]} ULP at {where}: {got[worst]} for {want[worst]}"
    zero = (got == 0) & (want == 0)
    assert (np.signbit(got[zero]) == np.signbit(want[zero])).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
@np.errstate(all="ignore")
def test_unary_bound(compiled, name, dtype):
    """The stated bound holds on random bits, ordinary intervals, small numbers and specials."""
    reference, intervals, *bounds = UNARY[name]
    count = {"erf": 2_000, "erfc": 2_000, "erf_inv": 500}.get(name, 40_000)
    rng = np.random.default_rng(1)
    parts = [rng.uniform(low, high, count) for low, high in intervals]
    parts.append(np.exp(rng.uniform(-60, 0, count)))
    x = np.concatenate([everywhere(dtype, 2 * count), *(p.astype(dtype) for p in parts)])
    x = np.concatenate([x, specials(dtype)])
    out = np.empty_like(x)
    compiled(getattr(vm, name), 1)(x, out)
    assert_within(bounds[dtype == "float64"], out, reference(x.astype(Wide)), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_binary_bound(compiled, name, dtype):
    """The stated bound holds on random bits, ordinary pairs, and all pairs of specials."""
    reference, *bounds = BINARY[name]
    n, rng = 40_000, np.random.default_rng(2)
    one, two = (v.ravel() for v in np.meshgrid(specials(dtype), specials(dtype)))
    x = [everywhere(dtype, n), abs(everywhere(dtype, n)), rng.uniform(0, 10, n)]
    y = [everywhere(dtype, n, 3), rng.uniform(-30, 30, n), rng.uniform(-20, 20, n)]
    x += [rng.uniform(0.9, 1.1, n), rng.integers(-100, 100, n), one]
    y += [rng.uniform(-3000, 3000, n), rng.integers(-30, 30, n), two]
    x, y = (np.concatenate([p.astype(dtype) for p in v]) for v in (x, y))
    out = np.empty_like(x)
    compiled(getattr(vm, name), 2)(x, y, out)
    want = reference(x.astype(Wide), y.astype(Wide))
    assert_within(bounds[dtype == "float64"], out, want, x, y)


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_docstring_states_a_bound(name):
    """Each docstring names the bound that its test checks in float64, or a larger one."""
    bound = (UNARY.get(name) or BINARY.get(name))[-1]
    text = getattr(vm, name).__doc__
    stated = [float(v) for v in re.findall(r"([\d.]+) ULP", text)]
    assert bound == 0.5 or max(stated) >= bound


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_powers(dtype):
    """Powers and roots that a float can hold come out exactly."""
    base = np.arange(2, 13).astype(dtype)
    for n in (2, 3, 4, 5, 6):
        np.testing.assert_array_equal(vm.pow(base, np.full_like(base, n)), base**n)
    np.testing.assert_array_equal(vm.cbrt(base**3), base)
    whole = np.arange(-120, 120).astype(dtype)
    np.testing.assert_array_equal(vm.exp2(whole), 2.0**whole)
    np.testing.assert_array_equal(vm.log2(2**whole), whole)


def test_reduction_at_its_hardest():
    """Of all doubles this is nearest to a multiple of pi/2 (Muller, Elementary Functions, 1997)."""
    x = np.float64(6381956970095103.0) * 2.0**797
    assert abs(vm.cos(x) - -4.687165924254627611e-19) < 1e-34
    assert vm.sin(x) == 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@np.errstate(all="ignore")
def test_readings_agree_bit_for_bit(compiled, name, dtype):
    """NumPy's reading of a text gives the compiled one's bits, NaN payloads aside."""
    fn, count = getattr(vm, name), 1 + (name in BINARY)
    rng = np.random.default_rng(4)
    grid = [
        everywhere(dtype, 800),
        rng.uniform(-5, 5, 800),
        rng.uniform(-1, 1, 400),
        specials(dtype),
    ]
    x = np.concatenate([g.astype(dtype) for g in grid])
    args = (x, rng.permutation(x))[:count]
    out = np.empty_like(x)
    compiled(fn, count)(*args, out)
    plain = fn(*args)
    assert plain.dtype == x.dtype
    number = out == out
    np.testing.assert_array_equal(number, plain == plain)
    bits = np.dtype(dtype.replace("float", "uint"))
    np.testing.assert_array_equal(plain[number].view(bits), out[number].view(bits))
    assert np.shape(fn(*(a[0] for a in args))) == ()
