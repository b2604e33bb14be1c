"""How a ``scan`` is transformed: into scans of transformed bodies.

Operands and inputs of the body come as constants, carry, rows; each rule keeps that order, what it
adds to a part after what was there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.graph import ClosedGraph, eval_graph
from ..core.keep import remembered
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import closed_over_nothing, independent, rearranged
from ..core.tangents import Undefined, Zero, chosen, is_undefined, is_zero, nonzero
from ..core.trace import bind, recording
from ..ops.kit.rules import add_tangents, instantiate
from ..transforms.graphs import Derived, Flags, linearize_graph
from ..transforms.transpose import backward
from ._looping import Looping, parts, settled

__all__: list[str] = []


def _turned(
    params: dict[str, Any], body: ClosedGraph, num_consts: int, num_carry: int
) -> dict[str, Any]:
    return {**params, "jaxpr": body, "num_consts": num_consts, "num_carry": num_carry}


FAMILY = Looping("jaxpr", lambda params: (0, params["num_consts"], params["num_carry"]), _turned)


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
        params.pop("watch", None)  # it was told how far the loop is: the linear one begins anew
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
    backwards = _backwards(prim)

    def transpose(
        cts: Sequence[Any],
        *operands: Any,
        jaxpr: ClosedGraph,
        num_consts: int,
        num_carry: int,
        **params: Any,
    ) -> list[Any]:
        linear = tuple(map(is_undefined, operands))
        fixed, before, body = _known_carry(jaxpr, linear, num_consts, num_carry)
        consts, carry, xs = parts(operands, num_consts, num_carry)
        moving = [not f for f in fixed]
        rows: list[Any] = []
        if any(fixed):
            # What nothing linear reaches, such as the number of the turn, is computed first.
            known = [x for x in consts if not is_undefined(x)]
            given = [x for x in xs if not is_undefined(x)]
            sizes = {"num_consts": len(known), "num_carry": sum(fixed)}
            start = chosen(fixed, carry)
            outs = bind(prim, *known, *start, *given, jaxpr=before, **sizes, **params)
            rows = outs[sum(fixed) :]
        found = backwards(
            [*chosen(moving, cts[:num_carry]), *cts[num_carry:]],
            *consts,
            *chosen(moving, carry),
            *xs,
            *rows,
            jaxpr=body,
            num_consts=num_consts,
            num_carry=sum(moving),
            **params,
        )
        of_consts, of_carry, of_xs = parts(found, num_consts, sum(moving))
        each = iter(of_carry)
        return [*of_consts, *(next(each) if m else None for m in moving), *of_xs[: len(xs)]]

    return transpose


@remembered(4096)
def _known_carry(
    jaxpr: ClosedGraph, linear: Flags, num_consts: int, num_carry: int
) -> tuple[Flags, ClosedGraph, ClosedGraph]:
    """Return which parts of the carry no linear operand reaches, and the bodies without and with.

    The first body computes them alone, and gives what they were as rows; the second takes those as
    rows, after its own.
    """
    of_consts, of_carry, of_xs = parts(range(len(linear)), num_consts, num_carry)
    known = [k for k in of_carry if not linear[k]]
    while True:
        moving = [k for k in of_carry if k not in known]
        ins = [k for k in (*of_consts, *known, *of_xs) if not linear[k]]
        others = [k for k in range(len(linear)) if k not in ins]
        flags, before = independent(rearranged(jaxpr, (*ins, *others)), len(ins))
        after = [k for k in known if flags[k - num_consts]]
        if after == known:
            break
        known = after
    places = {k: n for n, k in enumerate(k for k, f in enumerate(flags) if f)}
    results = [*(places[k - num_consts] for k in known), *(-1 - ins.index(k) for k in known)]
    number = len(flags)
    return (
        tuple(k in known for k in of_carry),
        rearranged(before, tuple(range(len(ins))), tuple(results)),
        rearranged(
            jaxpr,
            (*of_consts, *moving, *of_xs, *known),
            (*(k - num_consts for k in moving), *range(num_carry, number)),
        ),
    )


def _backwards(prim: Primitive) -> Any:
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
        zeros = [instantiate(Zero(x.aval.of_cotangents())) for x in chosen(linear_consts, consts)]
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


@remembered(4096)
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
    of_rows = [a.of_cotangents() for a in jaxpr.out_avals[num_carry:]]
    rows = chosen(given, of_rows)

    def unknown(avals: Any, linear: Flags, known: Any) -> list[Any]:
        return [Undefined(a) if f else next(known) for a, f in zip(avals, linear, strict=True)]

    def cotangents(known: Any, known_rows: Any, carry: list[Any], ys: Any) -> list[Any]:
        operands = [
            *unknown(const_avals, consts, known),
            *map(Undefined, carry_avals),
            *unknown(x_avals, xs, known_rows),
        ]
        outs = [next(ys) if f else Zero(a) for a, f in zip(of_rows, given, strict=True)]
        return backward(jaxpr.jaxpr, jaxpr.consts, operands, [*carry, *outs])

    with recording(jaxpr.jaxpr.debug_name) as trace:

        def arguments(avals: Any) -> list[Any]:
            return [trace.argument(a, "a cotangent") for a in avals]

        known = arguments(a for a, f in zip(const_avals, consts, strict=True) if not f)
        carry = arguments(a.of_cotangents() for a in carry_avals)
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
        invars = [a.atom for a in (*known, *sums, *carry, *known_rows, *ys)]
        graph = trace.close(invars, outs)
    return Derived(closed_over_nothing(graph), graph.consts, tuple(flags))


LINEARIZE, TRANSPOSE = map(RuleOf, (_linearize, _transpose))
