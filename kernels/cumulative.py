"""Running combinations along the middle axis of ``(outer, n, inner)``.

Arrays come flattened in C order. Rows of the inner axis are combined whole, which vectorises; a
single lane carries its value in a register.
"""

from __future__ import annotations

import math

import numpy as np

from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import maximum, minimum, u

_LOG2 = math.log(2.0)


@compiled
def _add(a, b):
    return a + b


@compiled
def _kept(total, low, term):
    """Add a term; what rounding takes off it goes to ``low``, as by `scalar.lost`.

    Complex numbers add up here, too, which `scalar`'s functions do not take.
    """
    new = total + term
    moved = new - total
    return new, low + ((total - (new - moved)) + (term - moved))


@compiled
def _settled(total, low):
    """Return a total with what it has lost: NaN beside infinities, or 0, which would turn -0."""
    return total + low if low == low and low != 0 else total


@compiled
def _multiply(a, b):
    return a * b


@compiled
def _log_add(a, b):
    if a == b:  # infinities too, whose difference would be NaN
        return a + type(a)(_LOG2)
    high, low = (a, b) if a > b else (b, a)
    return high + math.log1p(math.exp(low - high))


def _along(combine):
    """Return the kernel that folds by ``combine`` along the middle axis, keeping every result."""

    @compiled
    def run(x, out, outer, n, inner, reverse):
        step = -inner if reverse else inner
        for o in range(outer):
            at = o * n * inner + ((n - 1) * inner if reverse else 0)
            if inner == 1:
                carry = x[u(at)]
                out[u(at)] = carry
                for _ in range(1, n):
                    at += step
                    carry = combine(carry, x[u(at)])
                    out[u(at)] = carry
                continue
            for i in range(inner):
                out[u(at + i)] = x[u(at + i)]
            for _ in range(1, n):
                row, at = at, at + step
                for i in range(inner):
                    out[u(at + i)] = combine(out[u(row + i)], x[u(at + i)])

    return run


def _carried(wide, combine):
    """Return the kernel that does so a line at a time, its carry of a wider type."""

    @compiled
    def run(x, out, outer, n, inner, reverse):
        step = -inner if reverse else inner
        for o in range(outer):
            for i in range(inner):
                at = o * n * inner + i + ((n - 1) * inner if reverse else 0)
                carry = wide(x[u(at)])
                out[u(at)] = carry
                for _ in range(1, n):
                    at += step
                    carry = combine(carry, wide(x[u(at)]))
                    out[u(at)] = carry

    return run


#: Lanes whose totals are kept at a time: two rows of them stay in the fastest cache.
_LANES = 512


def _rows_carried(wide):
    """Return the kernel of sums as `_carried`, by rows: up to eight times as fast across lines.

    It takes memory for its totals, which a GPU's threads have not: they go a line at a time.
    """

    @compiled
    def run(x, out, outer, n, inner, reverse):
        step = -inner if reverse else inner
        total = np.empty(min(inner, _LANES), wide)
        for o in range(outer):
            for first in range(0, inner, _LANES):
                at = o * n * inner + first + ((n - 1) * inner if reverse else 0)
                lanes = min(inner - first, _LANES)
                for i in range(lanes):
                    total[i] = x[u(at + i)]
                    out[u(at + i)] = x[u(at + i)]
                for _ in range(1, n):
                    at += step
                    for i in range(lanes):
                        total[i] += x[u(at + i)]
                        out[u(at + i)] = total[i]

    return run


cumsum_float32 = _carried(np.float64, _add)
cumsum_complex64 = _carried(np.complex128, _add)
cumsum_rows_float32 = _rows_carried(np.float64)
cumsum_rows_complex64 = _rows_carried(np.complex128)
cumlogsumexp = _carried(np.float64, _log_add)


@compiled
def cumsum_double(x, out, outer, n, inner, reverse):
    """Running sums of double precision, what rounding loses of each total kept beside it.

    As by Neumaier. The chain from element to element is as long as without: one addition.
    """
    step = -inner if reverse else inner
    for o in range(outer):
        for i in range(inner):
            at = o * n * inner + i + ((n - 1) * inner if reverse else 0)
            carry = x[u(at)]
            lost = type(carry)(0)
            out[u(at)] = carry
            for _ in range(1, n):
                at += step
                carry, lost = _kept(carry, lost, x[u(at)])
                out[u(at)] = _settled(carry, lost)


@compiled
def cumsum_rows_double(x, out, outer, n, inner, reverse):
    """Do as `cumsum_double`, by rows."""
    step = -inner if reverse else inner
    total = np.empty(min(inner, _LANES), x.dtype)
    low = np.empty(min(inner, _LANES), x.dtype)
    for o in range(outer):
        for first in range(0, inner, _LANES):
            at = o * n * inner + first + ((n - 1) * inner if reverse else 0)
            lanes = min(inner - first, _LANES)
            for i in range(lanes):
                total[i] = x[u(at + i)]
                low[i] = 0
                out[u(at + i)] = x[u(at + i)]
            for _ in range(1, n):
                at += step
                for i in range(lanes):
                    total[i], low[i] = _kept(total[i], low[i], x[u(at + i)])
                    out[u(at + i)] = _settled(total[i], low[i])


cumsum = _along(_add)
cumprod = _along(_multiply)
cummax = _along(maximum)
cummin = _along(minimum)


@compiled
def linear_recurrence(a, b, out, outer, n, inner, reverse):
    """Set ``out[k] = a[k] * out[k - 1] + b[k]`` along the middle axis, from zero."""
    step = -inner if reverse else inner
    for o in range(outer):
        at = o * n * inner + ((n - 1) * inner if reverse else 0)
        if inner == 1:
            carry = b[u(at)]
            out[u(at)] = carry
            for _ in range(1, n):
                at += step
                carry = a[u(at)] * carry + b[u(at)]
                out[u(at)] = carry
            continue
        for i in range(inner):
            out[u(at + i)] = b[u(at + i)]
        for _ in range(1, n):
            row, at = at, at + step
            for i in range(inner):
                out[u(at + i)] = a[u(at + i)] * out[u(row + i)] + b[u(at + i)]
