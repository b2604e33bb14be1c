"""Control flow that holds a step with no native kernel: run from Python, its graphs compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.forms import Branch, Call, Inline, Scan, While
from ...core.graph import ClosedGraph, Graph
from ..simplify import Node

Run = Callable[..., Sequence[np.ndarray]]


def is_native(graph: Graph) -> bool:
    """Whether every step of a graph, and of the graphs it holds, can run inside a kernel."""
    return all(form_is_native(eqn.form()) for eqn in graph.eqns)


def form_is_native(form: Any) -> bool:
    """Whether a form can run inside a kernel."""
    if isinstance(form, Call):
        return form.function is not None
    return all(is_native(g.jaxpr) for g in graphs_of(form))


def graphs_of(form: Any) -> tuple[ClosedGraph, ...]:
    """Return the graphs a form holds."""
    if isinstance(form, Inline):
        return (form.graph,)
    if isinstance(form, Branch):
        return form.branches
    if isinstance(form, While):
        return (form.cond, form.body)
    return (form.body,) if isinstance(form, Scan) else ()


def host_control(node: Node, compiled: Callable[[ClosedGraph], Run]) -> Run:
    """Return a function that runs a control step from Python.

    Parameters
    ----------
    compiled : callable
        Gives what runs a graph on NumPy arrays.
    """
    form = node.form
    runs = [compiled(g) for g in graphs_of(form)]
    if isinstance(form, Branch):
        return lambda which, *rest: _own(runs[min(max(int(which), 0), len(runs) - 1)](*rest), rest)
    if isinstance(form, While):
        return lambda *args: _own(_while(form, runs[0], runs[1], args), args)
    return lambda *args: _own(_scan(form, runs[0], args, node), args)


def _own(outs: Sequence[np.ndarray], operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Return results that share no array, since a later step may write over one of them."""
    seen = set(map(id, operands))
    own = []
    for x in outs:
        own.append(x.copy() if id(x) in seen else x)
        seen.add(id(x))
    return own


def _while(form: While, cond: Run, body: Run, args: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    nc, nb = form.cond_nconsts, form.body_nconsts
    carry: Sequence[np.ndarray] = args[nc + nb :]
    while cond(*args[:nc], *carry)[0]:
        carry = body(*args[nc : nc + nb], *carry)
    return carry


def _scan(form: Scan, body: Run, args: Sequence[np.ndarray], node: Node) -> Sequence[np.ndarray]:
    nk, nc = form.num_consts, form.num_carry
    consts, carry, xs = args[:nk], args[nk : nk + nc], args[nk + nc :]
    ys = [np.empty(v.aval.shape, v.aval.dtype) for v in node.outs[nc:]]
    steps = range(form.length)
    for t in reversed(steps) if form.reverse else steps:
        # A row of a rank-1 array is a NumPy scalar, which is no buffer: hence asarray.
        outs = body(*consts, *carry, *(np.asarray(x[t], order="C") for x in xs))
        carry = outs[:nc]
        for y, row in zip(ys, outs[nc:], strict=True):
            y[t] = row
    return (*carry, *ys)
