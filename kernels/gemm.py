"""Stacks of matrix products, for loops whose bodies hold products too large to write out."""

from __future__ import annotations

import numpy as np

from fnarray_kernels.registry import compiled, tell
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
    for i in range(m):
        row = out[i * n : (i + 1) * n]
        row[:] = 0
        for j in range(k):
            scale = a[u(i * k + j)]
            terms = b[j * n : (j + 1) * n]
            for c in range(n):
                row[c] += scale * terms[c]


def product(a, b, out, m, k, n, left, right):
    """Multiply one pair of matrices: BLAS for floats and complex numbers, loops for integers.

    ``left`` and ``right`` say of a matrix that its columns lie together, where others have rows;
    those of integers have rows.
    """
    np.matmul(_matrix(a, m, k, left), _matrix(b, k, n, right), out=out.reshape(m, n))


def _matrix(x, rows, columns, turned):
    return x.reshape(columns, rows).T if turned else x.reshape(rows, columns)


tell("product", product, (_product, _row_by_row))


def _block(a, b, out, m, k, n, left, right, low, high):
    x = a.reshape(k, m).T if left else a.reshape(m, k)
    y = b.reshape(n, k).T if right else b.reshape(k, n)
    if m >= n:
        some = np.ascontiguousarray(x[low:high])
        out.reshape(m, n)[low:high] = np.dot(some, np.ascontiguousarray(y))
    else:
        some = np.ascontiguousarray(y[:, low:high])
        out.reshape(m, n)[:, low:high] = np.dot(np.ascontiguousarray(x), some)


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


def block(a, b, out, m, k, n, left, right, low, high):
    """Fill some rows of a product, or columns where there are more of those; see `product`."""
    x, y, result = _matrix(a, m, k, left), _matrix(b, k, n, right), out.reshape(m, n)
    if m >= n:
        result[low:high] = np.matmul(x[low:high], y)
    else:
        result[:, low:high] = np.matmul(x, y[:, low:high])


tell("block", block, (_block, _block_row_by_row))


@compiled
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
        block(a, b, out, m, k, n, left, right, low, high)


@compiled
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
        product(
            a[s * m * k : (s + 1) * m * k],
            b[s * k * n : (s + 1) * k * n],
            out[s * m * n : (s + 1) * m * n],
            m,
            k,
            n,
            left,
            right,
        )
