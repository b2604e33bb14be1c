"""Sums of products of boxes of arrays, as products of windows where they lie.

A product is a convolution without windows: its rows and terms are the loops of its axes, and what
is added to a result goes there at once. Pieces of the rows that a near cache holds meet every
product of a sum before the next piece does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core.avals import ShapedArray
from ...core.contraction import contracted, free_axes
from ...core.forms import Contract
from ...core.quiet import quietly
from ..boxes import Lines
from ..schedule.access import row_major
from ..summands import Box, Sum, Summand
from ..target import Limits
from .blas import LETTERS, address, matmul
from .native import windows
from .native.call import layout_is_known
from .told import TOGETHER, Loop, Part, calls, code_of, several

Run = Callable[..., tuple[np.ndarray, ...]]
#: Frames that threads take.
_FRAMES: Final = 16
#: Turns of loops around a product of windows: of more, words are as long as operands.
_TURNS: Final = 1 << 10


def is_summed(dtype: np.dtype) -> bool:
    """Whether there are products of windows for numbers of a dtype."""
    letter = LETTERS.get(dtype.char)
    return letter is not None and windows.symbol(letter) is not None and layout_is_known()


def sum_of(sum_: Sum, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits) -> Run:
    """Return what computes a sum of products of C-ordered arrays."""
    return _where_they_lie(sum_, ins, out, limits) or _as_arrays(sum_, ins, out, limits)


def product_where_it_lies(
    form: Contract, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits
) -> Run | None:
    """Return what multiplies arrays whose axes do not lie as a matrix's; None if no words do.

    The second, if it is the smaller one, is copied where its columns do not all lie together.
    """
    lhs, rhs = ins
    columns = free_axes(rhs.ndim, form.rhs_contract, form.rhs_batch)
    order = (*form.rhs_batch, *form.rhs_contract, *columns)
    whole = Summand(form, _whole(0, lhs), _whole(1, rhs))
    if order == tuple(range(rhs.ndim)) or rhs.size > lhs.size:
        return _where_they_lie(Sum((whole,), None), ins, out, limits)
    batch, terms = len(form.rhs_batch), len(form.rhs_contract)
    laid = rhs.update(shape=tuple(rhs.shape[a] for a in order))
    form = Contract(
        form.lhs_contract, tuple(range(batch, batch + terms)), form.lhs_batch, tuple(range(batch))
    )
    whole = Summand(form, whole.lhs, _whole(1, laid))
    run = _where_they_lie(Sum((whole,), None), (lhs, laid), out, limits)
    if run is None:
        return None

    def step(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        return run(x, y.transpose(order))

    return step


def _whole(operand: int, aval: ShapedArray) -> Box:
    axes = tuple(range(aval.ndim))
    return Box(operand, aval.shape, Lines(axes, (0,) * aval.ndim, (1,) * aval.ndim))


def _where_they_lie(
    sum_: Sum, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits
) -> Run | None:
    """Return what adds up products by products of windows; None where there are none for them."""
    words = _words(sum_, ins, out, limits)
    if words is None:
        return None
    letter, columns = LETTERS[out.dtype.char], int(words[0, 0, windows.WORDS.index("n")])
    code = code_of(letter, narrow=windows.is_narrow(letter, columns))
    shared = _products(sum_) >= 2 * limits.share
    run = several(code, words, 0 if shared and len(words) <= _FRAMES else _FRAMES * shared or 1)

    def step(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        arrays = tuple(map(np.ascontiguousarray, arrays))
        result = _begun(sum_, arrays, out)
        at, to = [address(x) for x in arrays], address(result)
        begins = [(at[s.lhs.operand], at[s.rhs.operand], to) for s in sum_.summands]
        run(np.array(begins, np.int64))
        return (result,)

    return step


def _products(sum_: Sum) -> int:
    """Return how many products of numbers a sum adds up."""
    return sum(
        prod(s.lhs.extents) * prod(s.rhs.extents[a] for a in _columns(s)) for s in sum_.summands
    )


def _rows(s: Summand) -> tuple[int, ...]:
    return free_axes(len(s.lhs.extents), s.form.lhs_contract, s.form.lhs_batch)


def _columns(s: Summand) -> tuple[int, ...]:
    return free_axes(len(s.rhs.extents), s.form.rhs_contract, s.form.rhs_batch)


def _begun(sum_: Sum, arrays: Sequence[np.ndarray], out: ShapedArray) -> np.ndarray:
    """Return the array that products are added to, or written."""
    result: np.ndarray[Any, Any] = np.empty(out.shape, out.dtype)
    if sum_.start is not None:
        result[...] = arrays[sum_.start]
    return result


def _words(
    sum_: Sum, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits
) -> np.ndarray | None:
    """Return what products of windows are told, by calls and summands; None where they are none.

    The columns of a call lie together in the second matrix. Others, and batches, are more calls.
    """
    first, width = sum_.summands[0], out.dtype.itemsize
    lie = [
        (_lie(s.lhs, ins[s.lhs.operand]), _lie(s.rhs, ins[s.rhs.operand])) for s in sum_.summands
    ]
    pairs = list(zip(sum_.summands, lie, strict=True))
    places = [width * n for n in row_major(out.shape)]
    batch = [
        (n, *(down[s.form.lhs_batch[k]] for s, ((_, down), _) in pairs),
         *(along[s.form.rhs_batch[k]] for s, (_, (_, along)) in pairs), places[k])
        for k, n in enumerate(out.shape[: len(first.form.lhs_batch)])
    ]  # fmt: skip
    rows: list[Loop] = [
        (first.lhs.extents[a], *(down[_rows(s)[k]] for s, ((_, down), _) in pairs), place)
        for k, (a, place) in enumerate(zip(_rows(first), places[len(batch) :], strict=False))
    ]
    across = [
        (first.rhs.extents[a], *(0,) * len(pairs),
         *(along[_columns(s)[k]] for s, (_, (_, along)) in pairs), place)
        for k, (a, place) in enumerate(
            zip(_columns(first), places[len(batch) + len(rows) :], strict=True)
        )
    ]  # fmt: skip
    columns = 1
    while across and set(across[-1][1 + len(pairs) :]) == {width * columns}:
        columns *= across.pop()[0]
    turns = prod(n for n, *_ in (*batch, *across))
    if columns == 1 or turns > _TURNS:
        return None
    parts = [
        Part(begin, second, [
            (s.lhs.extents[a], down[a], along[b])
            for a, b in zip(s.form.lhs_contract, s.form.rhs_contract, strict=True)
        ] or [(1, 0, 0)])
        for s, ((begin, down), (second, along)) in pairs
    ]  # fmt: skip
    rows = rows or [(1, *(0,) * len(pairs), 0)]
    together = width * prod(first.lhs.extents) // (TOGETHER * turns)
    adds = sum_.start is not None
    told = calls(parts, 0, columns, rows, limits, together, adds=adds)
    return None if told is None else _turned(np.array(told), len(pairs), [*batch, *across])


def _turned(told: np.ndarray, parts: int, loops: Sequence[Loop]) -> np.ndarray:
    """Return what calls are told in each turn of loops, by steps in the matrices of each part."""
    told = told.reshape(1, len(told), parts, -1)
    steps: np.ndarray[Any, Any] = np.zeros((1, 1, parts, 3), np.int64)
    for count, *by in loops:
        step = np.array([*by[:parts], *by[parts:-1], *(by[-1],) * parts]).reshape(3, parts).T
        turns = np.arange(count).reshape(-1, 1, 1, 1) * step
        steps = (steps[:, None] + turns).reshape(-1, 1, parts, 3)
    every = np.repeat(told, len(steps), 0)
    every[..., :3] += steps
    return every.reshape(-1, parts, told.shape[-1])


def _lie(box: Box, array: ShapedArray) -> tuple[int, list[int]]:
    """Return where a box of a C-ordered array begins, and how far apart its axes' elements are."""
    lines, places = box.lines, [array.dtype.itemsize * n for n in row_major(array.shape)]
    apart = [0] * len(box.extents)
    for axis, stride, place in zip(lines.axes, lines.stride, places, strict=True):
        if axis is not None:
            apart[axis] += stride * place
    return sum(o * place for o, place in zip(lines.offset, places, strict=True)), apart


def _as_arrays(sum_: Sum, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits) -> Run:
    """Return what multiplies boxes as NumPy's views, one after the other."""

    def viewed(box: Box, x: np.ndarray) -> np.ndarray:
        begin, apart = _lie(box, ins[box.operand])
        begun = np.ascontiguousarray(x).reshape(-1)[begin // x.itemsize :]
        return as_strided(begun, box.extents, apart, writeable=False)

    def multiplied(s: Summand, arrays: Sequence[np.ndarray]) -> np.ndarray:
        lhs, rhs = (viewed(box, arrays[box.operand]) for box in (s.lhs, s.rhs))
        return contracted(lhs, rhs, s.form, out.dtype, lambda a, b: matmul(limits, a, b))

    def step(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        first, *rest = sum_.summands
        if sum_.start is None:
            result = np.asarray(quietly(multiplied, first, arrays), order="C")
        else:
            result, rest = _begun(sum_, arrays, out), sum_.summands
        for s in rest:
            result += quietly(multiplied, s, arrays)
        return (result,)

    return step
