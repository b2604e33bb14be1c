"""The quick walk sees what `ast.walk` sees, but for what says only how a node is used."""

from __future__ import annotations

import ast
import resource
import sys
from pathlib import Path

import pytest

from fnarray.purity.nodes import children, deeply, walk

ROOT = Path(__file__).parents[2]
USES = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
SYNTAX = """
async def f[T: int](a: int = 1, /, *b, c=2, **d) -> int:
    async with a as b, c: pass
    async for x in y: await z
    match p:
        case {"k": [1, *r], **s} | A(1, b=2) as q if q: del q
    try: raise E from e
    except* (X, Y) as g: nonlocal h
    else: global i
    finally: assert j, k
    return {**l, m: (n := 3)}, f"{o!r:>{w}}", lambda *u: (yield from v), ~t[1:2:3] < 3 in w
type Alias[T] = list[T]
"""


def agree(tree: ast.Module) -> None:
    """Compare both walks, and the children of each node."""
    assert walk(tree) == [node for node in ast.walk(tree) if not isinstance(node, USES)]
    for node in walk(tree):
        below = [child for child in ast.iter_child_nodes(node) if not isinstance(child, USES)]
        assert children(node) == below


@pytest.mark.parametrize("folder", ["fnarray/purity", "fnarray/ops", "tests/purity/corpus"])
def test_on_files(folder):
    """Nodes come in the same order, none twice and none left out."""
    for path in (ROOT / folder).rglob("*.py"):
        agree(ast.parse(path.read_text(encoding="utf-8")))


def test_on_all_syntax():
    """The same for syntax that few files use, as far as this Python has it."""
    text = SYNTAX
    try:
        tree = ast.parse(text)
    except SyntaxError:  # before Python 3.12
        tree = ast.parse(text.replace("[T: int]", "").partition("type Alias")[0])
    agree(tree)


def test_room_for_deep_syntax():
    """Thousands of frames fit in, errors come out, and the limit is what it was."""
    before = sys.getrecursionlimit()

    def depth(left: int) -> int:
        return 1 + depth(left - 1) if left else 0

    assert deeply(depth, 9000) == 9000
    with pytest.raises(ZeroDivisionError):
        deeply(lambda: 1 // 0)
    assert sys.getrecursionlimit() == before


def test_frames_lie_in_one_piece():
    """Calls at whatever depth take no new page of memory: Python gives none back in between."""

    def calls(left: int) -> int:
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(100):
            len_of(())
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - taken
        return max(taken, calls(left - 1)) if left else taken

    def len_of(some: tuple[()]) -> int:
        return len(some)

    deeply(calls, 400)
    assert deeply(calls, 400) < 50
