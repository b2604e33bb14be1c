"""Random programs give the same results compiled, evaluated op by op, and under JAX."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnarray
import fnarray.lax as lax
from tests.property.programs import COMMON

from .programs import Program, arguments, programs


def assert_same(got, want, rtol: float, atol: float) -> None:
    """Compare results in shape, dtype and value."""
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)


def check(program: Program, seed: int) -> None:
    args = arguments(program, seed)
    before = [a.copy() for a in args]
    eager = program(lax, *map(fnarray.numpy.asarray, args))
    compiled = fnarray.jit(lambda *a: program(lax, *a))(*args)
    oracle = jax.jit(lambda *a: program(jax.lax, *a))(*args)
    assert_same(compiled, eager, 1e-5, 1e-5)
    assert_same(compiled, oracle, 1e-4, 1e-4)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=60, **COMMON)
@given(programs(control=False), st.integers(0, 3))
def test_straight_line_programs_agree(program: Program, seed: int) -> None:
    """jit == eager == JAX for programs of maps, reindexings, folds, products and updates."""
    check(program, seed)


@settings(max_examples=60, **COMMON)
@given(programs(control=True, max_steps=5), st.integers(0, 3))
def test_programs_with_control_flow_agree(program: Program, seed: int) -> None:
    """jit == eager == JAX with loops, scans and branches among the steps."""
    check(program, seed)


@pytest.mark.slow
@settings(max_examples=1000, **{**COMMON, "derandomize": False})
@given(programs(max_steps=12), st.integers(0, 1000))
def test_long_programs_agree(program: Program, seed: int) -> None:
    """The same for longer programs, drawn anew each time."""
    check(program, seed)
