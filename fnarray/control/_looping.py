"""The family of loops, and the one loop over examples that rules of batching fall back on.

A turn of a loop's body takes constants, a carry, and a row of each array looped over, in that
order. A member of `Looping` says which of its operands are which; the rules that it does not give
itself follow, and keep the order: what they add to a part comes after what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core import hooks
from ..core.avals import ShapedArray
from ..core.axes import Axis
from ..core.frozen import frozen
from ..core.graph import ClosedGraph, Var
from ..core.primitive import Missing, Primitive, RuleOf
from ..core.surgery import one_equation, rearranged
from ..core.tangents import chosen, nonzero, with_zeros
from ..core.trace import bind
from ..ops.kit.calls import broadcast_in_dim, moveaxis
from ..ops.kit.registry import register, registry
from ..ops.kit.rules import instantiate, spread
from ..transforms.graphs import Derived, Flags, batch_graph, jvp_graph
from ._bodies import Params, Values, either

__all__: list[str] = []


def parts(items: Sequence[Any], num_consts: int, num_carry: int) -> tuple[Any, Any, Any]:
    """Split operands, or what belongs to them, into those of constants, carry and rows."""
    end = num_consts + num_carry
    return items[:num_consts], items[num_consts:end], items[end:]


def settled(
    make: Callable[[Flags, Flags], Any],
    flags: Flags,
    num_consts: int,
    num_carry: int,
    rows: int = 0,
) -> tuple[Any, Flags]:
    """Return a derived body, and flags at which the carry's results have what its inputs have.

    ``make(flags, forced)`` derives it for flags of the inputs; ``forced`` are the results, the
    carry and then ``rows``, that must have a tangent or the mapped axis. A part of the carry that
    has none at first may come to have it.
    """
    while True:
        consts, carry, xs = parts(flags, num_consts, num_carry)
        derived = make(flags, (*carry, *(False,) * rows))
        grown = either(carry, derived.flags[:num_carry])
        if grown == carry:
            return derived, flags
        flags = (*consts, *grown, *xs)


@frozen
class Looping:
    """The family of loops: each turn of a body takes constants, the carry, and a row.

    Attributes
    ----------
    body : str
        The param that holds the body.
    counts : callable
        ``counts(params)``, the numbers of operands that are not the body's, of constants, and of
        parts of the carry; rows are the rest.
    turned : callable
        ``turned(params, body, num_consts, num_carry) -> params`` of another body.
    """

    body: str
    counts: Callable[[Params], tuple[int, int, int]]
    turned: Callable[[Params, ClosedGraph, int, int], Params]

    def jvp(self, prim: Primitive) -> Callable[..., Any]:
        """Return the rule: tangents of constants, carry and rows come after what they are of."""

        def jvp(primals: Values, tangents: Values, **params: Any) -> Any:
            body, (first, num_consts, num_carry) = params[self.body], self.counts(params)
            total = len(body.out_avals)
            own, duals = primals[first:], tangents[first:]
            d, active = settled(
                partial(jvp_graph, body), nonzero(duals), num_consts, num_carry, total - num_carry
            )
            k = len(d.consts)
            order, sizes = _interleaved(len(own), k, active, num_consts, num_carry)
            results, carried = _result_order(d.flags, num_carry)
            graph = rearranged(d.graph, (*range(k), *order), tuple(results))
            operands = [*d.consts, *own, *map(instantiate, chosen(active, duals))]
            outs = bind(
                prim,
                *primals[:first],
                *d.consts,
                *(operands[i] for i in order),
                **self.turned(params, graph, k + sizes[0], carried),
            )
            where = dict(zip(results, outs, strict=True))
            values = [where[i] for i in range(total)]
            found = [where[i] for i in range(total, total + sum(d.flags))]
            return values, with_zeros(d.flags, found, [v.aval for v in values])

        return jvp

    def batch(self, prim: Primitive) -> Callable[..., Any]:
        """Return the rule: the mapped axis is in front, but second where a turn takes a row."""

        def batch(axis: Axis, operands: Values, batched: Flags, **params: Any) -> Any:
            first, num_consts, num_carry = self.counts(params)
            d, flags = self.batched(axis, batched, params)
            consts, carry, xs = parts(operands[first:], num_consts, num_carry)
            _, was, _ = parts(batched[first:], num_consts, num_carry)
            _, needed, rows = parts(flags, num_consts, num_carry)
            outs = bind(
                prim,
                *operands[:first],
                *d.consts,
                *consts,
                *(spread(x, axis) if n and not f else x
                  for x, n, f in zip(carry, needed, was, strict=True)),
                *(moveaxis(x, 0, 1) if f else x for x, f in zip(xs, rows, strict=True)),
                **self.turned(params, d.graph, len(d.consts) + num_consts, num_carry),
            )  # fmt: skip
            done = [
                moveaxis(o, 1, 0) if k >= num_carry and f else o
                for k, (o, f) in enumerate(zip(outs, d.flags, strict=True))
            ]
            return done, d.flags

        return batch

    def batched(self, axis: Axis, batched: Flags, params: Params) -> tuple[Derived, Flags]:
        """Return the body on batches, and which of its inputs have the mapped axis."""
        body, (first, num_consts, num_carry) = params[self.body], self.counts(params)

        def make(flags: Flags, forced: Flags) -> Derived:
            return batch_graph(body, flags, axis, forced)

        rows = len(body.out_avals) - num_carry
        return settled(make, batched[first:], num_consts, num_carry, rows)


def looping(
    name: str,
    family: Looping,
    *,
    aval: Callable[..., Any],
    form: Callable[..., Any],
    **rules: Any,
) -> Primitive:
    """Declare a loop; rules not given are the family's.

    Called eagerly it runs as machine code, as a program of one equation.

    Parameters
    ----------
    name : str
    family : Looping
        What its operands are.
    aval, form
        As of `Primitive`.
    **rules
        ``jvp``, ``linearize``, ``transpose``, ``batch``.
    """

    def run(*xs: np.ndarray, **params: Any) -> tuple[Any, ...]:
        return as_program(prim, xs, params)

    own: dict[str, Any] = {
        "jvp": RuleOf(family.jvp),
        "transpose": Missing("how its turns run backwards is not declared. Use lax.scan."),
        "batch": RuleOf(family.batch),
    }
    prim = register(
        Primitive(
            name,
            aval=aval,
            eval=run,
            form=form,
            multiple_results=True,
            quiet=False,
            **(own | rules),
        )
    )
    return prim


def as_program(prim: Primitive, xs: Sequence[np.ndarray], params: Params) -> tuple[Any, ...]:
    """Evaluate an operation as machine code: as a program of one equation."""
    avals = tuple(ShapedArray(x.shape, x.dtype) for x in xs)
    program = one_equation(prim, avals, tuple(params.items()))
    return tuple(hooks.compiled_call(program, xs))


def _interleaved(n: int, first: int, flags: Flags, num_consts: int, num_carry: int) -> Any:
    """Return numbers of ``n`` inputs in parts, each followed by its flagged ones from ``first``."""
    numbers = iter(range(first + n, first + n + sum(flags)))
    extra = [next(numbers) if f else None for f in flags]
    order: list[int] = []
    sizes = []
    for own, more in zip(
        parts(range(first, first + n), num_consts, num_carry),
        parts(extra, num_consts, num_carry),
        strict=True,
    ):
        both = [*own, *(m for m in more if m is not None)]
        order += both
        sizes.append(len(both))
    return order, sizes


def _result_order(flags: Flags, num_carry: int) -> tuple[list[int], int]:
    """Return results (carry, rows, tangents of both) as carry with tangents, rows with tangents.

    The number tells how many belong to the carry.
    """
    total = len(flags)
    carried = sum(flags[:num_carry])
    first = [*range(num_carry), *range(total, total + carried)]
    second = [*range(num_carry, total), *range(total + carried, total + sum(flags))]
    return first + second, len(first)


# ---- one loop over examples ----------------------------------------------------------------------


def returned_operands(graph: ClosedGraph) -> tuple[int | None, ...]:
    """Return for each result of a graph which operand it is, if it is one."""
    places: dict[Any, int] = {v: k for k, v in enumerate(graph.jaxpr.invars)}
    return tuple(places.get(v) if isinstance(v, Var) else None for v in graph.jaxpr.outvars)


def kept_whole(
    operands: Values, batched: Sequence[bool], results: Any, origins: Sequence[int | None]
) -> Any:
    """Return results of a rule of batching; those that are an operand of no examples stay that.

    ``origins`` says which operand a result is, whatever branch or turn it comes from.
    """
    outs, flags = list(results[0]), list(results[1])
    for k, origin in enumerate(origins):
        if origin is not None and not batched[origin]:
            outs[k], flags[k] = operands[origin], False
    return outs, tuple(flags)


def one_by_one(
    prim: Primitive, axis: Axis, operands: Values, batched: Sequence[bool], **params: Any
) -> Any:
    """Apply an operation to each example on its own, in a loop over them: a rule of batching.

    The loop carries nothing from turn to turn, so examples may run at the same time.
    """
    avals = [
        x.aval.update(shape=x.aval.shape[1:]) if b else x.aval
        for x, b in zip(operands, batched, strict=True)
    ]
    each = one_equation(prim, tuple(avals), tuple(params.items()))
    # What is the same for all examples comes first.
    graph = rearranged(each, tuple(sorted(range(len(avals)), key=lambda k: batched[k])))
    shared = [x for x, b in zip(operands, batched, strict=True) if not b]
    outs = bind(
        registry["scan"],
        *shared,
        *chosen(batched, operands),
        jaxpr=graph,
        length=int(axis),
        num_consts=len(shared),
        num_carry=0,
        reverse=False,
        unroll=1,
    )
    return outs, (True,) * len(outs)


def over_lanes(choice: Any, like: Any) -> Any:
    """Return a choice for each lane as one for each element of a batch."""
    if choice.ndim == like.ndim:
        return choice
    return broadcast_in_dim(choice, like.shape, (0,))
