"""Loop nests: one stored result each, with its loops, its output index and what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ...core.contraction import free_axes
from ...core.dtypes import is_half
from ...core.forms import Contract, Overlay, Reduce
from ...core.frozen import frozen
from ...core.graph import Var
from ...core.symbolic import Ix, LoopVar, Opaque, bounds, clamp, leaves, substitute, variable
from ..ir import Block, Node
from ..simplify import copy_of
from ..target import Limits, LoopAxis, Target
from .access import AccessWalk, Indices, row_major

#: Iterations of a loop from which on it matters whether it runs along memory.
_LONG = 16


@frozen
class Loop:
    """One loop: its extent, and whether iterations are folded into one result (``reduced``)."""

    extent: int
    reduced: bool = False


@frozen(eq=False)
class Nest:
    """A loop nest that computes the results of one node.

    Parameters
    ----------
    node : Node
    fold : Reduce or None
        What is folded, where the node is a reduction or a contraction.
    loops : tuple of Loop
        Outermost first; loops of one iteration are left out.
    out, inner : tuple of index
        Index of the result, and of the folded space or of an overlay's box, in the counters ``L0,
        L1, ...``.
    in_memory : bool
        Whether accumulators are elements of the result rather than scalars: set when a result's
        axis runs inside a folded one.
    abreast : int or None
        The result's axis that has no loop: its few elements are folded side by side, each in a
        scalar of its own. Its place in `out` is that of the first.
    reads : mapping
        For each stored value, the indices at which it is read.
    values : tuple of index
        Indices that are used as values, which pin the loops' shape.
    """

    node: Node
    fold: Reduce | None
    loops: tuple[Loop, ...]
    out: Indices
    inner: Indices = ()
    in_memory: bool = False
    abreast: int | None = None
    reads: Mapping[Var, set[Indices]] = field(default_factory=dict[Var, set[Indices]])
    values: tuple[Any, ...] = ()

    @property
    def parallel_depth(self) -> int:
        """Number of leading loops that are not folded."""
        for k, loop in enumerate(self.loops):
            if loop.reduced:
                return k
        return len(self.loops)

    @property
    def overlaps(self) -> bool:
        """Whether loops come to some elements twice: those of a last strip (see `_in_strips`)."""
        atoms = [atom for ix in self.out if isinstance(ix, Ix) for atom in ix.terms]
        return any(isinstance(atom, Opaque) for atom in atoms)

    def places(self, out: Indices) -> list[Indices]:
        """Return the places that are folded side by side, given the first one's."""
        axis = self.abreast
        if axis is None:
            return [out]
        size = self.node.out.aval.shape[axis]
        return [(*out[:axis], k, *out[axis + 1 :]) for k in range(size)]


@frozen(eq=False)
class Step:
    """A node that is not a loop nest: an update, a layout of pieces, a call, control flow.

    Attributes
    ----------
    bodies : tuple of Selection
        The statements of the blocks that the node holds.
    """

    node: Node
    reads: Mapping[Var, set[Indices]]
    bodies: tuple[Selection, ...] = ()


Statement = Nest | Step


@frozen(eq=False)
class Selection:
    """What a block computes by statements of its own, and what is written into their loops.

    Attributes
    ----------
    block : Block
    statements : tuple of Statement
        In the block's order.
    inlined : mapping
        Nodes that are written into their readers, by result.
    unrolled : frozenset of Statement
        Statements whose loops are written out.
    twofold : frozenset of Var
        Results of overlays that become what they are laid over, a loop's carry, in its next turn:
        they go to a second array, which is the same around the box.
    """

    block: Block
    statements: tuple[Statement, ...]
    inlined: Mapping[Var, Node]
    unrolled: frozenset[Statement]
    twofold: frozenset[Var] = frozenset()


def counter(k: int, extent: int) -> Any:
    """Return the counter of a nest's loop ``k``."""
    return variable(f"L{k}", extent)


