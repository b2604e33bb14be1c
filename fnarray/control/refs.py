"""Refs of functions that are traced: their values go in, and what is left in them comes out.

A graph knows values alone. Whoever binds it hands in the values that Refs have, and gives them
back what the last results are: state is passed where the program reads and writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import tree
from ..core.avals import ShapedArray
from ..core.graph import ClosedGraph
from ..core.ref import AbstractRef, Ref, local, store, value_of
from ..core.trace import recording
from .signature import Signature, Statics

__all__: list[str] = []

#: Whoever traces for these takes the values of captured Refs, and gives them back.
TAKES_REFS = frozenset(
    (
        "jit", "make_jaxpr", "eval_shape", "checkpoint",
        "scan", "map", "fori_loop", "while_loop", "cond", "switch",
    )
)  # fmt: skip


def trace_with_refs(
    flat: Callable[..., Sequence[Any]],
    in_avals: Sequence[ShapedArray | AbstractRef],
    name: str,
    origins: Sequence[str],
    takes: bool,
) -> tuple[ClosedGraph, tuple[int, ...]]:
    """Trace a flat function whose arguments may be Refs, and which may be closed over some.

    Parameters
    ----------
    flat, in_avals, name, origins
        As of `trace_graph`.
    takes : bool
        Whether values of Refs that it is closed over may be inputs of the graph.

    Returns
    -------
    graph : ClosedGraph
        Its consts hold the Refs themselves.
    written : tuple of int
        Which inputs, consts first, are Refs that were written: the values left in them follow
        the results.
    """
    with recording(name) as trace:
        trace.refs = {} if takes else None
        inner = [a.inner_aval if isinstance(a, AbstractRef) else a for a in in_avals]
        args = [trace.argument(a, o) for a, o in zip(inner, origins, strict=True)]
        given = [
            local(trace, x) if type(a) is AbstractRef else x
            for x, a in zip(args, in_avals, strict=True)
        ]
        outs = list(flat(*given))
        written: list[tuple[int, Any]] = []
        for k, (var, (value, _)) in enumerate(trace.constvars.values()):
            if type(value) is Ref and trace.refs is not None:
                left = trace.refs[id(value)]
                if getattr(left, "atom", None) is not var:
                    written.append((k, left))
        finals = [left for _, left in written]
        for k, (x, ref) in enumerate(zip(args, given, strict=True)):
            if ref is not x and value_of(ref) is not x:
                written.append((~k, value_of(ref)))
                finals.append(value_of(ref))
        graph = trace.close([a.atom for a in args], [*outs, *finals])
    # Constants that are results alone are only known now.
    n = len(graph.consts)
    return graph, tuple(k if k >= 0 else n + ~k for k, _ in written)


def refs_among(signature: Signature) -> Statics:
    """Return the arguments that are Refs, or hold some, as static ones of an analysis."""
    if AbstractRef not in map(type, signature.in_avals):
        return ()
    args, kwargs = signature.arguments(list(signature.in_avals))
    return tuple(
        (where, AbstractRef, aval)
        for where, arg in (*enumerate(args), *kwargs.items())
        for aval in [x for x in tree.leaves(arg) if type(x) is AbstractRef][:1]
    )


def refs_given(args: Sequence[Any], kwargs: dict[str, Any]) -> Statics:
    """Return arguments that are Refs, or hold some, as `refs_among` does."""
    return tuple(
        (where, AbstractRef, found[0].aval)
        for where, arg in (*enumerate(args), *kwargs.items())
        if (found := [x for x in tree.leaves(arg) if type(x) is Ref])
    )


def values_of(operands: Sequence[Any]) -> list[Any]:
    """Return operands with the values that Refs among them have now."""
    return [value_of(x) if type(x) is Ref else x for x in operands]


def give_back(operands: Sequence[Any], written: Sequence[int], outs: Sequence[Any]) -> list[Any]:
    """Give Refs among operands the last of some results; return the others."""
    n = len(outs) - len(written)
    for k, value in zip(written, outs[n:], strict=True):
        store(operands[k], value)
    return list(outs[:n])
