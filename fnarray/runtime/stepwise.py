"""A program run op by op by NumPy: while its kernels are compiled, and to find a bad value."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from ..core.forms import Inline
from ..core.graph import Atom, ClosedGraph, Eqn, Literal, Var


def called_graph(eqn: Eqn) -> ClosedGraph | None:
    """Return the graph that an equation calls, None where it computes by itself."""
    form = None if eqn.primitive.quiet else eqn.form()
    return form.graph if isinstance(form, Inline) else None


def stepwise(
    graph: ClosedGraph, args: Sequence[Any]
) -> Generator[tuple[Eqn, list[np.ndarray]], None, list[np.ndarray]]:
    """Yield each equation with what it gave, those of called graphs too; return the results.

    Equations without results acted when the program ran, or have nothing to do: they are left out.
    """
    inner = graph.jaxpr
    env: dict[Var, Any] = dict(
        zip((*inner.constvars, *inner.invars), (*graph.consts, *args), strict=True)
    )

    def read(atom: Atom) -> Any:
        return np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, Literal) else env[atom]

    for eqn in graph.eqns:
        if not eqn.outvars:
            continue
        operands = list(map(read, eqn.invars))
        if called := called_graph(eqn):
            outs: Sequence[Any] = yield from stepwise(called, operands)
        else:
            result = eqn.primitive.eval(*operands, **eqn.params)
            outs = result if eqn.primitive.multiple_results else (result,)
        given = [np.asarray(x, v.aval.dtype) for x, v in zip(outs, eqn.outvars, strict=True)]
        env.update(zip(eqn.outvars, given, strict=True))
        yield eqn, given
    return list(map(read, inner.outvars))
