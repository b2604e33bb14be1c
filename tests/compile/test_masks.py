"""Folds of masked terms run where the mask lets terms pass: values, and the text of their loops."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

COMPARE = MappingProxyType(
    {
        "<": (jnp.less, np.less),
        "<=": (jnp.less_equal, np.less_equal),
        ">": (jnp.greater, np.greater),
        ">=": (jnp.greater_equal, np.greater_equal),
    }
)
FOLDS = MappingProxyType({k: (getattr(jnp, k), getattr(np, k)) for k in ("max", "min", "sum")})


def program(
    n: int,
    signs: Any,
    fold: str,
    either: bool,
    constant: int,
    column: bool,
    far: int,
    first: int = 0,
):
    """Return a function that folds, in each turn of a loop, terms that a mask lets pass."""
    pairs = tuple(signs)

    def run(table, bounds):
        places = jnp.arange(first, first + n)

        def turn(t, out):
            masks = [
                COMPARE[sign][0](bounds[t, k], places)
                if swapped
                else COMPARE[sign][0](places, bounds[t, k])
                for k, (sign, swapped) in enumerate(pairs)
            ]
            mask = masks[0]
            for other in masks[1:]:
                mask = mask | other if either else mask & other
            terms = table[:, t] if column else table[t]
            if far:
                terms = jnp.roll(terms, far)
            terms = (constant, terms) if either else (terms, constant)
            return out.at[t].set(FOLDS[fold][0](jnp.where(mask, *terms)))

        return lax.fori_loop(0, len(bounds), turn, jnp.zeros(len(bounds), table.dtype))

    return run


def looped(table, bounds, signs, fold, either, constant, column, far, first=0):
    """The same, by NumPy's masks."""
    places, out = np.arange(len(table)) + first, []
    for t, row in enumerate(bounds):
        masks = [
            COMPARE[sign][1](row[k], places) if swapped else COMPARE[sign][1](places, row[k])
            for k, (sign, swapped) in enumerate(signs)
        ]
        mask = (np.logical_or if either else np.logical_and).reduce(masks)
        terms = np.roll(table[:, t] if column else table[t], far)
        chosen = np.where(mask, constant, terms) if either else np.where(mask, terms, constant)
        out.append(FOLDS[fold][1](chosen))
    return np.array(out, table.dtype)


@settings(deadline=None, max_examples=25)
@given(
    n=st.sampled_from([5, 40, 130, 200]),
    signs=st.lists(
        st.tuples(st.sampled_from(list(COMPARE)), st.booleans()), min_size=1, max_size=3
    ),
    fold=st.sampled_from(list(FOLDS)),
    either=st.booleans(),
    constant=st.sampled_from([0, -3, 7]),
    column=st.booleans(),
    far=st.sampled_from([0, -1, 3]),
    first=st.sampled_from([0, 1, -2]),
    dtype=st.sampled_from(["int32", "float32"]),
    seed=st.integers(0, 1000),
)
def test_masked_folds_are_numpys(
    n, signs, fold, either, constant, column, far, first, dtype, seed
) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(-9, 9, (n, n)).astype(dtype)
    ends = [-(2**31), 2**31 - 1, -1, 0, n - 1, n]
    bounds = np.where(
        rng.random((5, len(signs))) < 0.5,
        rng.choice(ends, (5, len(signs))),
        rng.integers(-2, n + 2, (5, len(signs))),
    ).astype(np.int32)
    run = program(n, signs, fold, either, constant, column, far, first)
    expected = looped(table, bounds, signs, fold, either, constant, column, far, first)
    np.testing.assert_array_equal(fa.jit(run)(table, bounds), expected)


def text_of(f: Any, *args: Any) -> str:
    return fa.jit(f).lower(*args).compile().as_text()


