"""The quick walk sees what `ast.walk` sees, but for what says only how a node is used."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fnarray.purity.nodes import children, walk

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
