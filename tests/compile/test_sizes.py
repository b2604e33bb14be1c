"""What is emitted does not grow with the sizes of arrays: loops count, statements do not."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.compile.pipeline import compile_graph
from fnarray.lax import fori_loop


def vector(n):
    return fa.ShapeDtypeStruct((n,), np.float32)


def matrix(n):
    return fa.ShapeDtypeStruct((n, n), np.float32)


def stencil(x):
    """Neighbours' means, and edges that are set."""
    for _ in range(3):
        x = x.at[1:-1].set((x[:-2] + x[1:-1] + x[2:]) / 3)
        x = x.at[0].set(x[1]).at[-1].set(x[-2])
    return x


def softmax(a):
    e = fnp.exp(a - fnp.max(a, 1, keepdims=True))
    return e / fnp.sum(e, 1, keepdims=True)


def recurrence(x):
    """A filter along the array, whose carries are two numbers."""

    def step(carry, x):
        y = 0.5 * x - 0.2 * carry[0] - 0.1 * carry[1]
        return (y, carry[0]), y

    return lax.scan(step, (np.float32(0), np.float32(0)), x)[1]


def carried(x):
    """Turns of a loop that carries the array, and a small vector beside it."""

    def turn(k, carry):
        x, v = carry
        v = fnp.tanh(v[::-1] + x[k])
        return x.at[k].add(fnp.sum(v)) * 0.5 + fnp.roll(x, 1), v

    return fori_loop(0, 20, turn, (x, fnp.zeros(4)))


def factor(a):
    """Columns of a Cholesky factor under masks."""
    i = fnp.arange(len(a))

    def column(k, a):
        c = fnp.where(i >= k, a[:, k] / fnp.sqrt(a[k, k]), 0)
        return a.at[:, k].set(c) - fnp.outer(c, c) * (i > k)

    return fori_loop(0, len(a), column, a)


def counts(x):
    return fnp.zeros(8).at[fnp.clip((x * 8).astype(np.int32), 0, 7)].add(x * x)


def picked(x):
    return fnp.concatenate([x[::-1], x[::2], fnp.sort(x), fnp.cumsum(x)])


#: Each with its arguments for a size.
PROGRAMS = {
    f.__name__: (f, kind)
    for f, kind in [
        (stencil, vector), (softmax, matrix), (recurrence, vector), (carried, vector),
        (factor, matrix), (counts, vector), (picked, vector),
    ]
}  # fmt: skip


def statements(f, x):
    """Count the statements that are emitted for a function of an array: kernels' and driver's."""
    source = compile_graph(fa.make_jaxpr(f)(x)).source
    texts = [source.text, *(k.source.text for k in source.kernels)]
    return sum(isinstance(x, ast.stmt) for text in texts for x in ast.walk(ast.parse(text)))


def loss(f):
    return lambda x: fnp.sum(f(x) ** 2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_statement_is_added_by_a_size(name):
    """Beyond small vectors there is one text for a thread, and one for several."""
    f, kind = PROGRAMS[name]
    small = statements(f, kind(60))
    assert statements(f, kind(600)) <= small + 3
    long = (1_000_000, 4_000_000) if kind is vector else (2_000, 4_000)
    large, larger = (statements(f, kind(n)) for n in long)
    assert large == larger <= 3 * small


@pytest.mark.parametrize("name", ["stencil", "softmax", "recurrence"])
def test_nor_in_gradients(name):
    """Backward passes are loops too."""
    f, kind = PROGRAMS[name]
    g = fa.grad(loss(f))
    assert statements(g, kind(600)) == statements(g, kind(120)) <= 1.2 * statements(g, kind(60))


def test_small_vectors_may_be_written_out():
    """Elements are statements where they are few; from then on they are a loop's turns."""

    def f(x):
        return fori_loop(0, 9, lambda _, v: fnp.tanh(v) * fnp.sum(v), x)

    few, some, many = (statements(f, vector(n)) for n in (4, 60, 600))
    assert few > some == many
