"""Loops in lanes: a batch of ``while`` loops that end after different numbers of turns.

One equation says what it means, a loop for each lane, and names no width: which way lanes run, in
groups or on their own, is the target's choice (see `core.forms.Lanes`). Its rules are those of the
loop of one lane, batched anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.avals import ShapedArray
from ..core.axes import Axis, axes_named
from ..core.forms import Lanes
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive
from ..core.surgery import one_equation
from ..core.tangents import chosen, nonzero, with_zeros
from ..core.trace import bind
from ..ops.kit.calls import broadcast_in_dim, reshape
from ..ops.kit.registry import register
from ..transforms.graphs import Flags, batch_graph, jvp_graph, runner
from . import loop_rules
from ._looping import as_program, one_by_one
from .loop import while_p
from .loop_rules import acts, lane_avals, together

__all__: list[str] = []

Params = dict[str, Any]


def _lane(params: Params) -> ClosedGraph:
    """Return the loop of one lane."""
    return one_equation(while_p, lane_avals(params), tuple(params.items()))


def _aval(*avals: ShapedArray, axis_size: int, body_jaxpr: ClosedGraph, **_: Any) -> Any:
    return tuple(a.update(shape=(axis_size, *a.shape)) for a in body_jaxpr.out_avals)


def _form(ins: Any, outs: Any, *, axis_size: int, rows: Flags, **params: Any) -> Lanes:
    as_group = None if acts(params) else partial(_together, params=params)
    return Lanes(_lane(params), axis_size, rows, as_group)


def _together(width: int, batched: Flags, params: Params) -> ClosedGraph:
    return together(while_p, width, batched, tuple(params.items()))


def _run_on_batches(
    graph: ClosedGraph, axis: Axis, operands: Sequence[Any], batched: Flags
) -> list[Any]:
    """Run a graph on batches; all results have the mapped axis."""
    d = batch_graph(graph, batched, axis, (True,) * len(graph.out_avals))
    return runner(d.graph)(*d.consts, *operands)


# ---- rules ---------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    axis_size: int,
    rows: Flags,
    **params: Any,
) -> Any:
    """Differentiate the loop of one lane; run that in lanes."""
    active = nonzero(tangents)
    d = jvp_graph(_lane(params), active)
    found = _run_on_batches(
        d.graph,
        Axis(axis_size),
        [*d.consts, *primals, *chosen(active, tangents)],
        (False,) * len(d.consts) + rows + tuple(chosen(active, rows)),
    )
    n = len(d.flags)
    return found[:n], with_zeros(d.flags, found[n:], [x.aval for x in found[:n]])


def _linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    # As of one loop: how often lanes turn is in neither half.
    return bind(lanes_p, *primals, **params), _jvp(primals, tangents, **params)[1]


def _batch(
    axis: Axis,
    operands: Sequence[Any],
    batched: Flags,
    *,
    axis_size: int,
    rows: Flags,
    **params: Any,
) -> Any:
    """Make a batch of lanes more lanes."""
    every = (True,) * len(params["body_jaxpr"].out_avals)
    if axis.name in axes_named(lanes_p, params):
        return _run_on_batches(_together(axis_size, rows, params), axis, operands, batched), every
    avals = lane_avals(params)
    consts = len(avals) - len(every)
    both = list(zip(batched, rows, strict=True))
    repeated = sum(a.size for a, (f, g) in zip(avals[:consts], both, strict=False) if f != g)
    # Rows that lanes of one of the axes share are repeated only if that takes no more memory than
    # the lanes' state does.
    if repeated > sum(a.size for a in avals[consts:]):
        own = {"axis_size": axis_size, "rows": rows}
        return one_by_one(lanes_p, axis, operands, batched, **own, **params)
    sizes = axis, axis_size
    outs = bind(
        lanes_p,
        *(_merged(x, f, g, sizes) for x, (f, g) in zip(operands, both, strict=True)),
        axis_size=axis * axis_size,
        rows=tuple(f or g for f, g in both),
        **params,
    )
    return [reshape(o, (*sizes, *o.shape[1:])) for o in outs], every


def _merged(x: Any, outer: bool, inner: bool, sizes: tuple[int, int]) -> Any:
    """Return an operand with one axis in place of two, along either of which it may be the same."""
    if not (outer or inner):
        return x
    row = x.shape[outer + inner :]
    if not (outer and inner):
        x = broadcast_in_dim(x, (*sizes, *row), (0 if outer else 1, *range(2, 2 + len(row))))
    return reshape(x, (sizes[0] * sizes[1], *row))


def _printed(params: Params) -> Params:
    """Return the params of JAX's ``while``, whose condition may give a value for each lane."""
    nc, nb, axis = params["cond_nconsts"], params["body_nconsts"], Axis(params["axis_size"])
    cond, body, rows = params["cond_jaxpr"], params["body_jaxpr"], params["rows"]
    test = batch_graph(cond, rows[:nc] + rows[nc + nb :], axis, (True,))
    step = batch_graph(body, rows[nc:], axis, rows[nc + nb :])
    graphs = {"cond_jaxpr": test.graph, "body_jaxpr": step.graph}
    return {"cond_nconsts": nc, "body_nconsts": nb, **graphs}


lanes_p = register(
    Primitive(
        "lanes",
        aval=_aval,
        eval=lambda *xs, **params: as_program(lanes_p, xs, params),
        form=_form,
        jvp=_jvp,
        linearize=_linearize,
        transpose=loop_rules.TRANSPOSE,
        batch=_batch,
        multiple_results=True,
        quiet=False,
        print_name="while",
        print_params=_printed,
    )
)
