"""The family of primitives that hold graphs, and what rules of such primitives are made of.

`Holding` is the family of those that run a graph, or one of several, on their operands: calls,
branches, checkpoints, programs on devices. A member declares which operands the graph takes; the
rules that it does not give itself follow: each binds the same primitive again, around graphs that
are derived. Loops have a family of their own, in ``_looping``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from typing import Any

from ..core.array import asarray
from ..core.avals import ShapedArray
from ..core.axes import Axis
from ..core.forms import Inline
from ..core.frozen import frozen
from ..core.graph import ClosedGraph, eval_graph
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import rearranged
from ..core.tangents import chosen, is_undefined, nonzero, with_zeros
from ..core.trace import bind
from ..ops.kit.registry import register
from ..transforms.graphs import (
    Derived,
    Flags,
    batch_graph,
    jvp_graph,
    linearize_graph,
    transpose_graph,
)

__all__: list[str] = []

Values = Sequence[Any]
Params = dict[str, Any]
Graphs = tuple[ClosedGraph, ...]

# ---- graphs --------------------------------------------------------------------------------------


def either(a: Sequence[bool], b: Sequence[bool]) -> Flags:
    """Join flags."""
    return tuple(x or y for x, y in zip(a, b, strict=True))


def alike(make: Callable[[ClosedGraph, Flags], Any], graphs: Graphs) -> tuple[list[Any], Flags]:
    """Derive graphs so that the same results have a tangent, or the mapped axis, in each.

    ``make(graph, forced)`` derives one, ``forced`` being the results that must have it.
    """
    first = [make(g, ()) for g in graphs]
    flags = reduce(either, (d.flags for d in first))
    same = all(d.flags == flags for d in first)
    return (first if same else [make(g, flags) for g in graphs]), flags


def common(derived: Sequence[Derived]) -> tuple[list[Any], Graphs]:
    """Return the arrays that rules made for any of the graphs, and graphs that take them all."""
    consts = [c for d in derived for c in d.consts]
    avals = [c.aval for c in consts]
    graphs, start = [], 0
    for d in derived:
        k, n = len(d.consts), len(d.graph.in_avals)
        before, after = avals[:start], avals[start + k :]
        graphs.append(rearranged(d.graph, (*before, *range(k), *after, *range(k, n))))
        start += k
    return consts, tuple(graphs)


def residual_values(linearized: Any, operands: Values, computed: Values) -> list[Any]:
    """Return the values of a linear graph's residuals."""
    found = iter(computed)
    return [
        next(found) if r is None else operands[r] if isinstance(r, int) else r
        for r in linearized.residuals
    ]


def each_operation(closed: ClosedGraph, xs: Values) -> tuple[Any, ...]:
    """Evaluate a graph on NumPy arrays, operation by operation."""
    outs = eval_graph(closed.jaxpr, closed.consts, list(map(asarray, xs)), bind)
    return tuple(x._data for x in outs)


# ---- primitives that run a graph on their operands -----------------------------------------------


@frozen
class Places:
    """Where each input and each result of a graph is, in params that say so.

    Attributes
    ----------
    of : callable
        ``of(params) -> (places of inputs, places of results)``.
    put : callable
        ``put(params, ins, outs) -> params`` of a graph whose inputs and results are there.
    kept : callable
        ``kept(params)``, the place of what the graph itself computes and hands on.
    made : object
        The place of an array that is the same wherever the graph runs.
    """

    of: Callable[[Params], tuple[Any, Any]]
    put: Callable[[Params, tuple[Any, ...], tuple[Any, ...]], Params]
    kept: Callable[[Params], Any]
    made: Any


def _nothing(_params: Params) -> AbstractContextManager[Any]:
    return nullcontext()


