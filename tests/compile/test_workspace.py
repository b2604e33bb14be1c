"""Temporaries are kept between calls and share memory; what a caller sees is never among them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

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


#: Calls of a compiled and an eager function, and how many pages each had mapped anew.
FAULTS = """
import resource
import numpy as np
import fnarray, fnarray.numpy as jnp

x = jnp.asarray(np.ones((1000, 1000), np.float32))
several = fnarray.jit(lambda x: (x + 1, x * 2, x - 3, x / 2, x * x))
for f in (jnp.std, several):
    for k in range(12):
        if k == 4:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        f(x)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 8)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have own rules")
def test_memory_of_results_that_were_let_go_is_taken_again() -> None:
    """It is not given back to the system: 3,900 and 1,900 pages a call, were it."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], env=own, capture_output=True, text=True, check=True
    )
    assert all(float(faults) < 500 for faults in done.stdout.split()), done.stdout


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


def test_many_lives_are_placed_in_time_that_grows_with_them() -> None:
    """The smallest piece that is free and fits is taken, as a search of all finds it."""
    random = np.random.default_rng(0)
    space, u8 = Workspace(), np.dtype(np.uint8)
    slots: list[list[int]] = []  # bytes, and until when
    for k in range(400):
        life, size = Life(k // 3, k // 3 + int(random.integers(9))), int(random.integers(1, 99))
        space.place(life, (size,), u8)
        free = [(held, n) for n, (held, last) in enumerate(slots) if last < life.first]
        fit = [x for x in free if size <= x[0] <= 4 * size]
        slot = min(fit)[1] if fit else len(slots)
        if not fit:
            slots.append([size, 0])
        slots[slot][1] = life.last
        assert space.views[-1][0] == slot
    assert space.slots == [s[0] for s in slots]
