"""Functions whose schedules teach something, over ``lax`` alone."""

from __future__ import annotations

import numpy as np

from fnarray import lax


def column(x, n):
    """Stretch a vector of rows to ``n`` columns."""
    return lax.broadcast_in_dim(x, (x.shape[0], n), (0,))


def softmax(x):
    """Softmax of each row."""
    n = x.shape[1]
    e = lax.exp(lax.sub(x, column(lax.reduce_max(x, (1,)), n)))
    return lax.div(e, column(lax.reduce_sum(e, (1,)), n))


def layer_norm(x):
    """Rows less their mean, over their standard deviation."""
    n = x.shape[1]
    mean = lax.div(lax.reduce_sum(x, (1,)), np.float32(n))
    d = lax.sub(x, column(mean, n))
    var = lax.div(lax.reduce_sum(lax.mul(d, d), (1,)), np.float32(n))
    return lax.mul(d, column(lax.rsqrt(lax.add(var, np.float32(1e-5))), n))


def polynomial(x):
    """An elementwise chain with a shared subexpression."""
    y = lax.exp(x)
    return lax.add(lax.mul(y, x), lax.sin(y))


def two_outputs(x):
    """Two results over one space."""
    return lax.sin(x), lax.cos(x)


def shifted_difference(x):
    """Differences of an expensive value at neighbouring places."""
    y = lax.exp(x)
    return lax.sub(lax.slice(y, (1,), (x.shape[0],)), lax.slice(y, (0,), (x.shape[0] - 1,)))


def transposed_sum(x):
    """A transpose, a reversal and a sum: index arithmetic, no copies."""
    return lax.add(lax.rev(lax.transpose(x, (1, 0)), (0,)), np.float32(1))


def bubble_sort(x):
    """Sort by swaps in nested loops."""
    n = x.shape[0]

    def inner(j, x):
        a = lax.dynamic_index_in_dim(x, j, keepdims=False)
        b = lax.dynamic_index_in_dim(x, j + 1, keepdims=False)
        x = lax.dynamic_update_index_in_dim(x, lax.min(a, b), j, 0)
        return lax.dynamic_update_index_in_dim(x, lax.max(a, b), j + 1, 0)

    return lax.fori_loop(0, n - 1, lambda i, x: lax.fori_loop(0, n - 1, inner, x), x)


def jacobi(x):
    """A stencil whose every iteration needs the whole of the last one."""

    def step(i, x):
        n = x.shape[0]
        inner = lax.slice(x, (0,), (n - 2,)) + lax.slice(x, (2,), (n,))
        return lax.dynamic_update_slice(x, inner * np.float32(0.5), (1,))

    return lax.fori_loop(0, 10, step, x)


def rotation(angles):
    """Turn a small vector by each angle in turn: state in registers."""

    def step(v, a):
        c, s = lax.cos(a), lax.sin(a)
        x, y = lax.index_in_dim(v, 0, keepdims=False), lax.index_in_dim(v, 1, keepdims=False)
        rows = [lax.reshape(c * x - s * y, (1,)), lax.reshape(s * x + c * y, (1,))]
        v = lax.concatenate(rows, 0)
        return v, v

    start = lax.convert_element_type(lax.eq(lax.iota(np.int32, 2), np.int32(0)), np.float32)
    return lax.scan(step, start, angles)
