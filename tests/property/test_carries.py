"""Random loops whose carries change places: NumPy's results, whoever takes over whose memory.

What a turn makes of one array may be the next turn's other one, old and new; boxes of it are
replaced or added to, at places that are known or counted, by what is read of any array, before and
after; rows of results are stacked beside. The same programs own their arguments, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnarray
import fnarray.numpy as fnp
from fnarray import lax
from tests.property.programs import COMMON

pytestmark = pytest.mark.cpu

SHAPE = (12, 10)
BOX = (slice(1, 11), slice(1, 9))


@dataclass(frozen=True)
class Step:
    """One more array, of two of those before, ``a`` and ``b``.

    ``way`` is a sum of all elements, of moved ones, or a box of ``a`` replaced, added to, or
    replaced in a row that is counted, by elements of ``b`` that are ``moved`` by so much.
    """

    way: str
    a: int
    b: int
    moved: tuple[int, int]
    number: int


@dataclass(frozen=True)
class Loop:
    """Steps of a turn, and which of the arrays are carried on and stacked."""

    steps: tuple[Step, ...]
    carried: tuple[int, ...]
    stacked: int
    turns: int


@st.composite
def loops(draw) -> Loop:
    carries = draw(st.integers(2, 3))
    steps: list[Step] = []
    for k in range(draw(st.integers(1, 4))):
        way = draw(st.sampled_from(["sum", "moved", "set", "set", "add", "row"]))
        moved = draw(st.tuples(st.integers(-1, 1), st.integers(-1, 1)))
        a, b = (draw(st.integers(0, carries + k - 1)) for _ in range(2))
        steps.append(Step(way, a, b, moved, draw(st.integers(-3, 3))))
    arrays = st.integers(0, carries + len(steps) - 1)
    carried = tuple(draw(arrays) for _ in range(carries))
    return Loop(tuple(steps), carried, draw(arrays), draw(st.integers(1, 4)))


def turned(loop: Loop, arrays: list[Any], t: Any, put: Any) -> tuple[list[Any], Any]:
    """Return what is carried on and stacked after a turn; ``put`` updates a box."""
    arrays = list(arrays)
    for step in loop.steps:
        a, b = arrays[step.a], arrays[step.b]
        down, right = step.moved
        part = b[1 + down : 11 + down, 1 + right : 9 + right]
        if step.way == "sum":
            arrays.append(a * 2 - b + step.number)
        elif step.way == "moved":
            arrays.append(put(a * 0 + step.number, BOX, part, "set"))
        elif step.way == "row":
            arrays.append(put(a, t + 1, b[2 + down] - step.number, "set"))
        else:
            arrays.append(put(a, BOX, part * 3 - a[BOX] + step.number, step.way))
    return [arrays[k] for k in loop.carried], arrays[loop.stacked]


def put_there(a: Any, index: Any, new: Any, way: str) -> Any:
    return getattr(a.at[index], way)(new)


def put_in_numpy(a: Any, index: Any, new: Any, way: str) -> Any:
    a = a.copy()
    a[index] = new if way == "set" else a[index] + new
    return a


def expected(loop: Loop, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    rows: list[np.ndarray] = []
    for t in range(loop.turns):
        arrays, row = turned(loop, arrays, t, put_in_numpy)
        rows.append(row)
    return arrays, np.stack(rows)


def scanned(loop: Loop) -> Any:
    def turn(carry: Any, t: Any) -> Any:
        new, row = turned(loop, carry, t, put_there)
        return tuple(new), row

    return lambda *arrays: lax.scan(turn, arrays, fnp.arange(loop.turns))


def counted(loop: Loop) -> Any:
    def turn(t: Any, carry: Any) -> Any:
        return tuple(turned(loop, carry, t, put_there)[0])

    return lambda *arrays: lax.fori_loop(0, loop.turns, turn, arrays)


def until(loop: Loop) -> Any:
    def turn(state: Any) -> Any:
        t, *carry = state
        return (t + 1, *turned(loop, carry, t, put_there)[0])

    def run(n: Any, *arrays: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < n, turn, (0, *arrays))[1:]

    return run


def chosen(loop: Loop) -> Any:
    def turn(t: Any, carry: Any) -> Any:
        def new(carry: Any) -> Any:
            return tuple(turned(loop, carry, t, put_there)[0])

        return lax.cond(t < loop.turns, new, lambda c: tuple(c), carry)

    return lambda *arrays: lax.fori_loop(0, loop.turns + 2, turn, arrays)


def once(loop: Loop) -> Any:
    def run(*arrays: Any) -> Any:
        carry: Any = arrays
        for t in range(loop.turns):
            carry = turned(loop, carry, t, put_there)[0]
        return tuple(carry)

    return run


@settings(**COMMON, max_examples=60)
@given(loops())
def test_carries_change_places(loop: Loop):
    draw = np.random.default_rng(0)
    start = [draw.integers(-9, 9, SHAPE).astype(np.int32) for _ in loop.carried]
    want, rows = expected(loop, start)
    got, stacked = fnarray.jit(scanned(loop))(*start)
    np.testing.assert_array_equal(stacked, rows)
    owned = tuple(range(len(start)))
    runs = (
        got,
        fnarray.jit(counted(loop))(*start),
        fnarray.jit(until(loop))(loop.turns, *start),
        fnarray.jit(chosen(loop))(*start),
        fnarray.jit(once(loop), donate_argnums=owned)(*map(fnp.array, start)),
        fnarray.jit(counted(loop), donate_argnums=owned)(*map(fnp.array, start)),
    )
    for results in runs:
        for a, b in zip(results, want, strict=True):
            np.testing.assert_array_equal(a, b)
