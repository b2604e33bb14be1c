"""Donated arrays whose places move, or that others look at: results are those of copies."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax

BASE = np.random.default_rng(0).normal(size=1000).astype(np.float32)
PLACES = np.random.default_rng(1).permutation(1000).astype(np.int32)
PROGRAMS = {
    "roll": lambda x: fnp.roll(x, 1),
    "roll back": lambda x: fnp.roll(x, -3),
    "shift": lambda x: x.at[1:].set(x[:-1]),
    "add shifted": lambda x: x.at[:-1].add(x[1:]),
    "reverse in place": lambda x: x.at[::-1].set(x),
    "with its reverse": lambda x: x[::-1] + x,
    "transpose": lambda x: x.reshape(20, 50).T.reshape(-1) * 1.5,
    "permute": lambda x: x.at[fnp.asarray(PLACES)].set(x * 2)[fnp.asarray(PLACES)] + x[PLACES[0]],
    "scatter and gather": lambda x: x.at[fnp.asarray(PLACES)].add(x) - x[fnp.asarray(PLACES)],
    "twice and kept": lambda x: (x, x, x * 2),
    "swapped in turns": lambda x: lax.fori_loop(
        0, 7, lambda _, c: (c[1], c[0] + c[1]), (x, x[::-1])
    ),
    "rolled in turns": lambda x: lax.while_loop(
        lambda c: c[1] < 5, lambda c: (fnp.roll(c[0], 1).at[0].set(c[0][3]), c[1] + 1), (x, 0)
    )[0],
    "scanned": lambda x: lax.scan(lambda c, r: (c + r[::-1], c * r), x[:10], x.reshape(100, 10)),
    "either": lambda x: lax.cond(x[0] > 0, lambda x: (x, x + 1), lambda x: (x[::-1], x), x),
}


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_donated_arrays_give_what_others_give(name, sign):
    """Two calls in a row too, of the same function, and by `vmap` of rows."""
    program, x = PROGRAMS[name], sign * BASE
    want = fnarray.tree.map(np.asarray, fnarray.jit(program)(x))
    given = fnarray.jit(program, donate_argnums=0)
    for got in (given(fnp.asarray(x)), given(fnp.asarray(x))):
        fnarray.tree.map(np.testing.assert_array_equal, fnarray.tree.map(np.asarray, got), want)
    rows = fnarray.jit(fnarray.vmap(program), donate_argnums=0)(fnp.stack([fnp.asarray(x)] * 2))
    for got, one in zip(fnarray.tree.leaves(rows), fnarray.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.stack([one] * 2))


def test_what_looks_at_a_donated_array_keeps_its_numbers():
    """Slices, other shapes, NumPy's view of it and that of `dlpack`."""
    given = fnarray.jit(lambda x: x + 1, donate_argnums=0)
    looks = (lambda x: x[10:20], lambda x: x.reshape(10, 100), np.asarray, np.from_dlpack)
    for look in looks:
        x = fnp.asarray(BASE)
        seen = look(x)
        before = np.array(seen)
        given(x)
        np.testing.assert_array_equal(np.asarray(seen), before)


def test_results_that_are_one_argument_are_apart():
    """To donate one leaves the other, and what the argument was is not there any more."""
    twice = fnarray.jit(lambda x: (x, x), donate_argnums=0)
    given = fnarray.jit(lambda x: x * 2, donate_argnums=0)
    x = fnp.asarray(BASE)
    first, second = twice(x)
    np.testing.assert_array_equal(np.asarray(given(first)), BASE * 2)
    np.testing.assert_array_equal(np.asarray(second), BASE)
    assert first.is_deleted()
    both = fnarray.jit(lambda x, y: (y, x), donate_argnums=(0, 1))
    a, b = both(fnp.asarray(BASE), fnp.asarray(BASE * 2))
    np.testing.assert_array_equal(np.asarray(a), BASE * 2)
    np.testing.assert_array_equal(np.asarray(b), BASE)