def counter_var(k: int, extent: int) -> LoopVar:
    """Return the atom of that counter."""
    return LoopVar(f"L{k}", extent)


def contraction(node: Node) -> Reduce:
    """Return a contraction as a reduction of products."""
    form: Contract = node.form
    lhs, rhs = (a.aval for a in node.ins)
    lhs_free = free_axes(lhs.ndim, form.lhs_contract, form.lhs_batch)
    rhs_free = free_axes(rhs.ndim, form.rhs_contract, form.rhs_batch)
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


def takes_turns(fold: Reduce | None) -> bool:
    """Whether a fold of many numbers is one into several, or by a function: without vectors.

    What is dear is computed in a loop of its own: 300 draws of 400 categories took 3.7 ms, most of
    it logarithms of one number each, and takes 0.63.
    """
    if fold is None or prod(fold.extents) < _LONG:
        return False
    return not isinstance(fold.combine, tuple) or len(fold.combine) > 1


def make_nest(node: Node, producer: Mapping[Var, Node], target: Target) -> Nest:
    """Return the nest of a node, its loops in the target's order."""
    if isinstance(node.form, Overlay):
        return make_overlay(node, producer)
    fold = reduction_of(node)
    order, abreast = list(target.loop_order(node, fold)), None
    if fold is not None and _is_narrow(node, fold, order, target.limits.abreast):
        _, abreast = order.pop()
    nest = _with_accesses(_with_order(node, fold, order, abreast), producer)
    if (strips := _in_strips(nest, target.limits)) is not None:
        return _with_accesses(strips, producer)
    if target.limits.abreast and (runs := _in_runs(nest)) is not None:
        return _with_accesses(runs, producer)
    # A GPU's accumulators are registers, and neighbours in memory are other threads'.
    inner = _along_memory(nest) if target.limits.abreast else None
    if inner is None:
        return nest
    sizes = {"o": node.out.aval.shape, "r": fold.extents if fold is not None else ()}
    kept = [(which, axis) for which, axis in order if sizes[which][axis] > 1]
    order = [*kept[:inner], *kept[inner + 1 :], kept[inner]]
    return _with_accesses(_with_order(node, fold, order, None), producer)


def _along_memory(nest: Nest) -> int | None:
    """Return the loop over a result's axis that reads along memory, where the folded one does not.

    A sum over a transposed operand is one: what is read may be known only here.
    """
    fold, loops = nest.fold, nest.loops
    if nest.abreast is not None or not loops or not folds_in_memory(nest.node, fold):
        return None
    if fold is None or fold.valid is not None:
        return None
    if not loops[-1].reduced or loops[-1].extent < _LONG or not jumps(nest, len(loops) - 1):
        return None
    for k in reversed(range(nest.parallel_depth)):
        if loops[k].extent >= _LONG and not jumps(nest, k):
            return k
    return None


