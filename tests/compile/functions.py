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


def everything(x, w, v, i):
    """Chains, folds, products, loops, branches, updates, on small arrays."""
    e = lax.exp(x)
    sums = lax.reduce_sum(e, (1,))
    soft = lax.div(e, lax.broadcast_in_dim(sums, x.shape, (0,)))
    turned = lax.add(lax.transpose(soft, (1, 0)), lax.rev(lax.transpose(x, (1, 0)), (0,)))
    product = lax.dot(x, w)

    def step(c, row):
        vector, total = c
        vector = lax.tanh(lax.add(lax.dot(vector, w[:3, :3]), row[:3]))
        total = lax.add(total, lax.reduce_max(row, (0,)))
        vector = lax.cond(
            total > np.float32(0), lambda u: lax.mul(u, np.float32(0.5)), lambda u: u, vector
        )
        return (vector, total), lax.add(row, total)

    (vector, total), rows = lax.scan(step, (v, np.float32(0)), x)

    def turn(k, c):
        c = lax.dynamic_update_slice(c, lax.add(c[:2], np.float32(1)), (k,))
        return lax.add(lax.rev(c, (0,)), lax.dot(c, c))

    loop = lax.fori_loop(0, 3, turn, v)
    halved = lax.while_loop(
        lambda c: lax.reduce_max(lax.abs(c), (0,)) > np.float32(0.1),
        lambda c: lax.mul(c, np.float32(0.5)),
        loop,
    )
    picked = lax.dynamic_slice(rows, (i, np.int32(0)), (2, 3))
    return soft, turned, product, vector, total, rows, loop, halved, picked


def everything_by_numpy(x, w, v, i):
    """The same in NumPy, in float64."""
    x, w, v = (a.astype(np.float64) for a in (x, w, v))
    e = np.exp(x)
    soft = e / e.sum(1, keepdims=True)
    turned = soft.T + x.T[::-1]
    vector, total, rows = v, 0.0, []
    for row in x:
        vector = np.tanh(vector @ w[:3, :3] + row[:3])
        total += row.max()
        vector = vector * 0.5 if total > 0 else vector
        rows.append(row + total)
    loop = v.copy()
    for k in range(3):
        at = min(k, len(loop) - 2)
        loop[at : at + 2] = loop[:2] + 1
        loop = loop[::-1] + loop @ loop
    halved = loop
    while np.abs(halved).max() > 0.1:
        halved = halved * 0.5
    rows = np.array(rows)
    return soft, turned, x @ w, vector, total, rows, loop, halved, rows[i : i + 2, :3]
