"""Stacks of matrix products, for loops whose bodies hold products too large to write out."""

from __future__ import annotations

import numpy as np

from fnarray_kernels.registry import outside, tell
from fnarray_kernels.scalar import u


def _product(a, b, out, m, k, n, left, right):
    result = out.reshape(m, n)
    if left and right:
        np.dot(a.reshape(k, m).T, b.reshape(n, k).T, result)
    elif left:
        np.dot(a.reshape(k, m).T, b.reshape(k, n), result)
    elif right:
        np.dot(a.reshape(m, k), b.reshape(n, k).T, result)
    else:
        np.dot(a.reshape(m, k), b.reshape(k, n), result)


def _row_by_row(a, b, out, m, k, n, left, right):
    block(a, b, out, m, k, n, left, right, 0, max(m, n))


def product(a, b, out, m, k, n, left, right):
    """Multiply one pair of matrices: BLAS for floats and complex numbers, loops for others.

    ``left`` and ``right`` say of a matrix that its columns lie together, where others have rows;
    those of integers and bools have rows.
    """
    np.matmul(_matrix(a, m, k, left), _matrix(b, k, n, right), out=out.reshape(m, n))


def _matrix(x, rows, columns, turned):
    return x.reshape(columns, rows).T if turned else x.reshape(rows, columns)


tell("product", product, (_product, _row_by_row, _row_by_row))


def few(a, b, out, m, k, n, left, right):
    """Multiply a pair of small matrices of floats, neither of them a vector; see `product`."""
    product(a, b, out, m, k, n, left, right)


tell("few", few, (_product, _row_by_row, _row_by_row))


def _block(a, b, out, m, k, n, left, right, low, high):
    if m >= n:
        some = a[low * k : high * k]
        if left:
            some = np.ascontiguousarray(a.reshape(k, m)[:, low:high]).reshape(-1)
        product(some, b, out[low * n : high * n], high - low, k, n, left, right)
    else:
        some = b[low * k : high * k]
        if not right:
            some = np.ascontiguousarray(b.reshape(k, n)[:, low:high]).reshape(-1)
        columns = np.empty(m * (high - low), out.dtype)
        product(a, some, columns, m, k, high - low, left, right)
        out.reshape(m, n)[:, low:high] = columns.reshape(m, high - low)


def _block_row_by_row(a, b, out, m, k, n, left, right, low, high):
    top, bottom, first, last = (low, high, 0, n) if m >= n else (0, m, low, high)
    for i in range(top, bottom):
        row = out[i * n + first : i * n + last]
        row[:] = 0
        for j in range(k):
            scale = a[u(i * k + j)]
            terms = b[j * n + first : j * n + last]
            for c in range(last - first):
                row[c] += scale * terms[c]


def _block_row_by_row_of_bools(a, b, out, m, k, n, left, right, low, high):
    top, bottom, first, last = (low, high, 0, n) if m >= n else (0, m, low, high)
    for i in range(top, bottom):
        row = out[i * n + first : i * n + last]
        row[:] = False
        for j in range(k):
            if a[u(i * k + j)]:
                terms = b[j * n + first : j * n + last]
                for c in range(last - first):
                    row[c] |= terms[c]


def block(a, b, out, m, k, n, left, right, low, high):
    """Fill some rows of a product, or columns where there are more of those; see `product`."""
    x, y, result = _matrix(a, m, k, left), _matrix(b, k, n, right), out.reshape(m, n)
    if m >= n:
        result[low:high] = np.matmul(x[low:high], y)
    else:
        result[:, low:high] = np.matmul(x, y[:, low:high])


tell("block", block, (_block, _block_row_by_row, _block_row_by_row_of_bools))


@outside(loops=True)  # integers have loops, which are best where their sizes are known
def part(a, b, out, m, k, n, left, right, i, parts):
    """Fill one of some parts of the product of a pair of matrices, none of them empty.

    Parts are rows, or columns where there are more of those, in multiples of 16.
    """
    extent = max(m, n)
    low = i * extent // parts // 16 * 16
    high = extent
    if i + 1 < parts:
        high = (i + 1) * extent // parts // 16 * 16
    if low < high:
        pieces(a, b, out, m, k, n, left, right, low, high)


def pieces(a, b, out, m, k, n, left, right, low, high):
    """Fill some rows of a product, or columns where there are more, as many at once as BLAS likes.

    OpenBLAS packs both matrices anew for each product of more than 1e6 multiplications; with
    AVX-512 it multiplies smaller ones as they are, but where only the second one is turned.
    (32, 128) by (128, 512): 66 us at once and 43 in pieces, (8, 1024) by (1024, 1024): 990 and 332;
    without AVX-512 71 and 74, 710 and 761.
    """
    step = high - low
    if 1 < m < n and (left or not right):
        most = 1000000 // (m * k) // 64 * 64
        if most > 0:
            count = (step + most - 1) // most
            step = (step + 64 * count - 1) // (64 * count) * 64
    if low == 0 and step >= max(m, n):
        product(a, b, out, m, k, n, left, right)
    else:
        # No piece is a vector: compilers know two routines for those.
        for first in range(low, max(low + 1, high - 15), step):
            last = first + step
            if last + 16 > high:
                last = high
            block(a, b, out, m, k, n, left, right, first, last)


tell("pieces", pieces)


@outside(loops=False)  # where LLVM makes of it what its sizes, which it knows, need
def batched(a, b, out, batch, m, k, n, left, right):
    """Fill ``out`` (batch, m, n) with the products of ``a`` (batch, m, k) and ``b`` (batch, k, n).

    Arrays are flattened in C order and of one dtype; integers wrap, bool is ``or`` of ``and``.
    Where ``left`` is true ``a`` is (batch, k, m), where ``right`` is ``b`` is (batch, n, k).
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
            left,
            right,
            0,
            max(m, n),
        )
