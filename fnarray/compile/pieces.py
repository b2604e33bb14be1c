"""Arrays laid out of pieces that those who read them can read where the pieces lie.

What is one array turned round along an axis is read at the remainder of a place there; what is laid
out of few pieces is chosen from, element by element, on targets where a choice costs little.
What is padded, or replaced in a box, for one reader is read under a mask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

import numpy as np

from ..core.avals import ShapedArray
from ..core.forms import Iota, Map, Operand, Overlay, Piece, Pieces, Reduce, Reindex
from ..core.graph import Atom, Eqn, Literal, Var
from ..core.symbolic import leaves, scalar, variable
from .ir import AddedStep, Block, Node, users_of
from .stacks import taken_apart
from .target import Limits

_PIECE: Any = AddedStep("piece")
_CHOICE: Any = AddedStep("choice")
#: Bytes of the smallest numbers that every processor with masks reads under one.
_MASKED: Final = 4
_ROTATED: Any = AddedStep("rotated")


def read_pieces(block: Block, limits: Limits) -> Block:
    """Write what is laid out of pieces into its readers, where they can read the pieces."""
    if limits.abreast:
        block = taken_apart(block, limits)
    makers = {v: node for node in block.nodes for v in node.outs}
    users, outputs = users_of(block.nodes), set(block.outputs)
    masked = _Masked(makers, users, limits.masked)
    turns = _Turns(makers, limits.rotated)
    nodes: list[Node] = []
    for was in block.nodes:
        node = was.reading(turns.env)
        makers.update(dict.fromkeys(node.outs, node))
        once = outputs.isdisjoint(node.outs) and _reads_once(node, users, limits)
        if isinstance(node.form, Overlay):
            covered = once and _is_covered(node) and masked.is_cheap(node.ins[1])
            nodes.append(_covering(node) if covered else node)
            continue
        if not isinstance(node.form, Pieces) or any(
            max(p.stride, default=1) > 1 for p in node.form.pieces
        ):
            nodes.append(node)
            continue
        read = outputs.isdisjoint(node.outs) and all(
            isinstance(u.form, Map | Reindex | Reduce) for u in users.get(node.out, ())
        )
        few = 0 < len(node.form.pieces) <= limits.pieces
        few = few and all(_is_given(a, makers) for a in node.ins)
        padded = once and _is_padded(node) and all(map(masked.is_cheap, node.ins))
        if read and (few or padded):
            nodes += _choices(node)
        else:
            nodes += turns.read(node, where_it_lies=read)
    return block.rebuilt(nodes, turns.env)


class _Turns:
    """Arrays that are turned round along an axis, and what stands for them.

    Turns along different axes may be taken in any order. One along the last axis is laid out, so
    it is taken first: its corners and edges share it, as an average of eight neighbours does two
    arrays laid out for six.

    Attributes
    ----------
    env : dict
        What else to read in place of a value.
    """

    def __init__(self, makers: dict[Var, Node], least: int):
        self.env: dict[Var, Atom] = {}
        self._makers = makers
        self._least = least
        self._laid: dict[tuple[Atom, int, int], Var] = {}

    def read(self, node: Node, *, where_it_lies: bool) -> list[Node]:
        """Return the nodes that stand for what is laid out of pieces, if any.

        Parameters
        ----------
        where_it_lies : bool
            Whether readers can compute where an element lies.
        """
        number = self._number(node)
        if number is not None:
            made = self._makers[node.out] = replace(
                node.taking((number,)), form=Reindex(lambda i, read: ())
            )
            return [made]
        turn = _turn(node, self._makers)
        if turn is None:
            return [node]
        array, axis, by = turn
        if prod(array.aval.shape[axis + 1 :]) >= self._least or self._is_apart(array, axis):
            return [self._rotated(node, turn)] if where_it_lies else [node]
        around: list[Node] = []
        while isinstance(array, Var) and (maker := self._makers.get(array)) is not None:
            if maker.eqn.primitive is not _ROTATED or not where_it_lies:
                break
            around.append(maker)
            array = maker.ins[0]
        nodes: list[Node] = []
        laid = self._laid.get((array, axis, by))
        if laid is None:
            made = _laid_out(node, array, axis, by) if around else node
            nodes.append(made)
            laid = self._laid[array, axis, by] = made.out
        elif not around:
            self.env[node.out] = laid
        for maker in reversed(around):
            last = maker is around[0]
            result = node.out if last else Var(node.out.aval)
            params = maker.eqn.params
            nodes.append(
                self._rotated(node.taking((), (result,)), (laid, params["axis"], params["by"]))
            )
            laid = result
        return nodes

    def _is_apart(self, array: Atom, axis: int) -> bool:
        """Whether neighbours along an axis lie apart, as those of a column: no vectors of them."""
        maker = self._makers.get(array) if isinstance(array, Var) else None
        if maker is None or not isinstance(maker.form, Reindex) or maker.form.valid is not None:
            return False
        i = tuple(variable(f"i{a}", n) for a, n in enumerate(array.aval.shape))
        at = maker.form.index(i, lambda k, idx: scalar(f"data{k}"))
        along = leaves(i[axis])
        return bool(at) and not along & leaves(at[-1]) and any(along & leaves(ix) for ix in at)

    def _rotated(self, node: Node, turn: tuple[Atom, int, int]) -> Node:
        """Return the reindexing that stands for a node: an array, the axis, and by how much."""
        array, axis, by = turn
        n = array.aval.shape[axis]

        def index(i: Any, read: Any) -> Any:
            return (*i[:axis], (i[axis] + (n - by)) % n, *i[axis + 1 :])

        eqn = Eqn(_ROTATED, (array,), node.outs, {"axis": axis, "by": by}, node.eqn.source)
        made = self._makers[node.out] = Node(eqn, Reindex(index))
        return made

    def _number(self, node: Node) -> Atom | None:
        """Return the number that all pieces repeat, if it is one."""
        form: Pieces = node.form
        arrays = {_box(node.ins[p.operand], self._makers)[0] for p in form.pieces}
        if form.fill is not None or len(arrays) != 1:
            return None
        (array,) = arrays
        maker = self._makers.get(array) if isinstance(array, Var) else None
        if maker is None or not isinstance(maker.form, Reindex) or maker.form.valid is not None:
            return None
        return maker.ins[0] if not maker.ins[0].aval.shape and len(maker.ins) == 1 else None


def _laid_out(node: Node, array: Atom, axis: int, by: int) -> Node:
    """Return what lays out another array, turned round as the node's."""
    shape = array.aval.shape
    pieces: list[Piece] = []
    for start, offset, extent in ((shape[axis] - by, 0, by), (0, by, shape[axis] - by)):
        at, to = [0] * len(shape), [0] * len(shape)
        at[axis], to[axis] = start, offset
        extents = (*shape[:axis], extent, *shape[axis + 1 :])
        pieces.append(Piece(len(pieces), tuple(at), extents, tuple(to), (1,) * len(shape)))
    eqn = replace(node.eqn, invars=(array, array), outvars=(Var(node.out.aval),))
    return Node(eqn, Pieces(tuple(pieces)))


