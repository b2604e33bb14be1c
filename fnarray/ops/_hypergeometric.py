"""Derivatives of hypergeometric functions by their parameters, from their power series.

The terms' derivatives follow the terms' own recurrence, which needs no division by ``a + n`` and
so holds where a parameter is a negative integer. Negative arguments are first made positive, by
the transformations of Kummer and Pfaff, so that terms do not cancel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: More terms than any argument needs that is further than 1e-3 from a singularity.
_MOST = 40_000


def _series(upper: tuple[Any, ...], lower: Any, x: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the sum over n of ``(upper)_n / (lower)_n x**n / n!``, and its slopes by parameters.

    Parameters
    ----------
    upper : tuple of arrays
        Parameters of the numerator.
    lower : array
        That of the denominator; its slope is the last.
    x : array
        The argument.
    """
    *parameters, x = np.broadcast_arrays(*upper, lower, x)
    *numerator, c = parameters
    term = total = np.ones_like(x)
    slopes = [np.zeros_like(x) for _ in parameters]
    sums = list(slopes)
    for n in range(_MOST):
        factors = [a + n for a in numerator]
        step = x / ((c + n) * (n + 1))
        product = np.prod(factors, axis=0)
        for k in range(len(numerator)):
            others = np.prod([f for i, f in enumerate(factors) if i != k], axis=0)
            slopes[k] = (slopes[k] * product + term * others) * step
        slopes[-1] = (slopes[-1] - term / (c + n)) * product * step
        term = term * product * step
        total = total + term
        sums = [s + d for s, d in zip(sums, slopes, strict=True)]
        if all(np.all(~(np.abs(d) > 1e-17 * np.abs(s))) for d, s in zip(slopes, sums, strict=True)):
            return total, sums
    return total, [np.where(np.isfinite(s), s, np.nan) for s in sums]


def hyp1f1_slope(k: int, a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of 1F1(a; b; x) by ``a`` (``k`` = 0) or ``b`` (1)."""
    flip = x < 0
    _, (by_a, by_b) = _series((np.where(flip, b - a, a),), b, np.abs(x))
    # Kummer: 1F1(a; b; x) = exp(x) 1F1(b - a; b; -x).
    turned = np.exp(np.where(flip, x, 0)) * (-by_a if k == 0 else by_a + by_b)
    return np.where(flip, turned, by_a if k == 0 else by_b)


def hyp2f1_slope(k: int, a: np.ndarray, b: np.ndarray, c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Derivative of 2F1(a, b; c; x) by ``a``, ``b`` or ``c`` (``k`` = 0, 1, 2); NaN from 1 on."""
    flip, inside = x < 0, x < 1
    near = np.where(inside, np.where(flip, x / (x - 1), x), 0)
    value, (by_a, by_b, by_c) = _series((a, np.where(flip, c - b, b)), c, near)
    # Pfaff: 2F1(a, b; c; x) = (1 - x)**-a 2F1(a, c - b; c; x / (x - 1)).
    log = np.log1p(np.where(flip, -x, 0))
    turned = np.exp(-a * log) * (by_a - log * value, -by_b, by_b + by_c)[k]
    return np.where(inside, np.where(flip, turned, (by_a, by_b, by_c)[k]), np.nan)
