"""Stable sorting along the middle axis of ``(outer, n, inner)``, and selection of the largest.

Bottom-up merge sort of keys together with the positions they came from, over runs made by
insertion. NaN sorts last and zeros are equal, whatever their signs; ties keep their order.
Arrays come flattened in C order; several keys are applied from the last to the first.
"""

from __future__ import annotations

import math

import numpy as np

from fnarray_kernels.registry import compiled, outside
from fnarray_kernels.scalar import in_total_order, u

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


@outside(loops=True, integers=True, improves=True)
def _sift(values, index, to, step, j, size):
    """Let place ``j`` of a heap sink, whose root is the last of its ``size`` in order."""
    value, place = values[u(to + j * step)], index[u(to + j * step)]
    child = 2 * j + 1
    while child < size:
        at = to + child * step
        if child + 1 < size and _precedes(values, index, at, at + step):
            child, at = child + 1, at + step
        other, where = values[u(at)], index[u(at)]
        if _above(other, value) or (not _above(value, other) and where < place):
            break
        values[u(to + j * step)], index[u(to + j * step)] = other, where
        j, child = child, 2 * child + 1
    values[u(to + j * step)], index[u(to + j * step)] = value, place


@compiled
def _precedes(values, index, i, j):
    """Whether place ``i`` comes before ``j``: the larger first, the earlier of equals."""
    a, b = values[u(i)], values[u(j)]
    return _above(a, b) or (not _above(b, a) and index[u(i)] < index[u(j)])


@compiled
def _may_be_above(new, least):
    """Whether an element may precede another: quicker than `_above`, and never wrongly false."""
    return (new > least) | (new != new) | ((least == 0) & (new == 0))


@compiled
def _some_above(x, at, least, hits):
    """Whether one of thirty-two elements may precede ``least``: each loop here is one vector."""
    zero = type(x[u(0)])(0)
    for i in range(16):
        a, b = x[u(at + i)], x[u(at + i + 16)]
        above = (a > least) | (a != a) | (b > least) | (b != b)
        hits[u(i)] = above | ((least == zero) & ((a == zero) | (b == zero)))
    for j in range(8):
        hits[u(j)] = hits[u(j)] | hits[u(j + 8)]
    for k in range(4):
        hits[u(k)] = hits[u(k)] | hits[u(k + 4)]
    return hits[u(0)] | hits[u(1)] | hits[u(2)] | hits[u(3)]


#: Elements that are compared with the least of those kept, in vectors, before one is looked at.
_AT_ONCE = 32


@outside(loops=True, integers=True, improves=True, free=True)
def top_k(x, values, index, outer, n, inner, k):
    """Select the ``k`` largest, descending, the earlier of equals first, by a heap of ``k``."""
    hits = np.empty(16, np.bool_)
    for o in range(outer if k > 0 else 0):
        for i in range(inner):
            at, to = o * n * inner + i, o * k * inner + i
            for r in range(k):
                values[u(to + r * inner)], index[u(to + r * inner)] = x[u(at + r * inner)], r
            for r in range(k // 2):
                _sift(values, index, to, inner, k // 2 - 1 - r, k)
            for start in range(k, n, _AT_ONCE):
                count = min(_AT_ONCE, n - start)
                looks = inner > 1 or count < _AT_ONCE
                if not looks:
                    looks = _some_above(x, at + start, values[u(to)], hits)
                if looks:
                    for r in range(start, start + count):
                        new = x[u(at + r * inner)]
                        least = values[u(to)]
                        if _may_be_above(new, least) and _above(new, least):
                            values[u(to)], index[u(to)] = new, r
                            _sift(values, index, to, inner, 0, k)
            for r in range(k - 1):
                last = to + (k - 1 - r) * inner
                value, place = values[u(last)], index[u(last)]
                values[u(last)], index[u(last)] = values[u(to)], index[u(to)]
                values[u(to)], index[u(to)] = value, place
                _sift(values, index, to, inner, 0, k - 1 - r)


@compiled
def _any_above(x, at, least, hits):
    """Whether one of thirty-two elements is above ``least``: each loop here is one vector."""
    for i in range(16):
        above = in_total_order(x[u(at + i)]) > least
        hits[u(i)] = above | (in_total_order(x[u(at + i + 16)]) > least)
    for j in range(8):
        hits[u(j)] = hits[u(j)] | hits[u(j + 8)]
    for k in range(4):
        hits[u(k)] = hits[u(k)] | hits[u(k + 4)]
    return hits[u(0)] | hits[u(1)] | hits[u(2)] | hits[u(3)]


@outside(loops=True, integers=True, free=True)
def top_few(x, values, index, outer, n, inner, k):
    """Select the ``k`` largest as `top_k` does, by insertion: a third of the text."""
    hits = np.empty(16, np.bool_)
    for o in range(outer if k > 0 else 0):
        for i in range(inner):
            at, to = o * n * inner + i, o * k * inner + i
            last = to + (k - 1) * inner
            for start in range(0, n, _AT_ONCE):
                stop = min(start + _AT_ONCE, n)
                looks = True
                if start >= k and inner == 1 and start + _AT_ONCE <= n:
                    looks = _any_above(x, at + start, in_total_order(values[u(last)]), hits)
                if looks:
                    for r in range(start, stop):
                        new = x[u(at + r * inner)]
                        key = in_total_order(new)
                        if r < k or key > in_total_order(values[u(last)]):
                            place = to + min(r, k - 1) * inner
                            while place > to and in_total_order(values[u(place - inner)]) < key:
                                values[u(place)] = values[u(place - inner)]
                                index[u(place)] = index[u(place - inner)]
                                place -= inner
                            values[u(place)], index[u(place)] = new, r
