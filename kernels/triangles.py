"""Eigenvectors and square roots of matrices whose Schur forms are known, by blocks of a grid.

Both come by substitution in complex triangles (Bjorck & Hammarling 1983 for the latter). A block
has a matrix: a lane for each vector, and for each entry of a diagonal.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels import complexmath as cm
from fnarray_kernels.complexmath import make
from fnarray_kernels.grid import block, block_max, blocks, lane, lanes, sync
from fnarray_kernels.linalg import _length, _size
from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import u

#: Entries of a vector beyond which it is made smaller, in the course of a substitution.
_MUCH = 1e12


@compiled
def _largest(x, at, count):
    """Return the largest size of a matrix's entries; 1 for none."""
    largest = x[u(at)].real * 0
    e = lane()
    while e < count:
        largest = max(largest, _size(x[u(at + e)]))
        e += lanes()
    largest = block_max(largest)
    return largest if largest > 0 else largest * 0 + 1


@compiled
def _substituted(t, x, at, n, k, left, norm, eps):
    """Write eigenvector ``k`` of a triangle, or of its adjoint, as column ``k``.

    Where eigenvalues meet it is divided by a little: the vectors come out parallel.
    """
    value = t[u(at + k * n + k)]
    least = eps * max(_size(value), eps * norm)
    count = n - k if left else k + 1
    for i in range(n):
        x[u(at + i * n + k)] = 1 if i == k else 0
    for step in range(1, count):
        i = k + step if left else k - step
        total = value * 0
        for turn in range(step):
            j = k + turn if left else k - turn
            entry = np.conj(t[u(at + j * n + i)]) if left else t[u(at + i * n + j)]
            total -= entry * x[u(at + j * n + k)]
        gap = t[u(at + i * n + i)] - value
        if left:
            gap = np.conj(gap)
        if _size(gap) < least:
            gap = make(least, least * 0)
        total /= gap
        x[u(at + i * n + k)] = total
        size = _size(total)
        if size > _MUCH:
            for turn in range(step + 1):
                j = k + turn if left else k - turn
                x[u(at + j * n + k)] /= size


@compiled
def _normalised(out, at, n, k, is_real):
    """Give a column's largest entry no phase, and the column length 1."""
    largest, best = out[u(at + k)].real * 0, at + k
    for i in range(n):
        entry = out[u(at + i * n + k)]
        size = np.hypot(entry.real, entry.imag)
        if size > largest:
            largest, best = size, at + i * n + k
    phase = np.conj(out[u(best)]) / largest
    for i in range(n):
        here = at + i * n + k
        entry = out[u(here)] * phase
        # A real vector with a phase; where eigenvalues meet, the rest is rounding grown large.
        out[u(here)] = make(entry.real, entry.real * 0) if is_real or here == best else entry
    length = _length(out, at + k, n, n)
    for i in range(n):
        out[u(at + i * n + k)] /= length


@compiled
def eigenvectors(t, z, scales, x, out, batch, n, left, conjugates, eps):
    """Eigenvectors of matrices with triangles ``t`` and vectors ``z``; left ones if asked.

    ``scales`` are those of `balance`.

    Of real matrices, ``conjugates`` says, real eigenvalues have real vectors, and of two that are
    conjugates the second is the first's.
    """
    s = block()
    while s < batch:
        at = s * n * n
        norm = _largest(t, at, n * n)
        k = lane()
        while k < n:
            turned = t[u(at + k * n + k)].imag
            if not (conjugates and turned < 0):
                _substituted(t, x, at, n, k, left, norm, eps)
                for i in range(n):
                    total = x[u(at + k)] * 0
                    for j in range(n):
                        total += z[u(at + i * n + j)] * x[u(at + j * n + k)]
                    scale = scales[u(s * n + i)]
                    out[u(at + i * n + k)] = total / scale if left else total * scale
                _normalised(out, at, n, k, conjugates and turned == 0)
                if conjugates and turned > 0:
                    for i in range(n):
                        out[u(at + i * n + k + 1)] = np.conj(out[u(at + i * n + k)])
            k += lanes()
        sync()
        s += blocks()


@compiled
def diagonals(t, w, batch, n):
    """Diagonals of matrices."""
    e = block() * lanes() + lane()
    while e < batch * n:
        s, k = e // n, e % n
        w[u(e)] = t[u(s * n * n + k * n + k)]
        e += blocks() * lanes()


@compiled
def roots(t, z, r, x, out, batch, n):
    """Square roots of matrices with triangles ``t`` and vectors ``z``, diagonal by diagonal."""
    s = block()
    while s < batch:
        at = s * n * n
        e = lane()
        while e < n * n:
            r[u(at + e)] = cm.sqrt(t[u(at + e)]) if e // n == e % n else 0
            e += lanes()
        sync()
        for distance in range(1, n):
            i = lane()
            while i + distance < n:
                j = i + distance
                total = t[u(at + i * n + j)]
                for k in range(i + 1, j):
                    total -= r[u(at + i * n + k)] * r[u(at + k * n + j)]
                both = r[u(at + i * n + i)] + r[u(at + j * n + j)]
                if total != 0:
                    total /= both
                r[u(at + i * n + j)] = total
                i += lanes()
            sync()
        e = lane()
        while e < n * n:
            i, j = e // n, e % n
            total = t[u(at)] * 0
            for k in range(j + 1):
                total += z[u(at + i * n + k)] * r[u(at + k * n + j)]
            x[u(at + e)] = total
            e += lanes()
        sync()
        e = lane()
        while e < n * n:
            i, j = e // n, e % n
            total = t[u(at)] * 0
            for k in range(n):
                total += x[u(at + i * n + k)] * np.conj(z[u(at + j * n + k)])
            out[u(at + e)] = total
            e += lanes()
        sync()
        s += blocks()
