"""Control flow inside a kernel: native branches and loops over carried registers and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ...core.forms import Branch, Reindex, Scan, Update, While
from ...core.graph import Atom, ClosedGraph, Eqn, Literal, Var
from ...core.symbolic import text, variable
from ..schedule.nests import Statement, Step
from ..schedule.plan import Plan, plan_block
from ..schedule.roots import SMALL
from ..simplify import COPY, Block, Node, simplified
from .blocks import Blocks, statements_of
from .body import Storage, row_major


@dataclass(eq=False, slots=True)
class Carry:
    """One loop-carried value.

    ``names`` holds the registers of a scalar or small array, by index. Else the value is in
    ``store``; ``spare`` is the second buffer when the body cannot work in place, and ``home``
    where the result ends.
    """

    var: Var
    result: Var
    names: dict[tuple[int, ...], str] | None = None
    store: Storage | None = None
    spare: Storage | None = None
    home: Storage | None = None


class Control(Blocks):
    """Emits branches and loops, and the plans of the graphs they hold."""

    def __init__(self, sizes: frozenset[int] = frozenset()):
        super().__init__(sizes)
        self._blocks: dict[int, tuple[Any, Block]] = {}
        #: Whether a loop has been emitted whose turns depend on those before.
        self.sequential = False
        #: The loop over independent rows that runs in chunks, from ``start`` to ``stop``.
        self.chunked: Node | None = None

    # -- graphs ------------------------------------------------------------------------------

    def block_of(self, graph: ClosedGraph, keep: int = 0) -> Block:
        """Return a graph as a block in which every array output is a value of its own.

        Outputs that are inputs, literals or repeats get a copy; ``keep`` leading outputs may
        be the input at ``keep``'s position unchanged.
        """
        block = simplified(graph.jaxpr)
        nodes, outputs = list(block.nodes), []
        made = {n_out for n in nodes for n_out in n.outs}
        used: set[Var] = set()
        carried = block.inputs[-keep:] if keep else ()
        for j, atom in enumerate(block.outputs):
            own = isinstance(atom, Var) and atom in made and atom not in used
            passed = j < keep and atom is carried[j]
            if not atom.aval.shape or own or passed:
                outputs.append(atom)
            else:
                out = Var(atom.aval)
                eqn = Eqn(COPY, (atom,), (out,), {})
                nodes.append(Node(eqn, Reindex(lambda i, read: i)))
                outputs.append(out)
            if isinstance(atom, Var):
                used.add(atom)
        return Block(block.inputs, tuple(nodes), tuple(outputs))

    def bind_inputs(self, inputs: Sequence[Var], atoms: Sequence[Atom]) -> None:
        """Make a graph's inputs stand for outer values, in the current scope."""
        for var, atom in zip(inputs, atoms, strict=True):
            if not isinstance(atom, Literal) and atom in self.storage:
                self.storage[var] = self.storage[atom]
                if not var.aval.shape:
                    self.remember((var, ()), self.value(atom, ()))
            elif var.aval.size <= SMALL:
                for idx in product(*(range(n) for n in var.aval.shape)):
                    self.remember((var, idx), self.value(atom, idx))
            else:
                self.storage[var] = self.new_scratch(var)
                self.fill_from(atom, self.storage[var])

    def reads_memory(self, block: Block, var: Var, plan: Plan) -> bool:
        """Whether a body reads an input at places known only at run time."""
        readers = [s for s in statements_of(plan) if var in s.reads]
        return any(self.requires_memory(var, s, plan) for s in readers)

    def control_requires_memory(self, s: Step, var: Var) -> bool:
        """Whether any graph of a control step reads ``var`` at run-time places."""
        if var.aval.size > SMALL:
            return True
        node, form = s.node, s.node.form
        places = [k for k, a in enumerate(node.ins) if a is var]
        if isinstance(form, Branch):
            graphs = [(g, [k - 1 for k in places]) for g in form.branches]
        elif isinstance(form, Scan):
            if any(k >= form.num_consts + form.num_carry for k in places):
                return True
            graphs = [(form.body, places)]
        else:
            nc, nb = form.cond_nconsts, form.body_nconsts
            cond = [k if k < nc else k - nb for k in places if not nc <= k < nc + nb]
            body = [k - nc for k in places if k >= nc]
            graphs = [(form.cond, cond), (form.body, body)]
        for graph, inner in graphs:
            block = self.block_of(graph)
            plan = plan_block(block, in_loop=True)
            if any(self.reads_memory(block, block.inputs[k], plan) for k in inner):
                return True
        return False

    def needs_storage(self, step: Statement, j: int) -> bool:
        """Whether result ``j`` of a step lives in memory whoever reads it."""
        form, var = step.node.form, step.node.outs[j]
        if isinstance(form, Branch | While) or (isinstance(form, Scan) and j < form.num_carry):
            return var.aval.size > SMALL
        return super().needs_storage(step, j)

    def emit_step(self, step: Step, plan: Plan) -> None:
        """Emit any step."""
        form = step.node.form
        if isinstance(form, Branch):
            self._branch(step, form, plan)
        elif isinstance(form, While):
            self._while(step, form, plan)
        elif isinstance(form, Scan):
            self._scan(step, form, plan)
        else:
            super().emit_step(step, plan)

    def emit_body(self, block: Block, targets: dict[Var, Storage], owned: frozenset[Var]) -> Plan:
        """Emit a block in the current scope, its array outputs in ``targets``."""
        plan = plan_block(block, in_loop=True, owned=owned)
        self.assign_storage(plan, targets, in_loop=True)
        self.emit_plan(plan)
        return plan

    # -- branches ----------------------------------------------------------------------------

    def _branch(self, step: Step, form: Branch, plan: Plan) -> None:
        node = step.node
        which: Any = self.integer(node.ins[0], ())
        results = self._branch_results(step, plan)
        donors = {v: plan.donated[v] for v in node.outs if v in plan.donated}
        for var, operand in donors.items():
            if var in self.storage and self.stored(operand) != self.storage[var]:
                self.fill_from(operand, self.storage[var])
        last = len(form.branches) - 1
        chosen = which if isinstance(which, int) else None
        test = text(which, str)  # the name of the local that holds it
        for k, graph in enumerate(form.branches):
            if last == 0 or chosen is not None:
                if k != min(max(chosen or 0, 0), last):
                    continue
                header = "if True:"
            elif k == last:
                header = "else:"
            else:
                op = "<=" if k == 0 else "=="
                header = f"{'if' if k == 0 else 'elif'} {test} {op} {k}:"
            with self.block(header, barrier=True):
                self._branch_body(step, graph, results, donors)
        for var, names in results.items():
            for idx, name in names.items():
                self.declare(name)
                self.remember((var, idx), name)
                self._deliver(var, idx, name)

    def _branch_results(self, step: Step, plan: Plan) -> dict[Var, dict[tuple[int, ...], str]]:
        """Return the registers of results that have no storage."""
        results = {}
        for var in step.node.outs:
            if var.aval.size <= SMALL and var not in plan.donated:
                shape = var.aval.shape
                results[var] = {i: self.fresh("r") for i in product(*(range(n) for n in shape))}
        return results

    def _branch_body(
        self,
        step: Step,
        graph: ClosedGraph,
        results: dict[Var, dict[tuple[int, ...], str]],
        donors: dict[Var, Var],
    ) -> None:
        node = step.node
        block = self.block_of(graph)
        operands = list(node.ins[1:])
        self.bind_inputs(block.inputs, operands)
        targets, owned, idle = {}, set(), set()
        for var, atom in zip(node.outs, block.outputs, strict=True):
            if var in results or not isinstance(atom, Var):
                continue
            if var in donors:
                operand = block.inputs[operands.index(donors[var])]
                self.storage[operand] = self.storage[var]
                if self._is_copy(block, atom, operand):
                    idle.add(atom)  # the result is where the operand is, and stays
                    continue
                owned.add(operand)
            targets[atom] = self.storage[var]
        all_outputs = block.outputs
        block = Block(
            block.inputs,
            tuple(n for n in block.nodes if not (n.outs and n.outs[0] in idle)),
            tuple(a for a in all_outputs if not (isinstance(a, Var) and a in idle)),
        )
        self.emit_body(block, targets, frozenset(owned))
        held = []
        for var, atom in zip(node.outs, all_outputs, strict=True):
            for idx, name in results.get(var, {}).items():
                held.append((name, self.value(atom, idx)))
        for name, value in held:
            self.line(f"{name} = {value}")

    def _is_copy(self, block: Block, atom: Var, operand: Var) -> bool:
        writer = next((n for n in block.nodes if atom in n.outs), None)
        return writer is not None and writer.eqn.primitive is COPY and writer.ins[0] is operand

    # -- loops -------------------------------------------------------------------------------

    def carry(self, var: Var, init: Atom, result: Var, plan: Plan, *, memory: bool) -> Carry:
        """Set up a carried value before its loop."""
        if memory:
            store = self.storage.get(result) or self.new_scratch(var)
            donor = plan.donated.get(result)
            if donor is not init or donor is None or self.stored(donor) != store:
                self.fill_from(init, store)
            return Carry(var, result, store=store)
        names = {}
        values = []
        for idx in product(*(range(n) for n in var.aval.shape)):
            names[idx] = self.declare(self.fresh("c"))
            values.append(self.value(init, idx))
        for name, value in zip(names.values(), values, strict=True):
            self.line(f"{name} = {value}")
        return Carry(var, result, names=names)

    def enter(self, carry: Carry, var: Var) -> None:
        """Make a body's input stand for a carried value, inside the loop."""
        if carry.names is not None:
            for idx, name in carry.names.items():
                self.remember((var, idx), name)
        else:
            assert carry.store is not None
            self.storage[var] = replace(carry.store, depth=self.scope.depth)

    def _spares(self, block: Block, carries: list[Carry], outputs: Sequence[Atom]) -> str | None:
        """Give carries that cannot be updated in place a second buffer; return the flip flag."""
        owned = frozenset(c.var for c in carries if c.store is not None)
        donated = plan_block(block, in_loop=True, owned=owned).donated
        flag = None
        for c, atom in zip(carries, outputs, strict=True):
            if c.store is None or atom is c.var or self._chain(donated, atom, c.var):
                continue
            size = c.var.aval.size
            c.home = c.store
            here = self.assign(self.whole(c.store, size), None, "p")
            there = self.assign(self.new_scratch(c.var).name, None, "q")
            strides = row_major(c.var.aval.shape)
            c.spare = Storage(there, strides, 0, self.scope.depth)
            c.store = Storage(here, strides, 0, self.scope.depth)
            flag = flag or self.assign("False", None, "odd")
        return flag

    @staticmethod
    def _chain(donated: dict[Var, Var], atom: Any, var: Var) -> bool:
        """Whether ``atom`` takes over the storage of ``var`` through donations."""
        while atom in donated:
            atom = donated[atom]
        return atom is var

    def _advance(self, carries: list[Carry], outputs: Sequence[Atom], flag: str | None) -> None:
        """At the end of an iteration, move new values into the carries."""
        moves = []
        for c, atom in zip(carries, outputs, strict=True):
            if c.names is not None:
                for idx, name in c.names.items():
                    value = self.value(atom, idx)
                    if value != name:
                        moves.append((name, value))
        targets = {name for name, _ in moves}
        held = [(n, self.assign(v, None) if v in targets else v) for n, v in moves]
        for name, value in held:
            self.line(f"{name} = {value}")
        for c in carries:
            if c.spare is not None and c.store is not None:
                a, b = c.store.name, c.spare.name
                self.line(f"{a}, {b} = {b}, {a}")
        if flag is not None:
            self.line(f"{flag} = not {flag}")

    def _leave(self, carries: list[Carry], flag: str | None) -> None:
        """After the loop, make the results stand for the carries."""
        swapped = [c for c in carries if c.spare is not None]
        if swapped and flag is not None:
            with self.block(f"if {flag}:", barrier=True):
                for c in swapped:
                    assert c.store is not None
                    assert c.spare is not None
                    self.copy(c.store, c.spare, c.var.aval.shape)
        for c in carries:
            if c.names is not None:
                for idx, name in c.names.items():
                    # The register is the loop's own: what follows gets a name that stays.
                    final = self.assign(name, None, "r")
                    self.remember((c.result, idx), final)
                    self._deliver(c.result, idx, final)
            elif c.result not in self.storage:
                home = c.home or c.store
                assert home is not None
                self.storage[c.result] = home

    def _targets(self, carries: list[Carry], outputs: Sequence[Atom]) -> dict[Var, Storage]:
        return {
            atom: c.spare
            for c, atom in zip(carries, outputs, strict=True)
            if c.spare is not None and isinstance(atom, Var)
        }

    def _in_memory(self, step: Step, blocks: list[tuple[Block, Var]], var: Var) -> bool:
        """Whether a carried value must be in memory."""
        if var.aval.size > SMALL:
            return True
        if not var.aval.shape:
            return False
        return any(
            self.reads_memory(b, v, plan_block(b, in_loop=True)) or self._rebuilt(b, v)
            for b, v in blocks
        )

    def _rebuilt(self, block: Block, var: Var) -> bool:
        """Whether a body updates an input at a run-time place."""
        return any(
            isinstance(n.form, Update) and n.ins[0] is var and len(n.ins) > 2 for n in block.nodes
        )

    def _while(self, step: Step, form: While, plan: Plan) -> None:
        node = step.node
        nc, nb = form.cond_nconsts, form.body_nconsts
        n = len(node.outs)
        cond, body = self.block_of(form.cond), self.block_of(form.body, keep=n)
        self.bind_inputs(cond.inputs[:nc], node.ins[:nc])
        self.bind_inputs(body.inputs[:nb], node.ins[nc : nc + nb])
        carries = []
        for j in range(n):
            pair = [(cond, cond.inputs[nc + j]), (body, body.inputs[nb + j])]
            memory = self._in_memory(step, pair, pair[1][1])
            carries.append(
                self.carry(pair[1][1], node.ins[nc + nb + j], node.outs[j], plan, memory=memory)
            )
        flag = self._spares(body, carries, body.outputs)
        self.sequential = True
        with self.block("while True:", barrier=True):
            for c, var in zip(carries, cond.inputs[nc:], strict=True):
                self.enter(c, var)
                self.enter(c, c.var)
            self.emit_body(cond, {}, frozenset())
            with self.block(f"if not {self.value(cond.outputs[0], ())}:", barrier=True):
                self.line("break")
            owned = frozenset(c.var for c in carries if c.store is not None)
            self.emit_body(body, self._targets(carries, body.outputs), owned)
            self._advance(carries, body.outputs, flag)
        self._leave(carries, flag)

    def _scan(self, step: Step, form: Scan, plan: Plan) -> None:
        node = step.node
        nk, nc = form.num_consts, form.num_carry
        body = self.block_of(_carries_last(form), keep=nc)
        consts, xs = body.inputs[:nk], body.inputs[nk : len(body.inputs) - nc]
        carried = body.inputs[len(body.inputs) - nc :] if nc else ()
        self.bind_inputs(consts, node.ins[:nk])
        rows = [self._row_storage(a) for a in node.ins[nk + nc :]]
        carries = []
        for j, var in enumerate(carried):
            memory = self._in_memory(step, [(body, var)], var)
            carries.append(self.carry(var, node.ins[nk + j], node.outs[j], plan, memory=memory))
        flag = self._spares(body, carries, body.outputs[:nc])
        name = self.fresh("s")
        self.counted.add(name)
        self.sequential |= nc > 0
        span = "start, stop" if node is self.chunked else self.number(form.length)
        with self.block(f"for {name} in range({span}):", barrier=True):
            self.declare(name)
            t = variable(name, form.length)
            t = form.length - 1 - t if form.reverse else t
            for c in carries:
                self.enter(c, c.var)
            for var, store in zip(xs, rows, strict=True):
                self.storage[var] = self._row(store, t)
            targets = self._targets(carries, body.outputs[:nc])
            ys = list(zip(node.outs[nc:], body.outputs[nc:], strict=True))
            for var, atom in ys:
                if isinstance(atom, Var) and atom.aval.shape:
                    targets[atom] = self._row(self.storage[var], t)
            owned = frozenset(c.var for c in carries if c.store is not None)
            self.emit_body(body, targets, owned)
            for var, atom in ys:
                if not atom.aval.shape:
                    row = self._row(self.storage[var], t)
                    self.put(row.name, row.base, self.value(atom, ()), var.aval.dtype)
            self._advance(carries, body.outputs[:nc], flag)
        self._leave(carries, flag)

    def _row_storage(self, atom: Atom) -> Storage:
        """Return where a scanned array lies."""
        if not isinstance(atom, Literal) and atom in self.storage:
            return self.storage[atom]
        var = Var(atom.aval)
        store = self.new_scratch(var)
        self.fill_from(atom, store)
        return store

    def _row(self, store: Storage, t: Any) -> Storage:
        """Return row ``t`` of a stacked value."""
        base = store.base + t * store.strides[0]
        return Storage(store.name, store.strides[1:], base, self.scope.depth)


def _carries_last(form: Scan) -> ClosedGraph:
    """Return the body's graph with its inputs reordered: constants, rows, carries."""
    graph = form.body.jaxpr
    nk, nc = form.num_consts, form.num_carry
    ins = graph.invars
    order = (*ins[:nk], *ins[nk + nc :], *ins[nk : nk + nc])
    return ClosedGraph(replace(graph, invars=order), form.body.consts)
