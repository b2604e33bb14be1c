"""Where control goes is the same for whatever is followed: owners, draws of keys, and tracedness.

Each program does something on one of its ways, ``A``, which either meets the end or never does.
The oracle is Python: what each program prints when its ways are run says whether it can.
"""

from __future__ import annotations

import textwrap
from contextlib import nullcontext, suppress
from itertools import product

import pytest

from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import parse

#: Programs of ``c`` and ``d``, in which ``A`` may be done, and may be done before the end.
WAYS = {
    "branch": "if c: A",
    "other branch": "if c: pass\nelse: A",
    "one of two leaves": "if c: return x\nelse: A",
    "leaves before": "if c:\n    A\n    return x",
    "raises after": "if c:\n    A\n    raise ValueError",
    "break": "for i in range(3):\n    if c:\n        A\n        break",
    "continue at the end": "for i in range(3):\n    if c:\n        A\n        continue",
    "break at once": "while c:\n    A\n    break",
    "return in a loop": "for i in range(3):\n    if c:\n        A\n        return x",
    "continue": "for i in (1, 2):\n    if c:\n        A\n        continue\n    return x",
    "raise in a loop": "while c:\n    if d:\n        A\n        raise ValueError\n    break",
    "inner break": (
        "for i in range(2):\n    for j in range(2):\n        if c:\n            A\n"
        "            break\n    if d: continue"
    ),
    "break through a try": (
        "for i in range(2):\n    try:\n        if c:\n            A\n            break\n"
        "    except ValueError:\n        return x"
    ),
    "else of a loop": "for i in range(2):\n    if c: break\nelse: A",
    "try": "try: A\nexcept ValueError: pass",
    "handler": "try:\n    if c: raise ValueError\nexcept ValueError: A",
    "handler that raises": "try:\n    if c: raise ValueError\nexcept ValueError:\n    A\n    raise",
    "else of a try": "try:\n    if c: raise ValueError\nexcept ValueError: pass\nelse: A",
    "finally": "try:\n    if c: raise ValueError\nexcept ValueError: pass\nfinally: A",
    "try that returns": "try:\n    if c: return x\n    A\nexcept ValueError: pass",
    "case": "match c:\n    case 1: A\n    case _: pass",
    "last case": "match c:\n    case 1: pass\n    case _: A",
    "case that returns": "match c:\n    case 1:\n        A\n        return x\n    case _: pass",
    "after each case left": "match c:\n    case 1: return x\n    case _: return x\nA",
    "with": "with open('f') as f:\n    if c: A",
    "after a return": "if c: pass\nreturn x\nA",
}  # fmt: skip

FOLLOWED = {
    "owner": ("held = []", "held = OUTER", "held.append(x)", "FNA105"),
    "draws": ("y = 0.0", "y = random.normal(key)", "x = y + random.normal(key)", "FNA605"),
    "traced": ("held = x", "held = 0", "if held > 0: pass", "FNA601"),
}


def outcomes(program: str) -> set[int]:
    """Run all ways of a program; return whether ``A`` was done, for each that comes to the end."""
    body = textwrap.indent(program.replace("A", "did = 1", 1), "    ")
    text = f"def f(c, d, x=None):\n    did = 0\n{body}\n    return 'end', did\n"
    scope: dict = {"nullcontext": nullcontext}
    exec(text.replace("open('f')", "nullcontext()"), scope)
    found = set()
    for c, d in product((0, 1), repeat=2):
        with suppress(ValueError):
            came = scope["f"](c, d)
            found |= {came[1]} if came else set()
    return found


def spelled(kind: str) -> tuple[str, dict[str, int]]:
    """Return the programs as functions that are traced, and the line of the end of each."""
    first, done, last, _ = FOLLOWED[kind]
    lines, ends = ["import jax, fnarray", "from jax import random", "OUTER = []"], {}
    for i, (name, program) in enumerate(WAYS.items()):
        body = f"{first}\n{program.replace('A', done, 1)}\n{last}\nreturn x"
        lines += ["", "@jax.jit", f"def f{i}(x, key, *, c, d):"]
        lines += textwrap.indent(body, "    ").splitlines()
        ends[name] = len(lines) - 1
    return "\n".join(lines), ends


@pytest.mark.parametrize("kind", FOLLOWED)
def test_what_a_way_does_holds_where_it_leads(kind):
    """What one way does is found at the end exactly if that way, run by Python, comes there."""
    text, ends = spelled(kind)
    result = lint([parse("a.py", text)], Settings(presumed=True))
    assert not result.crashes, result.crashes
    found = {f.line for f in result.findings if f.code[:4] == FOLLOWED[kind][3][:4]}
    for name, line in ends.items():
        came = outcomes(WAYS[name])
        # A name that ``A`` binds to a number is traced if no way that does so comes there.
        assert (line in found) == (came == {0} if kind == "traced" else 1 in came), name
