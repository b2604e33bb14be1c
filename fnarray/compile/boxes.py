"""Integers that are known as functions of a place are indices, and updates by them are overlays.

`scatter`, `gather`, `dynamic_slice` and their kin take the places that they touch as arrays.
Followed through the reindexings and layouts that made them, most entries are constants, counters
of a range, or elements of another array: reading an index vector back from memory, and testing
what is known to hold, is left to what remains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, cast

import numpy as np

from ..core.forms import Bound, Iota, Map, Overlay, Piece, Pieces, Reindex, Update
from ..core.frozen import frozen
from ..core.graph import Atom, Literal, Var
from ..core.primitive import Primitive
from ..core.symbolic import Ix, LoopVar, bounds, leaves, scalar, substitute, variable
from .ir import Block, Node

Indices = tuple[Any, ...]

#: Arrays of integers of up to this many elements are evaluated, to see whether they are a range:
#: ranges are, before they are spread over an array of index vectors.
_EVALUATED = 1 << 16


def follow_indices(block: Block) -> Block:
    """Make indices of integers that are known, and overlays of the updates that they lead to."""
    follower = _Follower({v: node for node in block.nodes for v in node.outs})
    env: dict[Var, Atom] = {}
    nodes: list[Node] = []
    for old in block.nodes:
        node = follower.followed(follower.divided(old.reading(env)).reading(env))
        if isinstance(node.form, Update):
            box = _box(node, node.form)
            if box is None:  # it lies outside, or is empty
                env[node.out] = node.ins[0]
                continue
            if isinstance(box, Overlay) and isinstance(box.combine, str) and _is_whole(box, node):
                if box.combine == "{1}":
                    env[node.out] = node.ins[1]
                    continue
                box = Map(box.combine)
            node = replace(node, form=box)
        nodes.append(node)
    return block.rebuilt(nodes, env)


#: Quotients, and what makes of one and another number the other.
_QUOTIENTS: Final = frozenset(("sc.div({0}, {1})", "fk.complexmath.div({0}, {1})"))
_SET: Final = frozenset(("{1}", "({0} * {1})"))


def _is_one(atom: Atom) -> bool:
    return isinstance(atom, Literal) and atom.val == 1


# ---- following -----------------------------------------------------------------------------------


@frozen
class _Read:
    """An integer that is known at run time only: an element of a value."""

    atom: Atom
    idx: Indices


class _Follower:
    """Follows reads of integers to what made them."""

    def __init__(self, makers: Mapping[Var, Node]):
        self.makers = makers
        self._known: dict[Var, np.ndarray | None] = {}

    def followed(self, node: Node) -> Node:
        """Return a node that reads no integers but those known at run time only."""
        form = node.form
        if isinstance(form, Reindex):
            counts, kept = node.out.aval.shape, node.ins[:1]
        elif isinstance(form, Update):
            counts, kept = form.extents, (node.ins[0], node.ins[form.value])
        else:
            return node
        if len(node.ins) == len(kept) or 0 in counts:
            return node
        counters = tuple(variable(f"u{d}", n) for d, n in enumerate(counts))
        reads: dict[Ix, _Read] = {}
        moved = False

        def read(k: int, idx: Indices) -> Any:
            nonlocal moved
            found = self.integer(node.ins[k], idx, reads)
            moved |= reads.get(found) != _Read(node.ins[k], idx)
            return found

        at = form.index(counters, read)
        tests: Sequence[Bound] = form.valid(counters, read) if form.valid is not None else ()
        operands = dict.fromkeys(r.atom for r in reads.values())
        moved |= len(kept) + len(operands) < len(node.ins)  # by an index of no integers
        if not moved or node.ins[0] in operands:  # what is updated is not read on the way
            return node
        place = {atom: len(kept) + k for k, atom in enumerate(operands)}
        values = _Values(counts, reads, place)
        new = replace(form, index=values.of(at), valid=values.of_bounds(tests))
        if isinstance(new, Update):
            new = replace(new, value=1)
        return replace(node.taking([*kept, *operands]), form=new)

    def divided(self, node: Node) -> Node:
        """Return a division by ones, but for an element, as the update of that element.

        ``x.at[i].divide(y)`` is traced so: of all elements, each time.
        """
        quotient = node.form.template if isinstance(node.form, Map) else ""
        maker = self.makers.get(cast("Var", node.ins[1])) if quotient in _QUOTIENTS else None
        form = maker.form if maker else None
        if maker is None or not isinstance(form, Update) or form.combine not in _SET:
            return node
        made = self.makers.get(cast("Var", maker.ins[0]))
        repeats = made is not None and isinstance(made.form, Reindex) and made.form.valid is None
        if made is None or not repeats or not _is_one(made.ins[0]) or prod(form.extents) != 1:
            return node
        divided = maker.taking((node.ins[0], *maker.ins[1:]), node.outs)
        return replace(divided, form=replace(form, combine=quotient))

    def integer(self, atom: Atom, idx: Indices, reads: dict[Ix, _Read]) -> Any:
        """Return the integer that a value holds at a place, as an index."""
        if isinstance(atom, Literal):
            return int(atom.val)
        maker = self.makers.get(atom)
        found: Any = None
        if maker is not None:
            form = maker.form
            if isinstance(form, Reindex) and form.valid is None and len(maker.ins) == 1:
                return self.integer(maker.ins[0], form.index(idx, nothing), reads)
            if isinstance(form, Pieces) and (inside := _piece_at(form, idx)) is not None:
                operand, source = inside
                return self.integer(maker.ins[operand], source, reads)
            if isinstance(form, Iota | Map):
                found = self._ranged(atom, idx)
        if found is not None:
            return found
        info = _limits(atom.aval.dtype)
        name = next((r for r, known in reads.items() if known == _Read(atom, idx)), None)
        if name is None:
            name = scalar(f"r{len(reads)}", *info)
            reads[name] = _Read(atom, idx)
        return name

    def _ranged(self, atom: Var, idx: Indices) -> Any:
        """Return an element of a range, a function of its place; None where it is none."""
        values = self._evaluated(atom)
        if values is None or not values.size:
            return None
        first = values[(0,) * values.ndim]
        steps = [
            int(values[tuple(int(a == d) for a in range(values.ndim))] - first) if n > 1 else 0
            for d, n in enumerate(values.shape)
        ]
        line = np.full(values.shape, first)
        for d, (step, n) in enumerate(zip(steps, values.shape, strict=True)):
            along = step * np.arange(n, dtype=np.int64)
            line += np.expand_dims(along, tuple(a for a in range(values.ndim) if a != d))
        if not np.array_equal(line, values):
            return None
        return sum((i * s for i, s in zip(idx, steps, strict=True) if s), int(first))

    def _evaluated(self, atom: Atom) -> np.ndarray | None:
        """Return the integers that a value holds, where constants alone made it."""
        if isinstance(atom, Literal):
            return np.broadcast_to(np.asarray(atom.val), atom.aval.shape)
        if atom not in self._known:
            self._known[atom] = self._evaluate(atom)
        known = self._known[atom]
        return None if known is None else known.astype(np.int64)

    def _evaluate(self, atom: Var) -> np.ndarray | None:
        maker, aval = self.makers.get(atom), atom.aval
        fits = aval.dtype.kind in "iub" and aval.dtype != np.uint64
        if maker is None or not fits or aval.size > _EVALUATED:
            return None
        prim = maker.eqn.primitive
        if not isinstance(maker.form, Map | Iota | Reindex | Pieces):
            return None
        if not isinstance(prim, Primitive):  # pyright: ignore[reportUnnecessaryIsInstance] - added
            return None
        ins: list[np.ndarray] = []
        for operand in maker.ins:
            value = self._evaluated(operand)
            if value is None:
                return None
            ins.append(value.astype(operand.aval.dtype))
        return np.asarray(prim.eval(*ins, **maker.eqn.params))


def nothing(operand: int, index: Any) -> Any:
    """Stand for what is read by a form that reads nothing."""
    raise AssertionError("a reindexing of one operand reads no indices")


def _limits(dtype: np.dtype) -> tuple[int, int] | tuple[()]:
    """Return the smallest and largest integer of a dtype; nothing where no bound is of use."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.itemsize == 8:
        return ()
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _piece_at(form: Pieces, idx: Indices) -> tuple[int, Indices] | None:
    """Return which operand an element is laid out from and where from, if one piece has it all."""
    for piece in form.pieces:
        source = _inside(piece, idx)
        if source is not None:
            return piece.operand, source
    return None


