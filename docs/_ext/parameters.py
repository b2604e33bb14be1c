"""Parameters that docstrings do not describe: ``reference/parameters.txt`` does."""

from __future__ import annotations

import inspect
import re
from enum import EnumType
from functools import cache

import results
from surfaces import ROOT, Name

TABLE = ROOT / "docs/reference/parameters.txt"
_SECTION = re.compile(r"^\[(.+)\]$", re.MULTILINE)
_HEADS = re.compile(r"^(\w+(?: \w+)?)\n---+\n", re.MULTILINE)
_ORDER = ("Parameters", "Returns", "Yields", "Raises")
_ENTRY = re.compile(r"^(\w+)(.*\n(?:[ ]{4}.*\n)*)", re.MULTILINE)
#: A row of a docstring: names, ``: type``, text.
_ROW = re.compile(r"^(\S[^:\n]*)(.*)\n((?:[ ]{4}.*\n|\n(?=[ ]{4}))*)", re.MULTILINE)
#: Names of operands that broadcast against others.
_OPERANDS = {*"xyzabchkmnpqvN", "x1", "x2", "lmbda"}
#: What the tables say of one operand or two, as it is of one.
_OF_ONE = (
    (re.compile(r"; where there are two[^.]*\."), "."),
    (re.compile(r", broadcast where there are several"), ""),
    (re.compile(r"operands' (shape and dtype), which are the same:[^.]*"), r"operand's \1"),
    (re.compile(r"operands' shape"), "operand's shape"),
    (re.compile(r"their promoted\s+dtype"), "its dtype"),
)  # fmt: skip


@cache
def _table() -> dict[str, dict[str, str]]:
    _, *parts = _SECTION.split(TABLE.read_text(encoding="utf-8") + "\n")
    found: dict[str, dict[str, str]] = {}
    for scopes, text in zip(parts[::2], parts[1::2], strict=True):
        for scope in results.spelled(scopes):
            said = {m[1]: m[2] for m in _ENTRY.finditer(text)}
            twice = said.keys() & found.setdefault(scope, {}).keys()
            assert not twice, f"{scope}: {twice} told twice"
            found[scope] |= said
    return found


def names(name: Name) -> list[str]:
    """Return the parameters of a function as they are shown; of an enumeration none."""
    if isinstance(name.value, EnumType):
        return []
    try:
        found = inspect.signature(name.value).parameters.values()
    except (TypeError, ValueError):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(p.kind, "") + p.name for p in found if not p.name.startswith("_")]


def rows(name: Name) -> list[tuple[list[str], str, str]]:
    """Return what a docstring has of parameters: names, a type, a text, which may be empty."""
    own = _HEADS.split(name.doc)
    text = own[own.index("Parameters") + 1] if "Parameters" in own else ""
    return [(re.split(r",\s*", m[1].strip()), m[2], m[3]) for m in _ROW.finditer(f"{text}\n")]


def undescribed(name: Name) -> list[str]:
    """Return the parameters that a function's docstring does not have a row of.

    A class describes them where it likes, such as among its attributes, or accepts them all.
    """
    mentioned = {word.strip("*`") for words, _, _ in rows(name) for word in words}
    if name.kind == "class":
        if "accepted, and not used" in name.doc:
            return []
        mentioned = set(re.findall(r"\w+", name.doc))
    return [p for p in names(name) if p.strip("*") not in mentioned]


def bare(name: Name) -> list[str]:
    """Return the parameters of which a docstring says a type and no more."""
    return [word for words, _, text in rows(name) if not text.strip() for word in words]


def sources(name: Name) -> list[tuple[str, str | None, str]]:
    """Return each parameter that is not described, the narrowest scope that is, and its key."""
    if name.kind not in ("function", "class") or not name.ours:
        return []
    parts = name.full.split(".")
    scopes = [".".join(parts[:k]) for k in range(len(parts), 0, -1)]
    fields = undescribed(name)  # of a class: they mean what they mean there
    shown = ((p, p.strip("*`")) for p in (*fields, *bare(name)))
    return [
        (p, next((s for s in around if key in _table().get(s, {})), None), key)
        for p, key in shown
        for around in [scopes[:1] if name.kind == "class" and p in fields else scopes]
    ]


def described(name: Name) -> str:
    """Return the docstring of a name, with the sections that are told elsewhere in their places."""
    prose, *parts = _HEADS.split(name.doc)
    own = dict(zip(parts[::2], parts[1::2], strict=True))
    if more := section(name):
        own["Parameters"] = more
    found = {head: f"{head}\n{'-' * len(head)}\n{text}" for head, text in own.items()}
    told = {"Returns": results.section(name, "returns")}
    told |= {"Raises": results.section(name, "raises")}
    prose += "\n\nIt has no errors of its own." if results.no_errors(name) else ""
    told = {head: _of_its_operands(name, text) for head, text in told.items()}
    whole = {key: found.get(key) or told.get(key, "") for key in (*_ORDER, *found)}
    return "\n\n".join(text.strip() for text in (prose, *whole.values()) if text.strip())


def section(name: Name) -> str:
    """Return the parameters in order: as the docstring has them, completed from the table."""
    known = {shown: _table()[scope][key] for shown, scope, key in sources(name) if scope}
    entries: list[tuple[str, str]] = []
    told = set()
    for words, kind, text in rows(name):
        if text.strip() or not all(word in known for word in words):
            entries.append((words[0], f"{', '.join(words)}{' ' * bool(kind)}{kind}\n{text}"))
            continue
        told.update(words)
        for word in words:
            said = _of_its_operands(name, known[word].partition("\n")[2])
            entries.append((word, f"{word}{' ' * bool(kind)}{kind}\n{said}"))
    entries += [
        (shown, f"{shown}{_of_its_operands(name, entry)}")
        for shown, entry in known.items()
        if shown not in told
    ]
    order = {shown.strip("*"): place for place, shown in enumerate(names(name))}
    entries.sort(key=lambda entry: order.get(entry[0].strip("*`"), len(order)))
    return "".join(text for _, text in entries)


def _of_its_operands(name: Name, text: str) -> str:
    """Return what a table says of functions with an operand or two, as it is of this one."""
    if name.kind != "function" or _has_several(name):
        return text
    for pattern, spelled in _OF_ONE:
        text = pattern.sub(spelled, text)
    return text


def _has_several(name: Name) -> bool:
    shown = names(name)
    return len(_OPERANDS.intersection(shown)) > 1 or any(p[:1] == "*" != p[1:2] for p in shown)
