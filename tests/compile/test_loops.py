"""What has a loop of its own: what begins again, and what is dear."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax

from .helpers import code, compiled, loops, run

RNG = np.random.default_rng(0)


def test_what_begins_again_every_so_often_is_a_loop_of_its_own() -> None:
    """No index of the innermost loop is divided, where its length is a multiple of the period."""
    x = RNG.normal(size=(3, 32)).astype(np.float32)

    def tiled(x):
        return jnp.tile(x, (2, 3)) * 2 + 1

    def added(x):
        return jnp.tile(x, (1, 4)).sum(1)

    text = code(compiled(tiled, x))
    assert loops(text) == 3
    np.testing.assert_array_equal(run(tiled, x)[0], np.tile(x, (2, 3)) * 2 + 1)
    # Terms of both signs may nearly cancel: the sum is right to their size.
    room = 1e-6 * np.abs(x).sum()
    np.testing.assert_allclose(run(added, x)[0], 4 * x.sum(1, dtype=float), rtol=1e-5, atol=room)


def test_dear_terms_of_a_fold_without_vectors_have_a_loop_of_their_own() -> None:
    """These are vectors, though a function folds them one after another."""
    x = RNG.uniform(0.5, 1, (5, 40)).astype(np.float32)

    def folded(x):
        return lax.reduce(jnp.log(x) * jnp.exp(x), 0.0, lambda a, b: a + b + a * b, (1,))

    text = code(compiled(folded, x))
    assert loops(text) == 3
    want = np.prod(1 + np.log(x.astype(float)) * np.exp(x.astype(float)), 1) - 1
    np.testing.assert_allclose(run(folded, x)[0], want, rtol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "size", "shared"),
    [("complex64", 30_000, True), ("complex64", 4_000, False), ("float32", 30_000, False)],
)
def test_complex_functions_are_work(dtype: str, size: int, shared: bool) -> None:
    """One takes as long as six of real numbers, and is shared among threads as they are."""
    text = fnarray.jit(jnp.tanh).lower(fnarray.ShapeDtypeStruct((size,), dtype)).as_text("numba")
    assert ("launch(" in text) is shared


@pytest.mark.parametrize(("row", "count"), [(2, 2), (8, 3)])
def test_functions_of_folded_rows_run_along_the_rows(row: int, count: int) -> None:
    """They are vectors, of turns that hold no other loop, or one that adds up two numbers alone."""
    x = RNG.uniform(0.5, 1, (200, row)).astype(np.float32)

    def scaled(x):
        norm = jnp.sqrt(jnp.mean(x * x, -1))
        return jnp.where((norm < 0.8)[:, None], x, 2 * x), norm**-0.2

    text = code(compiled(scaled, x))
    assert text.count("in range(n0)") == count
    wide = x.astype(float)
    norm = np.sqrt(np.mean(wide * wide, -1))
    grown, power = run(scaled, x)
    np.testing.assert_allclose(grown, np.where((norm < 0.8)[:, None], wide, 2 * wide), rtol=1e-6)
    np.testing.assert_allclose(power, norm**-0.2, rtol=1e-5)


@pytest.mark.parametrize(("rows", "apart"), [(100, True), (2000, False)])
def test_what_is_dear_of_longer_rows_runs_apart_where_rows_take_less(rows, apart) -> None:
    """A logarithm takes as long as the sum of 50 products, not of a thousand."""
    x = RNG.uniform(0.5, 1, (1_000_000 // rows, rows)).astype(np.float32)

    def size(x):
        return jnp.log(jnp.abs(x).sum(1))

    assert (code(compiled(size, x)).count("def kernel") == 2) is apart
    np.testing.assert_allclose(run(size, x)[0], np.log(x.sum(1, dtype=float)), rtol=1e-6)