def _in_strips(nest: Nest, limits: Limits) -> Nest | None:
    """Return a nest whose last loop goes across rows of what it reads, in strips of a cache line.

    A strip's rows are read to their ends before the next is begun, so that each line of memory is
    fetched once. The transpose of 1,024 rows and columns took 8 ms, whose lines share 64 places of
    the nearest cache, and takes 1; of 2,048 66, and 19. All other loops are around that: the last
    axis of (256, 64, 64) takes 1.1 ms to the front where a strip goes through the others, and 0.5.
    The last strip of a length that is no multiple of it ends where the axis does, over part of the
    one before: those elements are computed twice.
    """
    if nest.fold is not None or len(nest.loops) < 2:
        return None
    *outer, last = nest.loops
    width = 8 if last.extent % 16 == 8 or last.extent < 64 else 16
    if last.extent < 2 * width:
        return None
    atoms = [counter_var(k, loop.extent) for k, loop in enumerate(nest.loops)]
    along: set[int] = set()
    for var, places in nest.reads.items():
        size = var.aval.size * var.aval.dtype.itemsize
        if size < limits.strips:
            continue
        # Shorter rows are worth it from half a strip's width on, beyond the nearest caches: 90,000
        # of 8 float64 took 450 us and take 205, 2,500 of 7 are a tenth slower.
        least = width + 1 if size < 6 * limits.strips else width // 2
        strides = row_major(var.aval.shape)
        for idx in places:
            offset: Any = sum((i * s for i, s in zip(idx, strides, strict=True)), 0)
            if isinstance(offset, Ix) and offset.terms.get(atoms[-1], 0) >= least:
                along.update(k for k in range(len(outer)) if offset.terms.get(atoms[k]) == 1)
    if not along:
        return None
    k = min(along)
    strip, inside = Loop(-(-last.extent // width)), Loop(width)
    others = [i for i in range(len(outer)) if i != k]
    loops = (*(outer[i] for i in others), strip, outer[k], inside)
    place = {i: at for at, i in enumerate((*others, None, k))}
    moved = [counter(place[i], loop.extent) for i, loop in enumerate(outer)]
    first = clamp(counter(len(others), strip.extent) * width, 0, last.extent - width)
    across = first + counter(len(outer) + 1, width)
    at: dict[Any, Any] = dict(zip(atoms, [*moved, across], strict=True))
    return replace(nest, loops=loops, out=tuple(substitute(ix, at) for ix in nest.out))


def _in_runs(nest: Nest) -> Nest | None:
    """Return a nest whose last loop is cut where what it reads goes on elsewhere.

    So reads a reshape of a transpose: quotients and remainders of the counter by the length of a
    run are the counters of two loops, of which the inner one goes along memory. Heads side by side
    again, 8 x 256 x 32, took 22 us, number by number, and take 7. So does a sum over all of a
    stencil's rows as one vector: `vdot` of 200 x 200 numbers and their five-point sums took 99 us.
    """
    if not nest.loops or nest.abreast is not None:
        return None
    *outer, last = nest.loops
    if last.reduced != (nest.fold is not None):
        return None
    atom = counter_var(len(outer), last.extent)
    whole = Ix({atom: 1})
    terms = {
        t
        for p in nest.reads.values()
        for idx in p
        for ix in idx
        if isinstance(ix, Ix)
        for t in ix.terms
        if isinstance(t, Opaque)
    }
    cuts = {t.args[1] for t in terms if t.kind != "clamp" and t.args[0] == whole}
    length = cuts.pop() if len(cuts) == 1 else 0
    if length < _LONG or last.extent % length or last.extent == length:
        return None
    runs = last.extent // length
    loops = (*outer, replace(last, extent=runs), replace(last, extent=length))
    at: dict[Any, Any] = {
        atom: counter(len(outer), runs) * length + counter(len(outer) + 1, length)
    }
    out, inner = (tuple(substitute(ix, at) for ix in place) for place in (nest.out, nest.inner))
    return replace(nest, loops=loops, out=out, inner=inner)


def folds_in_memory(node: Node, fold: Reduce | None) -> bool:
    """Whether accumulators may be elements of the result: one for each, of no wider dtype."""
    if fold is None or not isinstance(fold.combine, tuple) or len(fold.combine) != 1:
        return False
    return fold.dtypes is None and not is_half(node.out.aval.dtype)


def jumps(nest: Nest, k: int) -> bool:
    """Whether a loop goes through what is read otherwise than along memory."""
    atom = counter_var(k, nest.loops[k].extent)
    for var, places in nest.reads.items():
        strides = row_major(var.aval.shape)
        for idx in places:
            offset: Any = sum((i * s for i, s in zip(idx, strides, strict=True)), 0)
            moves = atom in leaves(offset)
            if moves and abs(offset.terms.get(atom, 2)) > 1:
                return True
    return False


def _with_accesses(nest: Nest, producer: Mapping[Var, Node]) -> Nest:
    walk = _accesses(nest, producer)
    return replace(nest, reads=walk.reads, values=tuple(walk.values))


def _is_narrow(node: Node, fold: Reduce, order: Sequence[LoopAxis], most: int) -> bool:
    """Whether of the result's axes only the last, of few elements, runs inside folded ones."""
    if not order:
        return False
    *outer, (which, axis) = order
    sizes = {"o": node.out.aval.shape, "r": fold.extents}
    kinds = [w for w, a in outer if sizes[w][a] > 1]
    last = which == "o" and 1 < node.out.aval.shape[axis] <= most
    return last and "r" in kinds and kinds == sorted(kinds)


def make_overlay(node: Node, producer: Mapping[Var, Node]) -> Nest:
    """Return the nest of an overlay, in the order of the axes of what it replaces."""
    form: Overlay = node.form
    order = [a for a in form.axes if a is not None]
    box: list[Any] = [0] * len(form.extents)
    for k, axis in enumerate(order):
        box[axis] = counter(k, form.extents[axis])
    loops = tuple(Loop(form.extents[a]) for a in order)
    nest = Nest(node, None, loops, form.index(tuple(box)), tuple(box))
    return _with_accesses(nest, producer)


def over_copy(node: Node, producer: Mapping[Var, Node]) -> tuple[Nest, Nest]:
    """Return the nests of an overlay that must not be put over its operand, but over a copy."""
    copy = copy_of(node.ins[0], node.eqn.source)
    nest = _with_order(copy, None, plain_order(copy, None), None)
    over = make_overlay(node.taking((copy.out, *node.ins[1:])), producer)
    return _with_accesses(nest, producer), over


def overwrites_reads(nest: Statement) -> bool:
    """Whether an overlay overwrites elements that later turns of its loops may read."""
    box = nest.node.ins[0]
    assert isinstance(nest, Nest)
    assert isinstance(box, Var)
    return not all(idx == nest.out or _disjoint(idx, nest.out) for idx in nest.reads[box])


def _disjoint(a: Indices, b: Indices) -> bool:
    """Whether two places are different whatever the counters."""
    ranges = ((bounds(i), bounds(j)) for i, j in zip(a, b, strict=True))
    return any(high < least or most < low for (low, high), (least, most) in ranges)


def plain_order(node: Node, fold: Reduce | None) -> list[LoopAxis]:
    """Return the result's axes, then the folded ones."""
    folded = fold.extents if fold is not None else ()
    kept = [("o", a) for a in range(len(node.out.aval.shape))]
    return [*kept, *(("r", a) for a in range(len(folded)))]


def _with_order(
    node: Node, fold: Reduce | None, order: Sequence[LoopAxis], abreast: int | None
) -> Nest:
    shape = node.out.aval.shape
    extents = fold.extents if fold is not None else ()
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
    return Nest(node, fold, tuple(loops), tuple(out), tuple(inner), in_memory, abreast)


def _accesses(nest: Nest, producer: Mapping[Var, Node]) -> AccessWalk:
    node, fold = nest.node, nest.fold
    walk = AccessWalk(producer)
    if isinstance(node.form, Overlay):
        walk.visit(node.ins[0], nest.out)
        walk.visit(node.ins[1], nest.inner)
        return walk
    if fold is None:
        walk.enter(node, nest.out)
        return walk
    for out in nest.places(nest.out):
        for operand, index in zip(node.ins, fold.index, strict=False):
            walk.visit(operand, index(out, nest.inner))
        if fold.valid is not None:
            walk.values.extend(ix for _, ix, _ in fold.valid(out, nest.inner))
    for operand in node.ins[len(fold.index) :]:
        walk.visit(operand, ())
    if any("{r" in t for t in fold.terms):
        walk.values.extend(nest.inner)
    return walk
