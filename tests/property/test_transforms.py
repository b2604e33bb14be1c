"""Random programs under random stacks of transforms agree with JAX; maps agree with loops."""

from __future__ import annotations

import os
from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnarray
import fnarray.lax
from fnarray.config import effects, enable_x64
from tests.property.programs import COMMON

from .programs import Program, arguments, programs
from .stacks import Stacked, stacked

SETTINGS = {**COMMON, "database": None}
#: With emitted code run by Python, compiling is no cost.
PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def check(case: Stacked, seed: int, wide: bool, compiled: bool) -> None:
    """Compare with JAX in shape, dtype, weak type and, scaled by the largest, in value."""
    tolerance = 1e-10 if wide else 1e-5
    dtype = np.float64 if wide else np.float32
    args = arguments(replace(case.program, shapes=case.shapes), seed, dtype)
    with jax.enable_x64(wide), enable_x64(wide), effects("off"):
        want = jax.jit(case.under(jax))(*args)
        results = [case.under(fnarray)(*args)]
        if compiled:
            results.append(fnarray.jit(case.under(fnarray))(*args))
    for got in results:
        for g, w in zip(got, want, strict=True):
            assert (g.shape, g.dtype, g.weak_type) == (w.shape, w.dtype, w.weak_type)
            g, w = np.asarray(g), np.asarray(w)
            scale = 1 + np.abs(w[np.isfinite(w)]).max(initial=0)
            np.testing.assert_allclose(g, w, rtol=0, atol=tolerance * scale)


@settings(max_examples=25, **SETTINGS)
@given(stacked(jax, most=2), st.integers(0, 3))
def test_stacks_agree_with_jax(case: Stacked, seed: int) -> None:
    """Up to two nested transforms of a program with control flow, in double precision."""
    check(case, seed, wide=True, compiled=PLAIN)


@settings(max_examples=3, **SETTINGS)
@given(stacked(jax, most=2), st.integers(0, 3))
def test_compiled_stacks_agree_with_jax(case: Stacked, seed: int) -> None:
    """A few of them compiled, in single precision."""
    check(case, seed, wide=False, compiled=True)


@pytest.mark.slow
@settings(max_examples=300, **{**SETTINGS, "derandomize": False})
@given(stacked(jax), st.integers(0, 1000), st.booleans())
def test_deep_stacks_agree_with_jax(case: Stacked, seed: int, wide: bool) -> None:
    """Three transforms, drawn anew each time, evaluated and compiled; one in single precision."""
    # Derivatives of derivatives lose digits of their own: seen, 2e-4 of single precision's.
    check(case, seed, wide or len(case.steps) > 1, compiled=True)


@settings(max_examples=40, **SETTINGS)
@given(programs(max_steps=4), st.integers(1, 3), st.integers(0, 3), st.data())
def test_maps_are_stacked_loops(
    program: Program, size: int, seed: int, data: st.DataObject
) -> None:
    """``vmap`` of a program is the loop over examples, stacked, whichever arguments are mapped."""
    flags = data.draw(st.tuples(*[st.booleans() for _ in program.shapes]).filter(any))
    lanes = [arguments(program, seed + k, np.float64) for k in range(size)]
    args = [
        np.stack([lane[i] for lane in lanes]) if mapped else lanes[0][i]
        for i, mapped in enumerate(flags)
    ]

    def run(*xs):
        return program(fnarray.lax, *xs)

    with enable_x64(True), effects("off"):
        got = fnarray.vmap(run, in_axes=tuple(0 if f else None for f in flags))(*args)
        rows = [
            run(*(fnarray.numpy.asarray(lane[i] if f else args[i]) for i, f in enumerate(flags)))
            for lane in lanes
        ]
    for k, g in enumerate(got):
        want = np.stack([np.asarray(row[k]) for row in rows])
        assert g.dtype == want.dtype
        scale = 1 + np.abs(want[np.isfinite(want)]).max(initial=0)
        np.testing.assert_allclose(np.asarray(g), want, rtol=0, atol=1e-10 * scale)


def _passed_through(x):
    """A branch that returns an operand, and computes with it, must not do so in place."""
    lax = fnarray.lax
    total = lax.reduce_sum(x, (0,))
    y = lax.cond(total > 0, lambda a, b: lax.add(lax.sin(a), b), lambda a, b: b, x, x)
    return lax.reduce_sum(lax.add(lax.sin(x), lax.sin(y)), (0,))


def _outer_twice(x):
    """Products over one element read alike, but spread to two shapes, are two arrays."""
    lax = fnarray.lax
    y = lax.tanh(lax.broadcast_in_dim(x, (1, 1), (1,)))
    return lax.dot_general(y, y, (((1,), (1,)), ((0,), (0,))))


@pytest.mark.parametrize(
    ("transform", "fun"), [(fnarray.grad, _passed_through), (fnarray.jacfwd, _outer_twice)]
)
def test_found_by_fuzzing(transform, fun) -> None:
    """Programs that once were compiled wrong: compiled and evaluated they agree."""
    x = np.array([0.547], np.float32)
    with effects("off"):
        want, got = transform(fun)(x), fnarray.jit(transform(fun))(x)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_not_linear_in_a_divisor() -> None:
    """A cotangent that a rule cannot give is an error, not a zero."""
    with pytest.raises(fnarray.errors.MissingRuleError, match="not linear in operand 1"):
        fnarray.linear_transpose(lambda x: 1 / x, 1.0)(1.0)
