"""The plan of a block: statements in order, fused, with who writes over whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from ...core.forms import Branch, Contract, Reduce, Scan, Update, While
from ...core.graph import Literal, Var, eqn_effects
from ..simplify import Block, Node
from .access import AccessWalk
from .fuse import Tree, fuse
from .nests import Nest, Statement, Step, make_nest
from .roots import INLINE, SMALL, choose_roots, is_library, iterations

#: Loop bodies run up to this many iterations unrolled.
UNROLL = 64

Item = Tree | Nest | Step


@dataclass(eq=False, slots=True)
class Plan:
    """What runs, in order, and where results may be written over operands.

    Attributes
    ----------
    items : list
        Fused trees, nests without loops, and steps.
    inlined : dict
        Nodes that are written into their readers.
    donated : dict
        For a statement's result var: the operand whose storage it takes over.
    unrolled : set
        Statements whose loops are written out, their results held in registers.
    """

    block: Block
    items: list[Item]
    inlined: dict[Var, Node]
    donated: dict[Var, Var] = field(default_factory=dict)
    unrolled: set[Statement] = field(default_factory=set)


def plan_block(block: Block, *, in_loop: bool, owned: frozenset[Var] = frozenset()) -> Plan:
    """Schedule a block.

    Parameters
    ----------
    block : Block
    in_loop : bool
        Whether it is the body of a loop or branch, where scalars and small arrays belong in
        registers.
    owned : frozenset of Var
        Inputs whose storage the block may write over once they are dead (loop carries).
    """
    roots = choose_roots(block, in_loop)
    inlined = {n.out: n for n in block.nodes if n not in roots}
    for node in block.nodes:
        if isinstance(node.form, Update):
            _settle_operands(node, inlined)
    roots = {n for n in block.nodes if not n.outs or n.out not in inlined}
    statements = [_statement(n, inlined, in_loop) for n in block.nodes if n in roots]
    statements, donated = _order(statements, block, owned)
    unrolled = {s for s in statements if in_loop and _unrolls(s)}
    overwrites = {
        s: donated[s.node.out] for s in statements if isinstance(s, Nest) and s.node.out in donated
    }
    items: list[Item] = []
    run: list[Nest] = []
    for s in statements:
        if isinstance(s, Nest) and s not in unrolled:
            run.append(s)
        else:
            items.extend(fuse(run, overwrites))
            run = []
            items.append(s)
    items.extend(fuse(run, overwrites))
    return Plan(block, items, inlined, donated, unrolled)


def _settle_operands(update: Node, inlined: dict[Var, Node]) -> None:
    """Compute an update's operands beforehand where they read what it is about to overwrite."""
    for atom in update.ins[1:]:
        if atom in inlined:
            walk = AccessWalk(inlined)
            walk.visit(atom, tuple(0 for _ in atom.aval.shape))
            if update.ins[0] in walk.reads:
                del inlined[atom]


def _statement(node: Node, inlined: dict[Var, Node], in_loop: bool) -> Statement:
    if isinstance(node.form, (*INLINE, Reduce)):
        return make_nest(node, inlined)
    if isinstance(node.form, Contract) and not is_library(node, in_loop):
        return make_nest(node, inlined)
    step = Step(node)
    for atom in node.ins:
        if not isinstance(atom, Literal):
            # Steps read inlined operands element by element; which elements does not matter.
            walk = AccessWalk(inlined)
            walk.visit(atom, tuple(0 for _ in atom.aval.shape))
            for var, idx in walk.reads.items():
                step.reads.setdefault(var, set()).update(idx)
    return step


def _unrolls(s: Statement) -> bool:
    """Whether a statement in a loop is small and static enough to be written out."""
    node = s.node
    if isinstance(node.form, Branch | While | Scan) or any(v.aval.size > SMALL for v in node.outs):
        return False
    if isinstance(node.form, Update):
        return len(node.ins) == 2 and node.ins[0].aval.size <= SMALL
    if isinstance(s, Step):
        return not hasattr(node.form, "function") and not isinstance(node.form, Contract)
    return iterations(node) <= UNROLL


