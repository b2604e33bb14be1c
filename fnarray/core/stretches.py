"""What is called often: stretches of a record that give the same bits compiled are programs.

A step of a record takes NumPy 0.4 to 0.8 us on few numbers, a program 0.3 whatever is in it. What
NumPy rounds in its own way, a logarithm or a product of matrices, stays its own: no bit may change.
"""

# pyright: standard
from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .forms import Reindex
from .graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var
from .hooks import prepared
from .large import is_compiled, is_exact, is_exact_library, is_exact_step
from .primitive import Missing, Primitive
from .record import is_small, known_of, spelled_of
from .surgery import straight

__all__ = ["in_programs", "patience", "program_of"]

#: So many operations take NumPy longer than a program, where there are few elements.
_SHORT = 3
#: Calls after which several operations are compiled, and after which one or two are.
_OFTEN, _VERY_OFTEN = 20, 1000
_NONE = Missing("it stands in records, which nothing transforms")


def _run(*data: np.ndarray, graph: ClosedGraph) -> Sequence[np.ndarray]:
    return prepared(graph)(*data)


known_of[_run] = lambda *avals, graph: prepared(graph)

_program_p = Primitive(
    "program",
    aval=lambda *avals, graph: graph.out_avals,
    eval=_run,
    form=_NONE,
    jvp=_NONE,
    transpose=_NONE,
    batch=_NONE,
    multiple_results=True,
)


def patience(graph: ClosedGraph) -> int | None:
    """Return after how many calls a graph on few elements is worth compiling; None if never.

    NumPy has to take longer than the launch of a program: several operations, or a decomposition by
    LAPACK, whose wrapper in Python takes more than it. A sum saves 0.7 us of 1.7, and takes 15 ms.
    """
    eqns = straight(graph, _in_parts).jaxpr.eqns
    return _OFTEN if _takes_long(eqns) else _VERY_OFTEN if any(map(_spelled, eqns)) else None


def _takes_long(eqns: Sequence[Eqn]) -> bool:
    calls = [e for e in eqns if not (is_compiled(e) and isinstance(e.form(), Reindex))]
    return bool(calls) and (len(eqns) >= _SHORT or any(map(is_exact_library, calls)))


def _spelled(eqn: Eqn) -> ClosedGraph | None:
    """Return operations that do what an equation's evaluator does, if they are known."""
    spell = spelled_of.get(eqn.primitive.eval)
    return spell(*(x.aval for x in eqn.invars), **eqn.params) if spell else None


def _in_parts(eqn: Eqn) -> ClosedGraph | None:
    graph = _spelled(eqn)
    return None if graph is None or is_exact(graph) else graph


def _levels(eqns: Sequence[Eqn], exact: Sequence[bool], constant: Sequence[bool]) -> list[int]:
    """Return for each equation the number of its stretch, or of that which it follows.

    An exact one belongs to the first stretch at which its operands are known. What is constant
    counts for nothing.
    """
    found: dict[Var, tuple[int, bool]] = {}
    levels: list[int] = []
    for eqn, own, fixed in zip(eqns, exact, constant, strict=True):
        known = [found[x] for x in eqn.invars if isinstance(x, Var) and x in found]
        level = max((at + (own and not by_exact) for at, by_exact in known), default=0)
        levels.append(level)
        found.update({} if fixed else dict.fromkeys(eqn.outvars, (level, own)))
    return levels


def _constant(jaxpr: Graph) -> list[bool]:
    """Return which equations follow from constants alone: a record evaluates them once."""
    known: set[Atom] = set(jaxpr.constvars)
    found: list[bool] = []
    for eqn in jaxpr.eqns:
        found.append(
            is_small(eqn) and all(x in known or isinstance(x, Literal) for x in eqn.invars)
        )
        known.update(eqn.outvars if found[-1] else ())
    return found


def in_programs(graph: ClosedGraph) -> ClosedGraph | None:
    """Return a graph with programs in place of exact stretches; None if it has none."""
    graph = straight(graph, _in_parts)
    jaxpr = graph.jaxpr
    exact = [is_compiled(e) and (is_exact_step(e) or bool(_spelled(e))) for e in jaxpr.eqns]
    if whole := all(exact):
        constant = [False] * len(exact)
    else:
        constant = _constant(jaxpr)
    moving = [own and not fixed for own, fixed in zip(exact, constant, strict=True)]
    levels = _levels(jaxpr.eqns, moving, constant)
    eqns = [e for e, fixed in zip(jaxpr.eqns, constant, strict=True) if fixed]
    programs = 0
    for level in range(max(levels, default=-1) + 1):
        here = [k for k, at in enumerate(levels) if at == level and not constant[k]]
        stretch = [k for k in here if moving[k]]
        if stretch and (whole or _takes_long([jaxpr.eqns[k] for k in stretch])):
            programs += 1
            eqns.append(_as_program(jaxpr, stretch))
            here = [k for k in here if not moving[k]]
        eqns.extend(jaxpr.eqns[k] for k in here)
    if not programs:
        return None
    g = Graph(jaxpr.constvars, jaxpr.invars, tuple(eqns), jaxpr.outvars, jaxpr.debug_name)
    return ClosedGraph(g, graph.consts)


def _as_program(whole: Graph, stretch: Sequence[int]) -> Eqn:
    """Return the equation that runs some others, and gives what is read elsewhere."""
    eqns = tuple(whole.eqns[k] for k in stretch)
    own = {v for e in eqns for v in e.outvars}
    others = (e for k, e in enumerate(whole.eqns) if k not in stretch)
    read = _variables((*(x for e in others for x in e.invars), *whole.outvars))
    outs = tuple(v for v in read if v in own)
    ins = tuple(v for v in _variables(x for e in eqns for x in e.invars) if v not in own)
    graph = straight(ClosedGraph(Graph((), ins, eqns, outs, whole.debug_name)), _spelled)
    return Eqn(_program_p, ins, outs, {"graph": graph})


def _variables(atoms: Iterable[Atom]) -> tuple[Var, ...]:
    return tuple(dict.fromkeys(x for x in atoms if isinstance(x, Var)))


def program_of(cut: ClosedGraph) -> ClosedGraph | None:
    """Return the program that a graph in programs is, if it is a single one; else None."""
    (eqn, *others), g = cut.jaxpr.eqns, cut.jaxpr
    if others or eqn.outvars != g.outvars:
        return None
    inner = eqn.params["graph"].jaxpr
    graph = Graph(g.constvars, g.invars, inner.eqns, inner.outvars, g.debug_name)
    return ClosedGraph(graph, cut.consts)
