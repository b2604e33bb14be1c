"""Selection of one element per window, and what is added or fetched there.

``sizes`` holds, one entry per axis each: the operand's shape, the number of places of the window,
low padding, the window's size and stride, and the distances of neighbours in the operand and in
the window.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u


@compiled
def _element(corner, turn, ndim, table):
    """Return the flat index of an element of a window; -1 in padding and holes."""
    flat = 0
    for axis in range(ndim):
        n, base = table[u(axis)], table[u(5 * ndim + axis)]
        at = corner[u(axis)] + turn[u(axis)] * table[u(6 * ndim + axis)]
        if at < 0:
            return -1
        if base > 1:
            if at % base != 0:
                return -1
            at = at // base
        if at >= n:
            return -1
        flat = flat * n + at
    return flat


@compiled
def _advance(turn, ndim, table, first):
    """Count on, the last axis fastest, up to the extents from ``first`` on; False at the end."""
    for back in range(ndim):
        axis = ndim - 1 - back
        turn[u(axis)] += 1
        if turn[u(axis)] < table[u(first + axis)]:
            return True
        turn[u(axis)] = 0
    return False


@compiled
def _select(x, largest, place, corner, turn, ndim, table):
    for axis in range(ndim):
        stride, low = table[u(4 * ndim + axis)], table[u(2 * ndim + axis)]
        corner[u(axis)] = place[u(axis)] * stride - low
        turn[u(axis)] = 0
    chosen = -1
    for _ in range(_count(ndim, table)):
        i = _element(corner, turn, ndim, table)
        _advance(turn, ndim, table, 3 * ndim)
        if i < 0:
            continue
        if chosen < 0:
            chosen = i
            continue
        best, new = x[u(chosen)], x[u(i)]
        # Written so that NaN, on either side, is replaced by what comes later.
        if not (best >= new if largest else best <= new):
            chosen = i
    return chosen


@compiled
def _inside(place, ndim, table):
    """Return the flat index of a window's corner where all of it are elements; -1 elsewhere."""
    flat = 0
    for axis in range(ndim):
        n = table[u(axis)]
        at = place[u(axis)] * table[u(4 * ndim + axis)] - table[u(2 * ndim + axis)]
        last = at + (table[u(3 * ndim + axis)] - 1) * table[u(6 * ndim + axis)]
        if at < 0 or last >= n or table[u(5 * ndim + axis)] > 1:
            return -1
        flat = flat * n + at
    return flat


@compiled
def _count(ndim, table):
    """Return how many elements a window has."""
    count = 1
    for axis in range(ndim):
        count *= table[u(3 * ndim + axis)]
    return count


@compiled
def _measure(offsets, ndim, table):
    """Note how far each element of a window is from its corner, the last axis fastest."""
    for k in range(offsets.shape[0]):
        rest, step, at = k, 1, 0
        for back in range(ndim):
            axis = ndim - 1 - back
            size = table[u(3 * ndim + axis)]
            at += rest % size * table[u(6 * ndim + axis)] * step
            rest = rest // size
            step *= table[u(axis)]
        offsets[u(k)] = at


@compiled
def _chosen(x, largest, offsets, place, corner, turn, ndim, table):
    """Return where a window's chosen element is; -1 where it has none."""
    base = _inside(place, ndim, table)
    if base < 0 or offsets.shape[0] == 0:
        return _select(x, largest, place, corner, turn, ndim, table)
    # As `_select`, without asking of each element whether it is one: 32 ns a window, and 20.
    chosen = base
    for k in range(1, offsets.shape[0]):
        i = base + offsets[u(k)]
        best, new = x[u(chosen)], x[u(i)]
        if not (best >= new if largest else best <= new):
            chosen = i
    return chosen


@compiled
def select_and_scatter_add(source, x, out, largest, ndim, *sizes):
    """Add each element of ``source`` where its window's largest (or smallest) element is."""
    out[:] = 0
    # Counters, not divisions: a window of 2 x 2 in four axes took 520 ns, and 30.
    table = np.empty(7 * ndim, np.int64)
    for k in range(7 * ndim):
        table[u(k)] = sizes[k]
    place, corner, turn = (
        np.empty(ndim, np.int64),
        np.empty(ndim, np.int64),
        np.empty(ndim, np.int64),
    )
    for axis in range(ndim):
        place[u(axis)] = 0
    offsets = np.empty(_count(ndim, table), np.int64)
    _measure(offsets, ndim, table)
    for k in range(source.size):
        i = _chosen(x, largest, offsets, place, corner, turn, ndim, table)
        if i >= 0:
            out[u(i)] += source[u(k)]
        _advance(place, ndim, table, ndim)


@compiled
def select_and_gather_add(tangents, x, out, largest, ndim, *sizes):
    """Fetch from ``tangents`` where each window's largest (or smallest) element is."""
    table = np.empty(7 * ndim, np.int64)
    for k in range(7 * ndim):
        table[u(k)] = sizes[k]
    place, corner, turn = (
        np.empty(ndim, np.int64),
        np.empty(ndim, np.int64),
        np.empty(ndim, np.int64),
    )
    for axis in range(ndim):
        place[u(axis)] = 0
    offsets = np.empty(_count(ndim, table), np.int64)
    _measure(offsets, ndim, table)
    for k in range(out.size):
        i = _chosen(x, largest, offsets, place, corner, turn, ndim, table)
        out[u(k)] = tangents[u(i)] if i >= 0 else 0
        _advance(place, ndim, table, ndim)
