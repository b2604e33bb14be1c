"""Selection of one element per window, and what is added or fetched there.

``sizes`` holds, one entry per axis each: the operand's shape, the number of places of the window,
low padding, the window's size and stride, and the distances of neighbours in the operand and in
the window.
"""

from __future__ import annotations

from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u


@compiled
def _element(place, r, ndim, sizes):
    """Return the flat index of window element ``r`` at ``place``; -1 in padding and holes."""
    flat, scale = 0, 1
    for axis in range(ndim - 1, -1, -1):
        n, places, low = sizes[axis], sizes[ndim + axis], sizes[2 * ndim + axis]
        window, stride = sizes[3 * ndim + axis], sizes[4 * ndim + axis]
        base, spread = sizes[5 * ndim + axis], sizes[6 * ndim + axis]
        at = (place % places) * stride + (r % window) * spread - low
        place, r = place // places, r // window
        if at < 0 or at % base or at // base >= n:
            return -1
        flat += scale * (at // base)
        scale *= n
    return flat


@compiled
def _select(x, largest, place, ndim, sizes):
    count = 1
    for axis in range(ndim):
        count *= sizes[3 * ndim + axis]
    chosen = -1
    for r in range(count):
        i = _element(place, r, ndim, sizes)
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
def select_and_scatter_add(source, x, out, largest, ndim, *sizes):
    """Add each element of ``source`` where its window's largest (or smallest) element is."""
    out[:] = 0
    for place in range(source.size):
        i = _select(x, largest, place, ndim, sizes)
        if i >= 0:
            out[u(i)] += source[u(place)]


@compiled
def select_and_gather_add(tangents, x, out, largest, ndim, *sizes):
    """Fetch from ``tangents`` where each window's largest (or smallest) element is."""
    for place in range(out.size):
        i = _select(x, largest, place, ndim, sizes)
        out[u(place)] = tangents[u(i)] if i >= 0 else 0
