"""Loops over long arrays whose rows never meet: some rows take all turns, then the next.

A turn of such a loop reads and writes all that it carries, which no near cache holds. Rows that
are computed of themselves, and of what is the same for all, may take their turns at any time: as
many as a near cache holds take all of them there, and groups of rows are shared out among threads
once, not once a turn. It is the interchange of loops of Wolf and Lam, "A data locality optimizing
algorithm" (PLDI 1991), for the one case that needs no search.

Each row is computed as before, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from ..core.forms import Iota, Map, Operand, Reduce, Reindex, Scan, While
from ..core.graph import Atom, Eqn, Var, eqn_effects
from ..core.symbolic import clamp, leaves, scalar, variable
from .ir import AddedStep, Block, Node, users_of
from .target import Limits

Indices = tuple[Any, ...]

_GROUPS: Final[Any] = AddedStep("groups")
_BY_GROUP: Final[Any] = AddedStep("by_group")
_TOGETHER: Final[Any] = AddedStep("together")
#: Numbers that are the same for all rows, which every group computes for itself.
_SAME: Final = 64
#: Groups of what loops carry from which on they turn by groups, and turns: of 65,536 numbers that
#: are squared and added to in 50 turns those took 0.70 of the time, of 262,144 0.53.
_GROUPS_WORTH, _TURNS_WORTH = 32, 4
#: Turns for which it is worth copying rows that no number of groups divides, and back.
_COPIES_WORTH = 32


def turned_in_groups(block: Block, limits: Limits) -> Block:
    """Let loops over long arrays whose rows never meet turn in groups of rows."""
    needed = {*users_of(block.nodes), *block.outputs}
    nodes: list[Node] = []
    for node in block.nodes:
        long = [v for v in node.outs if v.aval.size > _SAME]
        loop = isinstance(node.form, Scan | While)
        fits = loop and long and needed.isdisjoint({*node.outs}.difference(long))
        nodes += (_grouped(node, long, limits) if fits else None) or [node]
    return replace(block, nodes=tuple(nodes))


def _grouped(node: Node, long: Sequence[Var], limits: Limits) -> list[Node] | None:
    """Return the nodes that stand for a loop, given what it carries; None if it stays."""
    form, rows = node.form, long[0].aval.shape[0]
    carried = len(node.outs)
    if isinstance(form, Scan) and (
        form.num_carry < carried or form.length < _TURNS_WORTH or form.watch is not None
    ):
        return None
    size = sum(v.aval.size for v in long)
    width = max(limits.group * rows // size, 1)
    if size < limits.group * _GROUPS_WORTH or width == rows or eqn_effects(node.eqn):
        return None
    test = node.bodies[0] if isinstance(form, While) else None
    try:
        turn = _Turn(node.bodies[-1], carried, rows)
        if test is not None and _reads(test).intersection(
            v for v, w in zip(test.inputs[-carried:], turn.carried, strict=True) if w in turn.own
        ):
            return None
    except _MeetError:
        return None
    whole = next((w for w in range(width, width // 2, -1) if rows % w == 0), 0)
    if not whole and not (isinstance(form, Scan) and form.length >= _COPIES_WORTH):
        return None
    return _by_groups(node, turn, whole or width)


def _reads(block: Block) -> set[Atom]:
    return {*block.outputs, *(a for node in block.nodes for a in node.ins)}


class _MeetError(Exception):
    """Rows of a loop meet, or it is not known that they do not."""


class _Turn:
    """A turn of a loop, by rows.

    Attributes
    ----------
    carried : sequence of Var
        Its inputs that it carries.
    own : set of Var
        Values of a row each, computed of that row and of what is the same for all; inputs that
        are only read so are among them.

    Raises
    ------
    _MeetError
    """

    def __init__(self, body: Block, carried: int, rows: int):
        self.body, self.rows = body, rows
        self.carried = body.inputs[-carried:]
        self.own = {v for v in self.carried if v.aval.size > _SAME}
        self._given = {v for v in body.inputs if self._has_rows(v)}
        self._whole: set[Atom] = set()
        if not self.own <= self._given:
            raise _MeetError
        for node in body.nodes:
            self._follow(node)
        ends = body.outputs[:carried]
        kept = all(
            (v in self.own) == (a in self.own) for v, a in zip(self.carried, ends, strict=True)
        )
        if not kept or self.own & self._whole:
            raise _MeetError

    def _has_rows(self, atom: Atom) -> bool:
        return isinstance(atom, Var) and atom.aval.shape[:1] == (self.rows,)

    def _follow(self, node: Node) -> None:
        """Follow rows through a node."""
        form = node.form
        if eqn_effects(node.eqn):
            raise _MeetError
        if not any(map(self._has_rows, node.outs)):
            if any(v.aval.size > _SAME for v in node.outs):
                raise _MeetError
            for atom in node.ins:
                self._read_whole(atom)
            return
        if not all(map(self._has_rows, node.outs)):
            raise _MeetError
        if isinstance(form, Map):
            for atom in node.ins:
                self._read_row(atom) if self._has_rows(atom) else self._read_whole(atom)
        elif isinstance(form, Reindex):
            self._reindex(node, form)
        elif isinstance(form, Reduce):
            self._reduce(node, form)
        elif not isinstance(form, Iota) or form.dimension == 0:
            raise _MeetError
        self.own.update(node.outs)

    def _read_row(self, atom: Atom) -> None:
        if atom not in self.own:
            if atom not in self._given:
                raise _MeetError
            assert isinstance(atom, Var)
            self.own.add(atom)

    def _read_whole(self, atom: Atom) -> None:
        if atom in self.own:
            raise _MeetError
        self._whole.add(atom)

    def _read(self, atom: Atom, at: Indices, row: Any) -> None:
        """Note where a value is read, by the row that is computed."""
        if at and at[0] == row and self._has_rows(atom):
            self._read_row(atom)
            at = at[1:]
        else:
            self._read_whole(atom)
        self._same_for_all(at, row)

    def _reindex(self, node: Node, form: Reindex) -> None:
        i = tuple(variable(f"g{d}", n) for d, n in enumerate(node.out.aval.shape))
        count = 0

        def read(k: int, at: Indices) -> Any:
            nonlocal count
            count += 1
            self._read(node.ins[k], at, i[0])
            return scalar(f"r{count}")

        self._read(node.ins[0], form.index(i, read), i[0])
        tests = form.valid(i, read) if form.valid is not None else ()
        self._same_for_all((ix for _, ix, _ in tests), i[0])

    def _reduce(self, node: Node, form: Reduce) -> None:
        if not isinstance(form.combine, tuple) or any(isinstance(x, Operand) for x in form.inits):
            raise _MeetError
        o = tuple(variable(f"g{d}", n) for d, n in enumerate(node.out.aval.shape))
        r = tuple(variable(f"q{d}", n) for d, n in enumerate(form.extents))
        for atom, index in zip(node.ins, form.index, strict=True):
            self._read(atom, index(o, r), o[0])
        tests = form.valid(o, r) if form.valid is not None else ()
        self._same_for_all((ix for _, ix, _ in tests), o[0])

    def _same_for_all(self, indices: Any, row: Any) -> None:
        if any(leaves(row) & leaves(ix) for ix in indices):
            raise _MeetError

    def of(self, width: int) -> Block:
        """Return the turn of so many rows."""
        env = {v: Var(v.aval.update(shape=(width, *v.aval.shape[1:]))) for v in self.own}

        def read(atoms: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(env.get(a, a) for a in atoms)

        body = self.body
        nodes = tuple(node.taking(read(node.ins), read(node.outs)) for node in body.nodes)
        return Block(read(body.inputs), nodes, read(body.outputs))


def _by_groups(node: Node, turn: _Turn, width: int) -> list[Node]:
    """Return the nodes of a loop that turns in groups of so many rows."""
    form, rows, source = node.form, turn.rows, node.eqn.source
    groups = -(-rows // width)
    carried = len(node.outs)
    is_scan = isinstance(form, Scan)
    before = form.num_consts if is_scan else form.cond_nconsts + form.body_nconsts
    # What the body takes for each operand: a loop's test has operands of its own, and a scan's
    # body takes its rows before what it carries.
    taken: list[Var | None] = [None] * (0 if is_scan else form.cond_nconsts)
    consts = turn.body.inputs[: before - len(taken)]
    taken += [*consts, *turn.carried, *turn.body.inputs[len(consts) : -carried]]
    nodes: list[Node] = []
    whole: dict[Atom, Var] = {}
    stacks: dict[Atom, tuple[Var, Var]] = {}

    def shaped(atom: Atom, shape: Sequence[int]) -> Var:
        return Var(atom.aval.update(shape=(*shape, *atom.aval.shape[1:])))

    def stacked(atom: Atom) -> tuple[Var, Var]:
        stack = shaped(atom, (groups, width))
        last = rows - 1
        index = Reindex(lambda i, read: (clamp(i[0] * width + i[1], 0, last), *i[2:]))
        eqn = Eqn(_BY_GROUP, (atom,), (stack,), {"shape": stack.aval.shape}, source)
        nodes.append(Node(eqn, index))
        return stack, shaped(atom, (width,))

    ins: list[Atom] = []
    for atom, var in zip(node.ins, taken, strict=True):
        if var in turn.own:
            if atom not in stacks:
                stacks[atom] = stacked(atom)
            ins.append(stacks[atom][1])
        elif isinstance(atom, Var):
            ins.append(whole.setdefault(atom, Var(atom.aval)))
        else:
            ins.append(atom)
    own = [v in turn.own for v in turn.carried]
    ends = [shaped(v, (width,)) if f else Var(v.aval) for v, f in zip(node.outs, own, strict=True)]
    loop = replace(node.taking(ins, ends), bodies=(*node.bodies[:-1], turn.of(width)))
    mine = [(v, end) for v, end, f in zip(node.outs, ends, own, strict=True) if f]
    inputs = (*whole.values(), *(row for _, row in stacks.values()))
    body = Block(inputs, (loop,), tuple(end for _, end in mine))
    outs = tuple(shaped(v, (groups, width)) for v, _ in mine)
    operands = (*whole, *(stack for stack, _ in stacks.values()))
    each = Scan(form.body, groups, False, len(whole), 0)
    nodes.append(Node(Eqn(_GROUPS, operands, outs, {"width": width}, source), each, (body,)))
    back = Reindex(lambda i, read: (i[0] // width, i[0] % width, *i[1:]))
    for (v, _), out in zip(mine, outs, strict=True):
        eqn = Eqn(_TOGETHER, (out,), (v,), {"shape": v.aval.shape}, source)
        nodes.append(Node(eqn, back))
    return nodes
