"""Loop nests: one stored result each, with its loops, its output index and what it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.forms import Contract, Reduce
from ...core.graph import Var
from ...core.symbolic import LoopVar, variable
from ..simplify import Node
from .access import AccessWalk, Indices


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop: its extent, and whether iterations are folded into one result (``reduced``)."""

    extent: int
    reduced: bool = False


@dataclass(eq=False, slots=True)
class Nest:
    """A loop nest that computes the results of one node.

    Parameters
    ----------
    node : Node
    loops : tuple of Loop
        Outermost first; loops of one iteration are left out.
    out, inner : tuple of index
        Index of the result, and of the folded space, in the counters ``L0, L1, ...``.
    in_memory : bool
        Whether accumulators are elements of the result rather than scalars: set when a result's
        axis runs inside a folded one.
    """

    node: Node
    loops: tuple[Loop, ...]
    out: Indices
    inner: Indices = ()
    in_memory: bool = False
    reads: dict[Var, set[Indices]] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)

    @property
    def parallel_depth(self) -> int:
        """Number of leading loops that are not folded."""
        for k, loop in enumerate(self.loops):
            if loop.reduced:
                return k
        return len(self.loops)


@dataclass(eq=False, slots=True)
class Step:
    """A node that is not a loop nest: an update, a layout of pieces, a call, control flow."""

    node: Node
    reads: dict[Var, set[Indices]] = field(default_factory=dict)


Statement = Nest | Step


def counter(k: int, extent: int) -> Any:
    """Return the counter of a nest's loop ``k``."""
    return variable(f"L{k}", extent)


def counter_var(k: int, extent: int) -> LoopVar:
    """Return the atom of that counter."""
    return LoopVar(f"L{k}", extent)


def contraction(node: Node) -> Reduce:
    """Return a contraction as a reduction of products."""
    form = node.form
    lhs, rhs = (a.aval for a in node.ins)
    lhs_free = [a for a in range(lhs.ndim) if a not in (*form.lhs_contract, *form.lhs_batch)]
    rhs_free = [a for a in range(rhs.ndim) if a not in (*form.rhs_contract, *form.rhs_batch)]
    nb, nl = len(form.lhs_batch), len(lhs_free)

    def place(rank: int, parts: list[tuple[Any, Any]]) -> Indices:
        at: dict[int, Any] = {}
        for axes, idx in parts:
            at.update(zip(axes, idx, strict=True))
        return tuple(at[a] for a in range(rank))

    def lhs_index(o: Indices, r: Indices) -> Indices:
        parts = [(form.lhs_batch, o[:nb]), (lhs_free, o[nb : nb + nl]), (form.lhs_contract, r)]
        return place(lhs.ndim, parts)

    def rhs_index(o: Indices, r: Indices) -> Indices:
        parts = [(form.rhs_batch, o[:nb]), (rhs_free, o[nb + nl :]), (form.rhs_contract, r)]
        return place(rhs.ndim, parts)

    dtype = node.out.aval.dtype
    wide = register_name(dtype)
    if dtype.kind == "b":
        term, combine = "({0} and {1})", "({a0} or {x0})"
    else:
        left, right = (_cast(node, k) for k in (0, 1))
        term = f"sc.mul({left}, {right})" if dtype.kind in "iu" else f"({left} * {right})"
        combine = "({a0} + {x0})" if dtype.kind == "c" else "sc.radd({a0}, {x0})"
    return Reduce(
        extents=tuple(lhs.shape[a] for a in form.lhs_contract),
        index=(lhs_index, rhs_index),
        inits=(0,),
        combine=(combine,),
        terms=(term,),
        dtypes=(np.dtype(np.float32),) if wide != dtype.name else None,
    )


def _cast(node: Node, k: int) -> str:
    """Return the template of an operand of a contraction in the dtype of its result."""
    have, want = node.ins[k].aval.dtype, node.out.aval.dtype
    operand = f"{{{k}}}"
    if register_name(have) == register_name(want) or want.kind == "c":
        return operand
    return f"sc.to_{register_name(want)}({operand})"


