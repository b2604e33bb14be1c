"""Stacks of matrix products, for loops whose bodies hold products too large to write out."""

from __future__ import annotations

import numpy as np

from fnarray_kernels.registry import compiled, tell
from fnarray_kernels.scalar import u


def _product(a, b, out, m, k, n):
    np.dot(a.reshape(m, k), b.reshape(k, n), out.reshape(m, n))


def _row_by_row(a, b, out, m, k, n):
    for i in range(m):
        row = out[i * n : (i + 1) * n]
        row[:] = 0
        for j in range(k):
            scale = a[u(i * k + j)]
            terms = b[j * n : (j + 1) * n]
            for c in range(n):
                row[c] += scale * terms[c]


def product(a, b, out, m, k, n):
    """Multiply one pair of matrices: BLAS for floats and complex numbers, loops for integers."""
    np.matmul(a.reshape(m, k), b.reshape(k, n), out=out.reshape(m, n))


tell("product", product, (_product, _row_by_row))


def _columns(a, b, out, m, k, n, low, high):
    some = np.ascontiguousarray(b.reshape(k, n)[:, low:high])
    out.reshape(m, n)[:, low:high] = np.dot(a.reshape(m, k), some)


def _columns_row_by_row(a, b, out, m, k, n, low, high):
    for i in range(m):
        row = out[i * n + low : i * n + high]
        row[:] = 0
        for j in range(k):
            scale = a[u(i * k + j)]
            terms = b[j * n + low : j * n + high]
            for c in range(high - low):
                row[c] += scale * terms[c]


def columns(a, b, out, m, k, n, low, high):
    """Fill some columns of the product of a pair of matrices."""
    some = b.reshape(k, n)[:, low:high]
    out.reshape(m, n)[:, low:high] = np.matmul(a.reshape(m, k), some)


tell("columns", columns, (_columns, _columns_row_by_row))


@compiled
def part(a, b, out, m, k, n, i, parts):
    """Fill one of some parts of the product of a pair of matrices, none of them empty.

    Parts are rows, or columns where there are more of those, in multiples of 16.
    """
    extent = max(m, n)
    low = i * extent // parts // 16 * 16
    high = extent
    if i + 1 < parts:
        high = (i + 1) * extent // parts // 16 * 16
    if low < high:
        if m >= n:
            pieces(a[low * k : high * k], b, out[low * n : high * n], high - low, k, n, 0, n)
        else:
            pieces(a, b, out, m, k, n, low, high)


@compiled
def pieces(a, b, out, m, k, n, low, high):
    """Fill some columns of the product of a pair of matrices, so many at a time as BLAS likes.

    OpenBLAS packs both matrices anew for each product of more than 1e6 multiplications; with
    AVX-512 it multiplies smaller ones as they are. (32, 128) by (128, 512): 66 us at once and 43 in
    pieces, (8, 1024) by (1024, 1024): 990 and 332; without AVX-512 71 and 74, 710 and 761.
    """
    step = high - low
    most = 1000000 // (m * k) // 64 * 64
    if m > 1 and most > 0:
        count = (step + most - 1) // most
        step = (step + 64 * count - 1) // (64 * count) * 64
    if low == 0 and step >= n:
        product(a, b, out, m, k, n)
    else:
        # No piece is a vector: compilers know two routines for those.
        for left in range(low, max(low + 1, high - 15), step):
            right = left + step
            if right + 16 > high:
                right = high
            columns(a, b, out, m, k, n, left, right)


@compiled
def batched(a, b, out, batch, m, k, n):
    """Fill ``out`` (batch, m, n) with the products of ``a`` (batch, m, k) and ``b`` (batch, k, n).

    Arrays are flattened in C order and of one dtype; integers wrap, bool is ``or`` of ``and``.
    """
    if m * n == 0 or batch == 0:
        return
    if k == 0:  # BLAS leaves the result of an empty sum unwritten
        out[:] = 0
        return
    for s in range(batch):
        pieces(
            a[s * m * k : (s + 1) * m * k],
            b[s * k * n : (s + 1) * k * n],
            out[s * m * n : (s + 1) * m * n],
            m,
            k,
            n,
            0,
            n,
        )