def _inside(piece: Piece, idx: Indices) -> Indices | None:
    source: list[Any] = []
    for ix, start, n, offset, stride in zip(
        idx, piece.start, piece.extents, piece.offset, piece.stride, strict=True
    ):
        low, high = bounds(ix)
        if low < offset or high > offset + (n - 1) * stride or (stride > 1 and low != high):
            return None
        if (low - offset) % stride:
            return None
        source.append(start + (ix - offset if stride == 1 else (low - offset) // stride))
    return tuple(source)


@frozen
class _Values:
    """Index functions from indices in the counters ``u0, u1, ...`` and in what is read.

    Attributes
    ----------
    counts : tuple of int
        Extents of the counters.
    reads : mapping
        What the names stand for that are not counters.
    place : mapping
        Which operand of the node each value is.
    """

    counts: tuple[int, ...]
    reads: Mapping[Ix, _Read]
    place: Mapping[Atom, int]

    def of(self, at: Indices) -> Callable[[Indices, Any], Indices]:
        """Return the index function of some indices."""
        return lambda i, read: tuple(substitute(ix, self._known(i, read, at)) for ix in at)

    def of_bounds(self, tests: Sequence[Bound]) -> Callable[[Indices, Any], Any] | None:
        """Return the tests that are not known to hold as a function of the counters."""
        open_ = tuple(t for t in tests if not _holds(t))
        if not open_:
            return None

        def valid(i: Indices, read: Any) -> tuple[Bound, ...]:
            known = self._known(i, read, tuple(ix for _, ix, _ in open_))
            return tuple((low, substitute(ix, known), high) for low, ix, high in open_)

        return valid

    def _known(self, i: Indices, read: Any, wanted: Indices) -> dict[Any, Any]:
        known: dict[Any, Any] = {
            LoopVar(f"u{d}", n): ix for d, (n, ix) in enumerate(zip(self.counts, i, strict=True))
        }
        needed = {leaf for ix in wanted for leaf in leaves(ix)}
        for name, r in self.reads.items():
            (scalar_,) = name.terms
            if scalar_ in needed:
                at = tuple(substitute(ix, known) for ix in r.idx)
                known[scalar_] = read(self.place[r.atom], at)
        return known


def _holds(test: Bound) -> bool:
    low, ix, high = test
    least, most = bounds(ix)
    return low <= least and most < high


def _fails(test: Bound) -> bool:
    low, ix, high = test
    least, most = bounds(ix)
    return most < low or least >= high


# ---- overlays ------------------------------------------------------------------------------------


def _is_whole(box: Overlay, node: Node) -> bool:
    """Whether an update replaces every element by the one in its place: ``x.at[:].set(y)``."""
    shape = node.out.aval.shape
    places = zip(shape, box.axes, box.offset, box.stride, strict=True)
    return box.extents == shape and all(
        n == 1 or (axis, offset, stride) == (d, 0, 1)
        for d, (n, axis, offset, stride) in enumerate(places)
    )


def _box(node: Node, form: Update) -> Update | Overlay | Map | None:
    """Return an update as an overlay, or a map of a number; None if it updates nothing."""
    if 0 in form.extents:
        return None
    operand = node.ins[0]
    if len(node.ins) > 2 or isinstance(operand, Literal):
        return form
    if not operand.aval.shape:
        whole = not form.extents and form.valid is None
        return Map(form.combine) if whole and isinstance(form.combine, str) else form
    counters = tuple(variable(f"u{d}", n) for d, n in enumerate(form.extents))
    tests: Sequence[Bound] = form.valid(counters, nothing) if form.valid is not None else ()
    if any(map(_fails, tests)):
        return None
    if not all(map(_holds, tests)):
        return form
    lines = lines_of(form.index(counters, nothing))
    if lines is None:
        return form
    used = sorted(a for a in lines.axes if a is not None)
    if used != [d for d, n in enumerate(form.extents) if n > 1]:
        return form  # elements repeat: the order counts
    return Overlay(form.extents, lines.axes, lines.offset, lines.stride, form.combine)


@frozen
class Lines:
    """Places along each axis of an array, by counters ``u0, u1, ...`` of another.

    Index ``offset[d] + stride[d] * u[axes[d]]``, or ``offset[d]`` where ``axes[d]`` is None.
    """

    axes: tuple[int | None, ...]
    offset: tuple[int, ...]
    stride: tuple[int, ...]


def lines_of(idx: Indices) -> Lines | None:
    """Return what indices are where each has one counter at most, and nothing that is read."""
    offset: list[int] = []
    stride: list[int] = []
    axes: list[int | None] = []
    for ix in idx:
        if isinstance(ix, int):
            offset.append(ix)
            stride.append(1)
            axes.append(None)
            continue
        ((atom, step), *rest) = ix.terms.items()
        if rest or not isinstance(atom, LoopVar):
            return None
        offset.append(ix.const)
        stride.append(step)
        axes.append(int(atom.name[1:]))
    return Lines(tuple(axes), tuple(offset), tuple(stride))