def _turn(node: Node, makers: Mapping[Var, Node]) -> tuple[Atom, int, int] | None:
    """Return the array that two pieces turn round, along which axis and by how much, if they do."""
    form: Pieces = node.form
    shape = node.out.aval.shape
    if len(form.pieces) != 2 or form.fill is not None:
        return None
    axis = max(range(len(shape)), key=lambda a: form.pieces[1].offset[a])
    whole = [n for a, n in enumerate(shape) if a != axis]
    starts: list[int] = []
    arrays: list[Atom] = []
    for piece in form.pieces:
        atom, at = _box(node.ins[piece.operand], makers)
        at = tuple(low + start for low, start in zip(at, piece.start, strict=True))
        rest = [n for a, n in enumerate(piece.extents) if a != axis]
        if atom.aval.shape != shape or rest != whole or any((*at[:axis], *at[axis + 1 :])):
            return None
        starts.append(at[axis])
        arrays.append(atom)
    n, first = shape[axis], form.pieces[0].extents[axis]
    met = form.pieces[0].offset[axis] == 0 and form.pieces[1].offset[axis] == first
    if arrays[0] is not arrays[1] or not met or (*starts,) != (n - first, 0):
        return None
    return arrays[0], axis, first


def _box(atom: Atom, makers: Mapping[Var, Node]) -> tuple[Atom, tuple[int, ...]]:
    """Return the array that a box was cut of, and where it begins there; itself if of none."""
    rank = len(atom.aval.shape)
    start = (0,) * rank
    while isinstance(atom, Var) and atom in makers:
        maker = makers[atom]
        form = maker.form
        if not isinstance(form, Reindex) or form.valid is not None or len(maker.ins) != 1:
            break
        i = tuple(variable(f"i{a}", max(n, 2)) for a, n in enumerate(atom.aval.shape))
        found = form.index(i, _unread)
        if len(found) != rank:
            break
        low = tuple(ix - k for ix, k in zip(found, i, strict=True))
        if not all(isinstance(k, int) for k in low):
            break
        atom, start = maker.ins[0], tuple(s + k for s, k in zip(start, low, strict=True))
    return atom, start


def _unread(operand: int, index: Any) -> Any:
    raise AssertionError("a box of one array reads no indices")


