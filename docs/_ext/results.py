"""What functions give and raise, where their docstrings do not say: ``reference/results.txt``."""

from __future__ import annotations

import re
from functools import cache

import surfaces
from surfaces import ROOT, Name

TABLE = ROOT / "docs/reference/results.txt"
#: In place of an error's name, where a function has no error of its own.
NOTHING = "nothing"
_SCOPES = re.compile(r"^\[([^\]]+)\]$", re.MULTILINE)
_ENTRY = re.compile(r"^(returns|raises) (.+)\n((?:[ ]{4}.*\n)*)", re.MULTILINE)
Rows = list[tuple[str, str]]


@cache
def table() -> dict[str, dict[str, Rows]]:
    """Return what each scope says: ``returns`` and ``raises``, rows of a type and a text."""
    _, *parts = _SCOPES.split(TABLE.read_text(encoding="utf-8") + "\n")
    found: dict[str, dict[str, Rows]] = {}
    for scopes, text in zip(parts[::2], parts[1::2], strict=True):
        said: dict[str, Rows] = {}
        for word, kind, body in _ENTRY.findall(text):
            said.setdefault(word, []).append((kind, body))
        for scope in spelled(scopes):
            assert not said.keys() & found.setdefault(scope, {}).keys(), f"{scope} is told twice"
            found[scope] |= said
    return found


def spelled(scopes: str) -> list[str]:
    """Return the scopes of a heading: some, or ``module: name name`` for names of a module."""
    module, colon, names = scopes.partition(":")
    return [f"{module}.{name}" for name in names.split()] if colon else scopes.split()


@cache
def _same() -> dict[int, list[str]]:
    """Return every name that a function goes by."""
    found: dict[int, list[str]] = {}
    for name in surfaces.every_name():
        found.setdefault(id(name.value), []).append(name.full)
    return found


def scope(name: Name, word: str) -> str | None:
    """Return the narrowest scope that says it: a name, where it is written, the modules around."""
    if name.kind != "function" or not name.ours or has(name, word):
        return None
    parts = name.full.split(".")
    around = [".".join(parts[:k]) for k in range(len(parts) - 1, 0, -1)]
    scopes = (name.full, *_same()[id(name.value)], name.home, *around)
    return next((s for s in scopes if word in table().get(s, {})), None)


def has(name: Name, word: str) -> bool:
    """Whether a docstring has the section itself; what a generator gives is yielded."""
    heads = "Returns|Yields" if word == "returns" else "Raises"
    return re.search(rf"^({heads})\n-+$", name.doc, re.MULTILINE) is not None


def section(name: Name, word: str) -> str:
    """Return the text of a section of a function, if it is known; or nothing."""
    found = scope(name, word)
    rows = table()[found][word] if found else []
    if not rows or rows[0][0] == NOTHING:
        return ""
    head = word.capitalize()
    return f"{head}\n{'-' * len(head)}\n" + "".join(f"{kind}\n{text}" for kind, text in rows)


def no_errors(name: Name) -> bool:
    """Whether a function is said to have no errors of its own."""
    found = scope(name, "raises")
    return found is not None and table()[found]["raises"][0][0] == NOTHING
