"""What is said while tracing: output, logs, clocks, and what the process was told."""

from __future__ import annotations

import ast

from ..engine.machine import Evidence
from ..findings import Finding
from ..nodes import nodes_in
from .case import Case, Verdict, is_traced
from .customs import is_branched, is_cached, speaks_of_code
from .shapes import is_static


def is_said_each_time(finding: Finding, evidence: Evidence) -> bool:
    """Say whether an effect is had at each call, as it is meant to, where no trace is kept.

    Output of what is not traced, or a mark that counts the calls.
    """
    if finding.code == "FNA103":
        node = evidence.node
        marks = node.args if isinstance(node, ast.Call) else []
        return bool(marks) and all(isinstance(mark, ast.Constant) for mark in marks)
    if finding.code == "FNA302":  # a clock is read at each call: who jits it is told of that
        return True
    return finding.code in _OUTPUT and not any(map(is_traced, evidence.given))


_OUTPUT = frozenset({"FNA311", "FNA312", "FNA313", "FNA316"})


def printed(case: Case) -> Verdict:
    """What is known while tracing (shapes, types, the structure of a tree) is rightly said once."""
    node = case.evidence.node
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "print":
        return True
    told = [a for a in node.args if not isinstance(a, ast.Constant)]
    if told and speaks_of_code(node.args[:1]):  # ``print("tracing f:", x)``
        return False
    if not told:  # a helper says what it was asked to do
        helps = len(case.evidence.frame.path) > 1 or is_branched(case.scope, node)
        return not helps and not speaks_of_code(node.args)
    return not all(is_static(a, case.scope) for a in told)


def logged(case: Case) -> Verdict:
    """A helper's log tells what it was asked to do, once, unless it tells of traced values.

    What a traced function logs itself is asked what is printed.
    """
    given = case.evidence.given
    if any(map(is_traced, given)):
        return True
    node = case.evidence.node
    told = [a for a in getattr(node, "args", ()) if not isinstance(a, ast.Constant)]
    itself = len(case.evidence.frame.path) == 1
    if not told:
        return itself and not speaks_of_code(getattr(node, "args", []))
    return itself and not (told and all(is_static(a, case.scope) for a in told))


def shown(case: Case) -> Verdict:
    """A frame's variables are looked at to say where something went wrong; the environment of a
    process is as it was when the process began.
    """
    if case.finding.message.startswith("f_"):
        return False
    node = case.evidence.node
    return any(
        (isinstance(n, ast.Subscript) and n.value is node and not isinstance(n.ctx, ast.Load))
        or (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.value is node
            and n.func.attr not in ("get", "copy", "keys", "items"))
        or (isinstance(n, ast.Call) and n is node and getattr(n.func, "attr", "") != "getenv")
        for n in nodes_in(case.scope.node)
    )  # fmt: skip


def acted(case: Case) -> Verdict:
    """Who leaves with a text raises an error; a file that a cached function reads is a constant."""
    return not case.finding.message.startswith("sys.exit") and not is_cached(case.scope)
