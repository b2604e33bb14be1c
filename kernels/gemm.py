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
        product(
            a[s * m * k : (s + 1) * m * k],
            b[s * k * n : (s + 1) * k * n],
            out[s * m * n : (s + 1) * m * n],
            m,
            k,
            n,
        )
