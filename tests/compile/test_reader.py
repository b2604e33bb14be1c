"""Kernels' functions are read off their files: the lines of each, without asking the tokens."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from fnarray.compile.cpu.native.reader import read_function


def _marked(function):
    return function


def _plain(x):
    return x + 1


# fmt: off
@_marked
@_marked
def _spread(
    x,
    y,
):
    """Text that is indented
no further than the function."""
    total = (
        x
+ y
    )
# as is this comment

    if total > 0:
        return total
    return -total
# fmt: on


def _nested():
    @_marked
    def inside(x):
        for _ in range(3):
            x = x * 2
        return x

    return inside


@pytest.mark.parametrize("function", [_plain, _spread, _nested()])
def test_the_lines_of_a_function(function):
    """They are those that `inspect` finds by tokens."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    read = read_function(function)
    assert list(map(ast.dump, read.body)) == list(map(ast.dump, node.body))
