"""Invariants of a graph, one function each, run between stages under ``FNARRAY_VERIFY=1``."""

from __future__ import annotations

from typing import Any, cast

from .graph import Graph, Literal, Var, subgraphs


def check_every_var_has_one_writer(graph: Graph) -> None:
    """No var is bound twice."""
    seen: set[Var] = set()
    for var in (*graph.constvars, *graph.invars, *(v for e in graph.eqns for v in e.outvars)):
        if var in seen:
            raise AssertionError(f"{var} has two writers in\n{graph}")
        seen.add(var)


def check_vars_are_written_before_read(graph: Graph) -> None:
    """Every operand is an input or the result of an earlier equation."""
    known: set[Var] = {*graph.constvars, *graph.invars}
    for eqn in graph.eqns:
        for atom in eqn.invars:
            if not isinstance(atom, Literal) and atom not in known:
                raise AssertionError(f"{atom} is read by {eqn.primitive} before it is written")
        known.update(eqn.outvars)
    for atom in graph.outvars:
        if not isinstance(atom, Literal) and atom not in known:
            raise AssertionError(f"output {atom} is never written")


def check_avals_follow_the_rules(graph: Graph) -> None:
    """Each equation's results have the shapes and dtypes that its primitive's rule gives."""
    for eqn in graph.eqns:
        found = eqn.primitive.aval(*(a.aval for a in eqn.invars), **eqn.params)
        outs = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
        for var, aval in zip(eqn.outvars, outs, strict=True):
            if (var.aval.shape, var.aval.dtype) != (aval.shape, aval.dtype):
                raise AssertionError(f"{eqn.primitive} gives {aval}, its result says {var.aval}")


CHECKS = (
    check_every_var_has_one_writer,
    check_vars_are_written_before_read,
    check_avals_follow_the_rules,
)


def verify(graph: Graph) -> Graph:
    """Run every check on a graph and the graphs inside it; return it."""
    for check in CHECKS:
        check(graph)
    for eqn in graph.eqns:
        for inner in subgraphs(eqn.params):
            verify(inner)
    return graph