def test_the_loop_runs_where_the_mask_passes() -> None:
    """A column's terms are no vectors: exactly those in the range are read, and no mask is left."""
    run = program(60, [(">=", False), ("<", False)], "max", False, 0, True, -1)
    table, bounds = np.ones((60, 60), np.int32), np.ones((5, 2), np.int32)
    text = text_of(run, table, bounds)
    loop = re.search(r"for i\d+ in range\((low\d+), (high\d+)\):\n((?: {12}.*\n)+)", text)
    assert loop is not None
    assert f"if {loop[1]} > 0 or {loop[2]} < 60" in text  # the zeros outside are folded once
    assert " if t" not in loop[3]
    assert ">=" not in loop[3]


def test_rows_run_in_whole_blocks_of_vectors() -> None:
    """A row's terms are read as vectors, by whole blocks: the mask is still asked at the ends."""
    run = program(200, [("<", False)], "sum", False, 0, False, 0)
    table, bounds = np.ones((200, 200), np.float32), np.ones((5, 1), np.int32)
    text = text_of(run, table, bounds)
    assert "// 32 * 32" in text
    assert "range(0, high0)" in text
    short = text_of(program(40, [("<", False)], "sum", False, 0, False, 0), table[:40, :40], bounds)
    assert "high0" not in short


@pytest.mark.parametrize("what", ["a sum of ones", "a float bound", "an unsigned bound"])
def test_what_bounds_no_range_runs_whole(what: str) -> None:
    """Terms outside that a fold does not leave out, and bounds that are no places."""
    constant = 1 if what == "a sum of ones" else 0
    run = program(60, [("<", False)], "sum", False, constant, True, 0)
    kind = {"a float bound": np.float32, "an unsigned bound": np.uint32}.get(what, np.int32)
    table, bounds = np.ones((60, 60), np.int32), np.full((5, 1), 7, kind)
    expected = looped(table, bounds, [("<", False)], "sum", False, constant, True, 0)
    np.testing.assert_array_equal(fa.jit(run)(table, bounds), expected)
    if what != "an unsigned bound":
        assert "high0" not in text_of(run, table, bounds)


def test_a_number_that_is_none_passes_a_maximum() -> None:
    run = program(60, [("<", False)], "max", False, 0, True, 0)
    table = np.zeros((60, 60), np.float32)
    table[3, 1] = np.nan
    bounds = np.array([[60], [60], [2], [0], [60]], np.int32)
    np.testing.assert_array_equal(fa.jit(run)(table, bounds), [0, np.nan, 0, 0, 0])


@pytest.mark.parametrize("first", [0, 5, -5])
def test_sixty_four_bits_bound_a_range(first: int) -> None:
    """Also where places are counted from elsewhere: what is beyond the last is not cut off."""
    run = program(60, [("<=", False), (">", False)], "sum", False, 0, True, 0, first)
    with fa.enable_x64(True):
        table = np.arange(3600).reshape(60, 60)
        bounds = np.array(
            [[2**63 - 1, -(2**63)], [2**63 - 1, 2**63 - 1], [62, 20], [0, -3], [5, 1]]
        )
        signs = [("<=", False), (">", False)]
        expected = looped(table, bounds, signs, "sum", False, 0, True, 0, first)
        np.testing.assert_array_equal(fa.jit(run)(table, bounds), expected)


def test_loops_within_loops_count_what_they_compare() -> None:
    """A mask of places that are made outside of the loops reads no array of them."""

    def run(a):
        places = jnp.arange(30)

        def row(t, a):
            def entry(s, a):
                mask = (places[:, None] > t) & (places > s)
                return jnp.where(mask, a + 1, a)

            return lax.fori_loop(0, 3, entry, a)

        return lax.fori_loop(0, 4, row, a)

    a = np.zeros((30, 30), np.float32)
    text = text_of(run, a)
    assert re.search(r"t\d+ = sc.to_int32\(i\d+\)", text)
    assert not re.search(r"t\d+ = w\d+\[i\d+\]", text)
    i = np.arange(30)
    expected = sum(((i[:, None] > t) & (i > s)).astype(int) for t in range(4) for s in range(3))
    np.testing.assert_array_equal(fa.jit(run)(a), expected)
