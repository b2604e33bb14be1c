"""How a ``scan`` is transformed: into scans of transformed bodies.

Operands and inputs of the body come as constants, carry, rows; each rule keeps that order, what it
adds to a part after what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from ..core.graph import ClosedGraph, eval_graph
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import closed_over_nothing, independent, rearranged
from ..core.tangents import Undefined, Zero, chosen, is_undefined, is_zero, nonzero, with_zeros
from ..core.trace import bind, recording
from ..ops._derive import add_tangents, instantiate, moveaxis, spread
from ..transforms.batch import Axis
from ..transforms.graphs import (
    Derived,
    Flags,
    batch_graph,
    jvp_graph,
    linearize_graph,
)
from ..transforms.transpose import backward

__all__: list[str] = []


def parts(items: Sequence[Any], num_consts: int, num_carry: int) -> tuple[Any, Any, Any]:
    """Split operands, or what belongs to them, into those of constants, carry and rows."""
    end = num_consts + num_carry
    return items[:num_consts], items[num_consts:end], items[end:]


def either(a: Sequence[bool], b: Sequence[bool]) -> Flags:
    """Join flags."""
    return tuple(x or y for x, y in zip(a, b, strict=True))


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


# ---- forward -------------------------------------------------------------------------------------


def _jvp(prim: Primitive) -> Any:
    def jvp(
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedGraph,
        num_consts: int,
        num_carry: int,
        **params: Any,
    ) -> Any:
        n, rows = len(primals), len(jaxpr.out_avals) - num_carry

        d, active = settled(
            partial(jvp_graph, jaxpr), nonzero(tangents), num_consts, num_carry, rows
        )
        k = len(d.consts)
        order, sizes = _interleaved(n, k, active, num_consts, num_carry)
        results, (carried, _) = _result_order(d.flags, num_carry, rows)
        duals = [instantiate(t) for t in chosen(active, tangents)]
        operands = [*d.consts, *primals, *duals]
        outs = bind(
            prim,
            *d.consts,
            *(operands[i] for i in order),
            jaxpr=rearranged(d.graph, (*range(k), *order), tuple(results)),
            num_consts=k + sizes[0],
            num_carry=carried,
            **params,
        )
        where = dict(zip(results, outs, strict=True))
        total = num_carry + rows
        values = [where[i] for i in range(total)]
        found = [where[i] for i in range(total, total + sum(d.flags))]
        return values, with_zeros(d.flags, found, [v.aval for v in values])

    return jvp


def _result_order(flags: Flags, num_carry: int, rows: int) -> tuple[list[int], tuple[int, int]]:
    """Return results (carry, rows, tangents of both) as carry with tangents, rows with tangents."""
    total = num_carry + rows
    carried = sum(flags[:num_carry])
    first = [*range(num_carry), *range(total, total + carried)]
    second = [*range(num_carry, total), *range(total + carried, total + sum(flags))]
    return first + second, (len(first), len(second))


# ---- reverse -------------------------------------------------------------------------------------


def _linearize(prim: Primitive) -> Any:
    def linearize(
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedGraph,
        num_consts: int,
        num_carry: int,
        **params: Any,
    ) -> Any:
        total = len(jaxpr.out_avals)

        d, active = settled(
            partial(linearize_graph, jaxpr),
            nonzero(tangents),
            num_consts,
            num_carry,
            total - num_carry,
        )
        consts, carry, xs = parts(primals, num_consts, num_carry)
        fixed = [*d.primal.consts, *consts]
        # A residual computed from constants alone is the same at every turn: computed once, before.
        invariant, before = independent(d.primal.graph, len(fixed))
        once = iter(eval_graph(before.jaxpr, (), fixed, bind))
        constant = {k: next(once) for k, f in enumerate(invariant) if f}
        # Residuals that are parts of the carry are rows of results, like those computed.
        rows = [k for k in range(total, len(invariant)) if not invariant[k]]
        shift = len(d.primal.consts)
        end = num_consts + num_carry
        carried = [r for r in d.residuals if isinstance(r, int) and num_consts <= r < end]
        outs = bind(
            prim,
            *fixed,
            *carry,
            *xs,
            jaxpr=rearranged(
                d.primal.graph,
                tuple(range(len(fixed) + num_carry + len(xs))),
                (*range(total), *rows, *(-1 - shift - r for r in carried)),
            ),
            num_consts=len(fixed),
            num_carry=num_carry,
            **params,
        )
        stacked = dict(zip([*rows, *(("carry", r) for r in carried)], outs[total:], strict=True))
        return outs[:total], _linear_scan(
            prim, d, active, tangents, primals, constant, stacked, num_consts, num_carry, params
        )

    return linearize


def _linear_scan(
    prim: Primitive,
    d: Any,
    active: Flags,
    tangents: Sequence[Any],
    primals: Sequence[Any],
    constant: dict[Any, Any],
    stacked: dict[Any, Any],
    num_consts: int,
    num_carry: int,
    params: dict[str, Any],
) -> list[Any]:
    """Bind the scan of the linear body on tangents; return the tangents of all results."""
    total = len(d.flags)
    computed = iter(range(total, total + len(d.residuals)))
    fixed: list[tuple[int, Any]] = []
    by_row: list[tuple[int, Any]] = []
    for number, r in enumerate(d.residuals):
        if r is None:
            k = next(computed)
            target, value = (fixed, constant[k]) if k in constant else (by_row, stacked[k])
        elif not isinstance(r, int) or r < num_consts:
            target, value = fixed, primals[r] if isinstance(r, int) else r
        elif r < num_consts + num_carry:
            target, value = by_row, stacked["carry", r]
        else:
            target, value = by_row, primals[r]
        target.append((number, value))

    first = len(d.residuals)
    numbers = iter(range(first, first + sum(active)))
    duals = [(next(numbers), instantiate(t)) for t, a in zip(tangents, active, strict=True) if a]
    counts = [sum(p) for p in parts(active, num_consts, num_carry)]
    of_consts, of_carry, of_rows = parts(duals, counts[0], counts[1])
    order = [*fixed, *of_consts, *of_carry, *by_row, *of_rows]
    outs = bind(
        prim,
        *(value for _, value in order),
        jaxpr=rearranged(d.linear, tuple(number for number, _ in order)),
        num_consts=len(fixed) + len(of_consts),
        num_carry=len(of_carry),
        **params,
    )
    out_avals = d.primal.graph.out_avals[:total]
    found = iter(outs)
    length = params["length"]
    return [
        next(found) if f else Zero(a if k < num_carry else a.update(shape=(length, *a.shape)))
        for k, (f, a) in enumerate(zip(d.flags, out_avals, strict=True))
    ]


def _transpose(prim: Primitive) -> Any:
    def transpose(
        cts: Sequence[Any],
        *operands: Any,
        jaxpr: ClosedGraph,
        num_consts: int,
        num_carry: int,
        reverse: bool,
        **params: Any,
    ) -> list[Any]:
        consts, _, xs = parts(operands, num_consts, num_carry)
        linear_consts = tuple(map(is_undefined, consts))
        linear_xs = tuple(map(is_undefined, xs))
        given = nonzero(cts[num_carry:])
        d = _transposed_body(jaxpr, linear_consts, num_carry, linear_xs, given)
        sums, rows = d.flags[: sum(linear_consts)], d.flags[sum(linear_consts) :]
        known = [x for x in consts if not is_undefined(x)]
        zeros = [instantiate(Zero(x.aval)) for x in chosen(linear_consts, consts)]
        start = [*chosen(sums, zeros), *(instantiate(c) for c in cts[:num_carry])]
        outs = bind(
            prim,
            *d.consts,
            *known,
            *start,
            *(x for x in xs if not is_undefined(x)),
            *chosen(given, cts[num_carry:]),
            jaxpr=d.graph,
            num_consts=len(d.consts) + len(known),
            num_carry=len(start),
            reverse=not reverse,
            **params,
        )
        found = iter(outs)
        of_consts = iter([next(found) if f else None for f in sums])
        of_carry = [next(found) for _ in range(num_carry)]
        of_rows = iter([next(found) if f else None for f in rows])
        return [
            *(next(of_consts) if f else None for f in linear_consts),
            *of_carry,
            *(next(of_rows) if f else None for f in linear_xs),
        ]

    return transpose


@lru_cache(maxsize=4096)
def _transposed_body(
    jaxpr: ClosedGraph, consts: Flags, num_carry: int, xs: Flags, given: Flags
) -> Derived:
    """Return the body of the transposed scan.

    Its constants are the known ones, its carry the sums of the linear constants' cotangents and the
    cotangents of the carry, its rows the known ones and the cotangents of results. ``flags`` says
    which of the sums, and which cotangents of rows, are not zero.
    """
    flags: list[bool] = []
    const_avals, carry_avals, x_avals = parts(jaxpr.in_avals, len(consts), num_carry)
    rows = chosen(given, jaxpr.out_avals[num_carry:])

    def unknown(avals: Any, linear: Flags, known: Any) -> list[Any]:
        return [Undefined(a) if f else next(known) for a, f in zip(avals, linear, strict=True)]

    def cotangents(known: Any, known_rows: Any, carry: list[Any], ys: Any) -> list[Any]:
        operands = [
            *unknown(const_avals, consts, known),
            *map(Undefined, carry_avals),
            *unknown(x_avals, xs, known_rows),
        ]
        outs = [
            next(ys) if f else Zero(a)
            for a, f in zip(jaxpr.out_avals[num_carry:], given, strict=True)
        ]
        return backward(jaxpr.jaxpr, jaxpr.consts, operands, [*carry, *outs])

    with recording(jaxpr.jaxpr.debug_name) as trace:

        def arguments(avals: Any) -> list[Any]:
            return [trace.argument(a, "a cotangent") for a in avals]

        known = arguments(a for a, f in zip(const_avals, consts, strict=True) if not f)
        carry = arguments(carry_avals)
        known_rows = arguments(a for a, f in zip(x_avals, xs, strict=True) if not f)
        ys = arguments(rows)
        found = cotangents(iter(known), iter(known_rows), carry, iter(ys))
        of_consts, of_carry, of_xs = parts(found, len(consts), num_carry)
        of_consts, of_xs = chosen(consts, of_consts), chosen(xs, of_xs)
        flags = [not is_zero(c) for c in (*of_consts, *of_xs)]
        sums = arguments(c.aval for c in of_consts if not is_zero(c))
        added = [
            add_tangents(s, c)
            for s, c in zip(sums, [c for c in of_consts if not is_zero(c)], strict=True)
        ]
        outs = [*added, *map(instantiate, of_carry), *(c for c in of_xs if not is_zero(c))]
        invars = [a.var for a in (*known, *sums, *carry, *known_rows, *ys)]
        graph = trace.close(invars, outs)
    return Derived(closed_over_nothing(graph), graph.consts, tuple(flags))


# ---- batch ---------------------------------------------------------------------------------------


def spread_where(
    needed: Sequence[bool], has: Sequence[bool], xs: Sequence[Any], axis: Axis
) -> list[Any]:
    """Give values the mapped axis where it is needed and they have it not."""
    return [spread(x, axis) if n and not h else x for x, n, h in zip(xs, needed, has, strict=True)]


def _batch(prim: Primitive) -> Any:
    def batch(
        axis: Axis,
        operands: Sequence[Any],
        batched: Flags,
        *,
        jaxpr: ClosedGraph,
        num_consts: int,
        num_carry: int,
        **params: Any,
    ) -> Any:
        rows = len(jaxpr.out_avals) - num_carry

        def make(flags: Flags, forced: Flags) -> Derived:
            return batch_graph(jaxpr, flags, axis, forced)

        d, flags = settled(make, batched, num_consts, num_carry, rows)
        consts, carry, xs = parts(operands, num_consts, num_carry)
        _, was, _ = parts(batched, num_consts, num_carry)
        _, needed, row_flags = parts(flags, num_consts, num_carry)
        outs = bind(
            prim,
            *d.consts,
            *consts,
            *spread_where(needed, was, carry, axis),
            # Rows are taken along their first axis, so the mapped axis is their second.
            *(moveaxis(x, 0, 1) if f else x for x, f in zip(xs, row_flags, strict=True)),
            jaxpr=d.graph,
            num_consts=len(d.consts) + num_consts,
            num_carry=num_carry,
            **params,
        )
        done = [
            moveaxis(o, 1, 0) if k >= num_carry and f else o
            for k, (o, f) in enumerate(zip(outs, d.flags, strict=True))
        ]
        return done, d.flags

    return batch


JVP, LINEARIZE, TRANSPOSE, BATCH = map(RuleOf, (_jvp, _linearize, _transpose, _batch))
