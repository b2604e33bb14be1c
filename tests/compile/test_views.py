"""Arrays that are only shown in another shape are not copied; nobody sees another's memory."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.pipeline import compile_graph

from .helpers import compiled

X = np.random.default_rng(0).normal(size=(200, 180)).astype(np.float32)


def product(x):
    """What BLAS made and nobody reads again."""
    return lax.reshape(x @ x.T, (40_000,))


def operand(x):
    """An argument, for a step of the driver."""
    return jnp.linalg.inv(lax.reshape(x, (6, 6, 1000))[:, :, :6])


def solved(x):
    """What a step makes, of what is cut and has to be copied."""
    return lax.reshape(jnp.linalg.pinv(lax.reshape((x @ x.T)[:, :98], (4, 70, 70))), (140, 140))


def whole(x):
    """An argument that a product reads in another shape."""
    return lax.reshape(x, (180, 200)) @ x


def _name(value):
    return getattr(value, "__name__", None)


@pytest.mark.parametrize(
    ("f", "views"), [(product, 1), (operand, 0), (solved, 1), (whole, 1)], ids=_name
)
def test_a_shape_is_not_copied(f, views):
    """The driver shows the storage in another shape, and no kernel does it."""
    text = compiled(f, X).driver_text
    assert text.count(".reshape(") == views
    for got, want in zip(
        fa.tree.leaves(fa.jit(f)(X)), fa.tree.leaves(f(jnp.asarray(X))), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def copied(x):
    """A result is no view of the caller's array."""
    return lax.reshape(x, (36_000,))


def both(x):
    """Nor do two results share memory."""
    y = x @ x.T
    return y, lax.reshape(y, (40_000,))


def updated(x):
    """Nor is the caller's array written over by way of one."""
    return lax.reshape(x, (180, 200)).at[3].set(0.0) @ x


def carried(x):
    """Nor what is read again in its old shape."""
    y = x @ x.T
    z = lax.reshape(y, (100, 400)).at[3].set(0.0)
    return z @ lax.reshape(y, (400, 100)), y.sum()


@pytest.mark.parametrize("f", [copied, both, updated, carried], ids=_name)
def test_what_somebody_else_has_is_copied(f):
    """Results are the caller's alone, and arguments stay what they are."""
    before = X.copy()
    outs = fa.tree.leaves(fa.jit(f)(X))
    np.testing.assert_array_equal(X, before)
    arrays = [X, *map(np.asarray, outs)]
    assert not any(np.shares_memory(a, b) for k, a in enumerate(arrays) for b in arrays[:k])
    for got, want in zip(outs, fa.tree.leaves(f(jnp.asarray(X))), strict=True):
        # What products of products leave of terms that cancel out is as exact as the largest sums.
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-6 * float(np.abs(want).max()))


def test_rows_of_a_loop_of_the_driver_are_made_in_place():
    """What a turn stacks is made where it is to lie, and the carry stays apart from it."""

    def turn(carry, x):
        carry = jnp.linalg.inv(carry) + x
        lax.cond(carry[0, 0] > 1e9, lambda: fa.debug.print("large"), lambda: None)
        return carry, (carry, carry * 2.0, x.sum())

    eye, xs = np.eye(3, dtype=np.float32), np.arange(4, dtype=np.float32)
    for reverse in (False, True):
        run = fa.jit(lambda c, xs, r=reverse: lax.scan(turn, c, xs, reverse=r))
        got, want = run(eye, xs), lax.scan(turn, jnp.asarray(eye), xs, reverse=reverse)
        leaves = [np.asarray(x) for x in fa.tree.leaves(got)]
        for a, b in zip(leaves, fa.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
        assert not any(np.shares_memory(a, b) for k, a in enumerate(leaves) for b in leaves[:k])


def test_a_result_lies_in_what_the_program_is_given_for_it():
    """Where nobody reads that; who runs the program finds the very array."""
    closed = fa.make_jaxpr(lambda room, x: (jnp.sin(x), x.sum()))(X, X)
    room = np.zeros_like(X)
    result, _ = compile_graph(closed, given=((0, 0),)).run(room, X)
    assert result is room
    np.testing.assert_allclose(room, np.sin(X), rtol=1e-5)


def test_shapes_inside_of_a_kernel():
    """Rows that a loop reads in another shape, and makes to be shown in one, are not copied."""

    def f(c, xs):
        c, ys = lax.scan(lambda c, x: (c + x.sum(), c * x), c, lax.reshape(xs, (20, 5, 2)))
        return c, lax.reshape(ys, (100, 2)), xs[3]

    xs = np.arange(200, dtype=np.float32).reshape(100, 2)
    run = compiled(f, np.float32(1), xs)
    (kernel,) = run.kernels
    assert "w0" not in f"{kernel} {run.driver_text}"
    given = fa.jit(f)(np.float32(1), xs)
    c = 1.0
    for k, rows in enumerate(xs.reshape(20, 5, 2)):
        np.testing.assert_array_equal(np.asarray(given[1])[5 * k : 5 * k + 5], np.float32(c) * rows)
        c += rows.sum()
    assert given[0] == c
    np.testing.assert_array_equal(given[2], xs[3])


def test_shapes_that_are_written_over_or_results_twice():
    """A view of what is a result itself, and one whose operand is written over, are copies."""

    def f(xs):
        _, ys = lax.scan(lambda c, x: (c, x * 2.0), 0.0, xs)
        zs = lax.reshape(ys, (10, 20))
        _, over = lax.scan(lambda c, i: (c.at[i].set(0.0), c.sum()), zs, np.arange(5))
        return ys, zs, lax.reshape(ys, (200,)), over

    xs = np.arange(200, dtype=np.float32).reshape(100, 2)
    ys, zs, flat, over = map(np.asarray, fa.jit(f)(xs))
    np.testing.assert_array_equal(ys, xs * 2)
    np.testing.assert_array_equal(zs, (xs * 2).reshape(10, 20))
    np.testing.assert_array_equal(flat, (xs * 2).reshape(-1))
    want = zs.copy()
    for i in range(5):
        np.testing.assert_allclose(over[i], want.sum(), rtol=1e-5)
        want[i] = 0
    arrays = [ys, zs, flat]
    assert not any(np.shares_memory(a, b) for k, a in enumerate(arrays) for b in arrays[:k])
