"""Findings of the linter about the files and comments it reads."""

from __future__ import annotations

from ._base import Rule


class SyntaxFault(Rule):
    """A file cannot be parsed."""

    code = "FNA001"
    name = "syntax-error"
    message = "cannot be parsed: {what}"
    repair = "Correct the syntax; nothing else in the file was checked."
    why = "Rules need a syntax tree."
    bad = "def f(:\n"
    good = "def f():\n    pass\n"


class UnusedIgnore(Rule):
    """A suppression comment suppresses nothing."""

    code = "FNA002"
    name = "unused-ignore"
    message = "ignores {name}, which is not found here"
    repair = "Remove the comment, or the code from it."
    why = "A suppression that outlives its reason would hide the next finding on the line."
    bad = "def f(x):\n    return x  # fnarray: ignore[FNA101]\n"
    good = "def f(x):\n    return x\n"


class UnknownCode(Rule):
    """A suppression comment names no rule."""

    code = "FNA003"
    name = "unknown-code"
    message = "names {name!r}, which is no rule"
    repair = "Name a code such as FNA101; `fnarray rule --all` lists them."
    why = "A misspelt suppression suppresses nothing."
    bad = "def f(x):\n    return x  # fnarray: ignore[FNA999]\n"
    good = "def f(x):\n    return x\n"
