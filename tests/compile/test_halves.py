"""Halves in compiled programs: every value, by instructions of the processor or by words."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import fnarray
from fnarray import numpy as fnp
from fnarray.compile.cpu.native import halves
from fnarray.compile.cpu.processor import Processor

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def _same(got: np.ndarray, want: np.ndarray) -> None:
    """Compare bits, and NaN with NaN."""
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    bits = np.dtype(f"u{want.itemsize}")
    np.testing.assert_array_equal(got.view(bits)[~nan], want.view(bits)[~nan])


def test_every_half_is_widened() -> None:
    widen = fnarray.jit(lambda x: x.astype(fnp.float32) * 1)
    with np.errstate(invalid="ignore"):
        _same(np.asarray(widen(EVERY)), EVERY.astype(np.float32))


def test_numbers_are_rounded_to_the_nearest_half() -> None:
    """Halves, what is between each and the next, and the neighbours of all these."""
    ordered = np.sort(EVERY[np.isfinite(EVERY)].astype(np.float32))
    between = (ordered[1:] + ordered[:-1]) / 2
    most = np.array([65519.996, 65520, 1e30, np.inf, np.nan, 1e-8, 2.0**-25, 1e-40], np.float32)
    at = np.concatenate([ordered, between, most, -most])
    x = np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)])
    narrow = fnarray.jit(lambda x: (x * 1).astype(fnp.float16))
    with np.errstate(over="ignore", invalid="ignore"):
        _same(np.asarray(narrow(x)), x.astype(np.float16))


def test_a_chain_rounds_after_each_operation() -> None:
    x = np.random.default_rng(0).standard_normal(10_001).astype(np.float16)
    chain = fnarray.jit(lambda x: ((x * 1.5 + 0.25) * x - 1) * x)
    half = np.float16
    _same(np.asarray(chain(x)), ((x * half(1.5) + half(0.25)) * x - half(1)) * x)


@pytest.mark.parametrize(("features", "count"), [("+avx2,+f16c", 2), ("+avx2", 0), ("", 0)])
def test_instructions_are_those_that_the_processor_has(features: str, count: int) -> None:
    named = Processor("some", features, wide=False, note="")
    with mock.patch.object(halves, "processor", return_value=named):
        assert len(halves.rules()) == count


@pytest.mark.parametrize("words", [False, True])
def test_loops_that_flush_subnormals_of_float32_keep_those_of_halves(words: bool) -> None:
    """They are normal numbers of float32, widened by instructions or by words of ours."""
    x = EVERY[np.isfinite(EVERY)]
    count = 3 + words  # no program of the other's
    turns = fnarray.jit(lambda x: fnarray.lax.fori_loop(0, count, lambda _, c: c * 0.5 + x, x))
    want = x
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(count):
            want = want * np.float16(0.5) + x
        with mock.patch.object(halves, "rules", dict if words else halves.rules):
            _same(np.asarray(turns(x)), want)
