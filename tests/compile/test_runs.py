"""Many updates that may go to one element in a row."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import fnarray.lax as lax
from fnarray.compile.cpu.target import CPU
from fnarray.compile.target import one_by_one
from tests.compile.helpers import code, compiled
from tests.compilers.compare import Report, both

pytestmark = pytest.mark.cpu

N, BINS = 1 << 16, 1 << 12
DRAW = np.random.default_rng(0)
#: Places of the updates: in runs, one run, in no order, and in runs that nothing has room for.
PLACES = {
    "runs": np.repeat(np.arange(BINS), 16),
    "one": np.zeros(N),
    "random": DRAW.integers(0, BINS, N),
    "outside": np.repeat(np.arange(-8, BINS - 8), 16) * 2,
}
NUMBERS = lax.ScatterDimensionNumbers((), (0,), (0,))


def scattered(operand, places, updates):
    """The function whose many updates are looked at."""
    return lax.scatter_add(operand, places, updates, NUMBERS)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_each_update_is_added_in_order(dtype):
    """Results are those of one addition after another, wherever runs end, by both compilers."""
    report = Report()
    target = replace(CPU, build=one_by_one(partial(both, report)))
    operand = DRAW.uniform(-1, 1, BINS).astype(dtype)
    updates = (8 * DRAW.uniform(-1, 1, N)).astype(dtype)
    executable = compiled(scattered, operand, np.zeros((N, 1), np.int32), updates, target=target)
    assert "run0" in code(executable)
    for name, where in PLACES.items():
        places = where.astype(np.int32)
        inside = (places >= 0) & (places < BINS)
        expected = operand.copy()
        np.add.at(expected, places[inside], updates[inside])
        (result,) = executable.run(operand, places[:, None], updates)
        np.testing.assert_array_equal(result, expected, name)
    assert not report.differences, report.differences[0]
    assert not report.fallbacks
