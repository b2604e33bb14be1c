"""Loops whose rows never meet turn in groups of rows, and give the bits of loops that do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fnarray import lax
from fnarray import numpy as fnp
from fnarray.compile.cpu.target import CPU
from tests.compile.helpers import code, compiled, run

#: Groups of four numbers, so that short arrays have as many as are worth it.
GROUPED = replace(CPU, limits=replace(CPU.limits, group=4))
PLAIN = replace(CPU, limits=replace(CPU.limits, group=0))
R = np.random.default_rng(3)
X = R.random(240).astype(np.float32)
TABLE = np.sort(R.random(33)).astype(np.float32)
ROWS = R.random((96, 3)).astype(np.float32)


def squares(z: Any, c: Any) -> Any:
    return lax.fori_loop(0, 40, lambda i, z: z * z * 0.25 + c, z)


def escaped(c: Any) -> Any:
    def turn(n: Any, state: Any) -> Any:
        z, count = state
        inside = abs(z) < 1.5
        return fnp.where(inside, z * z + c, z), fnp.where(inside, n, count)

    return lax.fori_loop(0, 12, turn, (fnp.zeros_like(c), fnp.zeros(c.shape, int)))


def searched(table: Any, x: Any) -> Any:
    return fnp.searchsorted(table, x)


def orbits(p: Any, v: Any) -> Any:
    def turn(_: Any, state: Any) -> Any:
        p, v = state
        v = v - 0.01 * p / (fnp.sum(p * p, axis=1, keepdims=True) + 0.1)
        return p + 0.01 * v, v

    return lax.fori_loop(0, 9, turn, (p, v))


def grown(p: Any) -> Any:
    return lax.fori_loop(0, 9, lambda _, p: p / fnp.prod(1 + p * p, axis=1, keepdims=True), p)


def rows_turned(p: Any) -> Any:
    return lax.scan(lambda p, _: (p[:, ::-1] * 1.5 - p[:, :1], None), p, None, 5)[0]


def until(x: Any) -> Any:
    done = lax.while_loop(lambda s: s[0] < 21, lambda s: (s[0] + 3, s[1] * 0.9 + x), (0, x))
    return done[1]


def weighted(x: Any, steps: Any) -> Any:
    return lax.scan(lambda x, h: (x + h * fnp.sin(x), None), x, steps)[0]


def indivisible(x: Any) -> Any:
    return lax.fori_loop(0, 33, lambda i, y: y * 0.5 + x, x)


STEPS = np.linspace(0, 1, 7, dtype=np.float32)
TURNING: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "squares": (squares, (X, X[::-1].copy())),
    "escaped": (escaped, ((X * 3 - 2 + 1j * X[::-1]).astype(np.complex64),)),
    "searched": (searched, (TABLE, X)),
    "orbits": (orbits, (ROWS, ROWS[::-1].copy())),
    # Rows of 9 to 15 terms are summed as LLVM orders them, which on 256 bits the loops around
    # decide: in order they took 1.3 to 2 times as long.
    **{
        f"orbits of {k}": (orbits, (R.random((96, k), np.float32), R.random((96, k), np.float32)))
        for k in (4, 5, 6, 8, 16)
    },
    **{f"grown of {k}": (grown, (R.random((96, k), np.float32),)) for k in (3, 4, 5, 8)},
    "rows_turned": (rows_turned, (ROWS,)),
    "until": (until, (X,)),
    "weighted": (weighted, (X, STEPS)),
    "indivisible": (indivisible, (X[:239],)),
}


def columns_meet(p: Any) -> Any:
    return lax.fori_loop(0, 9, lambda i, p: p - fnp.mean(p, axis=0), p)


def neighbours(x: Any) -> Any:
    return lax.fori_loop(0, 9, lambda i, x: fnp.roll(x, 1) * 0.5 + x, x)


def total(x: Any) -> Any:
    return lax.while_loop(lambda x: fnp.sum(x) > 1.0, lambda x: x * 0.5, x)


def one_by_one(x: Any) -> Any:
    return lax.fori_loop(0, 9, lambda i, x: x.at[i].add(x[0]), x)


def gathered(x: Any) -> Any:
    at = fnp.arange(x.size)[::-1]
    return lax.fori_loop(0, 9, lambda i, y: y[at] * 0.5 + x, x)


def shifted(x: Any) -> Any:
    wide = fnp.concatenate([x, x])
    return lax.fori_loop(0, 9, lambda i, y: y * 0.5 + wide[1 : x.size + 1], x)


def counted(x: Any) -> Any:
    return lax.fori_loop(0, 9, lambda i, y: y + fnp.arange(x.size) * i, x)


def crossed(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 9, lambda i, s: (s[0] + s[1], s[1] + s[0][0]), (x, y))


MEETING: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "columns_meet": (columns_meet, (ROWS,)),
    "neighbours": (neighbours, (X,)),
    "total": (total, (X,)),
    "one_by_one": (one_by_one, (X,)),
    "gathered": (gathered, (X,)),
    "shifted": (shifted, (X,)),
    "counted": (counted, (X,)),
    "crossed": (crossed, (X, X[::-1].copy())),
}


def _in_groups(fun: Callable[..., Any], args: tuple[np.ndarray, ...]) -> bool:
    grouped, plain = (code(compiled(fun, *args, target=t)) for t in (GROUPED, PLAIN))
    return grouped != plain


@pytest.mark.parametrize("name", TURNING)
def test_rows_that_never_meet_turn_in_groups(name: str) -> None:
    fun, args = TURNING[name]
    assert _in_groups(fun, args)
    for got, want in zip(
        run(fun, *args, target=GROUPED), run(fun, *args, target=PLAIN), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", MEETING)
def test_rows_that_meet_turn_together(name: str) -> None:
    fun, args = MEETING[name]
    assert not _in_groups(fun, args)
    for got, want in zip(
        run(fun, *args, target=GROUPED), run(fun, *args, target=PLAIN), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_squares_are_those_of_a_plain_loop() -> None:
    z, c = TURNING["squares"][1]
    (got,) = run(squares, z, c, target=GROUPED)
    for _ in range(40):
        z = z * z * np.float32(0.25) + c
    np.testing.assert_array_equal(got, z)


def test_equal_loops_run_once() -> None:
    def twice(table: Any, x: Any) -> Any:
        return fnp.searchsorted(table, x) + fnp.searchsorted(table, x)

    def other(table: Any, x: Any) -> Any:
        return fnp.searchsorted(table, x) + fnp.searchsorted(table, x, side="right")

    def loops(fun: Any) -> int:
        return len(re.findall(r"for s\d+ in", code(compiled(fun, TABLE, X, target=PLAIN))))

    assert (loops(searched), loops(twice), loops(other)) == (1, 1, 2)