def register_name(dtype: np.dtype) -> str:
    """Return the name of the type that holds a dtype's values in registers: halves are widened."""
    return "float32" if dtype.name in ("float16", "bfloat16") else dtype.name


def reduction_of(node: Node) -> Reduce | None:
    """Return a node's form as a reduction, if it is one."""
    form = node.form
    if isinstance(form, Contract):
        return contraction(node)
    return form if isinstance(form, Reduce) else None


def make_nest(node: Node, producer: dict[Var, Node]) -> Nest:
    """Return the nest of a node, its loops ordered so that the innermost runs along memory."""
    shape = node.out.aval.shape
    form = reduction_of(node) or node.form
    if not isinstance(form, Reduce):
        order = [("o", a) for a in range(len(shape))]
    else:
        order = _reduction_order(node, form)
    nest = _with_order(node, form, order)
    _analyse(nest, form, producer)
    return nest


def _reduction_order(node: Node, form: Reduce) -> list[tuple[str, int]]:
    out_rank = len(node.out.aval.shape)
    plain = [("o", a) for a in range(out_rank)] + [("r", a) for a in range(len(form.extents))]
    single = len(form.combine) == 1 if isinstance(form.combine, tuple) else False
    half = node.out.aval.dtype.itemsize == 2 and node.out.aval.dtype.kind in "fV"
    if not single or half or form.dtypes is not None:
        return plain
    if form.axes is not None:
        rank = out_rank + len(form.extents)
        o, r = iter(range(out_rank)), iter(range(len(form.extents)))
        natural = [("r", next(r)) if a in form.axes else ("o", next(o)) for a in range(rank)]
        # Folding a short leading axis element by element in memory costs less than striding.
        last_is_kept = out_rank and rank - 1 not in form.axes
        return natural if last_is_kept and node.out.aval.shape[-1] > 1 else plain
    if isinstance(node.form, Contract):
        rhs = node.ins[1].aval
        along = rhs.ndim - 1 not in (*node.form.rhs_contract, *node.form.rhs_batch)
        if along and out_rank and node.out.aval.shape[-1] > 1:
            return plain[: out_rank - 1] + plain[out_rank:] + [plain[out_rank - 1]]
    return plain


def _with_order(node: Node, form: Any, order: list[tuple[str, int]]) -> Nest:
    shape = node.out.aval.shape
    extents = form.extents if isinstance(form, Reduce) else ()
    loops: list[Loop] = []
    out: list[Any] = [0] * len(shape)
    inner: list[Any] = [0] * len(extents)
    for which, axis in order:
        extent = (shape if which == "o" else extents)[axis]
        if extent == 1:
            continue
        index = counter(len(loops), extent)
        loops.append(Loop(extent, which == "r"))
        (out if which == "o" else inner)[axis] = index
    kinds = [loop.reduced for loop in loops]
    in_memory = any(a and not b for a, b in pairwise(kinds))
    return Nest(node, tuple(loops), tuple(out), tuple(inner), in_memory)


def _analyse(nest: Nest, form: Any, producer: dict[Var, Node]) -> None:
    walk = AccessWalk({v: n for v, n in producer.items() if n is not nest.node})
    node = nest.node
    if isinstance(form, Reduce):
        for operand, index in zip(node.ins, form.index, strict=False):
            walk.visit(operand, index(nest.out, nest.inner))
        for operand in node.ins[len(form.index) :]:
            walk.visit(operand, ())
        if form.valid is not None:
            walk.values.extend(ix for _, ix, _ in form.valid(nest.out, nest.inner))
        if any("{r" in t for t in form.terms):
            walk.values.extend(nest.inner)
    else:
        own = AccessWalk({**producer, node.out: node})
        own.visit(node.out, nest.out)
        walk = own
    nest.reads = walk.reads
    nest.values = walk.values
