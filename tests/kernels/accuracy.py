"""The tables of the reference that state the accuracy of every function, from measurements.

``python -m tests.kernels.accuracy`` measures, and writes ``docs/reference/accuracy.md``; a test
holds the page to the promises in `bounds`.
"""

from __future__ import annotations

import math
import pathlib
import re

import numpy as np

from fnarray_kernels import vmath as vm

from .bounds import BINARY, FLOATS, SPECIAL, UNARY, Wide, errors, points, special_errors
from .loops import compiled, special_loop

PAGE = pathlib.Path(__file__).parents[2] / "docs/reference/accuracy.md"
#: Points of each interval; fewer where the reference is a series.
COUNT, FEW = 400_000, {"erf": 40_000, "erfc": 40_000, "erf_inv": 10_000}
#: By name: the largest error that was met of each precision.
Found = dict[str, tuple[float, ...]]


def promised() -> Found:
    """Return the bounds: of float32 and of float64, or of float32 alone."""
    both = {name: tuple(map(float, row[-2:])) for name, row in (UNARY | BINARY).items()}
    return both | {name: (row[-1],) for name, row in SPECIAL.items()}


def tables(found: Found) -> list[str]:
    """Return the rows of the two tables: bounds, each with what was met."""
    rows = []
    for names in (UNARY | BINARY, SPECIAL):
        lines = []
        for name in sorted(names):
            cells = zip(promised()[name], found[name], strict=True)
            lines.append(f"| `{name}` | {' | '.join(f'{v:g}' for pair in cells for v in pair)} |\n")
        rows.append("".join(lines))
    return rows


_ROWS = re.compile(r"(?:^\| `\w+` \|.*\n)+", re.MULTILINE)


def page(text: str, found: Found) -> str:
    """Return a page with its tables written anew."""
    rows = iter(tables(found))
    return _ROWS.sub(lambda _: next(rows), text)


def stated(text: str) -> Found:
    """Return what a page says was met."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", text, re.MULTILINE)
    return {name: tuple(map(float, cells.split("|")[1::2])) for name, cells in rows}


@np.errstate(all="ignore")
def measured() -> Found:
    """Measure every function, compiled."""
    found: Found = {}
    for name, (reference, *_) in (UNARY | BINARY).items():
        worst = []
        for dtype in FLOATS:
            args = points(name, dtype, FEW.get(name, COUNT))
            out = np.empty_like(args[0])
            compiled(getattr(vm, name), len(args))(*args, out)
            off = errors(out, reference(*(a.astype(Wide) for a in args)))
            worst.append(rounded_up(off.max()))
        found[name] = tuple(worst)
    for name in SPECIAL:
        found[name] = (rounded_up(special_errors(name, 20_000, special_loop).max()),)
    return found


def rounded_up(error: float) -> float:
    """Return an error in hundredths."""
    return math.ceil(100 * error) / 100


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), measured()))
