"""What a function costs, as JAX counts it for whoever schedules kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...api.tracing import make_jaxpr
from ...core import tree
from ...core.avals import ShapedArray
from ...core.graph import Eqn, Graph, subgraphs
from ._blocks import CostEstimate

__all__: list[str] = []

_ONE = frozenset("add mul sub div min max or and xor neg floor ceil round not".split())  # noqa: SIM905
_TRANSCENDENTAL = frozenset(
    "cos sin tan sinh cosh tanh acos asin atan exp log logistic sqrt".split()  # noqa: SIM905
)


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """Return what a function costs: operations on elements, and bytes that go in and out.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        Arrays, or what has their shapes and dtypes.

    Returns
    -------
    CostEstimate
        Bodies of loops count once, branches all.
    """
    given = [ShapedArray(x.shape, x.dtype) for x in tree.leaves((args, kwargs))]
    graph = make_jaxpr(fun)(*args, **kwargs).jaxpr
    flops, transcendentals = _counts(graph)
    return CostEstimate(
        flops, transcendentals, sum(map(_bytes, (*given, *(v.aval for v in graph.outvars))))
    )


def _bytes(aval: ShapedArray) -> int:
    return math.prod(aval.shape) * aval.dtype.itemsize


def _counts(graph: Graph) -> tuple[int, int]:
    counts = [_of(eqn) for eqn in graph.eqns]
    return sum(a for a, _ in counts), sum(b for _, b in counts)


def _of(eqn: Eqn) -> tuple[int, int]:
    name = eqn.primitive.name
    inner = [_counts(g) for g in subgraphs(eqn.params)]
    if inner:
        return sum(a for a, _ in inner), sum(b for _, b in inner)
    size = math.prod(eqn.outvars[0].aval.shape) if eqn.outvars else 0
    if name == "dot_general":
        (lhs, _), _ = eqn.params["dimension_numbers"]
        return 2 * size * math.prod(eqn.invars[0].aval.shape[k] for k in lhs), 0
    if name == "integer_pow":
        power = abs(eqn.params["y"])
        return size * (power.bit_length() - 1 + power.bit_count() if power > 1 else 0), 0
    return (size, 0) if name in _ONE else (0, size if name in _TRANSCENDENTAL else 0)
