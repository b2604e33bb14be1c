"""``linear_call``: a linear function whose transpose its author gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import tree
from ..core.avals import ShapedArray
from ..core.axes import Axis
from ..core.graph import ClosedGraph
from ..core.tangents import chosen, is_undefined, nonzero, with_zeros
from ..core.trace import bind
from ..ops.kit.rules import add_tangents, instantiate, spread
from ..transforms.graphs import Derived, batch_graph, jvp_graph, runner
from ._bodies import Holding, common, holding
from .signature import Signature, abstract, fun_text, spec_of_call
from .tracing import Traced, traced

__all__: list[str] = []

Flags = tuple[bool, ...]
Values = Sequence[Any]


def _bind(callee: ClosedGraph, transpose: ClosedGraph, num_res: int, operands: Values) -> list[Any]:
    return bind(linear_call_p, *operands, callee=callee, transpose=transpose, num_res=num_res)


def _jvp(primals: Values, tangents: Values, *, callee: Any, transpose: Any, num_res: int) -> Any:
    outs = _bind(callee, transpose, num_res, primals)
    avals = [x.aval for x in outs]
    res, lin = nonzero(tangents[:num_res]), nonzero(tangents[num_res:])
    duals: list[Any] = with_zeros((False,) * len(outs), (), avals)
    if any(lin):
        given = [instantiate(t) for t in tangents[num_res:]]
        duals = _bind(callee, transpose, num_res, [*primals[:num_res], *given])
    if any(res):  # residuals may be differentiated: of that the transpose says nothing
        active = (*res, *(False,) * len(lin))
        d = jvp_graph(callee, active)
        run = [*d.consts, *primals, *chosen(active, tangents)]
        found = runner(d.graph)(*run)[len(outs) :]
        duals = list(map(add_tangents, duals, with_zeros(d.flags, found, avals)))
    return outs, duals


def _transpose(cts: Values, *operands: Any, callee: Any, transpose: Any, num_res: int) -> list[Any]:
    given = [instantiate(ct) for ct in cts]
    found = _bind(transpose, callee, num_res, [*operands[:num_res], *given])
    linear = operands[num_res:]
    return [
        *(None for _ in range(num_res)),
        *(ct if is_undefined(x) else None for ct, x in zip(found, linear, strict=True)),
    ]


def _batch(
    axis: Axis, operands: Values, batched: Flags, *, callee: Any, transpose: Any, num_res: int
) -> Any:
    # Linear operands are batched all, and so are results: the transpose need not sum any.
    lin = [
        x if b else spread(x, axis)
        for x, b in zip(operands[num_res:], batched[num_res:], strict=True)
    ]
    res = batched[:num_res]
    flags = []
    for graph in (callee, transpose):
        ins = (*res, *(True,) * (len(graph.in_avals) - num_res))
        flags.append(batch_graph(graph, ins, axis, (True,) * len(graph.out_avals)))
    consts, (forward, back) = common(flags)
    outs = _bind(forward, back, num_res + len(consts), [*consts, *operands[:num_res], *lin])
    return outs, (True,) * len(outs)


linear_call_p = holding(
    "linear_call",
    Holding("callee"),
    jvp=_jvp,
    linearize=_jvp,
    transpose=_transpose,
    batch=_batch,
)


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
) -> Any:
    """Call a function that is linear in its second argument, with a transpose that is given.

    Parameters
    ----------
    fun : callable
        ``fun(residual_args, linear_args)``.
    fun_transpose : callable
        ``fun_transpose(residual_args, cotangents)``, to cotangents like ``linear_args``. What it is
        the transpose of is not checked.
    residual_args, linear_args : pytrees

    Raises
    ------
    TypeError
        What ``fun_transpose`` returns is not like ``linear_args``.
    """
    res, lin = tree.leaves(residual_args), tree.leaves(linear_args)
    forward = _traced(fun, residual_args, linear_args)
    shapes = forward.out_spec.unflatten([_Like(a) for a in forward.closed.out_avals])
    backward = _traced(fun_transpose, residual_args, shapes)
    wanted = [abstract(x) for x in lin]
    got = backward.closed.out_avals
    if len(got) != len(wanted) or any(
        (a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(got, wanted, strict=True)
    ):
        raise TypeError(
            f"linear_call: {fun_text(fun_transpose)} must return values like linear_args, "
            f"{[a.str_short() for a in wanted]}, got {[a.str_short() for a in got]}."
        )
    held, graphs = common([_derived(forward), _derived(backward)])
    ours, theirs = graphs
    outs = _bind(ours, theirs, len(held) + len(res), [*held, *res, *lin])
    return forward.out_spec.unflatten(outs)


class _Like:
    """Stands for an array of an aval."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, aval.weak_type


def _traced(fun: Callable[..., Any], res: Any, lin: Any) -> Traced:
    avals = tuple(map(abstract, tree.leaves((res, lin))))
    return traced(fun, Signature(spec_of_call(res, lin), avals), user="linear_call")


def _derived(t: Traced) -> Derived:
    return Derived(t.closed, tuple(t.consts), ())
