"""Steps of the driver: library calls, and control flow that holds one, run from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from ...core.forms import Branch, Inline, Lanes, Library, Scan, While, form_of, is_product
from ...core.graph import ClosedGraph
from ...core.quiet import quietly
from ...core.surgery import rearranged
from ...threads.onethread import one_thread
from ..ir import Node
from ..schedule.select import CONTROL, is_library
from ..schedule.work import is_brief, products_of, turn_work
from ..target import Limits, weighed
from .launch import threads, together

Run = Callable[..., Sequence[np.ndarray]]
#: Kernels whose size is the order of a matrix.
_MATRICES: Final = frozenset(("linalg", "lapack", "exponential"))


def step_of(node: Node, limits: Limits, compiled: Callable[[ClosedGraph], Run]) -> Run:
    """Return what the driver calls for a step; results are contiguous and as declared.

    Parameters
    ----------
    compiled : callable
        Gives what runs a graph on NumPy arrays, for control flow that is stepped through.
    """
    form, prim, params = node.form, node.eqn.primitive, node.eqn.params
    if isinstance(form, CONTROL):
        return _control(node, compiled)
    if is_product(form):
        from .product import product_step  # which many programs do not need

        return product_step(form, [a.aval for a in node.ins], node.out.aval, limits)
    dtypes = [v.aval.dtype for v in node.outs]

    def step(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        if prim.quiet:
            outs = quietly(prim.eval, *arrays, **params)
        else:
            outs = prim.eval(*arrays, **params)
        outs = outs if prim.multiple_results else (outs,)
        return tuple(np.asarray(o, d, order="C") for o, d in zip(outs, dtypes, strict=True))

    if isinstance(form, Library) and form.op.module in ("host", "lapack"):
        from .lapack import stacked  # which few programs need

        return stacked(node, limits, step) or step
    if isinstance(form, Library) and form.op.module == "conv":
        from .convolve import convolution  # which few programs need

        return convolution(node, limits) or _shared(node, form, step, limits)
    return step


def _shared(node: Node, form: Library, step: Run, limits: Limits) -> Run:
    """Return a convolution whose images are shared out to threads, or left to one if they are few.

    BLAS's own threads wait for each other in each product of patches: beside other processes the
    gradients of one by 3 x 3 took 700 ms, and 4 where the cores were free; a net of eleven small
    ones with its gradient took 1,200 ms, and 160.
    """
    prim, params = node.eqn.primitive, node.eqn.params
    layout, dtype, shape = params["dimension_numbers"], node.out.aval.dtype, node.out.aval.shape
    images, axis = int(layout.lhs_spec[0]), int(layout.out_spec[0])
    count = shape[axis]
    products = (form.flops or 0) // 2
    if products < 2 * limits.share:
        return _alone(step)
    if params["batch_group_count"] > 1:
        return step

    def shared(lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, ...]:
        parts = min(threads(), products // limits.share, count)
        out: np.ndarray[Any, Any] = np.empty(shape, dtype)
        cuts: list[int] = [count * k // parts for k in range(parts + 1)]

        def part(k: int) -> None:
            some = slice(cuts[k], cuts[k + 1])
            taken = lhs[(slice(None),) * images + (some,)]
            out[(slice(None),) * axis + (some,)] = quietly(prim.eval, taken, rhs, **params)

        with one_thread:
            together(part, parts)
        return (out,)

    return shared


def _alone(step: Run) -> Run:
    def alone(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        with one_thread:
            return step(*arrays)

    return alone


def is_step(node: Node, limits: Limits) -> bool:
    """Whether a node is NumPy's or LAPACK's: it has no kernel, or a worse one."""
    form = node.form
    if isinstance(form, Library):
        return not form.kernel or _better_on_host(node, limits)
    if isinstance(form, CONTROL):
        if isinstance(form, Scan) and not form.num_carry and not is_brief(node, limits):
            return True  # a watched loop, whose rows threads share: its blocks are, one by one
        return not is_native(form, limits) or _is_heavy(node, limits)
    # Smaller products a kernel hands to BLAS itself: two of 32 x 32 cost the driver 8 us of 23.
    return is_library(node, limits) and _multiplications(node) > limits.serial


def _is_heavy(node: Node, limits: Limits) -> bool:
    """Whether a turn of a loop, or of one inside of it, is worth more than one thread."""
    form = node.form
    if isinstance(form, Lanes) or (isinstance(form, Scan) and not form.num_carry):
        return False  # its lanes or rows are shared out
    if isinstance(form, While | Scan) and turn_work(node.bodies[-1]) >= limits.turn:
        return True
    return any(
        _is_heavy(n, limits) for b in node.bodies for n in b.nodes if isinstance(n.form, CONTROL)
    )


def _multiplications(node: Node) -> int:
    return weighed(products_of(node), node.out.aval.dtype)


def _better_on_host(node: Node, limits: Limits) -> bool:
    """Whether a library step outside of loops is better left to NumPy or LAPACK."""
    form = node.form
    family = form.op.module
    if family == "lapack":
        from .lapack import is_shared  # which few programs need

        return form.size > limits.matrix or is_shared(node) or not lapack_is_known()
    if family in ("linalg", "exponential"):
        return form.size > limits.matrix
    if family == "fft":
        return form.size <= limits.transform
    if form.op.function in ("top_k", "top_few"):
        return form.statics[-1] > limits.few
    return family in ("sort", "conv")  # NumPy's SIMD sort, products of patches by BLAS


def is_native(form: Any, limits: Limits) -> bool:
    """Whether a form, with every step of the graphs it holds, can run inside a kernel."""
    if isinstance(form, Library):
        family = form.op.module
        large = family in _MATRICES and form.size > limits.matrix_inside
        return form.kernel and not large and (family != "lapack" or lapack_is_known())
    graphs = (graph.jaxpr for graph in graphs_of(form))
    return all(is_native(form_of(eqn), limits) for graph in graphs for eqn in graph.eqns)


@cache
def lapack_is_known() -> bool:
    """Whether this process has LAPACK's routines for kernels to call."""
    from .native import blas  # which few programs need

    return blas.lapack("sgesdd") is not None