def _donor(s: Statement) -> list[tuple[int, int]]:
    """Return pairs (operand, result) that a step can compute in place."""
    form = s.node.form
    if isinstance(form, Update):
        return [(0, 0)]
    if isinstance(form, While):
        first = form.cond_nconsts + form.body_nconsts
        return [(first + j, j) for j in range(len(s.node.outs))]
    if isinstance(form, Scan):
        return [(form.num_consts + j, j) for j in range(form.num_carry)]
    if isinstance(form, Branch):
        return _branch_donors(s.node)
    return []


def _branch_donors(node: Node) -> list[tuple[int, int]]:
    pairs = []
    for j, var in enumerate(node.outs):
        for k in range(1, len(node.ins)):
            if node.ins[k].aval.shape != var.aval.shape or not var.aval.shape:
                continue
            if all(_passes(g.jaxpr, k - 1, j) for g in node.form.branches):
                pairs.append((k, j))
                break
    return pairs


def _passes(graph, k: int, j: int) -> bool:
    """Whether output ``j`` of a graph is its input ``k``, as it is or updated."""
    writer = {v: e for e in graph.eqns for v in e.outvars}
    atom = graph.outvars[j]
    while isinstance(atom, Var) and atom in writer:
        form = writer[atom].form()
        if not isinstance(form, Update):
            return False
        atom = writer[atom].invars[0]
    return atom is graph.invars[k]


def _order(
    statements: list[Statement], block: Block, owned: frozenset[Var]
) -> tuple[list[Statement], dict[Var, Var]]:
    """Order statements so that readers of a value come before the one that writes over it.

    Statements with effects keep their order.
    """
    writer = {v: s for s in statements for v in s.node.outs}
    readers: dict[Var, list[Statement]] = {}
    for s in statements:
        for var in s.reads:
            readers.setdefault(var, []).append(s)
    outputs = {a for a in block.outputs if isinstance(a, Var)}
    after: dict[Statement, set[Statement]] = {
        s: {writer[v] for v in s.reads if v in writer} for s in statements
    }
    for first, second in pairwise(s for s in statements if any(eqn_effects(s.node.eqn))):
        after[second].add(first)
    donated: dict[Var, Var] = {}
    taken: set[Var] = set()

    def reaches(a: Statement, b: Statement) -> bool:
        """Whether ``a`` must run after ``b``."""
        stack, seen = [a], {a}
        while stack:
            s = stack.pop()
            if s is b:
                return True
            new = after[s] - seen
            seen |= new
            stack.extend(new)
        return False

    def try_donate(s: Statement, var: Var, result: Var) -> None:
        alike = (var.aval.shape, var.aval.dtype) == (result.aval.shape, result.aval.dtype)
        if not alike or var in taken or var in outputs or not (var in owned or var in writer):
            return
        others = [r for r in readers.get(var, ()) if r is not s]
        if any(reaches(r, s) for r in others):
            return
        after[s].update(others)
        donated[result] = var
        taken.add(var)

    for s in statements:
        for k, j in _donor(s):
            atom = s.node.ins[k]
            if isinstance(atom, Var) and atom.aval.shape and s.node.ins.count(atom) == 1:
                try_donate(s, atom, s.node.outs[j])
    for s in statements:
        if isinstance(s, Nest) and s.node.out in outputs:
            for var, idx in s.reads.items():
                same = var.aval.shape == s.node.out.aval.shape and s.node.out.aval.shape
                if var in owned and same and idx == {s.out} and not s.in_memory:
                    if s.parallel_depth == len(s.loops):
                        try_donate(s, var, s.node.out)
                    break
    return _sorted(statements, after), donated


def _sorted(statements: list[Statement], after: dict[Statement, set[Statement]]) -> list[Statement]:
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
