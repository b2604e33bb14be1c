"""Temporaries are kept between calls and share memory; what a caller sees is never among them."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fnarray
from fnarray import lax
from fnarray.compile.emit.workspace import Life, Workspace

from .helpers import compiled

X = np.random.default_rng(0).normal(size=(300, 70)).astype(np.float32)


def folded(x):
    """Five temporaries between kernels, each as large as the argument."""
    for _ in range(5):
        x = lax.sub(lax.cumsum(x, 1), lax.cumsum(lax.rev(x, (0, 1)), 0))
    return x, lax.reduce_sum(x, (0, 1))


def test_lives_that_do_not_meet_share_memory() -> None:
    """A piece is used again once nobody reads it, unless it is far too large."""
    space, f64 = Workspace(), np.dtype(np.float64)
    space.place(Life(0, 1), (10,), f64)
    space.place(Life(1, 3), (10,), f64)  # meets the first
    space.place(Life(2, 2), (5, 2), f64)  # the first is free again
    space.place(Life(4, 4), (2,), f64)  # both are free, and too large
    assert [slot for slot, _, _ in space.views] == [0, 1, 0, 2]
    assert space.slots == [80, 80, 16]


def test_a_second_call_allocates_its_results_alone() -> None:
    """NumPy's own count of bytes says so."""
    executable = compiled(folded, X)
    executable.run(X)
    tracemalloc.start()
    try:
        outs = executable.run(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < sum(out.nbytes for out in outs) + 20_000
    assert executable.memory["temp_bytes"] >= 2 * X.nbytes


def test_results_outlive_later_calls() -> None:
    """What was returned, or handed to the host, is not written over by the next call."""
    seen = []

    def f(x):
        y = lax.cumsum(lax.mul(x, x), 1)
        z = lax.cumsum(y, 0)
        fnarray.debug.callback(seen.append, z)
        return y, lax.cumsum(z, 1)

    f = fnarray.jit(f, effects="off")
    first = f(X)
    kept = [np.array(a) for a in (*first, seen[0])]
    f(X + 1)
    for now, then in zip((*first, seen[0]), kept, strict=True):
        np.testing.assert_array_equal(now, then)


def test_calls_at_the_same_time_have_arrays_of_their_own() -> None:
    """Eight threads compute what each would alone."""
    f = fnarray.jit(folded)
    inputs = [X + k for k in range(8)]
    alone = [np.asarray(f(x)[0]) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda x: np.asarray(f(x)[0]), inputs * 4))
    for k, got in enumerate(together):
        np.testing.assert_array_equal(got, alone[k % 8])
