"""A second trace, compared with the first: what analysis of the source cannot see."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ..core.array import ArrayImpl
from ..core.callables import is_a
from ..core.graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var
from ..errors import NondeterminismError


def compare(first: ClosedGraph, second: ClosedGraph, who: str) -> None:
    """Raise unless two traces of one function are the same program.

    Raises
    ------
    NondeterminismError
        Naming the first equation that differs, and the lines both come from.
    """
    found = difference(first, second)
    if found:
        raise NondeterminismError(
            f"{who} was traced twice, as config.check_determinism asks, and the two programs "
            f"differ: {found}\n  The function depends on something besides its arguments: chance, "
            "time, order, or state that it changes. Pass it as an argument."
        )


def difference(first: ClosedGraph, second: ClosedGraph) -> str:
    """Say how two graphs differ, constants by content; "" for graphs that do the same."""
    return _difference(first.jaxpr, second.jaxpr) or _constants(first, second)


def _difference(a: Graph, b: Graph) -> str:
    """Say how the first differing equation differs; "" for graphs that do the same."""
    numbers: tuple[dict[Var, int], dict[Var, int]] = ({}, {})
    for graph, number in zip((a, b), numbers, strict=True):
        for var in (*graph.constvars, *graph.invars):
            number[var] = len(number)

    def same(x: Atom, y: Atom) -> bool:
        if isinstance(x, Literal) and isinstance(y, Literal):
            return x.aval == y.aval and x.val.tobytes() == y.val.tobytes()
        return numbers[0].get(x) == numbers[1].get(y) is not None  # type: ignore[arg-type]

    for x, y in zip(a.eqns, b.eqns, strict=False):
        shape = x.primitive is y.primitive and len(x.invars) == len(y.invars)
        if not shape or not all(map(same, x.invars, y.invars)):
            return _shown(x, y)
        if inner := _params_differ(x.params, y.params):
            return _shown(x, y) if inner is True else inner
        for u, v in zip(x.outvars, y.outvars, strict=True):
            numbers[0][u] = numbers[1][v] = len(numbers[0])
    if len(a.eqns) != len(b.eqns):
        longer, name = (a, "first") if len(a.eqns) > len(b.eqns) else (b, "second")
        extra = longer.eqns[min(len(a.eqns), len(b.eqns))]
        return f"{extra.primitive} at {extra.source} is in the {name} trace only."
    if len(a.outvars) != len(b.outvars) or not all(map(same, a.outvars, b.outvars)):
        return "the same operations are returned differently."
    return ""


def _params_differ(a: dict[str, Any], b: dict[str, Any]) -> str | bool:
    """Say whether parameters differ, and where, for the graphs among them."""
    if a.keys() != b.keys():
        return True
    for key, x in a.items():
        y = b[key]
        xs, ys = (v if isinstance(v, tuple) else (v,) for v in (x, y))
        if len(xs) != len(ys):
            return True
        for u, v in zip(xs, ys, strict=True):
            if isinstance(u, ClosedGraph) and isinstance(v, ClosedGraph):
                if inner := difference(u, v):
                    return inner
            elif not (u is v or (_calls_the_same(u, v) if callable(u) else bool(u == v))):
                return True
    return False


def _calls_the_same(u: Any, v: Any) -> bool:
    """Say whether two callables run the same code: those that a trace makes are new each time."""
    one, two = (getattr(w, "runs", w) for w in (u, v))
    if is_a(one, types.FunctionType) and is_a(two, types.FunctionType):
        return one.__code__ == two.__code__
    return type(one) is type(two)


def _shown(x: Eqn, y: Eqn) -> str:
    numbers = [
        f"{u.val}, then {v.val}"
        for u, v in zip(x.invars, y.invars, strict=False)
        if isinstance(u, Literal) and isinstance(v, Literal) and u.val.tobytes() != v.val.tobytes()
    ]
    if x.primitive is y.primitive:
        other = f"another number, {numbers[0]}" if numbers else "other operands or parameters"
        what = f"{x.primitive} with {other}"
    else:
        what = f"{x.primitive}, then {y.primitive}"
    lines = [
        f"    {name}: {e.source}  {e.source.text()}" for name, e in (("first", x), ("then", y))
    ]
    return "\n".join([f"{what}:", *lines])


def _constants(a: ClosedGraph, b: ClosedGraph) -> str:
    for var, x, y in zip(a.jaxpr.constvars, a.consts, b.consts, strict=True):
        if x is not y and isinstance(x, ArrayImpl) and isinstance(y, ArrayImpl):
            one, two = np.asarray(x), np.asarray(y)
            if one.dtype != two.dtype or one.tobytes() != two.tobytes():
                user = next((e for e in a.jaxpr.eqns if var in e.invars), None)
                at = "" if user is None else f"\n    used at: {user.source}  {user.source.text()}"
                kind, values = x.aval.str_short(), _first(one, two)
                return f"a constant of type {kind} has other values{values}.{at}"
    return ""


def _first(one: np.ndarray, two: np.ndarray) -> str:
    """Say what the first value is that differs, of arrays of one type."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return ""
    a, b = (np.frombuffer(v.tobytes(), np.uint8).reshape(one.size, -1) for v in (one, two))
    where = np.unravel_index(int((a != b).any(axis=1).argmax()), one.shape)
    at = f", at {[int(i) for i in where]}" if where else ""
    return f": {one[where]}, then {two[where]}{at}"
