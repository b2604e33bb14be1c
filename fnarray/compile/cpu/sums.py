"""Sums of products of boxes of arrays, as products of windows where they lie.

A product is a convolution without windows: its rows and terms are the loops of its axes, and what
is added to a result goes there at once. Pieces of the rows that a near cache holds meet every
product of a sum before the next piece does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core.avals import ShapedArray
from ...core.contraction import contracted, free_axes
from ...core.quiet import quietly
from ..schedule.access import row_major
from ..summands import Box, Sum, Summand
from ..target import Limits
from .blas import LETTERS, address, matmul
from .native import windows
from .native.call import layout_is_known
from .told import TOGETHER, Loop, Part, calls, code_of, several

Run = Callable[..., tuple[np.ndarray, ...]]


def is_summed(dtype: np.dtype) -> bool:
    """Whether there are products of windows for numbers of a dtype."""
    letter = LETTERS.get(dtype.char)
    return letter is not None and windows.symbol(letter) is not None and layout_is_known()


def sum_of(sum_: Sum, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits) -> Run:
    """Return what computes a sum of products of C-ordered arrays."""
    words = _words(sum_, ins, out, limits)
    if words is None:
        return _as_arrays(sum_, ins, out, limits)
    letter, columns = LETTERS[out.dtype.char], words[0][windows.WORDS.index("n")]
    code = code_of(letter, narrow=windows.is_narrow(letter, columns))
    run = several(code, np.array(words, np.int64))

    def step(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        arrays = tuple(map(np.ascontiguousarray, arrays))
        result = _begun(sum_, arrays, out)
        at, to = [address(x) for x in arrays], address(result)
        begins = [(at[s.lhs.operand], at[s.rhs.operand], to) for s in sum_.summands]
        run(np.array(begins, np.int64))
        return (result,)

    return step


def _begun(sum_: Sum, arrays: Sequence[np.ndarray], out: ShapedArray) -> np.ndarray:
    """Return the array that products are added to, or written."""
    result: np.ndarray[Any, Any] = np.empty(out.shape, out.dtype)
    if sum_.start is not None:
        result[...] = arrays[sum_.start]
    return result


def _words(
    sum_: Sum, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits
) -> list[list[int]] | None:
    """Return what products of windows are told; None where they are none.

    Columns lie together in the second matrix of each.
    """
    parts: list[Part] = []
    steps: list[list[int]] = []
    width = out.dtype.itemsize
    form, lhs, rhs = sum_.summands[0].form, sum_.summands[0].lhs, sum_.summands[0].rhs
    rows = free_axes(len(lhs.extents), form.lhs_contract)
    columns = prod(rhs.extents[a] for a in free_axes(len(rhs.extents), form.rhs_contract))
    for s in sum_.summands:
        (first, down), (second, along) = (_lie(box, ins[box.operand]) for box in (s.lhs, s.rhs))
        inner = s.rhs.extents, free_axes(len(s.rhs.extents), s.form.rhs_contract)
        extents = [inner[0][a] for a in inner[1]]
        if any(
            n > 1 and along[a] != width * step
            for a, n, step in zip(inner[1], extents, row_major(tuple(extents)), strict=True)
        ):
            return None
        terms = [
            (s.lhs.extents[a], down[a], along[b])
            for a, b in zip(s.form.lhs_contract, s.form.rhs_contract, strict=True)
        ]
        parts.append(Part(first, second, terms))
        steps.append([down[a] for a in free_axes(len(s.lhs.extents), s.form.lhs_contract)])
    extents = [lhs.extents[a] for a in rows]
    to = [width * columns * step for step in row_major(tuple(extents))]
    loops: list[Loop] = [
        (n, *down, next_)
        for n, down, next_ in zip(extents, zip(*steps, strict=True), to, strict=True)
    ]
    together = width * prod(lhs.extents) // TOGETHER
    adds = sum_.start is not None
    return calls(
        parts, 0, columns, loops or [(1, *(0,) * len(parts), 0)], limits, together, adds=adds
    )


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
