"""How operations that hold graphs are checked: they are applied again, to graphs that check.

What goes wrong in a graph is written to Refs of outside, which loops carry and branches give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import tree
from ..core.graph import ClosedGraph, eval_graph
from ..core.source import UNKNOWN, Source
from ..core.surgery import closed_over_nothing
from ..core.trace import bind, trace_graph, tracing
from ..purity.guards import Guards
from .call import call
from .checkify import CheckTrace, Record, checked_graph, holders
from .checkpoint import remat_p
from .cond import cond_p
from .flow import with_common_consts, with_common_writes
from .loop import bind_while
from .refs import give_back, trace_with_refs, values_of
from .scan import run_scan
from .signature import Signature, spec_of_call
from .spmd import shard_map_p
from .tracing import Traced

__all__: list[str] = []

Values = list[Any]


def _traced(
    flat: Callable[..., Sequence[Any]], avals: Sequence[Any], name: str, given: Values, first: int
) -> Traced:
    """Trace a flat function that is checked; its ``first`` inputs are ``given``, constants."""
    counts: list[int] = []

    def counted(*args: Any) -> list[Any]:
        outs = list(flat(*args))
        counts.append(len(outs))
        return outs

    graph, written = trace_with_refs(counted, avals, name, ["an operand"] * len(avals), True)
    return Traced(
        Signature(spec_of_call(*avals[first:]), tuple(avals[first:])),
        Source(UNKNOWN.file, UNKNOWN.line, name),
        closed_over_nothing(graph),
        (*graph.consts, *given[:first]),
        written,
        tree.flatten_spec([0] * counts[0])[1],
        (),
        Guards(),
        None,
        True,
    )


def _again(record: Record, closed: ClosedGraph, given: Values = (), first: int = 0) -> Traced:  # type: ignore[assignment]
    name = closed.jaxpr.debug_name
    return _traced(checked_graph(record, closed), closed.in_avals, name, given, first)


def _jit(record: Record, args: Values, params: dict[str, Any]) -> Any:
    t = _again(record, params["jaxpr"])
    return call(t, args)


def _remat(record: Record, args: Values, params: dict[str, Any]) -> Any:
    t = _again(record, params["jaxpr"])
    operands = [*t.consts, *args]
    outs = bind(remat_p, *values_of(operands), **{**params, "jaxpr": t.closed})
    return give_back(operands, t.written, outs)


def _scan(record: Record, args: Values, params: dict[str, Any]) -> Any:
    n, m = params["num_consts"], params["num_carry"]
    body = _again(record, params["jaxpr"], args, n)
    length, reverse, unroll = params["length"], params["reverse"], params["unroll"]
    watch = params.get("watch")
    return run_scan(body, args[n : n + m], args[n + m :], length, reverse, unroll, watch)


def _while(record: Record, args: Values, params: dict[str, Any]) -> Any:
    n, m = params["cond_nconsts"], params["body_nconsts"]
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    tests, consts, init = args[:n], args[n : n + m], args[n + m :]
    t = _again(record, test, tests, n)
    if not t.written:
        return bind_while(t, _again(record, body, consts, m), init)
    # The condition is checked, too: each turn asks it at its end, and the next one knows.
    turn, ask = checked_graph(record, body), checked_graph(record, test)

    def both(*args: Any) -> list[Any]:
        after = turn(*args[n : n + m], *args[n + m + 1 :])
        return [*ask(*args[:n], *after), *after]

    (going,) = call(t, init)
    avals = [x.aval for x in (*tests, *consts, going, *init)]
    whole = _traced(both, avals, body.jaxpr.debug_name, [*tests, *consts], n + m)
    known = _traced(lambda pred, *rest: [pred], avals[n + m :], "going", [], 0)
    return bind_while(known, whole, [going, *init])[1:]


def _cond(record: Record, args: Values, params: dict[str, Any]) -> Any:
    ts = [_again(record, b) for b in params["branches"]]
    index, *leaves = args
    consts, graphs = with_common_consts(ts)
    given = [*consts, *leaves]
    written, graphs = with_common_writes(ts, consts, graphs)
    outs = bind(cond_p, index, *values_of(given), branches=graphs)
    return give_back(given, written, outs)


def _custom(record: Record, args: Values, params: dict[str, Any]) -> Any:
    """Run a function with a derivative of its own in line, if there are checks in it."""
    closed = params["call_jaxpr"]
    if "check" not in closed.effects:
        return None
    with tracing(CheckTrace(record)):
        return eval_graph(closed.jaxpr, closed.consts, args, bind)


def _shards(record: Record, args: Values, params: dict[str, Any]) -> Any:
    """Run a program on devices that is checked on each: errors have axes of the devices."""
    closed, names = params["jaxpr"], tuple(name for name, _ in params["mesh_axes"])
    specs: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        own = Record(record.errors)
        outs = checked_graph(own, closed)(*xs)
        leaves, spec = tree.flatten_spec(own.error())
        specs.append(spec)
        return [*leaves, *outs]

    graph = trace_graph(flat, closed.in_avals, closed.jaxpr.debug_name)
    (spec,) = specs
    k = spec.num_leaves
    outs = bind(
        shard_map_p,
        *graph.consts,
        *args,
        **{
            **params,
            "jaxpr": closed_over_nothing(graph),
            "in_names": (*((),) * len(graph.consts), *params["in_names"]),
            "out_names": (*(names,) * k, *params["out_names"]),
        },
    )
    record.take(spec.unflatten(outs[:k]))
    return outs[k:]


holders.update(
    {
        "jit": _jit,
        "remat2": _remat,
        "scan": _scan,
        "while": _while,
        "cond": _cond,
        "shard_map": _shards,
        "custom_jvp_call": _custom,
        "custom_vjp_call": _custom,
    }
)
