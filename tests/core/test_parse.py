"""Parsing takes turns, and survives what other threads of CPython 3.11 do to it."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest

from fnarray.core.parse import parse

pytestmark = pytest.mark.null
TEXT = "def f(x):\n    return (x, [x, {'a': x + 1}])\n"


def test_many_threads():
    """Trees are whole when many threads parse at the same time."""
    want = ast.dump(ast.parse(TEXT * 50))
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(parse, [TEXT * 50] * 64))
    assert {ast.dump(t) for t in trees} == {want}


def test_tries_again_where_a_thread_came_between():
    """Another thread's parse, outside of the lock, costs a second try and no more."""
    between = SystemError("AST constructor recursion depth mismatch (before=66, after=61)")
    tree = ast.parse(TEXT)
    with mock.patch.object(ast, "parse", side_effect=[between, tree]) as tried:
        assert parse(TEXT) is tree
    assert tried.call_count == 2


def test_errors_pass():
    """What does not parse says so, as `ast.parse` does."""
    with pytest.raises(SyntaxError):
        parse("def f(:\n")
    with (
        mock.patch.object(ast, "parse", side_effect=SystemError("other")),
        pytest.raises(SystemError, match="other"),
    ):
        parse(TEXT)
