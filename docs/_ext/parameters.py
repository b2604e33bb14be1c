"""Sections of parameters for functions whose docstrings have none: ``reference/parameters.txt``."""

from __future__ import annotations

import inspect
import re
from functools import cache

import results
from surfaces import ROOT, Name

TABLE = ROOT / "docs/reference/parameters.txt"
_SECTION = re.compile(r"^\[(.+)\]$", re.MULTILINE)
_HEADS = re.compile(r"^(\w+(?: \w+)?)\n---+\n", re.MULTILINE)
_ORDER = ("Parameters", "Returns", "Yields", "Raises")
_ENTRY = re.compile(r"^(\w+)(.*\n(?:[ ]{4}.*\n)+)", re.MULTILINE)


@cache
def _table() -> dict[str, dict[str, str]]:
    _, *parts = _SECTION.split(TABLE.read_text(encoding="utf-8") + "\n")
    return {
        scope: {m[1]: m[2] for m in _ENTRY.finditer(text)}
        for scope, text in zip(parts[::2], parts[1::2], strict=True)
    }


def names(name: Name) -> list[str]:
    """Return the parameters of a function as they are shown."""
    try:
        found = inspect.signature(name.value).parameters.values()
    except (TypeError, ValueError):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in found if not p.name.startswith("_")]


def sources(name: Name) -> list[tuple[str, str]]:
    """Return the scope, the narrowest, and the key of each parameter; nothing if one is unknown."""
    if name.kind != "function" or not name.ours or has(name):
        return []
    parts = name.full.split(".")
    scopes = [".".join(parts[:k]) for k in range(len(parts), 0, -1)]
    keys = [p.strip("*") for p in names(name)]
    found = [next((s for s in scopes if key in _table().get(s, {})), None) for key in keys]
    return [] if None in found else list(zip(found, keys, strict=True))


def described(name: Name) -> str:
    """Return the docstring of a name, with the sections that are told elsewhere in their places."""
    prose, *parts = _HEADS.split(name.doc)
    own = dict(zip(parts[::2], parts[1::2], strict=True))
    found = {head: f"{head}\n{'-' * len(head)}\n{text}" for head, text in own.items()}
    told = {"Parameters": section(name), "Returns": results.section(name, "returns")}
    told |= {"Raises": results.section(name, "raises")}
    prose += "\n\nIt has no errors of its own." if results.no_errors(name) else ""
    whole = {key: found.get(key) or told.get(key, "") for key in (*_ORDER, *found)}
    return "\n\n".join(text.strip() for text in (prose, *whole.values()) if text.strip())


def section(name: Name) -> str:
    """Return the section of a function's parameters, if all are known; or nothing."""
    rows = zip(names(name), sources(name), strict=False)
    text = "".join(f"{shown}{_table()[scope][key]}" for shown, (scope, key) in rows)
    return f"Parameters\n----------\n{text}" if text else ""


def has(name: Name) -> bool:
    """Whether a docstring describes the parameters itself."""
    return re.search(r"^Parameters\n-+$", name.doc, re.MULTILINE) is not None
