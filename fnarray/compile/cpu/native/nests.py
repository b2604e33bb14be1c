"""Loops around others in a recurrence: which of them LLVM had better not write out."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from .reader import holds_loops
from .turns import SHORT

#: Statements that a loop around others is written out as at most, those of loops without others in
#: them counted once. With 32 the means of clusters take 36 us in place of 26.
WRITTEN = 64


def nest_order(loop: ast.For, size: int | None, *, whole: bool) -> str:
    """Return the order of a recurrence's loop around others; `whole` where it begins with 0.

    Functions of what is left by vectors take as long as the rest (30 bodies that attract each
    other: 194 us and 108). Long loops are not written out: of two blocks of a sum that took LLVM
    200 ms, of the gradient of a stencil on (28, 28) 3.1 s in place of .8, at the same speed. Nor
    are short ones around much: 14 x 14 patches of a residual network took LLVM 740 ms, and take
    210, a call 126 us and 132.
    """
    long = size is not None and size > SHORT
    if long and "vm." in ast.unparse(loop):
        return "tail"
    much = size is not None and size * _written_out(loop.body) > WRITTEN
    return "" if whole and not (long or much) else "loop"


def _written_out(body: Sequence[ast.stmt]) -> float:
    """Return as how many statements LLVM writes a body out; infinity if a loop in it stays one."""
    count = 0.0
    for x in body:
        if isinstance(x, ast.For):
            turns = _turns(x)
            if turns > SHORT:
                return math.inf
            count += _written_out(x.body) * (turns if holds_loops(x) else 1)
        else:
            count += math.inf if isinstance(x, ast.While) else 1
    return count


def _turns(loop: ast.For) -> float:
    """Return how many turns a loop is known to take; infinity where nobody knows."""
    match loop.iter:
        case ast.Call(args=[ast.Constant(value=int(turns))]):
            return turns
        case ast.Tuple(elts=items):
            return len(items)
        case _:
            return math.inf
