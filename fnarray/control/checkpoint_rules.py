"""How a checkpointed call is transformed: its linear half computes again what was not kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..core.frozen import frozen
from ..core.graph import Atom, ClosedGraph, Eqn, Graph, Var, eval_graph
from ..core.keep import remembered
from ..core.primitive import Primitive, RuleOf
from ..core.source import JVP, scoped
from ..core.surgery import live, substituted
from ..core.tangents import chosen, nonzero, with_zeros
from ..core.trace import bind, trace_graph
from ..transforms.graphs import Flags, linearize_graph

__all__: list[str] = []

Values = Sequence[Any]


@frozen(eq=False)
class Halves:
    """A checkpointed graph's derivative.

    Attributes
    ----------
    forward : ClosedGraph
        ``made`` and inputs, to results and what is kept of the values on the way.
    again : ClosedGraph
        What is kept, some of the inputs, what rules made, and tangents, to tangents: computes
        again what it needs that was not kept.
    inputs : tuple of int
        Which inputs of ``forward``, ``made`` included, ``again`` takes.
    made, extra : tuple of Array
        Arrays that rules made, of either half.
    flags : tuple of bool
        Which results have tangents.
    """

    forward: ClosedGraph
    again: ClosedGraph
    inputs: tuple[int, ...]
    made: tuple[Any, ...]
    extra: tuple[Any, ...]
    flags: Flags


@remembered(1024)
def halves(jaxpr: ClosedGraph, active: Flags, policy: Callable[..., Any] | None) -> Halves:
    """Return a graph's values-and-what-is-kept half, and its linear half."""
    if policy is not None:
        jaxpr = without_calls(jaxpr)
    d = linearize_graph(jaxpr, active)
    g, linear = d.primal.graph.jaxpr, d.linear.jaxpr
    made, n = d.primal.consts, len(jaxpr.out_avals)
    computed = iter(g.outvars[n:])
    of_linear: dict[Var, Atom] = {}
    extra: list[tuple[Var, Any]] = []
    for v, r in zip(linear.invars, d.residuals, strict=False):
        if r is None:
            of_linear[v] = next(computed)
        elif isinstance(r, int):
            of_linear[v] = g.invars[len(made) + r]
        else:
            extra.append((v, r))
    kept, inputs, eqns = _computed_again(g, of_linear.values(), policy)
    outs = (*g.outvars[:n], *kept)
    forward = Graph((), g.invars, live(g.eqns, outs), outs, g.debug_name)
    tangents = linear.invars[len(d.residuals) :]
    again = Graph(
        (),
        (*kept, *(g.invars[k] for k in inputs), *(v for v, _ in extra), *tangents),
        (*eqns, *substituted(linear.eqns, of_linear)),
        tuple(of_linear.get(a, a) if isinstance(a, Var) else a for a in linear.outvars),
        g.debug_name,
    )
    values = tuple(r for _, r in extra)
    return Halves(ClosedGraph(forward), ClosedGraph(again), inputs, made, values, d.flags)


#: As JAX labels what is computed again.
_AGAIN = "rematted_computation"


def _computed_again(
    g: Graph, wanted: Any, policy: Callable[..., Any] | None
) -> tuple[tuple[Var, ...], tuple[int, ...], tuple[Eqn, ...]]:
    """Return what is kept of a graph's values, which inputs are used, what is computed again."""
    place = {v: k for k, v in enumerate(g.invars)}
    needed = {a for a in wanted if isinstance(a, Var)}
    kept: list[Var] = []
    eqns: list[Eqn] = []
    for eqn in reversed(g.eqns):
        outs = [v for v in eqn.outvars if v in needed]
        if not outs:
            continue
        avals = [a.aval for a in eqn.invars]
        if policy is not None and policy(eqn.primitive, *avals, **eqn.params):
            kept += reversed(outs)
        else:
            source = eqn.source.labelled((_AGAIN, *eqn.source.stack))
            eqns.append(replace(eqn, source=source))
            needed.update(a for a in eqn.invars if isinstance(a, Var))
    inputs = tuple(sorted(place[v] for v in needed if v in place))
    return tuple(reversed(kept)), inputs, tuple(reversed(eqns))


def without_calls(closed: ClosedGraph) -> ClosedGraph:
    """Return a graph with calls inlined, so that policies see the operations in them."""
    if not any(eqn.primitive.name == "jit" for eqn in closed.eqns):
        return closed

    def inlined(prim: Primitive, *args: Any, **params: Any) -> Any:
        if prim.name == "jit":
            return eval_graph(params["jaxpr"].jaxpr, (), args, inlined)
        return bind(prim, *args, **params)

    g = closed.jaxpr
    return trace_graph(
        lambda *xs: eval_graph(g, closed.consts, xs, inlined), closed.in_avals, g.debug_name
    )


def _linearize(prim: Primitive) -> Any:
    def linearize(
        primals: Values, tangents: Values, *, jaxpr: ClosedGraph, policy: Any, **params: Any
    ) -> Any:
        active = nonzero(tangents)
        h = halves(jaxpr, active, policy)
        operands = [*h.made, *primals]
        outs = eval_graph(h.forward.jaxpr, (), operands, bind)
        n = len(jaxpr.out_avals)
        with scoped(JVP):  # once more, as in JAX
            duals = bind(
                prim,
                *outs[n:],
                *(operands[k] for k in h.inputs),
                *h.extra,
                *chosen(active, tangents),
                jaxpr=h.again,
                policy=policy,
                **{**params, "differentiated": True},
            )
        return outs[:n], with_zeros(h.flags, duals, jaxpr.out_avals)

    return linearize


LINEARIZE = RuleOf(_linearize)
