"""Special functions: error functions, the gamma family, Bessel functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtypes import finfo
from ..core.large import looped
from ..core.libraries import library
from ..core.primitive import Missing
from ..errors import MissingRuleError
from .elementwise import in_single, reciprocal, square
from .kit import calls
from .kit.calls import add, const, exp, gt, log, mul, neg, select, sign, sub
from .kit.checks import FLOAT
from .kit.declare import elementwise
from .kit.rules import partials
from .transcendental import log1p

__all__ = [
    "bessel_i0e",
    "bessel_i1e",
    "betainc",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "lgamma",
    "polygamma",
    "random_gamma_grad",
    "zeta",
]


def scipy_special() -> Any:
    """SciPy's special functions, imported at the first use: they take a quarter of a second."""
    return library("scipy.special")


def by_scipy(name: str) -> Callable[..., Any]:
    """Evaluate by a function of `scipy.special`."""
    return in_single(lambda *xs: getattr(scipy_special(), name)(*xs))


def no_slope(name: str, operand: str, why: str) -> Callable[..., Any]:
    """Return the partial derivative of an operand that has none: it raises `MissingRuleError`."""

    def refuse(*_: Any, **params: Any) -> Any:
        raise MissingRuleError(f"the derivative by {operand}", name, why)

    return refuse


# ---- error functions ---------------------------------------------------------------------------


def _bell(g: Any, x: Any) -> Any:
    return mul(g, exp(neg(square(x))))


@elementwise(
    "vm.erf({0})",
    eval=by_scipy("erf"),
    dtypes=FLOAT,
    cost=15,
    jvp=partials(lambda g, out, x: mul(_bell(g, x), 2 / np.pi**0.5)),
)
def erf(x: Any) -> Any:
    """Error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``."""


@elementwise(
    "vm.erfc({0})",
    eval=by_scipy("erfc"),
    dtypes=FLOAT,
    cost=20,
    jvp=partials(lambda g, out, x: mul(_bell(g, x), -2 / np.pi**0.5)),
)
def erfc(x: Any) -> Any:
    """``1 - erf(x)``, accurate where it is small."""


@elementwise(
    "vm.erf_inv({0})",
    eval=by_scipy("erfinv"),
    dtypes=FLOAT,
    cost=20,
    jvp=partials(lambda g, out, x: mul(mul(g, exp(square(out))), np.pi**0.5 / 2)),
)
def erf_inv(x: Any) -> Any:
    """Inverse of `erf`; infinite at -1 and 1, NaN outside."""


# ---- the gamma family --------------------------------------------------------------------------


def _lgamma(x: np.ndarray) -> Any:
    # The poles on the way to -inf have +inf as their only limit; SciPy says -inf.
    return np.where(x == -np.inf, np.inf, scipy_special().gammaln(x)).astype(x.dtype)


@elementwise(
    "fk.special.lgamma({0})",
    eval=in_single(_lgamma),
    dtypes=FLOAT,
    cost=40,
    jvp=partials(lambda g, out, x: mul(g, digamma(x))),
)
def lgamma(x: Any) -> Any:
    """Logarithm of ``|gamma(x)|``; infinite at 0 and the negative integers."""


def _digamma(x: np.ndarray) -> Any:
    below = x < 0
    if x.dtype != np.float64 or not below.any():
        value = scipy_special().digamma(x)
    else:  # by reflection, where SciPy's loses the distance from the next pole
        value = scipy_special().digamma(np.where(below, 1 - x, x))
        with np.errstate(all="ignore"):
            value = value - np.where(below, np.pi / np.tan(np.pi * (x - np.rint(x))), 0)
        value = np.where(below & (x == np.floor(x)), np.nan, value)
    # At 0 the limits from left and right differ.
    return np.where(x == 0, np.nan, value).astype(x.dtype)


