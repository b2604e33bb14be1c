"""One analysis: a traced function is entered, and what was found is put in order.

What an effect is depends on who owns the object it touches. Functions of the user's code are
entered with the values of their arguments, so that a helper may change what its caller made.
"""

from __future__ import annotations

import ast
from typing import Any, Final, NamedTuple

from .. import rules
from ..findings import Finding
from ..scopes import Frame, facts_of
from ..values import Function, Resolver, Value
from .calls import call
from .entry import enter, enter_named
from .expressions import EXPRESSIONS
from .machine import Engine, Evidence, Language
from .statements import STATEMENTS, block

PYTHON: Final = Language(STATEMENTS, EXPRESSIONS, block, call)


class Analysis(NamedTuple):
    """The result: what was found, on what evidence, and the functions that were entered."""

    findings: list[Finding]
    entered: list[Function]
    evidence: dict[Finding, Evidence]


def analyse(function: Function, resolver: Resolver, path: tuple[str, ...] = ()) -> Analysis:
    """Analyse a function as a traced one.

    Parameters
    ----------
    function
        Its syntax; parameters in ``function.defaults`` keep their default as a possibility.
    resolver
        What answers for names and attributes from outside.
    path
        How it is reached: ``("jit(train)",)``.

    Returns
    -------
    Analysis
        All findings, in order of place.
    """
    engine = Engine(resolver, PYTHON)
    path = path or (function.name,)
    facts = facts_of(function.node)
    if facts.awaits or facts.yields:
        rule = rules.TracedCoroutine if facts.awaits else rules.TracedGenerator
        frame = Frame(function, 1, path)
        engine.report(rule, frame, _heading(function.node), function.name)
    enter(engine, function, function_bound(function), 1, path)
    enter_named(engine)
    return Analysis(engine.findings(), list(engine.entered.values()), engine.evidence)


def function_bound(function: Function) -> dict[str, Value]:
    """Return the parameters of a traced function that are fixed: the receiver of a method."""
    return {k: v for k, v in function.defaults.items() if v.holder == "receiver"}


def _heading(node: Any) -> ast.AST:
    """Return a node that spans a definition's first line only: where a finding about it points."""
    if isinstance(node, ast.Lambda):
        return node
    start = ast.Pass(lineno=node.lineno, col_offset=node.col_offset)
    start.end_lineno = node.lineno
    start.end_col_offset = node.col_offset + len("def ") + len(node.name)
    return start
