"""Parameters that docstrings do not describe: ``reference/parameters.txt`` does."""

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
_ENTRY = re.compile(r"^(\w+)(.*\n(?:[ ]{4}.*\n)*)", re.MULTILINE)


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


def undescribed(name: Name) -> list[str]:
    """Return the parameters that a function's docstring does not describe."""
    own = _HEADS.split(name.doc)
    text = own[own.index("Parameters") + 1] if "Parameters" in own else ""
    rows = re.findall(r"^(\S[^:\n]*)", text, re.MULTILINE)
    described = {word.strip("*`") for row in rows for word in re.split(r",\s*", row.strip())}
    return [p for p in names(name) if p.strip("*") not in described]


def sources(name: Name) -> list[tuple[str, str | None, str]]:
    """Return each parameter that is not described, the narrowest scope that is, and its key."""
    if name.kind != "function" or not name.ours:
        return []
    parts = name.full.split(".")
    scopes = [".".join(parts[:k]) for k in range(len(parts), 0, -1)]
    shown = ((p, p.strip("*")) for p in undescribed(name))
    return [
        (p, next((s for s in scopes if key in _table().get(s, {})), None), key) for p, key in shown
    ]


def described(name: Name) -> str:
    """Return the docstring of a name, with the sections that are told elsewhere in their places."""
    prose, *parts = _HEADS.split(name.doc)
    own = dict(zip(parts[::2], parts[1::2], strict=True))
    if more := section(name):
        own["Parameters"] = f"{own.get('Parameters', '').rstrip()}\n{more}".lstrip()
    found = {head: f"{head}\n{'-' * len(head)}\n{text}" for head, text in own.items()}
    told = {"Returns": results.section(name, "returns")}
    told |= {"Raises": results.section(name, "raises")}
    prose += "\n\nIt has no errors of its own." if results.no_errors(name) else ""
    whole = {key: found.get(key) or told.get(key, "") for key in (*_ORDER, *found)}
    return "\n\n".join(text.strip() for text in (prose, *whole.values()) if text.strip())


def section(name: Name) -> str:
    """Return the entries of parameters that are described in the table."""
    return "".join(f"{shown}{_table()[scope][key]}" for shown, scope, key in sources(name) if scope)