@elementwise(
    "fk.special.digamma({0})",
    eval=in_single(_digamma),
    dtypes=FLOAT,
    cost=40,
    jvp=partials(lambda g, out, x: mul(g, polygamma(const(x, 1), x))),
)
def digamma(x: Any) -> Any:
    """Derivative of `lgamma`; NaN at 0 and the negative integers."""


def _by_precision(name: str) -> Callable[[np.dtype], str]:
    """Return a template that calls the function of float64, or the text of what float32 holds."""
    return lambda dtype: f"fk.special.{name}{'' if dtype == np.float64 else '_32'}({{0}}, {{1}})"


def _zeta(x: np.ndarray, q: np.ndarray) -> Any:
    value = np.where(np.isinf(x) | np.isinf(q), np.nan, scipy_special().zeta(x, q))
    # As compiled, and in JAX: at the poles odd powers have limits of both signs.
    pole = (q <= 0) & (q == np.floor(q))
    value = np.where(pole, np.where(x % 2 == 0, np.inf, np.nan), value)
    return np.where(x == 1, np.inf, value)


def _zeta_slope(g: Any, out: Any, x: Any, q: Any) -> Any:
    return neg(mul(g, mul(x, zeta(add(x, 1), q))))


@elementwise(
    _by_precision("zeta"),
    eval=in_single(_zeta),
    dtypes=FLOAT,
    cost=60,
    jvp=partials(
        no_slope("zeta", "its exponent", "no closed form is known. Use differences."),
        _zeta_slope,
    ),
)
def zeta(x: Any, q: Any) -> Any:
    """Hurwitz zeta function, the sum of ``(k + q) ** -x`` over ``k >= 0``; NaN for ``x < 1``."""


def _polygamma(m: np.ndarray, x: np.ndarray) -> Any:
    special = scipy_special()
    wide = x.astype(np.float64)
    order = m.astype(np.float64) + 1
    sign = np.where(order % 2 == 0, 1.0, -1.0)
    value = (
        sign * special.gamma(order) * np.where(wide == np.inf, np.nan, special.zeta(order, wide))
    )
    # At the poles odd powers have limits of both signs.
    value = np.where((wide <= 0) & (wide == np.floor(wide)) & (sign < 0), np.nan, value)
    value = np.where(m == 0, _digamma(wide), value)
    return np.where((m < 0) | (m != np.floor(m)), np.nan, value)


def _polygamma_slope(g: Any, out: Any, m: Any, x: Any) -> Any:
    return mul(g, polygamma(add(m, 1), x))


@elementwise(
    _by_precision("polygamma"),
    eval=_polygamma,
    dtypes=FLOAT,
    cost=80,
    jvp=partials(
        no_slope("polygamma", "its order", "orders are whole numbers. Stop its gradient."),
        _polygamma_slope,
    ),
)
def polygamma(m: Any, x: Any) -> Any:
    """Derivative of order ``m`` of `digamma`; ``m`` holds whole numbers, else NaN."""


def _incomplete_gamma(name: str, end: float) -> Callable[..., Any]:
    """Evaluate by SciPy, but of infinite order as compiled, and as JAX does: `end` at infinity."""

    def evaluate(a: np.ndarray, x: np.ndarray) -> Any:
        value = getattr(scipy_special(), name)(a, x)
        wide = np.where(np.isinf(x), end, np.nan)
        return np.where((a == np.inf) & (x > 0), wide, value)

    return evaluate


def _gamma_density(g: Any, a: Any, x: Any) -> Any:
    """``g`` times ``x**(a-1) exp(-x) / gamma(a)``."""
    power = mul(sub(a, 1), log(x))
    return mul(g, exp(sub(sub(power, x), lgamma(a))))


