"""Convolution, windows and stacks of small matrices by all threads of a grid.

A thread (or a block) for each element of a convolution, a thread for each window, each matrix;
arrays are flattened in C order, and arguments are those of the functions of the same names in
`conv`, `window`, `linalg`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnarray_kernels.conv import _element
from fnarray_kernels.grid import (
    atomic_add,
    block,
    blocks,
    from_lane,
    lane,
    lanes,
    part,
    thread,
    threads,
)
from fnarray_kernels.linalg import (
    _cholesky,
    _factor,
    _solve_factored,
    _substitute,
    _tridiagonal,
    permutation,
)
from fnarray_kernels.passes import HELD
from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u


@compiled
def _group(group, image, batch, xn, further, batch_groups):
    """Return where an image of a group begins: groups are of images, or of features."""
    if batch_groups > 1:
        return (group * batch + image) * xn
    return image * xn + group * further


def _direct(load: Any, store: Any) -> Any:
    @compiled
    def direct(
        zero, lhs, rhs, out, batch, out_features, features, feature_groups, batch_groups, *sizes
    ):
        """Convolve: a thread for each element of the result."""
        xn, xc, x0, x1, x2, wo, wc, w0, w1, w2, yn, yc, y0, y1, y2 = sizes[:15]
        n0, n1, n2, k0, k1, k2, p0, p1, p2, s0, s1, s2 = sizes[15:27]
        l0, l1, l2, b0, b1, b2, d0, d1, d2 = sizes[27:]
        share = out_features // (feature_groups * batch_groups)
        places = p0 * p1 * p2
        e = thread()
        while e < batch * out_features * places:
            # Neighbouring threads write neighbours, whichever of the two lies closer.
            if yc == 1:
                f, rest = e % out_features, e // out_features
                at, image = rest % places, rest // places
            else:
                at, rest = e % places, e // places
                f, image = rest % out_features, rest // out_features
            o0, o1, o2 = at // (p1 * p2), at // p2 % p1, at % p2
            x_base = _group(f // share, image, batch, xn, features * xc, batch_groups)
            total = zero
            for i in range(k0):
                at0 = _element(o0, i, n0, s0, l0, b0, d0)
                for j in range(k1):
                    at1 = _element(o1, j, n1, s1, l1, b1, d1)
                    for k in range(k2):
                        at2 = _element(o2, k, n2, s2, l2, b2, d2)
                        if at0 >= 0 and at1 >= 0 and at2 >= 0:
                            x = x_base + at0 * x0 + at1 * x1 + at2 * x2
                            w = f * wo + i * w0 + j * w1 + k * w2
                            for c in range(features):
                                weight = load(rhs[u(w + c * wc)])
                                total += weight * load(lhs[u(x + c * xc)])
            out[u(image * yn + f * yc + o0 * y0 + o1 * y1 + o2 * y2)] = store(total)
            e += threads()

    return direct


def _summed(load: Any, store: Any) -> Any:
    @compiled
    def summed(
        zero, lhs, rhs, out, batch, out_features, features, feature_groups, batch_groups, *sizes
    ):
        """Convolve with large windows: a block for each element, whose lanes share a window."""
        xn, xc, x0, x1, x2, wo, wc, w0, w1, w2, yn, yc, y0, y1, y2 = sizes[:15]
        n0, n1, n2, k0, k1, k2, p0, p1, p2, s0, s1, s2 = sizes[15:27]
        l0, l1, l2, b0, b1, b2, d0, d1, d2 = sizes[27:]
        share = out_features // (feature_groups * batch_groups)
        places = p0 * p1 * p2
        e = block()
        while e < batch * out_features * places:
            at, rest = e % places, e // places
            f, image = rest % out_features, rest // out_features
            o0, o1, o2 = at // (p1 * p2), at // p2 % p1, at % p2
            x_base = _group(f // share, image, batch, xn, features * xc, batch_groups)
            total = zero
            q = lane()
            while q < k0 * k1 * k2:
                i, j, k = q // (k1 * k2), q // k2 % k1, q % k2
                at0 = _element(o0, i, n0, s0, l0, b0, d0)
                at1 = _element(o1, j, n1, s1, l1, b1, d1)
                at2 = _element(o2, k, n2, s2, l2, b2, d2)
                if at0 >= 0 and at1 >= 0 and at2 >= 0:
                    x = x_base + at0 * x0 + at1 * x1 + at2 * x2
                    w = f * wo + i * w0 + j * w1 + k * w2
                    for c in range(features):
                        weight = load(rhs[u(w + c * wc)])
                        total += weight * load(lhs[u(x + c * xc)])
                q += lanes()
            step = 1
            while step < lanes():
                total += from_lane(total, step)
                step *= 2
            if lane() == 0:
                out[u(image * yn + f * yc + o0 * y0 + o1 * y1 + o2 * y2)] = store(total)
            e += blocks()

    return summed


direct, direct_float16, direct_bfloat16 = (_direct(*held) for held in HELD.values())
summed, summed_float16, summed_bfloat16 = (_summed(*held) for held in HELD.values())


@compiled
def fill(out, value, n):
    """Write a value everywhere."""
    i = thread()
    while i < n:
        out[u(i)] = value
        i += threads()


# --- windows: by divisions, as a thread has no memory for the counters of `window` ---------------


#: What is said of an axis: elements, places, padding below, window, stride, and the dilations of
#: the array and of the window; and axes that there are, of one element where an array has fewer.
#: All are written out: sizes by an index that is not known lay in a thread's memory, 1,264 bytes,
#: and were stored for each access.
AXIS, AXES = (1, 1, 0, 1, 1, 1, 1), 8


@compiled
def _in_window(place, r, sizes):
    """Return the flat index of window element ``r`` at ``place``; -1 in padding and holes."""
    flat, scale = 0, 1
    for axis in (
        sizes[49:56], sizes[42:49], sizes[35:42], sizes[28:35],
        sizes[21:28], sizes[14:21], sizes[7:14], sizes[0:7],
    ):  # fmt: skip
        n, places, low, window, stride, base, spread = axis
        at = (place % places) * stride + (r % window) * spread - low
        place, r = place // places, r // window
        if at < 0 or at % base or at // base >= n:
            return -1
        flat += scale * (at // base)
        scale *= n
    return flat


@compiled
def _select(x, largest, place, sizes):
    count = sizes[3] * sizes[10] * sizes[17] * sizes[24]
    count *= sizes[31] * sizes[38] * sizes[45] * sizes[52]
    chosen = -1
    for r in range(count):
        i = _in_window(place, r, sizes)
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
def select_and_scatter_add(source, x, out, count, largest, *sizes):
    """Add each element of ``source`` where its window's largest (or smallest) element is."""
    place = thread()
    while place < count:
        i = _select(x, largest, place, sizes)
        if i >= 0:
            atomic_add(out, i, source[u(place)])
        place += threads()


