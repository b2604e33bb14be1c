"""How steps run that hold bodies: what enters them, what they carry, what is updated in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ...core.contraction import free_axes
from ...core.forms import Branch, Contract, Library, Pieces, Scan, Update, While
from ...core.graph import Atom, Literal, Var
from ..ir import Block, Node
from .collapse import laid_out
from .memory import Places, reads_memory
from .nests import Selection, Step, register_name
from .order import Order, arm_ordered, is_copy, ordered
from .plan import (
    Arm,
    Arms,
    Body,
    Carry,
    Entries,
    Flow,
    Given,
    Layout,
    Operands,
    Place,
    Reason,
    Same,
    Scratch,
    Turns,
)
from .work import products_of

#: Terms, and multiplications, up to which a sum is as exact, and from which on a product is.
_TERMS, _SMALL = 256, 1 << 20
BodyOf = Callable[[Selection, Order, Mapping[Var, Place], Places], Body]


class Flows:
    """Plans the steps of one block, in order.

    Attributes
    ----------
    found : dict
        The flow of each step that has one.
    filled : set
        Results that begin as a copy of the operand that they are an update of.
    """

    def __init__(self, selection: Selection, order: Order, places: Places, body_of: BodyOf):
        self.selection = selection
        self.donated = order.donated
        self.places = places
        self.body_of = body_of
        self.found: dict[Step, Flow] = {}
        self.filled: set[Var] = set()

    def add(self, step: Step) -> None:
        """Plan a step."""
        form = step.node.form
        if isinstance(form, Branch):
            self.found[step] = self._arms(step)
        elif isinstance(form, While):
            self.found[step] = self._while(step, form)
        elif isinstance(form, Scan):
            self.found[step] = self._scan(step, form)
        elif isinstance(form, Library):
            self.found[step] = Operands(tuple(not self.places.holds(a) for a in step.node.ins))
        elif isinstance(form, Contract):
            self.found[step] = self._product(step, form)
        elif isinstance(form, Update) and step not in self.selection.unrolled:
            self._fill(step.node)
        elif isinstance(form, Pieces) and step not in self.selection.unrolled:
            inlined, of = self.selection.inlined, self.places.of
            runs = (laid_out(step.node, piece, inlined, of) for piece in form.pieces)
            self.found[step] = Layout(tuple(runs))

    # -- operands ----------------------------------------------------------------------------

    def _fill(self, update: Node) -> None:
        """Note that an update begins as a copy of what it updates, unless it takes its place."""
        operand, result = update.ins[0], update.out
        taken = self.donated.get(result) is operand and self.places.share(operand, result)
        if not taken:
            self.filled.add(result)
            self._copies(update, operand)

    def _copies(self, node: Node, operand: Atom) -> None:
        """Say that a node copies an array that it could have written over, and why."""
        if operand in self.selection.block.inputs:
            why = "the array comes from outside and stays as it is"
        else:
            why = "the array is read again later, or is no array yet"
        self.places.note(Reason("flow", node, "copies what it updates", why))

    def _product(self, step: Step, form: Contract) -> Operands:
        """Bring the operands of a library product to the order batch, row, column.

        Batches of matrices whose columns lie together stay as they are, if BLAS multiplies them.
        """
        lhs, rhs = step.node.ins
        rows = free_axes(lhs.aval.ndim, form.lhs_contract, form.lhs_batch)
        columns = free_axes(rhs.aval.ndim, form.rhs_contract, form.rhs_batch)
        dtype = np.dtype(register_name(step.node.out.aval.dtype))
        inner = prod(lhs.aval.shape[a] for a in form.lhs_contract)
        # Of a small left factor BLAS adds up the terms one after another where its columns lie
        # together: the sums of 16,384 were off by 40 units.
        legible = dtype.kind in "fc" and (inner <= _TERMS or products_of(step.node) > _SMALL)
        orders: list[tuple[int, ...] | None] = []
        turned: list[bool] = []
        for x, batch, down, along in (
            (lhs, form.lhs_batch, rows, form.lhs_contract),
            (rhs, form.rhs_batch, form.rhs_contract, columns),
        ):
            every = tuple(range(x.aval.ndim))
            fits = x.aval.dtype == dtype
            turned.append(fits and legible and (*batch, *along, *down) == every)
            axes = (*batch, *down, *along)
            plain = fits and axes == every
            orders.append(None if plain or turned[-1] else axes)
            turned[-1] &= not plain
            legible = dtype.kind in "fc"
        stored = tuple(not self.places.holds(a) for a in (lhs, rhs))
        return Operands(stored, tuple(orders), tuple(turned))

    def _enter(self, inputs: Sequence[Var], atoms: Sequence[Atom]) -> Entries:
        """Make a body's inputs stand for values outside; say how."""
        entries: list[tuple[Var, Atom, Place | None]] = []
        for var, atom in zip(inputs, atoms, strict=True):
            place: Place | None = None
            if isinstance(atom, Var) and self.places.holds(atom):
                place = Same(atom)
            elif var.aval.size > self.places.target.limits.registers:
                place = Scratch((False,) * var.aval.ndim)
            if place is not None:
                self.places.of[var] = place
            entries.append((var, atom, place))
        return tuple(entries)

    # -- branches ----------------------------------------------------------------------------

    def _arms(self, step: Step) -> Arms:
        node, of = step.node, self.places.of
        donors = {
            v: self.donated[v] for v in node.outs if v in self.donated and self.places.holds(v)
        }
        registers = tuple(
            v
            for v in node.outs
            if v.aval.size <= self.places.target.limits.registers and v not in donors
        )
        for var, operand in donors.items():
            if not self.places.share(operand, var):
                self.filled.add(var)
        which, last = node.ins[0], len(step.bodies) - 1
        taken: Sequence[int] = range(len(step.bodies))
        if last == 0:
            taken = (0,)
        elif isinstance(which, Literal):
            taken = (min(max(int(which.val), 0), last),)
        arms: list[Arm] = []
        for k in taken:
            selection = step.bodies[k]
            block = selection.block
            entries = self._enter(block.inputs, node.ins[1:])
            targets: dict[Var, Place] = {}
            standing: dict[Var, Place] = {}  # for inputs that lie where a result does
            pairs: dict[int, int] = {}
            for j, (var, atom) in enumerate(zip(node.outs, block.outputs, strict=True)):
                if var in registers or not isinstance(atom, Var):
                    continue
                if var in donors:
                    number = node.ins[1:].index(donors[var])
                    pairs[number], operand = j, block.inputs[number]
                    standing[operand] = of[operand] = Same(var)
                    if is_copy(block, atom, operand):
                        continue  # the result is where the operand is, and stays
                targets[atom] = Same(var)
            entries = tuple((v, a, standing.get(v, place)) for v, a, place in entries)
            selection, order = arm_ordered(selection, pairs)
            body = self.body_of(selection, order, targets, self.places)
            arms.append(Arm(k, body, entries, block.outputs))
        return Arms(tuple(arms), registers, donors)

    # -- loops -------------------------------------------------------------------------------

    def _while(self, step: Step, form: While) -> Turns:
        node, (cond, body) = step.node, step.bodies
        nc, nb = form.cond_nconsts, form.body_nconsts
        entries = self._enter(cond.block.inputs[:nc], node.ins[:nc])
        entries += self._enter(body.block.inputs[:nb], node.ins[nc : nc + nb])
        tested, carried = cond.block.inputs[nc:], body.block.inputs[nb:]
        begun: list[Carry] = []
        for j, (test, var) in enumerate(zip(tested, carried, strict=True)):
            memory = self._carried_in_memory([(cond, test), (body, var)])
            begun.append(self._carry(node, var, node.ins[nc + nb + j], node.outs[j], memory=memory))
        carries, order = self._spares(body, begun, node)
        for c, test in zip(carries, tested, strict=True):
            if c.place is not None:
                self.places.of[test] = Given()
        test = self.body_of(cond, ordered(cond), {}, self.places)
        inner = self.body_of(body, order, _spare_targets(carries, body.block), self.places)
        return self._left(Turns(carries, inner, entries, test, tested))

    def _scan(self, step: Step, form: Scan) -> Turns:
        node, (body,) = step.node, step.bodies
        nk, nc = form.num_consts, form.num_carry
        inputs = body.block.inputs
        first = len(inputs) - nc
        entries = self._enter(inputs[:nk], node.ins[:nk])
        stacks = node.ins[nk + nc :]
        inlined = self.selection.inlined
        rows = tuple(
            (var, atom, None if atom in inlined else not self.places.holds(atom))
            for var, atom in zip(inputs[nk:first], stacks, strict=True)
        )
        begun: list[Carry] = []
        for j, var in enumerate(inputs[first:]):
            memory = self._carried_in_memory([(body, var)])
            begun.append(self._carry(node, var, node.ins[nk + j], node.outs[j], memory=memory))
        carries, order = self._spares(body, begun, node)
        for var, _, stored in rows:
            if stored is not None:
                self.places.of[var] = Given()
        targets = _spare_targets(carries, body.block)
        stacked = tuple(zip(node.outs[nc:], body.block.outputs[nc:], strict=True))
        for _, atom in stacked:
            if isinstance(atom, Var) and atom.aval.shape:
                targets[atom] = Given()
        inner = self.body_of(body, order, targets, self.places)
        return self._left(Turns(carries, inner, entries, rows=rows, stacked=stacked))

    def _carried_in_memory(self, bodies: list[tuple[Selection, Var]]) -> bool:
        """Whether a carried value must be in memory."""
        _, var = bodies[-1]
        if var.aval.size > self.places.target.limits.registers:
            return True
        if not var.aval.shape:
            return False
        return any(
            reads_memory(body, v, self.places) or _rebuilds(body.block, v) for body, v in bodies
        )

    def _carry(self, node: Node, var: Var, init: Atom, result: Var, *, memory: bool) -> Carry:
        if not memory:
            return Carry(var, init, result, None)
        place = self.places.of.get(result)
        taken = self.donated.get(result) is init and self.places.share(init, result)
        made = Scratch((False,) * var.aval.ndim)
        self.places.of[var] = Given()
        if not taken and init in self.selection.block.inputs:
            self._copies(node, init)
        return Carry(var, init, result, place or made, filled=not taken, scratch=place is None)

    def _spares(
        self, body: Selection, carries: list[Carry], node: Node
    ) -> tuple[tuple[Carry, ...], Order]:
        """Give carries that cannot be updated in place a second buffer."""
        pairs = tuple(zip(carries, body.block.outputs, strict=False))
        order = ordered(body, {c.var: atom for c, atom in pairs if c.place is not None})
        done: list[Carry] = []
        for c, atom in pairs:
            twice = c.place is not None and not order.in_place(atom, c.var)
            if twice:
                why = "the body reads the old value after it has made the new one"
                self.places.note(Reason("flow", node, "keeps a carry twice", why))
            done.append(replace(c, spare=twice, same=atom in body.twofold))
        return tuple(done), order

    def _left(self, turns: Turns) -> Turns:
        """After the loop, results that are in memory lie where their carries do."""
        for c in turns.carries:
            if c.place is not None and c.scratch:
                self.places.of[c.result] = c.place
        return turns


def _spare_targets(carries: Sequence[Carry], body: Block) -> dict[Var, Place]:
    return {
        atom: Given()
        for c, atom in zip(carries, body.outputs, strict=False)
        if c.spare and isinstance(atom, Var)
    }


def _rebuilds(block: Block, var: Var) -> bool:
    """Whether a body updates an input at a run-time place."""
    return any(
        isinstance(n.form, Update) and n.ins[0] is var and len(n.ins) > 2 for n in block.nodes
    )
