"""Examples of public names that are not in docstrings: ``reference/examples/<module>.txt``.

A file is a block for each name, or method (``Array.sum``): the name at the margin, and under it,
indented, what Python's prompt shows. Lines before the first name are run before each block.
"""

from __future__ import annotations

import doctest
import re
from functools import cache

import surfaces
from surfaces import ROOT, Name

from fnarray.core.primitive import Primitive

FOLDER = ROOT / "docs/reference/examples"
#: What every block may use, and how its numbers are printed: to digits that all processors share.
ASSUMED = """\
>>> import fnarray as fa
>>> import fnarray.numpy as jnp
>>> from fnarray import lax, random, tree
>>> jnp.set_printoptions(precision=4, suppress=True)
"""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_BLOCK = re.compile(r"^(\w+(?:\.\w+)?)\n((?:[ ]{4}.*\n|\n)+)", re.MULTILINE)


@cache
def _file(module: str) -> str:
    path = FOLDER / f"{module}.txt"
    return path.read_text(encoding="utf-8") + "\n" if path.exists() else ""


@cache
def blocks(module: str) -> dict[str, str]:
    """Return the blocks of a module's file by their names."""
    return {m[1]: re.sub(r"(?m)^    ", "", m[2]).strip() for m in _BLOCK.finditer(_file(module))}


def assumed(module: str) -> str:
    """Return what is run before a block of this module."""
    text = _file(module)
    first = _BLOCK.search(text)
    return ASSUMED + (text[: first.start()] if first else "")


@cache
def _by_value() -> dict[int, tuple[Name, str]]:
    return {
        id(name.value): (name, blocks(name.module)[name.name])
        for name in surfaces.every_name()
        if name.kind != "data" and name.name in blocks(name.module)
    }


def found(name: Name) -> tuple[str, str] | None:
    """Return a name's block with its module, or that of another name of the same value.

    A function that goes by two names in a module is called by the one whose page it is.
    """
    if block := blocks(name.module).get(name.name):
        return name.module, block
    other, block = (None, "") if ">>>" in name.doc else _by_value().get(id(name.value), (None, ""))
    if other is None:
        return None
    if other.module == name.module:
        block = re.sub(rf"(?<=\.){other.name}(?=\()", name.name, block)
    return other.module, block


def respelled() -> list[tuple[Name, str]]:
    """Return the names whose example is that of another name of their module, and the example."""
    return [
        (name, shown[1])
        for name in surfaces.every_name()
        if name.kind == "function" and name.name not in blocks(name.module)
        if (shown := found(name)) and shown[0] == name.module
    ]


@cache
def _methods() -> dict[tuple[int, str], str]:
    found: dict[tuple[int, str], str] = {}
    for name in surfaces.every_name():
        if name.kind == "class":
            for key, block in blocks(name.module).items():
                owner, _, method = key.partition(".")
                if method and owner == name.name:
                    found[id(name.value), method] = block
    return found


def of_method(cls: type, method: str) -> str | None:
    """Return the block of a method, by whatever name its class goes."""
    return _methods().get((id(cls), method))


def asks(name: Name) -> bool:
    """Whether a name must have an example: all but errors and primitives.

    Errors have programs on their own page; primitives are in the table of operations.
    """
    return name.kind != "exception" and not isinstance(name.value, Primitive)
