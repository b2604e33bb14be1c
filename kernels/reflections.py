"""QR of matrices by blocks of a grid, with or without exchanges of columns.

A block has a matrix, whose rows and columns its lanes share; with one lane it is a loop. What all
lanes must know each works out for itself, from memory that nobody writes until the next `sync`.
Arrays are flattened in C order.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels.grid import block, block_max, block_sum, blocks, lane, lanes, sync
from fnarray_kernels.linalg import _length, _size
from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u

# ---- reflections -------------------------------------------------------------------------------


@compiled
def _reflection(x, at, step, rows):
    """Return the first entry that a column is to have, and the reflection's scale.

    Signs are LAPACK's: the opposite of what the column begins with. The scale is 0 where nothing is
    to be done.
    """
    first = x[u(at)]
    rest = first.real * 0
    if rows > 1:
        rest = _length(x, at + step, step, rows - 1)
    if rest == 0 and first.imag == 0:
        return first.real, first * 0
    beta = -np.copysign(np.hypot(np.hypot(first.real, first.imag), rest), first.real)
    return beta, (beta - first) / beta


@compiled
def _packed(x, at, step, rows, beta):
    """Write what a column begins with, and below it the reflection, whose first entry is 1."""
    first = x[u(at)]
    sync()
    i = lane()
    while i < rows:
        x[u(at + i * step)] = beta if i == 0 else x[u(at + i * step)] / (first - beta)
        i += lanes()
    sync()


@compiled
def _from_left(x, to, down, v, at, step, rows, first, last, tau):
    """Take ``tau v v^H x`` off columns of ``x``, a lane for each."""
    c = first + lane()
    while c < last:
        total = x[u(to + c)]
        for i in range(1, rows):
            total += np.conj(v[u(at + i * step)]) * x[u(to + i * down + c)]
        total *= tau
        x[u(to + c)] -= total
        for i in range(1, rows):
            x[u(to + i * down + c)] -= total * v[u(at + i * step)]
        c += lanes()


@compiled
def _copied(a, x, at, count):
    """Copy a matrix; return the largest size of its entries, NaN where one is not finite."""
    largest, total = a[u(at)].real * 0, a[u(at)].real * 0
    e = lane()
    while e < count:
        value = a[u(at + e)]
        x[u(at + e)] = value
        size = _size(value)
        total += size * 0
        if size > largest:
            largest = size
        e += lanes()
    norm = block_max(largest) + block_sum(total)
    sync()
    return norm


@compiled
def _identity(x, at, rows, columns):
    """Write ones on the diagonal, zeros elsewhere."""
    e = lane()
    while e < rows * columns:
        x[u(at + e)] = 1 if e // columns == e % columns else 0
        e += lanes()


@compiled
def _from_right(x, to, columns, rows, v, at, step, count, tau):
    """Take ``tau x v v^H`` off rows of ``x``, a lane for each."""
    i = lane()
    while i < rows:
        row = to + i * columns
        total = x[u(row)]
        for c in range(1, count):
            total += x[u(row + c)] * v[u(at + c * step)]
        total *= tau
        x[u(row)] -= total
        for c in range(1, count):
            x[u(row + c)] -= total * np.conj(v[u(at + c * step)])
        i += lanes()


# ---- QR ----------------------------------------------------------------------------------------


@compiled
def _exchanged(x, at, order, places, norms, partial, m, n, j):
    """Bring the column that adds most to place ``j``."""
    best = j
    for c in range(j + 1, n):
        if norms[u(partial + c)] > norms[u(partial + best)]:
            best = c
    sync()
    if best == j:
        return
    i = lane()
    while i < m:
        here, there = at + i * n + j, at + i * n + best
        x[u(here)], x[u(there)] = x[u(there)], x[u(here)]
        i += lanes()
    if lane() == 0:
        here, there = places + j, places + best
        order[u(here)], order[u(there)] = order[u(there)], order[u(here)]
        norms[u(partial + best)] = norms[u(partial + j)]
        norms[u(partial + n + best)] = norms[u(partial + n + j)]
    sync()


@compiled
def _measured(x, at, norms, partial, m, n, j, eps):
    """Take row ``j`` off the lengths of columns; what lost half its digits is made anew."""
    c = j + 1 + lane()
    while c < n:
        length, whole = norms[u(partial + c)], norms[u(partial + n + c)]
        if length > 0:
            one = type(length)(1)
            share = np.abs(x[u(at + j * n + c)]) / length
            left = (one - share) * (one + share)
            if left < 0:
                left = one * 0
            ratio = length / whole
            if left * ratio * ratio <= np.sqrt(eps):
                length = one * 0
                if j + 1 < m:
                    length = _length(x, at + (j + 1) * n + c, n, m - j - 1)
                norms[u(partial + n + c)] = length
            else:
                length *= np.sqrt(left)
            norms[u(partial + c)] = length
        c += lanes()
    sync()


@compiled
def _reflected(x, at, tau, to, m, n, j):
    """Take column ``j`` to its first entry, and the columns after it along."""
    corner = at + j * n + j
    beta, scale = _reflection(x, corner, n, m - j)
    if scale != 0:
        _packed(x, corner, n, m - j, beta)
        _from_left(x, at + j * n, n, x, corner, n, m - j, j + 1, n, np.conj(scale))
    if lane() == 0:
        tau[u(to)] = scale
    sync()


@compiled
def _orthonormal(x, at, tau, scales, q, to, m, n, k, size):
    """Write the columns that the reflections of ``x`` make of the first ones of the identity."""
    _identity(q, to, m, k)
    sync()
    for step in range(size):
        j = size - 1 - step
        scale = tau[u(scales + j)]
        if scale != 0:
            _from_left(q, to + j * k, k, x, at + j * n + j, n, m - j, j, k, scale)
        sync()


@compiled
def _upper(x, at, r, to, n, k):
    """Copy what is on the diagonal and above."""
    e = lane()
    while e < k * n:
        i, c = e // n, e % n
        r[u(to + e)] = x[u(at + e)] if c >= i else 0
        e += lanes()
    sync()


@compiled
def _reflections(a, x, at, tau, first, m, n, size):
    """Copy a matrix, and turn it into reflections below an upper triangle."""
    _copied(a, x, at, m * n)
    for j in range(size):
        _reflected(x, at, tau, first + j, m, n, j)


@compiled
def qr(a, q, r, x, tau, batch, m, n, k):
    """Orthonormal columns (m, k) and upper triangles (k, n)."""
    size = min(m, n)
    s = block()
    while s < batch:
        at = s * m * n
        _reflections(a, x, at, tau, s * size, m, n, size)
        _upper(x, at, r, s * k * n, n, k)
        _orthonormal(x, at, tau, s * size, q, s * m * k, m, n, k, size)
        s += blocks()


@compiled
def qr_pivoted(a, q, r, order, x, tau, norms, batch, m, n, k, eps):
    """Factors of ``a[:, order]``, whose columns are ordered by what they add.

    Lengths of what is left of columns are taken on from step to step (Drmac & Bujanovic 2008).
    """
    size = min(m, n)
    s = block()
    while s < batch:
        at, partial = s * m * n, 2 * s * n
        _copied(a, x, at, m * n)
        c = lane()
        while c < n:
            length = _length(x, at + c, n, m)
            norms[u(partial + c)], norms[u(partial + n + c)] = length, length
            order[u(s * n + c)] = c
            c += lanes()
        sync()
        for j in range(size):
            _exchanged(x, at, order, s * n, norms, partial, m, n, j)
            _reflected(x, at, tau, s * size + j, m, n, j)
            _measured(x, at, norms, partial, m, n, j, eps)
        _upper(x, at, r, s * k * n, n, k)
        _orthonormal(x, at, tau, s * size, q, s * m * k, m, n, k, size)
        s += blocks()


# ---- what LAPACK stores of it ------------------------------------------------------------------


@compiled
def packed(a, x, tau, batch, m, n):
    """Reflections below upper triangles (m, n), and their scales."""
    size = min(m, n)
    s = block()
    while s < batch:
        _reflections(a, x, s * m * n, tau, s * size, m, n, size)
        s += blocks()


@compiled
def unpacked(a, tau, q, batch, m, n, size):
    """Orthonormal columns (m, n) that ``size`` reflections stand for."""
    s = block()
    while s < batch:
        _orthonormal(a, s * m * n, tau, s * size, q, s * m * n, m, n, n, size)
        s += blocks()


@compiled
def multiplied(a, tau, c, out, batch, m, n, size, rows, columns, left, turned):
    """``op(Q) c`` or ``c op(Q)`` of the ``Q`` (m, m) that reflections (m, n) stand for."""
    s = block()
    while s < batch:
        at, to = s * m * n, s * rows * columns
        _copied(c, out, to, rows * columns)
        for step in range(size):
            j = step if left == turned else size - 1 - step
            scale = tau[u(s * size + j)]
            if turned:
                scale = np.conj(scale)
            corner = at + j * n + j
            if left:
                first = to + j * columns
                _from_left(out, first, columns, a, corner, n, m - j, 0, columns, scale)
            else:
                _from_right(out, to + j, columns, rows, a, corner, n, m - j, scale)
            sync()
        s += blocks()


# ---- Cholesky factors of what is added to ------------------------------------------------------


@compiled
def updated(r, w, out, work, batch, n):
    """Upper factors of ``R^T R + w w^T``: rotations of each row against ``w``."""
    s = block()
    while s < batch:
        at, to = s * n * n, s * n
        _copied(r, out, at, n * n)
        _copied(w, work, to, n)
        for k in range(n):
            first, second = out[u(at + k * n + k)], work[u(to + k)]
            size = np.hypot(first, second)
            cosine, sine = first / size, second / size
            sync()
            c = lane()
            while c < n:
                x, y = out[u(at + k * n + c)], work[u(to + c)]
                out[u(at + k * n + c)] = cosine * x + sine * y
                work[u(to + c)] = cosine * y - sine * x
                c += lanes()
            sync()
        s += blocks()