def _reads_once(node: Node, users: Mapping[Var, Sequence[Node]], limits: Limits) -> bool:
    """Whether one elementwise operation can read an array under a mask.

    Several, or one at several places, find it laid out once.
    """
    if not limits.padded or not isinstance(node.form, Pieces | Overlay):
        return False
    aval, readers = node.out.aval, users.get(node.out, ())
    if aval.dtype.itemsize < _MASKED or not aval.shape or aval.shape[-1] < limits.padded:
        return False
    if len(readers) != 1 or not isinstance(readers[0].form, Map):
        return False
    return sum(a is node.out for a in readers[0].ins) == 1


def _is_padded(node: Node) -> bool:
    """Whether an array is most of another, with a number around."""
    form: Pieces = node.form
    if len(form.pieces) != 1 or form.fill is None or not isinstance(node.ins[form.fill], Literal):
        return False
    return 2 * prod(form.pieces[0].extents) >= node.out.aval.size


def _is_covered(node: Node) -> bool:
    """Whether most of an array is replaced by a box, in its order."""
    form: Overlay = node.form
    shape = node.out.aval.shape
    plain = form.combine == "{1}" and form.axes == (*range(len(shape)),)
    return plain and {*form.stride} == {1} and 2 * prod(form.extents) >= prod(shape)


class _Masked:
    """What may be computed under a mask.

    Attributes
    ----------
    most : int
        Additions that are, for each element.
    """

    def __init__(self, makers: Mapping[Var, Node], users: Mapping[Var, Sequence[Node]], most: int):
        self.most = most
        self._makers = makers
        self._users = users

    def is_cheap(self, atom: Atom) -> bool:
        """Whether a value lies in memory, or is computed of what does by few additions."""
        return self._additions(atom) <= self.most

    def _additions(self, atom: Atom) -> int:
        maker = self._makers.get(atom) if isinstance(atom, Var) else None
        if maker is None:
            return 0
        form, found = maker.form, self.most + 1  # what is made for this is made where it is to lie
        if isinstance(form, Map | Reindex | Iota):
            own = form.cost if isinstance(form, Map) else 0
            found = own + sum(map(self._additions, maker.ins))
        alone = len(self._users.get(maker.out, ())) < 2
        return found if alone or found <= self.most else 0  # the schedule has it computed before


def _is_given(atom: Atom, makers: Mapping[Var, Node]) -> bool:
    """Whether a value is an input, or read off one: nothing is computed twice for it."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    if maker is None:
        return True
    return isinstance(maker.form, Reindex) and all(_is_given(a, makers) for a in maker.ins)


def _covering(node: Node) -> Node:
    """Return the reindexing that reads a box, and around it what it was laid over."""
    form: Overlay = node.form

    def within(i: Any, read: Any) -> Any:
        ends = zip(form.offset, i, form.extents, strict=True)
        return tuple((low, ix, low + n) for low, ix, n in ends)

    def place(i: Any, read: Any) -> Any:
        return tuple(ix - low for ix, low in zip(i, form.offset, strict=True))

    eqn = Eqn(_PIECE, node.ins[::-1], node.outs, {}, node.eqn.source)
    return Node(eqn, Reindex(place, within, Operand(1)))


def _choices(node: Node) -> list[Node]:
    """Return nodes that choose, for each element, the piece that it is in."""
    form: Pieces = node.form
    aval = node.out.aval
    inside = ShapedArray(aval.shape, np.dtype(bool))
    nodes: list[Node] = []

    def made(name: Any, form: Any, ins: tuple[Atom, ...], aval: ShapedArray) -> Var:
        eqn = Eqn(name, ins, (Var(aval),), {}, node.eqn.source)
        nodes.append(Node(eqn, form))
        return eqn.outvars[0]

    rest: Atom | None = None if form.fill is None else node.ins[form.fill]
    for piece in form.pieces:

        def within(i: Any, read: Any, p: Any = piece) -> Any:
            ends = zip(p.offset, i, p.extents, strict=True)
            return tuple((low, ix, low + n) for low, ix, n in ends)

        def place(i: Any, read: Any, p: Any = piece) -> Any:
            starts = zip(p.start, i, p.offset, strict=True)
            return tuple(ix - low + start for start, ix, low in starts)

        operand = node.ins[piece.operand]
        if len(form.pieces) == 1 and isinstance(rest, Literal):
            made(_PIECE, Reindex(place, within, aval.dtype.type(rest.val)), (operand,), aval)
            break
        taken: Atom = made(_PIECE, Reindex(place, within, aval.dtype.type(0)), (operand,), aval)
        if rest is not None:
            here = Reindex(lambda i, read: (), within, False)
            which = made(_PIECE, here, (Literal(True, ShapedArray((), inside.dtype)),), inside)
            taken = made(_CHOICE, Map("({1} if {0} else {2})", 1), (which, taken, rest), aval)
        rest = taken
    last = nodes.pop()
    return [*nodes, replace(last, eqn=replace(last.eqn, outvars=node.outs))]
