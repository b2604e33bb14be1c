"""In which order statements run, and which write their result over an operand that is dead then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise

from ...core.forms import Branch, Overlay, Scan, Update, While
from ...core.frozen import frozen
from ...core.graph import Atom, Var, eqn_effects
from ..ir import Block
from ..simplify import COPY
from .nests import Nest, Selection, Statement, Step, over_copy, overwrites_reads


@frozen(eq=False)
class Order:
    """A block's statements in the order in which they run.

    Attributes
    ----------
    statements : tuple of Statement
    donated : mapping
        For a statement's result: the operand whose storage it takes over.
    results : set of Var
        The block's results: as many as statements may be, and asked for in each of many kernels.
    """

    statements: tuple[Statement, ...]
    donated: Mapping[Var, Var]
    results: Set[Var]

    def in_place(self, atom: object, var: Var) -> bool:
        """Whether a value takes over the storage of ``var`` through donations."""
        while isinstance(atom, Var) and atom in self.donated:
            atom = self.donated[atom]
        return atom is var


def ordered(selection: Selection, owned: Mapping[Var, Atom] | None = None) -> Order:
    """Order statements so that readers of a value come before the one that writes over it.

    Statements with effects keep their order.

    Parameters
    ----------
    owned : mapping
        For inputs whose storage the block may write over once they are dead (loop carries): the
        output that is to lie there.
    """
    owned = owned or {}
    deps = _Dependencies(selection, owned)
    for s in selection.statements:
        if s not in selection.unrolled and is_overlay(s) and overwrites_reads(s):
            continue
        for k, j in _donor(s):
            atom = s.node.ins[k]
            if isinstance(atom, Var) and atom.aval.shape and s.node.ins.count(atom) == 1:
                deps.try_donate(s, atom, s.node.outs[j])
    for s in selection.statements:
        # An overlay leaves elements as they are: those of what it is put over. What is computed
        # twice must find its operands as they were.
        if not isinstance(s, Nest) or is_overlay(s) or s.overlaps:
            continue
        if s.node.out in deps.outputs:
            for var, idx in s.reads.items():
                own = owned.get(var) is s.node.out and s.node.out.aval.shape
                if own and idx == {s.out} and not s.in_memory and s.parallel_depth == len(s.loops):
                    deps.try_donate(s, var, s.node.out)
    statements = deps.copied(selection)
    return Order(tuple(_sorted(statements, deps.after)), deps.donated, deps.outputs)


def is_overlay(s: Statement) -> bool:
    """Whether a statement is a nest that replaces a box of its operand."""
    return isinstance(s, Nest) and isinstance(s.node.form, Overlay)


class _Dependencies:
    """Who must run after whom, and who has taken over whose storage."""

    def __init__(self, selection: Selection, owned: Mapping[Var, Atom]):
        statements = selection.statements
        self.owned = owned
        self.outputs = {a for a in selection.block.outputs if isinstance(a, Var)}
        self.writer = {v: s for s in statements for v in s.node.outs}
        self.readers: dict[Var, list[Statement]] = {}
        for s in statements:
            for var in s.reads:
                self.readers.setdefault(var, []).append(s)
        self.after: dict[Statement, set[Statement]] = {
            s: {self.writer[v] for v in s.reads if v in self.writer} for s in statements
        }
        for first, second in pairwise(s for s in statements if any(eqn_effects(s.node.eqn))):
            self.after[second].add(first)
        self.donated: dict[Var, Var] = {}
        self._taken: set[Var] = set()

    def _reaches(self, a: Statement, b: Statement) -> bool:
        """Whether ``a`` must run after ``b``."""
        stack, seen = [a], {a}
        while stack:
            s = stack.pop()
            if s is b:
                return True
            new = self.after[s] - seen
            seen |= new
            stack.extend(new)
        return False

    def try_donate(self, s: Statement, var: Var, result: Var) -> None:
        """Let a result take over the storage of ``var`` where nobody needs that afterwards."""
        alike = (var.aval.shape, var.aval.dtype) == (result.aval.shape, result.aval.dtype)
        free = var in self.owned or var in self.writer
        if not alike or not free or var in self._taken or var in self.outputs:
            return
        root = var
        while root in self.donated:
            root = self.donated[root]
        if result in self.outputs and self.owned.get(root, result) is not result:
            return  # it is to lie where another input does
        others = [r for r in self.readers.get(var, ()) if r is not s]
        if any(self._reaches(r, s) for r in others):
            return
        self.after[s].update(others)
        self.donated[result] = var
        self._taken.add(var)

    def copied(self, selection: Selection) -> list[Statement]:
        """Return the statements, with copies of what overlays must not be put over themselves."""
        statements: list[Statement] = []
        moved: dict[Statement, Statement] = {}
        for s in selection.statements:
            placed = s.node.outs and s.node.out in (self.donated.keys() | selection.twofold)
            if s in selection.unrolled or not is_overlay(s) or placed:
                statements.append(s)
                continue
            copy, over = over_copy(s.node, selection.inlined)
            self.donated[over.node.out] = copy.node.out
            self.after[copy] = {self.writer[v] for v in copy.reads if v in self.writer}
            self.after[over] = self.after.pop(s) | {copy}
            moved[s] = over
            statements += [copy, over]
        if moved:
            for s, before in self.after.items():
                self.after[s] = {moved.get(b, b) for b in before}
        return statements


def _donor(s: Statement) -> list[tuple[int, int]]:
    """Return pairs (operand, result) that a step can compute in place."""
    form = s.node.form
    if isinstance(form, Update | Overlay):
        return [(0, 0)]
    if isinstance(form, While):
        first = form.cond_nconsts + form.body_nconsts
        return [(first + j, j) for j in range(len(s.node.outs))]
    if isinstance(form, Scan):
        return [(form.num_consts + j, j) for j in range(form.num_carry)]
    if isinstance(form, Branch):
        assert isinstance(s, Step)
        return _branch_donors(s)
    return []


def _branch_donors(s: Step) -> list[tuple[int, int]]:
    node = s.node
    pairs: dict[int, int] = {}
    for j, var in enumerate(node.outs):
        for k in range(1, len(node.ins)):
            if node.ins[k].aval.shape != var.aval.shape or not var.aval.shape:
                continue
            if all(_passes(body, k - 1, j) for body in node.bodies):
                pairs.setdefault(k - 1, j)
                break
    for selection in s.bodies:
        order = arm_ordered(selection, pairs)[1]
        block = selection.block
        for k, j in tuple(pairs.items()):
            operand, atom = block.inputs[k], block.outputs[j]
            if not is_copy(block, atom, operand) and not order.in_place(atom, operand):
                del pairs[k]
    return [(k + 1, j) for k, j in pairs.items()]


def arm_ordered(selection: Selection, pairs: Mapping[int, int]) -> tuple[Selection, Order]:
    """Order a branch's arm in which outputs are to lie where inputs do; ``pairs`` says which.

    Returns
    -------
    selection, order
        Copies of inputs to where they are already are gone.
    """
    block = selection.block
    idle: set[Atom] = set()
    owned: dict[Var, Atom] = {}
    for k, j in pairs.items():
        operand, atom = block.inputs[k], block.outputs[j]
        if is_copy(block, atom, operand):
            idle.add(atom)
        else:
            owned[operand] = atom
    kept = tuple(s for s in selection.statements if not (s.node.outs and s.node.out in idle))
    outputs = tuple(a for a in block.outputs if a not in idle)
    selection = replace(selection, block=replace(block, outputs=outputs), statements=kept)
    return selection, ordered(selection, owned)


def is_copy(block: Block, atom: Atom, operand: Var) -> bool:
    """Whether a value of a block is a copy of another one."""
    writer = next((n for n in block.nodes if atom in n.outs), None)
    return writer is not None and writer.eqn.primitive is COPY and writer.ins[0] is operand


def _passes(block: Block, k: int, j: int) -> bool:
    """Whether output ``j`` of a block is its input ``k``, as it is or updated."""
    writer = {v: n for n in block.nodes for v in n.outs}
    atom = block.outputs[j]
    while isinstance(atom, Var) and atom in writer:
        node = writer[atom]
        if not isinstance(node.form, Update | Overlay) and node.eqn.primitive is not COPY:
            return False
        atom = node.ins[0]
    return atom is block.inputs[k]


def _sorted(
    statements: Sequence[Statement], after: Mapping[Statement, set[Statement]]
) -> list[Statement]:
    """Topological order, stable: each statement as early as its program order and edges allow."""
    position = {s: k for k, s in enumerate(statements)}
    done: set[Statement] = set()
    out: list[Statement] = []
    stack = list(reversed(statements))
    while stack:
        top = stack[-1]
        waiting = [d for d in after[top] if d not in done] if top not in done else []
        if waiting:
            stack.extend(sorted(waiting, key=position.__getitem__, reverse=True))
            continue
        stack.pop()
        if top not in done:
            done.add(top)
            out.append(top)
    return out
