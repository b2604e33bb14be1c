"""What products of windows are told (see `native.windows`): loops, cut into calls for threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np

from ..target import Limits
from .blas import address
from .launch import threads
from .native import gemm, load, pool, sharing, windows

#: Turns, and the bytes that one adds to the place in each of some matrices.
Loop = tuple[int, ...]
#: Bytes of images that meet a panel before the next does: a part of a core's own cache.
TOGETHER: Final = 1 << 18
#: Terms that must lie together, of several runs: of fewer, sums go to memory and back too often.
_RUN: Final = 3
_ONCE: Final = (1, 0, 0)


class Part(NamedTuple):
    """A product among those that are added up.

    Attributes
    ----------
    first, second : int
        Where the two matrices begin, in bytes from where their operands do.
    terms : sequence of Loop
        By steps in both.
    """

    first: int
    second: int
    terms: Sequence[Loop]


def merged(loops: Sequence[Loop]) -> list[Loop]:
    """Return loops, outermost first, with those as one that go on where the inner ones end."""
    kept: list[Loop] = []
    for count, *steps in reversed(loops):
        if kept:
            inner, *inner_steps = kept[-1]
            if count == 1:
                continue
            if inner == 1:
                kept[-1] = (count, *steps)
                continue
            if steps == [inner * step for step in inner_steps]:
                kept[-1] = (count * inner, *inner_steps)
                continue
        kept.append((count, *steps))
    return kept[::-1]


def _pieces(rows: Sequence[Loop], pieces: int) -> Iterator[tuple[list[int], list[Loop]]]:
    """Cut the outermost loop that has as many turns, or the longest; yield where each begins."""
    last = len(rows) - 1
    turns = [-(-n // gemm.tall()) if k == last else n for k, (n, *_) in enumerate(rows)]
    cut = next((k for k, n in enumerate(turns) if n >= pieces), turns.index(max(turns)))
    count, *steps = rows[cut]
    some = -(-turns[cut] // pieces) * (gemm.tall() if cut == last else 1)
    for start in range(0, count, some):
        loops = list(rows)
        loops[cut] = (min(some, count - start), *steps)
        yield [start * step for step in steps], loops


def calls(
    parts: Sequence[Part],
    third: int,
    columns: int,
    rows: Sequence[Loop],
    limits: Limits,
    together: int,
    *,
    adds: bool = False,
) -> list[list[int]] | None:
    """Return what a sum of products is told, part after part, for each piece that it is cut into.

    Addresses are still counted from where the operands begin. None if it has no words.

    Parameters
    ----------
    third : int
        Where the result begins.
    rows : sequence of Loop
        By steps in the first matrix of each part, and in the result.
    together : int
        Pieces at least.
    adds : bool
        Whether they are added to what is there.
    """
    rows, found = merged(rows), [merged(part.terms) for part in parts]
    if any(len(terms) > 3 or (terms[:-1] and terms[-1][0] < _RUN) for terms in found):
        return None
    work = columns * prod(n for n, *_ in rows) * sum(prod(n for n, *_ in t) for t in found)
    pieces = max(min(threads(), work // limits.share), together, 1)
    words: list[list[int]] = []
    for begins, loops in _pieces(rows, pieces):
        *more, (m, *down) = loops
        q, r = [(1, *(0,) * len(down))] * (2 - len(more)) + more[-2:]
        for turn in product(*(range(n) for n, *_ in more[:-2])):
            at = [
                begin + sum(i * loop[w] for i, loop in zip(turn, more, strict=False))
                for w, begin in enumerate(begins, 1)
            ]
            told: list[int] = []
            for j, (part, (*outer, (k, along, under))) in enumerate(zip(parts, found, strict=True)):
                t, s = [_ONCE] * (2 - len(outer)) + outer
                told += [
                    part.first + at[j], part.second, third + at[-1], m, k, columns,
                    down[j], along, under, down[-1], *t, *s,
                    q[0], q[1 + j], q[-1], r[0], r[1 + j], r[-1],
                    j > 0 or adds, j + 1 < len(parts),
                ]  # fmt: skip
            words.append(told)
    return words


def several(code: int, words: np.ndarray, frames: int = 0) -> Callable[[np.ndarray], None]:
    """Return what makes calls, on the pool's threads where there are any.

    It is given where the operands and the result begin, for each part in turn or for all alike.

    Parameters
    ----------
    frames : int
        Into how many the calls are joined; each is one otherwise.
    """
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code)
    words = words.reshape(len(words), -1, len(windows.WORDS))
    some = -(-len(words) // frames) if frames else 1
    starts = range(0, len(words), some)
    words[:, -1, -1] = 1
    words[[min(k + some, len(words)) - 1 for k in starts], -1, -1] = 0

    def run(begins: np.ndarray) -> None:
        told = words.copy()
        told[:, :, :3] += begins
        at, row = address(told), told.strides[0]
        if len(starts) > 1 and threads() > 1 and pool.prepare(threads()):
            given = np.zeros((len(starts), sharing.POINTERS + 1), np.int64)
            given[:, 0], given[:, 1] = code, at + row * np.array(starts)
            pool.call(given, threads())
        else:
            for start in starts:
                call(at + start * row)

    return run


@cache
def code_of(letter: str, *, narrow: bool) -> int:
    """Return the address of a product of windows."""
    name = windows.symbol(letter, narrow=narrow)
    assert name
    return load.made(name, windows.text(name), straight=True)
