"""Fit the polynomials of the vector math functions; run to rewrite ``coefficients.py``.

Each entry is a smooth function on an interval, interpolated at Chebyshev nodes in 60 digits: within
a small factor of the minimax error, and with no exchange algorithm to trust. It needs mpmath and is
never imported by the package.
"""

from __future__ import annotations

import pathlib

import mpmath as mp
import numpy as np

mp.mp.dps = 60


def near_zero(f, at_zero):
    """Return `f` with its removable singularity at 0 filled in."""
    return lambda z: f(z) if abs(z) > mp.mpf(10) ** -40 else mp.mpf(at_zero)


def atanh_tail(z):
    """Return (log((1 + s) / (1 - s)) - 2 s) / (s z) at z = s**2."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / (s * z)


def root(f):
    """Return z -> f(sqrt(z))."""
    return lambda z: f(mp.sqrt(z))


def erfcx_mapped(middle):
    """Return t -> (1 + 2 x) erfc(x) exp(x**2) at x = middle (1 + t) / (1 - t)."""

    def f(t):
        if t > 1 - mp.mpf(10) ** -30:
            return 2 / mp.sqrt(mp.pi)
        x = middle * (1 + t) / (1 - t)
        return (1 + 2 * x) * mp.erfc(x) * mp.exp(x * x)

    return f


def erf_inv_of(w):
    """Return erf_inv(x) / x where w = -log(1 - x**2)."""
    if w < mp.mpf(10) ** -40:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    y = mp.mpf(1)
    if w > 1:
        # Newton on erfc, since x itself is too close to 1 for mpmath's own inverse.
        tail = mp.exp(-w) / (1 + x)
        y = mp.sqrt(w * mp.mpf("0.9"))
        for _ in range(60):
            step = (mp.erfc(y) - tail) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
            y += step
            if abs(step) < mp.mpf(10) ** -50:
                break
        return y / x
    return mp.erfinv(x) / x


def bessel(order, near):
    """Return e**-x I(x), over x for order 1, on [0, 8], or times sqrt(x) on [8, inf], of t."""

    def f(t):
        if near:
            x = 4 * (1 + t)
            return mp.exp(-x) * (mp.besseli(0, x) if order == 0 else half_i1_over_x(x))
        u = (1 + t) / 16
        if u > mp.mpf(10) ** -4:
            return mp.exp(-1 / u) * mp.besseli(order, 1 / u) / mp.sqrt(u)
        terms = [mp.mpf(1)]
        for k in range(1, 12):
            terms.append(-terms[-1] * (4 * order - (2 * k - 1) ** 2) / (8 * k) * u)
        return mp.fsum(terms) / mp.sqrt(2 * mp.pi)

    return f


def half_i1_over_x(x):
    """Return I1(x) / x by its series."""
    return mp.hyp0f1(2, x * x / 4) / 2


LN2 = mp.log(2)
QUARTER = (mp.pi / 4) ** 2 * mp.mpf("1.002")
HALF_LN2 = LN2 / 2 * mp.mpf("1.0005")
LOG_Z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.002")
EXP_TAIL = near_zero(lambda r: (mp.expm1(r) - r) / r**2, 0.5)
EXP2_TAIL = near_zero(lambda r: mp.expm1(r * LN2) / r, LN2)
LOG_TAIL = near_zero(atanh_tail, mp.mpf(2) / 3)
LOG_TAIL_7 = near_zero(
    lambda z: ((LOG_TAIL(z) - mp.mpf(2) / 3) / z - mp.mpf(2) / 5) / z, mp.mpf(2) / 7
)
SIN = near_zero(root(lambda r: (mp.sin(r) / r - 1) / r**2), -mp.mpf(1) / 6)
COS = near_zero(root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), mp.mpf(1) / 24)
ATAN = near_zero(root(lambda r: (mp.atan(r) / r - 1) / r**2), -mp.mpf(1) / 3)
ASIN = near_zero(root(lambda r: (mp.asin(r) / r - 1) / r**2), mp.mpf(1) / 6)
TANH = near_zero(root(lambda r: (mp.tanh(r) / r - 1) / r**2), -mp.mpf(1) / 3)
ERF = near_zero(root(lambda r: mp.erf(r) / r - 1), 2 / mp.sqrt(mp.pi) - 1)
HALVES, ROOT = mp.mpf("1.5"), mp.findroot(mp.digamma, mp.mpf("1.4616"))
ERFC_LOG = near_zero(lambda x: -mp.log(mp.erfc(x)) / x - 1, 2 / mp.sqrt(mp.pi) - 1)
ERF_INV_CENTRAL = lambda v: erf_inv_of(v + mp.mpf("2.5"))  # noqa: E731
ERF_INV_TAIL = lambda v: erf_inv_of((v + 3) ** 2)  # noqa: E731

#: What errors of a polynomial amount to in the function that is computed of it.
SHARES = {
    "ERFC_LOG_32": near_zero(lambda x: mp.erfc(x) * x / mp.erf(x), mp.sqrt(mp.pi) / 2),
}

# name: (function, low, high, number of coefficients)
TABLE = {
    "EXP_64": (EXP_TAIL, -HALF_LN2, HALF_LN2, 11),
    "EXP_32": (EXP_TAIL, -HALF_LN2, HALF_LN2, 6),
    "EXP2_64": (EXP2_TAIL, -0.5, 0.5, 13),
    "EXP2_32": (EXP2_TAIL, -0.5, 0.5, 7),
    "LOG_64": (LOG_TAIL, 0, LOG_Z, 8),
    "LOG_32": (LOG_TAIL, 0, LOG_Z, 4),
    "LOG_7": (LOG_TAIL_7, 0, LOG_Z, 8),
    "SIN_64": (SIN, 0, QUARTER, 7),
    "COS_64": (COS, 0, QUARTER, 6),
    "SIN_32": (SIN, 0, QUARTER, 4),
    "COS_32": (COS, 0, QUARTER, 4),
    "ATAN_64": (ATAN, 0, (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.002"), 12),
    "ASIN_64": (ASIN, 0, "0.2501", 13),
    "TANH_32": (TANH, 0, "1.0001", 8),
    "ERF_64": (ERF, 0, "0.5626", 11),
    "ERF_32": (ERF, 0, "0.7657", 6),
    "ERFC_LOG_32": (ERFC_LOG, "0", "3.93", 9),
    "ERFC_64": (erfcx_mapped(4), "-0.82", 1, 24),
    "ERFC_32": (erfcx_mapped(2), "-0.4546", "0.6695", 9),
    "ERF_INV_NEAR": (ERF_INV_CENTRAL, "-2.5", "2.501", 22),
    "ERF_INV_NEAR_32": (erf_inv_of, 0, "5", 11),
    "ERF_INV_MIDDLE": (ERF_INV_TAIL, "-0.766", "0.7", 22),
    "ERF_INV_FAR_32": (lambda v: erf_inv_of((v + mp.mpf("2.75")) ** 2), "-0.5159", "1.33", 11),
    "ERF_INV_FAR": (lambda v: erf_inv_of((v + 5) ** 2), "-1.3", "1.12", 22),
    "LGAMMA": (near_zero(lambda t: mp.loggamma(2 + t) / t, 1 - mp.euler), "-0.501", "0.501", 20),
    "DIGAMMA": (lambda t: mp.digamma(t + HALVES) / (t + HALVES - ROOT), "-0.501", "0.501", 22),
    "BESSEL_I0_NEAR": (bessel(0, True), -1, 1, 31),
    "BESSEL_I0_FAR": (bessel(0, False), -1, 1, 24),
    "BESSEL_I0_NEAR_32": (bessel(0, True), -1, 1, 20),
    "BESSEL_I0_FAR_32": (bessel(0, False), -1, 1, 7),
    "BESSEL_I1_NEAR": (bessel(1, True), -1, 1, 31),
    "BESSEL_I1_FAR": (bessel(1, False), -1, 1, 24),
    "BESSEL_I1_NEAR_32": (bessel(1, True), -1, 1, 20),
    "BESSEL_I1_FAR_32": (bessel(1, False), -1, 1, 7),
    "CBRT_64": (mp.cbrt, "0.7", "1.42", 5),
}


def interpolate(f, low, high, count):
    """Return power coefficients, lowest first, of `f` interpolated at `count` Chebyshev nodes."""
    nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    xs = [(low + high) / 2 + (high - low) / 2 * t for t in nodes]
    powers = mp.matrix(count, count)
    for i, x in enumerate(xs):
        for j in range(count):
            powers[i, j] = x**j
    return list(mp.lu_solve(powers, mp.matrix([f(x) for x in xs])))


def weighted(f, low, high, count, share):
    """Return the polynomial whose largest error, times `share`, is least (Lawson 1961)."""
    nodes = [mp.cos(mp.pi * (2 * i + 1) / 2000) for i in range(1000)]
    xs = [(low + high) / 2 + (high - low) / 2 * t for t in nodes]
    shares = np.array([float(share(x)) for x in xs])
    wanted = shares * np.array([float(f(x)) for x in xs])
    terms = shares[:, None] * np.vander(np.array(xs, float), count, increasing=True)
    weights, best, found = np.ones(len(xs)), np.inf, None
    for _ in range(300):
        roots = np.sqrt(weights)
        coefficients = np.linalg.lstsq(terms * roots[:, None], wanted * roots, rcond=None)[0]
        off = np.abs(terms @ coefficients - wanted)
        if off.max() < best:
            best, found = off.max(), coefficients
        weights = weights * off / np.max(weights * off)
    return [mp.mpf(float(v)) for v in found]


def error(f, coefficients, low, high, share):
    """Return the largest error of the polynomial on a grid."""
    grid = [low + (high - low) * mp.mpf(i) / 200 for i in range(201)]
    return max(share(x) * abs(mp.polyval(coefficients[::-1], x) - f(x)) for x in grid)


def two_over_pi(groups, step, parts):
    """Return doubles holding 2/pi without its first ``step * g`` bits, times ``2**(step * g)``."""
    mp.mp.prec, rows = 1400, []
    for g in range(groups):
        rest, row = mp.frac(2 / mp.pi * mp.mpf(2) ** (step * g)), []
        if g == 0:
            rest = 2 / mp.pi
        for _ in range(parts):
            row.append(float(rest))
            rest -= mp.mpf(row[-1])
        rows.append(row)
    return rows


def rows(numbers):
    """Return source lines of three numbers each."""
    texts = [repr(float(v)) for v in numbers]
    return [f"    {', '.join(texts[i : i + 3])}," for i in range(0, len(texts), 3)]


def main():
    """Write ``kernels/vmath/coefficients.py``."""
    lines = [
        (
            '"""Polynomial coefficients, lowest degree first.\n\n'
            'Written by ``tests/kernels/fit_coefficients.py``, never by hand.\n"""'
        ),
        "",
        "from __future__ import annotations",
        "",
    ]
    for name, (f, low, high, count) in TABLE.items():
        low, high = mp.mpf(low), mp.mpf(high)
        share = SHARES.get(name)
        if share:
            coefficients = weighted(f, low, high, count, share)
        else:
            coefficients = interpolate(f, low, high, count)
        worst = error(f, coefficients, low, high, share or (lambda _: 1))
        lines.append(f"# Largest error 2**{float(mp.log(worst, 2)):.1f}.")
        lines += [f"{name} = (", *rows(coefficients), ")", ""]
    lines.append("# 2/pi less its first 16 g bits, scaled by 2**(16 g), as sums of four doubles.")
    lines.append("TWO_OVER_PI = (")
    lines += [*rows([part for row in two_over_pi(64, 16, 4) for part in row]), ")"]
    path = pathlib.Path(__file__).parents[2] / "kernels/vmath/coefficients.py"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