@compiled
def _of_element(e, r, sizes):
    """Return the flat place whose window has element ``e`` as its ``r``-th; -1 where none has."""
    flat, scale = 0, 1
    for axis in (
        sizes[49:56], sizes[42:49], sizes[35:42], sizes[28:35],
        sizes[21:28], sizes[14:21], sizes[7:14], sizes[0:7],
    ):  # fmt: skip
        n, places, low, window, stride, base, spread = axis
        at = (e % n) * base + low - (r % window) * spread
        e, r = e // n, r // window
        if at < 0 or at % stride or at // stride >= places:
            return -1
        flat += scale * (at // stride)
        scale *= places
    return flat


@compiled
def select_and_scatter_in_order(source, x, out, count, largest, *sizes):
    """Do the same, a thread for each element of the result: it adds in the order of places."""
    windows = sizes[3] * sizes[10] * sizes[17] * sizes[24]
    windows *= sizes[31] * sizes[38] * sizes[45] * sizes[52]
    e = thread()
    while e < count:
        total = out.dtype.type(0)
        for r in range(windows):
            # The later an element comes in a window, the earlier is that window's place.
            place = _of_element(e, windows - 1 - r, sizes)
            if place >= 0 and _select(x, largest, place, sizes) == e:
                total += source[u(place)]
        out[u(e)] = total
        e += threads()


@compiled
def select_and_gather_add(tangents, x, out, count, largest, *sizes):
    """Fetch from ``tangents`` where each window's largest (or smallest) element is."""
    place = thread()
    while place < count:
        i = _select(x, largest, place, sizes)
        out[u(place)] = tangents[u(i)] if i >= 0 else 0
        place += threads()


# --- matrices -----------------------------------------------------------------------------------


@compiled
def factor_cholesky(a, out, batch, n):
    """Lower factors of stacks of positive definite matrices."""
    size = n * n
    s = thread()
    while s < batch:
        _cholesky(a, s * size, out, s * size, n, out)
        s += threads()


@compiled
def solve_triangular(a, b, out, batch, n, k, left, lower, transposed, conjugated, unit):
    """Solve with triangular matrices, where the results lie: a thread has no memory of its own."""
    turned = transposed == left
    row, column = (1, n) if turned else (n, 1)
    down, across = (k, 1) if left else (1, n)
    s = thread()
    while s < batch:
        at = s * n * k
        for e in range(n * k):
            out[u(at + e)] = b[u(at + e)]
        _substitute(
            a, s * n * n, row, column, out, at, down, across, n, k,
            lower != turned, conjugated, unit,
        )  # fmt: skip
        s += threads()


@compiled
def factor_lu(a, out, pivots, order, batch, m, n):
    """Factor ``P A = L U``."""
    least = min(m, n)
    s = thread()
    while s < batch:
        at = s * m * n
        for e in range(m * n):
            out[u(at + e)] = a[u(at + e)]
        _factor(out, at, pivots, s * least, m, n)
        permutation(part(pivots, s * least, least), part(order, s * m, m), 1, least, m)
        s += threads()


@compiled
def _factored(a, work, pivots, s, n):
    """Factor one matrix in memory of its own; return how many rows were exchanged."""
    for e in range(n * n):
        work[u(s * n * n + e)] = a[u(s * n * n + e)]
    return _factor(work, s * n * n, pivots, s * n, n, n)


@compiled
def solve(a, b, out, work, pivots, batch, n, k):
    """Solve ``A X = B`` by LU factorisation."""
    s = thread()
    while s < batch:
        _factored(a, work, pivots, s, n)
        to = s * n * k
        for e in range(n * k):
            out[u(to + e)] = b[u(to + e)]
        for i in range(n):
            row, other = to + i * k, to + pivots[u(s * n + i)] * k
            for c in range(k):
                out[u(row + c)], out[u(other + c)] = out[u(other + c)], out[u(row + c)]
        _substitute(work, s * n * n, n, 1, out, to, k, 1, n, k, True, False, True)
        _substitute(work, s * n * n, n, 1, out, to, k, 1, n, k, False, False, False)
        s += threads()


@compiled
def solve_factored(a, factors, order, b, out, work, batch, n, k, transposed, conjugated):
    """Solve ``op(A) X = B`` given the factors and the rows' order of ``P A = L U``."""
    s = thread()
    while s < batch:
        at = s * n * k
        _solve_factored(factors, order, b, out, work, s, at, n, k, transposed, conjugated)
        s += threads()


@compiled
def solve_tridiagonal(lower, diagonal, upper, b, out, d, e, f, batch, n, k):
    """Solve tridiagonal systems; ``d``, ``e`` and ``f`` hold the eliminated diagonals."""
    s, wide = thread(), n * k
    while s < batch:
        for c in range(s * wide, (s + 1) * wide):
            out[u(c)] = b[u(c)]
        _tridiagonal(lower, diagonal, upper, out, s, d, e, f, s * n, n, k)
        s += threads()


@compiled
def permutations(pivots, order, batch, size, rows):
    """Orders of rows that successive exchanges make."""
    s = thread()
    while s < batch:
        permutation(part(pivots, s * size, size), part(order, s * rows, rows), 1, size, rows)
        s += threads()


@compiled
def determinants(a, out, work, pivots, batch, n):
    """Determinants, by LU factorisation."""
    s = thread()
    while s < batch:
        total = out.dtype.type(1 - 2 * (_factored(a, work, pivots, s, n) % 2))
        for i in range(n):
            total *= work[u(s * n * n + i * n + i)]
        out[u(s)] = total
        s += threads()


@compiled
def log_determinants(a, sign, log, work, pivots, batch, n):
    """Phases (signs, of real matrices) and logarithms of the sizes of determinants."""
    s = thread()
    while s < batch:
        phase = sign.dtype.type(1 - 2 * (_factored(a, work, pivots, s, n) % 2))
        total = log.dtype.type(0)
        for i in range(n):
            pivot = work[u(s * n * n + i * n + i)]
            size = abs(pivot)
            phase *= pivot / size if size != 0 else pivot
            total += np.log(size)
        sign[u(s)] = phase
        log[u(s)] = total
        s += threads()