@frozen
class Holding:
    """The family of primitives that run a graph, or one of several, on their operands.

    Attributes
    ----------
    held : str
        The param that holds the graph, or a tuple of graphs of which one runs.
    first : int
        How many operands come before those that the graph takes; they are not differentiated.
    places : Places, optional
        Of inputs and results, where the params tell them.
    transposed : callable, optional
        In place of `transpose_graph`: ``transposed(graph, linear, given, params)``.
    around : callable, optional
        ``around(params)``, what is about a graph while it is derived as it was when it was traced:
        rules that users gave run then.
    """

    held: str = "jaxpr"
    first: int = 0
    places: Places | None = None
    transposed: Callable[[ClosedGraph, Flags, Flags, Params], Derived] | None = None
    around: Callable[[Params], AbstractContextManager[Any]] = _nothing

    def graphs(self, params: Params) -> Graphs:
        """Return the graphs held."""
        held = params[self.held]
        return held if isinstance(held, tuple) else (held,)

    def _placed(self, params: Params) -> tuple[Any, Any]:
        """Return the places of inputs and of results, None where there are none."""
        if self.places is not None:
            return self.places.of(params)
        graph = self.graphs(params)[0]
        return (None,) * len(graph.in_avals), (None,) * len(graph.out_avals)

    def _bind(
        self,
        prim: Primitive,
        first: Values,
        derived: Sequence[Derived],
        operands: Values,
        params: Params,
        ins: Sequence[Any],
        outs: Sequence[Any],
    ) -> list[Any]:
        """Bind the primitive around derived graphs, their inputs and results at places."""
        consts, graphs = common(derived)
        several = isinstance(params[self.held], tuple)
        params = {**params, self.held: graphs if several else graphs[0]}
        if self.places is not None:
            made = (self.places.made,) * len(consts)
            params = self.places.put(params, (*made, *ins), tuple(outs))
        return bind(prim, *first, *consts, *operands, **params)

    # ---- rules ----

    def aval(self, *avals: ShapedArray, **params: Any) -> tuple[ShapedArray, ...]:
        """Give the results' avals; where some graphs' are weak, the first decides, as in JAX."""
        return self.graphs(params)[0].out_avals

    def jvp(self, prim: Primitive) -> Callable[..., Any]:
        """Return the rule that runs graphs of values and tangents."""

        def jvp(primals: Values, tangents: Values, **params: Any) -> Any:
            rest, duals = primals[self.first :], tangents[self.first :]
            active = nonzero(duals)
            with self.around(params):
                derived, flags = alike(lambda g, f: jvp_graph(g, active, f), self.graphs(params))
            ins, outs = self._placed(params)
            found = self._bind(
                prim,
                primals[: self.first],
                derived,
                [*rest, *chosen(active, duals)],
                params,
                (*ins, *chosen(active, ins)),
                (*outs, *chosen(flags, outs)),
            )
            n = len(flags)
            return found[:n], with_zeros(flags, found[n:], [x.aval for x in found[:n]])

        return jvp

    def linearize(self, prim: Primitive) -> Callable[..., Any]:
        """Return the rule of one graph: it hands on residuals, to a linear one of tangents."""

        def linearize(primals: Values, tangents: Values, **params: Any) -> Any:
            active = nonzero(tangents)
            (graph,) = self.graphs(params)
            with self.around(params):
                d = linearize_graph(graph, active)
            n = len(graph.out_avals)
            ins, outs = self._placed(params)
            kept = self.places and self.places.kept(params)
            made = self.places and self.places.made
            computed = (kept,) * (len(d.primal.flags) - n)
            found = self._bind(prim, (), [d.primal], primals, params, ins, (*outs, *computed))
            at = [
                kept if r is None else ins[r] if isinstance(r, int) else made for r in d.residuals
            ]
            duals = self._bind(
                prim,
                (),
                [Derived(d.linear, (), d.flags)],
                [*residual_values(d, primals, found[n:]), *chosen(active, tangents)],
                params,
                (*at, *chosen(active, ins)),
                chosen(d.flags, outs),
            )
            return found[:n], with_zeros(d.flags, duals, [x.aval for x in found[:n]])

        return linearize

    def transpose(self, prim: Primitive) -> Callable[..., Any]:
        """Return the rule that runs transposed graphs; of several, each gives all cotangents."""

        def transpose(cts: Values, *operands: Any, **params: Any) -> list[Any]:
            first, rest = operands[: self.first], operands[self.first :]
            linear = tuple(map(is_undefined, rest))
            known = tuple(not f for f in linear)
            given = nonzero(cts)
            graphs = self.graphs(params)
            with self.around(params):
                if self.transposed is None:
                    derived = [transpose_graph(g, linear, given, len(graphs) > 1) for g in graphs]
                else:
                    derived = [self.transposed(g, linear, given, params) for g in graphs]
            ins, outs = self._placed(params)
            flags = derived[0].flags
            found = iter(
                self._bind(
                    prim,
                    first,
                    derived,
                    [*chosen(known, rest), *chosen(given, cts)],
                    params,
                    (*chosen(known, ins), *chosen(given, outs)),
                    chosen(flags, chosen(linear, ins)),
                )
            )
            some = iter(flags)
            of_rest = [next(found) if f and next(some) else None for f in linear]
            return [*(None for _ in first), *of_rest]

        return transpose

    def batch(self, prim: Primitive) -> Callable[..., Any]:
        """Return the rule that runs graphs of batches."""

        def batch(axis: Axis, operands: Values, batched: Flags, **params: Any) -> Any:
            k = self.first
            with self.around(params):
                derived, flags = alike(
                    lambda g, f: batch_graph(g, batched[k:], axis, f), self.graphs(params)
                )
            ins, outs = self._placed(params)
            found = self._bind(prim, operands[:k], derived, operands[k:], params, ins, outs)
            return found, flags

        return batch


def holding(
    name: str,
    family: Holding,
    *,
    eval: Callable[..., Any] | None = None,
    form: Callable[..., Any] | None = None,
    aval: Callable[..., Any] | None = None,
    quiet: bool = False,
    print_params: Callable[[Params], Params] | None = None,
    **rules: Any,
) -> Primitive:
    """Declare a primitive that runs a graph on its operands; rules not given are the family's.

    Parameters
    ----------
    name : str
    family : Holding
        How it holds the graph.
    eval, form, aval
        As of `Primitive`. By default the graph is evaluated operation by operation, and inlined
        where it is compiled.
    **rules
        ``jvp``, ``linearize``, ``transpose``, ``batch``.
    """
    own: dict[str, Any] = {
        "jvp": RuleOf(family.jvp),
        "linearize": RuleOf(family.linearize),
        "transpose": RuleOf(family.transpose),
        "batch": RuleOf(family.batch),
    }
    return register(
        Primitive(
            name,
            aval=aval or family.aval,
            eval=eval or (lambda *xs, **params: each_operation(params[family.held], xs)),
            form=form or (lambda ins, outs, **params: Inline(params[family.held])),
            multiple_results=True,
            quiet=quiet,
            stepwise=eval is None and form is None,
            print_params=print_params,
            **(own | rules),
        )
    )
