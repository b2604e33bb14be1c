"""Transposition: a linear program run backwards, which is the reverse half of reverse mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import hooks
from ..core.graph import Eqn, Graph, Literal, Var, subgraphs
from ..core.keep import remembered
from ..core.source import located
from ..core.tangents import Undefined, Zero, is_zero
from ..core.trace import bind
from ..errors import MissingRuleError
from ..ops.kit.rules import add_tangents, instantiate
from .derivative import lift


def backward(
    graph: Graph,
    consts: Sequence[Any],
    args: Sequence[Any],
    cts: Sequence[Any],
    wanted: Sequence[bool] | None = None,
) -> list[Any]:
    """Return the cotangents of a program's linear inputs for those of its results.

    Parameters
    ----------
    graph : Graph
    consts : sequence
        Values of its ``constvars``.
    args : sequence
        Values of its inputs, `Undefined` where linear. What does not depend on a linear input is
        computed first.
    cts : sequence
        Cotangents of the results; may be `Zero`.
    wanted : sequence of bool, optional
        Whether an input's cotangent is asked for; what leads to no such input is not computed.

    Returns
    -------
    list
        A cotangent for each input: an array or `Zero`; None for inputs that are not linear.
    """
    known: dict[Var, Any] = dict(zip(graph.constvars, consts, strict=True))
    known.update(
        (v, x) for v, x in zip(graph.invars, args, strict=True) if type(x) is not Undefined
    )
    linear = [eqn for eqn in graph.eqns if not _evaluated(eqn, known)]

    asked = None if wanted is None else _reached(graph, linear, wanted)
    found: dict[Var, Any] = {}

    def give(atom: Any, ct: Any) -> None:
        if ct is None or is_zero(ct) or type(atom) is Literal or atom in known:
            return
        if asked is not None and atom not in asked:
            return
        if ct.aval.place is not (wanted := atom.aval.of_cotangents()).place:
            ct = hooks.placed_as(ct, wanted)
        found[atom] = add_tangents(found[atom], ct) if atom in found else ct

    for atom, ct in zip(graph.outvars, cts, strict=True):
        give(atom, ct)
    needed = _needed(
        linear, [v for v, ct in zip(graph.outvars, cts, strict=True) if not is_zero(ct)]
    )
    for eqn in reversed(linear):
        outs = _asked_for(eqn, [found.pop(v, None) for v in eqn.outvars], needed)
        if all(ct is None for ct in outs):
            continue
        operands = [
            lift(a) if type(a) is Literal else known[a] if a in known else Undefined(a.aval)
            for a in eqn.invars
        ]
        rule = eqn.primitive.rule("transpose")
        filled = [
            Zero(v.aval.of_cotangents()) if ct is None else ct
            for v, ct in zip(eqn.outvars, outs, strict=True)
        ]
        ct = filled if eqn.primitive.multiple_results else filled[0]
        with located(eqn.source):
            results = rule(ct, *operands, **eqn.params)
            for k, (atom, x, ct) in enumerate(zip(eqn.invars, operands, results, strict=True)):
                # Of several results some have no cotangent, and so may an operand of theirs.
                if ct is None and type(x) is Undefined and not eqn.primitive.multiple_results:
                    raise MissingRuleError(
                        "transpose", eqn.primitive.name, f"it is not linear in operand {k}"
                    )
                give(atom, ct)
    return [
        found.get(v, Zero(v.aval.of_cotangents())) if type(x) is Undefined else None
        for v, x in zip(graph.invars, args, strict=True)
    ]


def _needed(eqns: Sequence[Eqn], wanted: Sequence[Any]) -> set[Var]:
    """Return what some results are computed of, and those."""
    found = {a for a in wanted if type(a) is Var}
    for eqn in reversed(eqns):
        if not found.isdisjoint(eqn.outvars):
            found.update(a for a in eqn.invars if type(a) is Var)
    return found


def _reached(graph: Graph, eqns: Sequence[Eqn], start: Sequence[bool]) -> set[Var]:
    """Return what is computed of some inputs, and those."""
    found = {v for v, is_start in zip(graph.invars, start, strict=True) if is_start}
    for eqn in eqns:
        if not found.isdisjoint(a for a in eqn.invars if type(a) is Var):
            found.update(eqn.outvars)
    return found


def _asked_for(eqn: Eqn, cts: list[Any], needed: set[Var]) -> list[Any]:
    """Return cotangents, with zeros for results that are needed if an equation heeds them."""
    if all(ct is not None for ct in cts) or not is_affine(eqn):
        return cts
    asked = [
        Zero(v.aval.of_cotangents()) if ct is None and v in needed else ct
        for v, ct in zip(eqn.outvars, cts, strict=True)
    ]
    if eqn.primitive.affine:
        return asked
    # The graph that it holds is to see which of its results are asked for.
    return [ct if ct is None else instantiate(ct) for ct in asked]


def is_affine(eqn: Eqn) -> bool:
    """Whether an equation's transpose, or one of those it holds, heeds cotangents of zero."""
    return eqn.primitive.affine or (
        bool(eqn.params) and any(map(_holds_affine, subgraphs(eqn.params)))
    )


@remembered(4096)
def _holds_affine(graph: Graph) -> bool:
    return any(map(is_affine, graph.eqns))


def _evaluated(eqn: Eqn, known: dict[Var, Any]) -> bool:
    """Compute an equation that depends on no linear input; say whether it was one."""
    if not all(type(a) is Literal or a in known for a in eqn.invars):
        return False
    operands = [a if type(a) is Literal else known[a] for a in eqn.invars]
    with located(eqn.source):
        outs = bind(eqn.primitive, *operands, **eqn.params)
    known.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else (outs,), strict=True))
    return True
