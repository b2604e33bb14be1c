"""Findings of the linter about the files and comments it reads, and the programs it runs."""

from __future__ import annotations

from ._base import LintRule


class SyntaxFault(LintRule):
    """A file cannot be parsed."""

    code = "FNA001"
    name = "syntax-error"
    message = "cannot be parsed: {what}"
    repair = "Correct the syntax; nothing else in the file was checked."
    why = "Rules need a syntax tree."
    bad = "def f(:\n"
    good = "def f():\n    pass\n"


class UnusedIgnore(LintRule):
    """A suppression comment suppresses nothing."""

    code = "FNA002"
    name = "unused-ignore"
    message = "ignores {name}, which is not found here"
    repair = "Remove the comment, or the code from it."
    why = "A suppression that outlives its reason would hide the next finding on the line."
    bad = "def f(x):\n    return x  # fnarray: ignore[FNA101]\n"
    good = "def f(x):\n    return x\n"


class UnknownCode(LintRule):
    """A suppression comment names no rule."""

    code = "FNA003"
    name = "unknown-code"
    message = "names {name!r}, which is no rule"
    repair = "Name a code such as FNA101; `fnarray rule --all` lists them."
    why = "A misspelt suppression suppresses nothing."
    bad = "def f(x):\n    return x  # fnarray: ignore[FNA999]\n"
    good = "def f(x):\n    return x\n"


class TraceDiffers(LintRule):
    """A second trace of the function gives another program; only ``lint --verify`` tells."""

    code = "FNA004"
    name = "trace-differs"
    message = "traces to another program the second time: {what}"
    repair = "Find what it depends on besides its arguments (chance, time, order), and pass that."
    why = """
What a library does inside cannot be read from the caller's source. Traced twice, a pure function
gives the same program twice. ``config.check_determinism`` makes the same comparison in a run.
"""
    bad = """
import fnarray
import scipy.stats

@fnarray.jit
def step(x):
    return x + scipy.stats.norm.rvs()

step(1.0)
"""
    good = """
import fnarray
from fnarray import random

@fnarray.jit
def step(x, key):
    return x + random.normal(key)

step(1.0, random.key(0))
"""


class InternalError(LintRule):
    """The linter itself failed in a file; the exit status is 3."""

    code = "FNA005"
    name = "internal-error"
    message = "could not be checked to the end, by a fault of the linter: {what}"
    repair = "Report it, with what `fnarray lint --verbose` prints; all the rest was checked."
    why = """
A fault in the checking of one function must not hide what is found in the others, nor pass for a
file without findings.
"""
    bad = "def f(x):\n    return x\n"
    good = "def f(x):\n    return x\n"