def graphs_of(form: Any) -> tuple[ClosedGraph, ...]:
    """Return the graphs a form holds."""
    if isinstance(form, Inline):
        return (form.graph,)
    if isinstance(form, Branch):
        return form.branches
    if isinstance(form, While):
        return (form.cond, form.body)
    if isinstance(form, Lanes):
        return (form.lane,)
    return (form.body,) if isinstance(form, Scan) else ()


def _control(node: Node, compiled: Callable[[ClosedGraph], Run]) -> Run:
    """Return a function that runs a control step from Python.

    Parameters
    ----------
    compiled : callable
        Gives what runs a graph on NumPy arrays.
    """
    form = node.form
    if isinstance(form, Scan):
        from ..turning import graphs_of_turns  # which few programs need

        bodies = graphs_of_turns(node)
        turns = {n: _turn(body, form.num_carry, compiled) for n, body in bodies.items()}
        return lambda *args: _own(_scan(form, turns, args, node), args)
    runs = [compiled(g) for g in graphs_of(form)]
    if isinstance(form, Branch):

        def chosen(which: np.ndarray, *rest: np.ndarray) -> Sequence[np.ndarray]:
            return _own(runs[min(max(int(which), 0), len(runs) - 1)](*rest), rest)

        return chosen
    return lambda *args: _own(_while(form, runs[0], runs[1], args), args)


def _own(outs: Sequence[np.ndarray], operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Return results that share no array, since a later step may write over one of them."""
    seen = set(map(id, operands))
    own: list[np.ndarray] = []
    for x in outs:
        own.append(x.copy() if id(x) in seen else x)
        seen.add(id(x))
    return own


def _while(form: While, cond: Run, body: Run, args: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    nc, nb = form.cond_nconsts, form.body_nconsts
    carry: Sequence[np.ndarray] = args[nc + nb :]
    while cond(*args[:nc], *carry)[0]:
        carry = body(*args[nc : nc + nb], *carry)
    return carry


def _turn(graph: ClosedGraph, num_carry: int, compiled: Callable[..., Run]) -> Run:
    """Return what runs a turn; it takes the places of its rows as well, after its operands."""
    operands, rows = len(graph.in_avals), graph.out_avals[num_carry:]
    taking = rearranged(graph, (*range(operands), *rows))
    given = tuple((operands + k, num_carry + k) for k in range(len(rows)))
    return compiled(taking, given=given)


def _scan(
    form: Scan, turns: dict[int, Run], args: Sequence[np.ndarray], node: Node
) -> Sequence[np.ndarray]:
    from ..turning import count, rows_of

    nk, nc = form.num_consts, form.num_carry
    consts, carry, xs = args[:nk], args[nk : nk + nc], args[nk + nc :]
    ys = [np.empty(v.aval.shape, v.aval.dtype) for v in node.outs[nc:]]
    places: list[np.ndarray] = []
    for t in rows_of(form):
        places = [y[t, ...] for y in ys]
        # A row of a rank-1 array is a NumPy scalar, which is no buffer: hence asarray.
        rows = (np.asarray(x[t], order="C") for x in xs)
        outs = turns[count(t)](*consts, *carry, *rows, *places)
        carry = outs[:nc]
        for place, row in zip(places, outs[nc:], strict=True):
            if row is not place:
                place[...] = row
    # A value that is carried and stacked as well may lie in the stack.
    within = set(map(id, places))
    return (*(c.copy() if id(c) in within else c for c in carry), *ys)
