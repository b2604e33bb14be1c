"""Running sums, in lines and in rows, where rounding, infinities and signs of zero show."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import enable_x64

SPECIAL = ([np.inf, 1, 2], [1, np.inf, -np.inf, 3], [-0.0, -0.0], [np.nan, 1], [1, -1, -0.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [None, 3], ids=["line", "rows"])
def test_special_values_run_on(dtype, width):
    """Infinities, NaN and zeros of either sign are NumPy's, in each lane."""
    with enable_x64(dtype == "float64"), np.errstate(invalid="ignore"):
        for values in SPECIAL:
            x = np.array(values, dtype)
            if width:
                x = np.repeat(x[:, None], width, 1)
            want, got = np.cumsum(x, 0), np.asarray(fnarray.jit(lambda y: lax.cumsum(y, axis=0))(x))
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(5000,), (5000, 3), (40, 700)], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_are_exact_to_two_units(dtype, shape, reverse):
    """Errors do not grow with the length: two units of the last place of the largest lane."""
    drawn = np.random.default_rng(0).uniform(0, 1, (2, *shape))
    with enable_x64(dtype in ("float64", "complex128")):
        x = (drawn[0] + 1j * drawn[1] if dtype[0] == "c" else drawn[0]).astype(dtype)
        compiled = fnarray.jit(lambda y: lax.cumsum(y, reverse=reverse))(x)
        for got in (compiled, lax.cumsum(fnarray.numpy.asarray(x), reverse=reverse)):
            ours, terms = (np.flip(y, 0) if reverse else y for y in (np.asarray(got), x))
            for part in (np.real, np.imag):
                for k in (1, len(x) // 2, len(x) - 1):
                    want = np.apply_along_axis(math.fsum, 0, part(terms[: k + 1]).astype(float))
                    off = np.abs(part(ours[k]) - want).max()
                    assert off <= 2 * np.finfo(dtype).eps * np.abs(want).max()
