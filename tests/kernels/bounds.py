"""What the kernels' functions promise, in units in the last place, and where it is measured.

They are tested by `test_vmath` and `test_accuracy`, and `accuracy` writes them into the page of the
reference that states them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import special

from fnarray_kernels.vmath.roots import BY_EXPONENT

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


def _wide_power(exponent, x):
    """Powers by products and a root: C99 has those of minus infinity, and of -0 without a sign."""
    whole = int(abs(exponent))
    if exponent % 1:
        x = np.where(np.isinf(x), np.abs(x), x + 0.0)
    power = np.sqrt(x) if exponent % 1 else np.ones_like(x)
    for _ in range(whole):
        power = power * x
    return power if exponent > 0 else 1 / power


# Near the smallest normal number of float64 what is carried along is lost.
POWERS = {
    name: (partial(_wide_power, exponent), [(0, 10), (0.5, 2)], 0.51, 1.5)
    for exponent, name in BY_EXPONENT.items()
}
# name: (reference, its arguments' intervals, bound in ULP for float32 and float64)
UNARY = POWERS | {
    "acos": (np.arccos, [(-1, 1), (0.99, 1)], 0.51, 1),
    "acosh": (np.arccosh, [(1, 3), (1, 1.1), (1, 1e5)], 0.51, 2.75),
    "asin": (np.arcsin, [(-1, 1), (0.49, 0.52)], 0.51, 1),
    "asinh": (np.arcsinh, [(-3, 3), (-1e9, 1e9)], 0.51, 2),
    "atan": (np.arctan, [(-3, 3), (-100, 100)], 0.51, 2),
    "atanh": (np.arctanh, [(-1, 1), (-0.1, 0.1)], 0.51, 2),
    "cbrt": (np.cbrt, [(-8, 8), (1, 2)], 0.51, 1),
    "cos": (np.cos, [(-10, 10), (-1e6, 1e7)], 0.51, 1),
    "cosh": (np.cosh, [(-711, 711), (-90, 90), (-2, 2)], 2, 2),
    "erf": (wide_erf, [(-6, 6), (-1, 1)], 2, 2),
    "erf_inv": (wide_erf_inv, [(-1, 1), (0.99, 1), (0.9999999, 1)], 2.25, 3.5),
    "erfc": (wide_erfc, [(-6, 27.3), (0, 3)], 2, 3.5),
    "exp": (np.exp, [(-750, 712), (-105, 90), (-1, 1)], 1, 1),
    "exp2": (np.exp2, [(-1080, 1030), (-151, 130), (-1, 1)], 1.25, 1.25),
    "expm1": (np.expm1, [(-40, 712), (-20, 90), (-1, 1)], 1.25, 1.25),
    "log": (np.log, [(0, 10), (0.5, 2), (0.99, 1.01)], 1, 1),
    "log1p": (np.log1p, [(-1, 3), (-0.5, 0.5), (0, 1e5)], 1, 1),
    "log2": (np.log2, [(0, 10), (0.5, 2), (0.99, 1.01)], 2, 2),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), [(-750, 40), (-105, 20), (-5, 5)], 2, 1.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), [(0, 10), (1, 4)], 1.5, 1.5),
    "sin": (np.sin, [(-10, 10), (-1e6, 1e7)], 0.51, 1),
    "sinh": (np.sinh, [(-711, 711), (-90, 90), (-2, 2)], 2.25, 2.25),
    "sqrt": (np.sqrt, [(0, 10)], 0.5, 0.5),
    "tan": (np.tan, [(-10, 10), (-1e5, 1e5)], 0.51, 2.5),
    "tanh": (np.tanh, [(-20, 20), (-1, 1)], 2, 2),
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


def unary_points(name, dtype, count):
    """Return random bits, ordinary intervals, small numbers and specials."""
    rng = np.random.default_rng(1)
    parts = [rng.uniform(low, high, count) for low, high in UNARY[name][1]]
    parts.append(np.exp(rng.uniform(-60, 0, count)))
    x = np.concatenate([everywhere(dtype, 2 * count), *(p.astype(dtype) for p in parts)])
    return (np.concatenate([x, specials(dtype)]),)


def binary_points(dtype, n):
    """Return random bits, ordinary pairs, and all pairs of specials."""
    rng = np.random.default_rng(2)
    one, two = (v.ravel() for v in np.meshgrid(specials(dtype), specials(dtype)))
    x = [everywhere(dtype, n), abs(everywhere(dtype, n)), rng.uniform(0, 10, n)]
    y = [everywhere(dtype, n, 3), rng.uniform(-30, 30, n), rng.uniform(-20, 20, n)]
    x += [rng.uniform(0.9, 1.1, n), rng.integers(-100, 100, n), one]
    y += [rng.uniform(-3000, 3000, n), rng.integers(-30, 30, n), two]
    x, y = (np.concatenate([p.astype(dtype) for p in v]) for v in (x, y))
    return x, y


def points(name, dtype, count):
    """Return the arguments at which a function is measured."""
    return unary_points(name, dtype, count) if name in UNARY else binary_points(dtype, count)


# Of special functions SciPy's double precision is the reference, for float32 alone.
# name: (reference, intervals of the arguments, bound in ULP)
SPECIAL = {
    "bessel_i0e": (special.i0e, [(-300, 300)], 0.55),
    "bessel_i1e": (special.i1e, [(-300, 300)], 0.55),
    "betainc": (special.betainc, [(0.1, 30), (0.1, 30), (0, 1)], 0.55),
    "digamma": (special.digamma, [(1e-3, 300)], 0.55),
    "igamma": (special.gammainc, [(0.1, 100), (0, 100)], 0.55),
    "igammac": (special.gammaincc, [(0.1, 100), (0, 100)], 0.55),
    "lgamma": (special.gammaln, [(1e-3, 300)], 0.55),
}


def special_points(name, count):
    """Return float32 arguments of a special function."""
    rng = np.random.default_rng(3)
    return [rng.uniform(*interval, count).astype(np.float32) for interval in SPECIAL[name][1]]


def special_errors(name, count, loop):
    """Return the errors of a special function in ULP; results below 1e-30 are left out."""
    args = special_points(name, count)
    out = np.empty_like(args[0])
    loop(name, len(args))(*args, out)
    with np.errstate(all="ignore"):
        want = SPECIAL[name][0](*(a.astype(np.float64) for a in args))
    some = np.abs(want) > 1e-30
    return errors(out[some], want[some].astype(Wide))
