"""Stable sorting along the middle axis of ``(outer, n, inner)``, and selection of the largest.

Bottom-up merge sort of keys together with the positions they came from, over runs made by
insertion. NaN sorts last and zeros are equal, whatever their signs; ties keep their order.
Arrays come flattened in C order; several keys are applied from the last to the first.
"""

from __future__ import annotations

import math

import numpy as np

from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u

#: Length of the runs that insertion makes: merging shorter ones costs more than it saves.
_RUN = 12


@compiled
def _less(a, b):
    return (a < b) | ((b != b) & (a == a))


@compiled
def _insert(keys, perm, start, stop):
    for i in range(start + 1, stop):
        key, place = keys[u(i)], perm[u(i)]
        j = i - 1
        while j >= start and _less(key, keys[u(j)]):
            keys[u(j + 1)], perm[u(j + 1)] = keys[u(j)], perm[u(j)]
            j -= 1
        keys[u(j + 1)], perm[u(j + 1)] = key, place


@compiled
def _merge(keys, perm, to_keys, to_perm, start, middle, stop):
    i, j = start, middle
    for at in range(start, stop):
        if i < middle and (j >= stop or not _less(keys[u(j)], keys[u(i)])):
            to_keys[u(at)], to_perm[u(at)] = keys[u(i)], perm[u(i)]
            i += 1
        else:
            to_keys[u(at)], to_perm[u(at)] = keys[u(j)], perm[u(j)]
            j += 1


@compiled
def _order(key, at, step, perm):
    """Rearrange ``perm`` so that ``key[at + perm * step]`` ascends."""
    n = perm.shape[0]
    keys = np.empty(n, key.dtype)
    for r in range(n):
        keys[r] = key[u(at + perm[r] * step)]
    for start in range(0, n, _RUN):
        _insert(keys, perm, start, min(start + _RUN, n))
    if n <= _RUN:
        return
    place = perm
    to_keys, to_perm = np.empty(n, key.dtype), np.empty(n, np.int64)
    width, swapped = _RUN, False
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            _merge(keys, place, to_keys, to_perm, start, middle, min(middle + width, n))
        keys, to_keys = to_keys, keys
        place, to_perm = to_perm, place
        width, swapped = 2 * width, not swapped
    if swapped:
        perm[:] = place


@compiled
def _take(x, out, at, step, perm):
    for r in range(perm.shape[0]):
        out[u(at + r * step)] = x[u(at + perm[r] * step)]


@compiled
def _start(perm, o, i, inner):
    """Reset ``perm``; return where lane ``(o, i)`` begins."""
    n = perm.shape[0]
    for r in range(n):
        perm[r] = r
    return o * n * inner + i


@compiled
def sort_1(x, x_out, outer, n, inner, num_keys):
    """Sort one operand."""
    perm = np.empty(n, np.int64)
    for o in range(outer):
        for i in range(inner):
            at = _start(perm, o, i, inner)
            _order(x, at, inner, perm)
            _take(x, x_out, at, inner, perm)


@compiled
def sort_2(x, y, x_out, y_out, outer, n, inner, num_keys):
    """Sort two operands by the first ``num_keys``."""
    perm = np.empty(n, np.int64)
    for o in range(outer):
        for i in range(inner):
            at = _start(perm, o, i, inner)
            if num_keys > 1:
                _order(y, at, inner, perm)
            _order(x, at, inner, perm)
            _take(x, x_out, at, inner, perm)
            _take(y, y_out, at, inner, perm)


@compiled
def sort_3(x, y, z, x_out, y_out, z_out, outer, n, inner, num_keys):
    """Sort three operands by the first ``num_keys``."""
    perm = np.empty(n, np.int64)
    for o in range(outer):
        for i in range(inner):
            at = _start(perm, o, i, inner)
            if num_keys > 2:
                _order(z, at, inner, perm)
            if num_keys > 1:
                _order(y, at, inner, perm)
            _order(x, at, inner, perm)
            _take(x, x_out, at, inner, perm)
            _take(y, y_out, at, inner, perm)
            _take(z, z_out, at, inner, perm)


@compiled
def _nan_rank(a):
    if a == a:
        return 0.0
    return math.copysign(1.0, a)


@compiled
def _above(a, b):
    """Whether ``a`` precedes ``b`` among the largest, by IEEE's total order."""
    if a == b:
        return (a == 0) & (math.copysign(1.0, a) > math.copysign(1.0, b))
    return (a > b) | (_nan_rank(a) > _nan_rank(b))


@compiled
def top_k(x, values, index, outer, n, inner, k):
    """Select the ``k`` largest, descending, the earlier of equals first, by insertion."""
    for o in range(outer if k > 0 else 0):
        for i in range(inner):
            at, to = o * n * inner + i, o * k * inner + i
            for r in range(n):
                new = x[u(at + r * inner)]
                j = min(r, k)
                while j > 0 and _above(new, values[u(to + (j - 1) * inner)]):
                    if j < k:
                        values[u(to + j * inner)] = values[u(to + (j - 1) * inner)]
                        index[u(to + j * inner)] = index[u(to + (j - 1) * inner)]
                    j -= 1
                if j < k:
                    values[u(to + j * inner)] = new
                    index[u(to + j * inner)] = r