@elementwise(
    "fk.special.igamma({0}, {1})",
    eval=in_single(_incomplete_gamma("gammainc", 1.0)),
    dtypes=FLOAT,
    cost=200,
    jvp=partials(
        lambda g, out, a, x: mul(g, igamma_grad_a(a, x)),
        lambda g, out, a, x: _gamma_density(g, a, x),
    ),
)
def igamma(a: Any, x: Any) -> Any:
    """Regularised lower incomplete gamma function P(a, x)."""


@elementwise(
    "fk.special.igammac({0}, {1})",
    eval=in_single(_incomplete_gamma("gammaincc", 0.0)),
    dtypes=FLOAT,
    cost=200,
    jvp=partials(
        lambda g, out, a, x: neg(mul(g, igamma_grad_a(a, x))),
        lambda g, out, a, x: neg(_gamma_density(g, a, x)),
    ),
)
def igammac(a: Any, x: Any) -> Any:
    """Regularised upper incomplete gamma function Q(a, x), ``1 - P(a, x)``."""


def _beta_density(g: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
    """``g`` times ``x**(a-1) (1-x)**(b-1) / B(a, b)``."""
    left = mul(sub(a, 1), log(x))
    right = mul(sub(b, 1), log1p(neg(x)))
    size = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    return mul(g, exp(sub(add(right, left), size)))


def _betainc(*xs: np.ndarray) -> Any:
    # SciPy's of float32 is off by 80 units in the last place.
    return scipy_special().betainc(*(x.astype(np.float64) for x in xs))


_NO_BETA_SLOPE = "JAX has none either. Differentiate by x, or use differences."


@elementwise(
    "fk.special.betainc({0}, {1}, {2})",
    eval=_betainc,
    dtypes=FLOAT,
    cost=200,
    jvp=partials(
        no_slope("betainc", "a", _NO_BETA_SLOPE),
        no_slope("betainc", "b", _NO_BETA_SLOPE),
        _beta_density,
    ),
    name="regularized_incomplete_beta",
)
def betainc(a: Any, b: Any, x: Any) -> Any:
    """Regularised incomplete beta function I_x(a, b); NaN for ``x`` outside [0, 1]."""


def _series(a: np.ndarray, x: np.ndarray, log_x: np.ndarray) -> np.ndarray:
    """dP/da over ``x**a exp(-x) / gamma(a)``, by the power series; for x up to a + 1.

    P is that factor times ``S / a``, where S sums ``x**n / ((a+1) ... (a+n))``.
    """
    term = total = np.ones_like(x)
    slope = d_total = np.zeros_like(x)  # slope: d log(term) / da
    for n in range(1, 20_000):
        term = term * x / (a + n)
        slope = slope - 1 / (a + n)
        total = total + term
        d_total = d_total + term * slope
        if not np.any(np.abs(term * slope) > 1e-17 * np.abs(d_total)):
            break
    return (total * (log_x - scipy_special().digamma(a + 1)) + d_total) / a


def _fraction(a: np.ndarray, x: np.ndarray, log_x: np.ndarray) -> np.ndarray:
    """dP/da over ``x**a exp(-x) / gamma(a)``, by the continued fraction of Q; for x beyond a + 1.

    Lentz's method on ``1 / (x+1-a - 1(1-a) / (x+3-a - 2(2-a) / ...))``, carrying derivatives.
    """
    b = x + 1 - a
    d = 1 / b
    dd = d * d  # derivative of 1 / b: b falls as a grows
    c, dc = np.full_like(x, 1e300), np.zeros_like(x)
    h, dh = d, dd
    for n in range(1, 20_000):
        numer, d_numer = n * (a - n), float(n)
        b = b + 2
        denom = b + numer * d
        d_denom = -1 + d_numer * d + numer * dd
        d = 1 / denom
        dd = -d_denom * d * d
        dc = -1 + d_numer / c - numer * dc / (c * c)
        c = b + numer / c
        step = c * d
        d_step = dc * d + c * dd
        dh = dh * step + h * d_step
        h = h * step
        if not np.any((np.abs(step - 1) > 1e-16) | (np.abs(h * d_step) > 1e-16 * np.abs(dh))):
            break
    return -(dh + h * (log_x - scipy_special().digamma(a)))


def _scaled_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """dP(a, x)/da over ``x**a exp(-x) / gamma(a)``, which cannot under- or overflow; float64."""
    valid = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    a, x = np.where(valid, a, 1.0), np.where(valid, x, 1.0)
    below = x <= a + 1
    log_x = np.log(x)
    out = np.where(
        below,
        _series(a, np.where(below, x, 0.0), log_x),
        _fraction(a, np.where(below, a + 2, x), log_x),
    )
    return np.where(valid, out, np.nan)


def _igamma_grad_a(a: np.ndarray, x: np.ndarray) -> Any:
    a64, x64 = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    factor = np.exp(a64 * np.log(x64) - x64 - scipy_special().gammaln(a64))
    slope = np.where(factor == 0, 0.0, _scaled_slope(a64, x64) * factor)
    slope = np.where((x64 == 0) & (a64 > 0), 0.0, slope)
    return np.where((a64 > 0) & (x64 >= 0) & np.isfinite(x64), slope, np.nan)


def _rounded(call: str) -> Callable[[np.dtype], str]:
    """Return the template of a kernel that computes in float64 whatever the operands."""
    return lambda dtype: call if dtype == np.float64 else f"sc.to_float32({call})"


@elementwise(
    _rounded("fk.gammagrad.igamma_grad_a({0}, {1})"),
    eval=_igamma_grad_a,
    dtypes=FLOAT,
    cost=400,
    jvp=Missing("it is a derivative itself, and has none. Use differences of it."),
)
def igamma_grad_a(a: Any, x: Any) -> Any:
    """Derivative of `igamma` by its first argument."""


def _random_gamma_grad(a: np.ndarray, x: np.ndarray) -> Any:
    a64, x64 = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    return np.where((x64 == 0) & (a64 > 0), 0.0, -x64 * _scaled_slope(a64, x64))


looped.update((_igamma_grad_a, _random_gamma_grad))


@elementwise(
    _rounded("fk.gammagrad.random_gamma_grad({0}, {1})"),
    eval=_random_gamma_grad,
    dtypes=FLOAT,
    cost=400,
    jvp=Missing("gamma samples have first derivatives only. Use differences of it."),
)
def random_gamma_grad(a: Any, x: Any) -> Any:
    """Derivative by ``a`` of a gamma sample ``x`` whose quantile stays fixed.

    By the implicit function theorem it is ``-(dP/da) / (dP/dx)``
    (Figurnov, Mohamed, Mnih, NeurIPS 2018).
    """


# ---- Bessel functions --------------------------------------------------------------------------


@elementwise(
    "fk.special.bessel_i0e({0})",
    eval=by_scipy("i0e"),
    dtypes=FLOAT,
    cost=30,
    jvp=partials(lambda g, out, x: mul(g, sub(bessel_i1e(x), mul(sign(x), out)))),
)
def bessel_i0e(x: Any) -> Any:
    """Modified Bessel function of order 0, times ``exp(-|x|)``."""


def _i1e_slope(g: Any, out: Any, x: Any) -> Any:
    # I1(x) / x tends to 1/2 at 0.
    tiny = const(x, finfo(x.dtype).eps)
    far = gt(calls.abs(x), tiny)
    safe = select(far, x, tiny)
    slope = sub(bessel_i0e(safe), mul(out, add(sign(safe), reciprocal(safe))))
    return mul(g, select(far, slope, 0.5))


@elementwise(
    "fk.special.bessel_i1e({0})",
    eval=by_scipy("i1e"),
    dtypes=FLOAT,
    cost=30,
    jvp=partials(_i1e_slope),
)
def bessel_i1e(x: Any) -> Any:
    """Modified Bessel function of order 1, times ``exp(-|x|)``."""
