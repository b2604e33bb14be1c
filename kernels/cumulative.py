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


def _in_double(double):
    """Return the kernel of running sums of single precision, their totals in double."""

    @compiled
    def run(x, out, outer, n, inner, reverse):
        step = -inner if reverse else inner
        for o in range(outer):
            for i in range(inner):
                at = o * n * inner + i + ((n - 1) * inner if reverse else 0)
                carry = double(0)
                for _ in range(n):
                    carry += x[u(at)]
                    out[u(at)] = carry
                    at += step

    return run


#: Running sums of float32, and of complex64.
cumsum_float32 = _in_double(np.float64)
cumsum_complex64 = _in_double(np.complex128)


@compiled
def cumsum_double(x, out, outer, n, inner, reverse):
    """Running sums of double precision, what rounding loses of each total kept beside it.

    As by Neumaier. The chain from element to element is as long as without: one addition.
    """
    step = -inner if reverse else inner
    for o in range(outer):
        for i in range(inner):
            at = o * n * inner + i + ((n - 1) * inner if reverse else 0)
            carry = x[u(at)] * 0
            lost = carry
            for _ in range(n):
                term = x[u(at)]
                new = carry + term
                moved = new - carry
                lost = lost + ((carry - (new - moved)) + (term - moved))
                carry = new
                out[u(at)] = new + lost if lost == lost else new
                at += step


cumsum = _along(_add)
cumprod = _along(_multiply)
cummax = _along(maximum)
cummin = _along(minimum)


@compiled
def cumlogsumexp(x, out, outer, n, inner, reverse):
    """Running log-sum-exps, carried in double precision."""
    step = -inner if reverse else inner
    for o in range(outer):
        for i in range(inner):
            at = o * n * inner + i + ((n - 1) * inner if reverse else 0)
            carry = -np.inf
            for _ in range(n):
                carry = _log_add(carry, np.float64(x[u(at)]))
                out[u(at)] = carry
                at += step


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
