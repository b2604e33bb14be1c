"""Both sides of every threshold give the results of NumPy: at the limit, and with it moved."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from fnarray.compile.cpu.target import CPU
from fnarray.compile.target import Limits

from .functions import everything, everything_by_numpy
from .helpers import compiled, run
from .measures import MEASURES, numbers


def close(got: Any, want: Any) -> None:
    """Compare results in float64, to float32's accuracy."""
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, np.asarray(w), rtol=2e-4, atol=2e-4)


#: Values that send small programs the one way and the other.
EXTREMES = {
    "dear": (0, 10**6), "plain": (0, 10**6), "spread": (0, 10**6),
    "tall": (0, 400), "registers": (0, 40), "unroll": (0, 10**4),
    "vector": (2, 10**6), "abreast": (0, 10**6),
    "library": (0, 10**12), "narrow": (0, 10**6), "thin": (0, 10**6),
    "workspace": (0, 1 << 40), "streams": (0, 10**6),
    "parallel": (0, 1 << 60), "turns": (1, 10**6), "turn": (0, 1 << 60),
    "kernel": (0, 10**6), "numbers": (1, 10**6), "loop": (1, 10**6),
    "grain": (1, 10**6), "chunks": (1, 64), "serial": (0, 1 << 60),
    "share": (1, 1 << 60), "alone": (0, 1 << 60), "spelled": (0, 10**9), "matrix": (0, 1000),
    "matrix_inside": (0, 1000),
    "few": (0, 1000), "transform": (0, 10**6), "lanes": (1, 7, 1000), "lane_state": (0, 1000),
    "row": (0, 10**6), "group": (0, 1), "shared": (1, 1 << 60), "split": (0, 1 << 60),
    "strips": (0, 1 << 60), "views": (False, True), "pieces": (0, 100), "vectors": (0, 10**6),
    "twofold": (0, 1, 10**6), "exchanged": (0, 10**6), "rotated": (0, 10**6),
    "padded": (0, 1, 10**6), "masked": (0, 10**6), "brief": (0, 10**6),
    "loops": (0, 10**6), "little": (0, 10**9), "lines": (0, 1, 1 << 60),
}  # fmt: skip


def test_every_limit_has_both_sides_tested() -> None:
    """A new limit needs a measure and extremes."""
    names = {f.name for f in fields(Limits)}
    assert names == set(MEASURES) == set(EXTREMES)


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_results_hold_just_below_and_just_above(name: str) -> None:
    """A program below a limit, at it and above it computes what NumPy does."""
    limit = getattr(CPU.limits, name)
    for n in (limit - 1, limit, limit + 1):
        f, want, args = MEASURES[name](n)
        close(run(f, *args), want(*(a.copy() for a in args)))


# ---- the limit moved: one program in which every choice is met
@pytest.mark.parametrize("name", sorted(EXTREMES))
def test_results_hold_with_the_limit_at_its_extremes(name: str) -> None:
    """Both ways are taken by small arrays too, and give the same."""
    x, w, v = numbers(6, 4), numbers(4, 4), numbers(3)
    for value in EXTREMES[name]:
        target = replace(CPU, limits=replace(CPU.limits, **{name: value}))
        got = run(everything, x, w, v, np.array(2, np.int32), target=target)
        close(got, everything_by_numpy(x, w, v, 2))
        f, want, args = MEASURES[name](20)
        close(run(f, *args, target=target), want(*(a.copy() for a in args)))


def test_limits_change_what_is_emitted() -> None:
    """The extremes really go different ways."""
    same = []
    for name, values in EXTREMES.items():
        texts = set()
        for value in values:
            target = replace(CPU, limits=replace(CPU.limits, **{name: value}))
            x, w, v = numbers(6, 4), numbers(4, 4), numbers(3)
            programs = [(everything, (x, w, v, np.array(2, np.int32)))]
            programs += [(f, args) for f, _, args in [MEASURES[name](20)]]
            texts.add("".join(compiled(f, *a, target=target).as_text() for f, a in programs))
        if len(texts) == 1:
            same.append(name)
    # These act when a program runs, not when it is written.
    assert same == ["turns", "grain", "chunks", "serial", "share"]
