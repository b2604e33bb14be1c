"""Control flow of a kernel: native branches, and loops over carried registers and arrays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from ...core.forms import Branch, Scan
from ...core.graph import Atom, Literal, Var
from ...core.symbolic import text, variable
from ..ir import Node
from ..schedule.access import row_major
from ..schedule.nests import Step
from ..schedule.plan import Arm, Arms, Body, Carry, Entries, Same, Scratch, Turns
from ..schedule.work import is_brief
from .steps import Steps
from .values import Storage

Elements = dict[tuple[int, ...], str]
#: What a watched loop knows: when it began and is to tell, at which block of turns to look at the
#: clock, whether it has told, what the clock shows, and which block it is at.
_WATCH = ("begun", "due", "look", "told", "now", "b")


class _Carried:
    """A carried value while its loop is written: registers, or one or two arrays."""

    def __init__(self, carry: Carry):
        self.carry = carry
        self.names: Elements = {}
        self.store: Storage | None = None
        self.spare: Storage | None = None
        self.home: Storage | None = None


class Flow:
    """Spells branches and loops.

    Parameters
    ----------
    steps : Steps
    emit : callable
        ``emit(body, targets)`` spells a body, the results that are given a place in ``targets``.

    Attributes
    ----------
    sequential : bool
        Whether a loop has been emitted whose turns depend on those before.
    chunked : Node or None
        The loop over independent rows that runs in parts, those of the range ``span``.
    """

    def __init__(self, steps: Steps, emit: Callable[[Body, Mapping[Var, Storage]], None]):
        self.steps = steps
        self.values = steps.values
        self.writer = steps.writer
        self.emit = emit
        self.sequential = False
        self.chunked: Node | None = None
        self.span = "start, stop"

    def step(self, step: Step, body: Body) -> None:
        """Emit a control step."""
        flow = body.flows[step]
        if isinstance(flow, Arms):
            self._branch(step.node, flow, body)
            return
        assert isinstance(flow, Turns)
        if isinstance(step.node.form, Scan):
            self._scan(step.node.form, step.node, flow)
        else:
            self._while(flow)

    def _enter(self, entries: Entries) -> None:
        """Make a body's inputs stand for outer values, in the current scope."""
        storage = self.values.storage
        for var, atom, place in entries:
            if isinstance(place, Same):
                storage[var] = storage[place.var]
                if not var.aval.shape:
                    self.writer.remember((var, ()), self.values.value(atom, ()))
            elif isinstance(place, Scratch):
                storage[var] = self.values.new_scratch(var)
                self.steps.fill(atom, storage[var])
            else:
                for idx in _every(var):
                    self.writer.remember((var, idx), self.values.value(atom, idx))

    # -- branches ----------------------------------------------------------------------------

    def _branch(self, node: Node, flow: Arms, body: Body) -> None:
        which: Any = self.values.integer(node.ins[0], ())
        results = {v: {i: self.writer.fresh("r") for i in _every(v)} for v in flow.registers}
        for var, operand in flow.donors.items():
            if var in body.filled:
                self.steps.fill(operand, self.values.storage[var])
        assert isinstance(node.form, Branch)
        last = len(node.form.branches) - 1
        test = text(which, str)  # the name of the local that holds it
        for arm in flow.arms:
            if len(flow.arms) == 1:
                header = "if True:"
            elif arm.number == last:
                header = "else:"
            else:
                op = "<=" if arm.number == 0 else "=="
                header = f"{'if' if arm.number == 0 else 'elif'} {test} {op} {arm.number}:"
            with self.writer.block(header, barrier=True):
                self._arm(node, arm, results)
        for var, names in results.items():
            for idx, name in names.items():
                self.writer.declare(name)
                self.writer.remember((var, idx), name)
                self.values.deliver(var, idx, name)

    def _arm(self, node: Node, arm: Arm, results: Mapping[Var, Elements]) -> None:
        self._enter(arm.entries)
        self.emit(arm.body, {})
        held: list[tuple[str, str]] = []
        for var, atom in zip(node.outs, arm.outputs, strict=True):
            for idx, name in results.get(var, {}).items():
                held.append((name, self.values.value(atom, idx)))
        for name, value in held:
            self.writer.line(f"{name} = {value}")

    # -- carries -----------------------------------------------------------------------------

    def _begin(self, carry: Carry) -> _Carried:
        """Set a carried value up before its loop."""
        held = _Carried(carry)
        if carry.place is not None:
            new = self.values.new_scratch(carry.var) if carry.scratch else None
            held.store = new or self.values.storage[carry.result]
            if carry.filled:
                self.steps.fill(carry.init, held.store)
            return held
        values: list[str] = []
        for idx in _every(carry.var):
            held.names[idx] = self.writer.declare(self.writer.fresh("c"))
            values.append(self.values.value(carry.init, idx))
        for name, value in zip(held.names.values(), values, strict=True):
            self.writer.line(f"{name} = {value}")
        return held

    def _spares(self, carries: Sequence[_Carried]) -> str | None:
        """Give carries their second buffers; return the flag that says which holds the value."""
        flag = None
        for c in carries:
            if not c.carry.spare:
                continue
            var = c.carry.var
            assert c.store is not None
            c.home = c.store
            spare = self.values.new_scratch(var)
            if c.carry.same:
                self.steps.copy(c.store, spare, var.aval.shape)
            here = self.writer.assign(self.steps.whole(c.store, var.aval.size), None, "p")
            there = self.writer.assign(spare.name, None, "q")
            strides = row_major(var.aval.shape)
            c.spare = Storage(there, strides, 0, self.writer.scope.depth)
            c.store = Storage(here, strides, 0, self.writer.scope.depth)
            flag = flag or self.writer.assign("False", None, "odd")
        return flag

    def _show(self, held: _Carried, var: Var) -> None:
        """Make a body's input stand for a carried value, inside the loop."""
        for idx, name in held.names.items():
            self.writer.remember((var, idx), name)
        if held.store is not None:
            self.values.storage[var] = held.store.read_from(self.writer.scope.depth)

    def _advance(
        self, carries: Sequence[_Carried], outputs: Sequence[Atom], flag: str | None
    ) -> None:
        """At the end of a turn, move new values into the carries."""
        moves: list[tuple[str, str]] = []
        for c, atom in zip(carries, outputs, strict=True):
            for idx, name in c.names.items():
                value = self.values.value(atom, idx)
                if value != name:
                    moves.append((name, value))
        changed = {name for name, _ in moves}
        held = [(n, self.writer.assign(v, None) if v in changed else v) for n, v in moves]
        for name, value in held:
            self.writer.line(f"{name} = {value}")
        for c in carries:
            if c.spare is not None and c.store is not None:
                a, b = c.store.name, c.spare.name
                self.writer.line(f"{a}, {b} = {b}, {a}")
        if flag is not None:
            self.writer.line(f"{flag} = not {flag}")

    def _end(self, carries: Sequence[_Carried], flag: str | None) -> None:
        """After the loop, make the results stand for the carries."""
        if flag is not None:
            with self.writer.block(f"if {flag}:", barrier=True):
                for c in carries:
                    if c.spare is not None and c.store is not None:
                        self.steps.copy(c.store, c.spare, c.carry.var.aval.shape)
        for c in carries:
            result = c.carry.result
            for idx, name in c.names.items():
                # The register is the loop's own: what follows gets a name that stays.
                final = self.writer.assign(name, None, "r")
                self.writer.remember((result, idx), final)
                self.values.deliver(result, idx, final)
            if c.carry.scratch:
                store = c.home or c.store
                assert store is not None
                self.values.storage[result] = store

    # -- loops -------------------------------------------------------------------------------

    def _while(self, flow: Turns) -> None:
        test = flow.test
        assert test is not None
        self._enter(flow.entries)
        carries = [self._begin(c) for c in flow.carries]
        flag = self._spares(carries)
        self.sequential = True
        with self._turning("while True:"):
            for c, var in zip(carries, flow.tested, strict=True):
                self._show(c, var)
                self._show(c, c.carry.var)
            self.emit(test, {})
            holds = self.values.value(test.block.outputs[0], ())
            with self.writer.block(f"if not {holds}:", barrier=True):
                self.writer.line("break")
            outputs = flow.body.block.outputs
            self.emit(flow.body, _spares_of(carries, outputs))
            self._advance(carries, outputs, flag)
        self._end(carries, flag)

    def _scan(self, form: Scan, node: Node, flow: Turns) -> None:
        self._enter(flow.entries)
        stacks = {
            var: self._stack(atom, stored=stored)
            for var, atom, stored in flow.rows
            if stored is not None
        }
        carries = [self._begin(c) for c in flow.carries]
        flag = self._spares(carries)
        name = self.writer.fresh("s")
        self.values.counted.add(name)
        self.sequential |= bool(carries)
        with self._turns(form, node, name):
            self.writer.declare(name)
            t = variable(name, form.length)
            t = form.length - 1 - t if form.reverse else t
            for c in carries:
                self._show(c, c.carry.var)
            for var, atom, stored in flow.rows:
                if stored is None:
                    self.writer.remember((var, ()), self.values.value(atom, (t,)))
                else:
                    self.values.storage[var] = self._row(stacks[var], t)
            outputs = flow.body.block.outputs[: len(carries)]
            targets = _spares_of(carries, outputs)
            for var, atom in flow.stacked:
                if isinstance(atom, Var) and atom.aval.shape:
                    targets[atom] = self._row(self.values.storage[var], t)
            self.emit(flow.body, targets)
            for var, atom in flow.stacked:
                if not atom.aval.shape:
                    row = self._row(self.values.storage[var], t)
                    self.values.put(row.name, row.base, self.values.value(atom, ()), var.aval.dtype)
            self._advance(carries, outputs, flag)
        self._end(carries, flag)

    @contextmanager
    def _turns(self, form: Scan, node: Node, name: str) -> Generator[None, None, None]:
        """Open the loop of a scan; a watched one in blocks, between which it looks at the clock."""
        watch = None if is_brief(node, self.values.limits) else form.watch
        if watch is None:
            span = self.span if node is self.chunked else self.values.number(form.length)
            with self._turning(f"for {name} in range({span}):"):
                yield
            return
        write, number = self.writer.line, self.values.number
        begun, due, look, told, now, block = map(self.writer.fresh, _WATCH)
        length, step, every = map(number, (form.length, watch.step, watch.every))
        bar = self.values.argument("i64", watch.number, "n")
        write(f"{begun} = fk.watch.clock()")
        write(f"{due} = {begun} + {every}")
        write(f"{look} = {step}")
        write(f"{told} = False")
        with self._turning(f"for {block} in range(0, {length}, {step}):"):
            with self.writer.block(f"if {block} >= {look}:", barrier=True):
                write(f"{now} = fk.watch.clock()")
                write(f"{look} = fk.watch.ahead({block}, {now} - {begun}, {every})")
                with self.writer.block(f"if {now} >= {due}:", barrier=True):
                    write(f"{due} = {now} + {every}")
                    write(f"{told} = fk.watch.shown({bar}, {block}, {now} - {begun})")
                    with self.writer.block(f"if not {told}:", barrier=True):
                        write("break")
            with self._turning(f"for {name} in range({block}, min({block} + {step}, {length})):"):
                yield
        with self.writer.block(f"if {told}:", barrier=True):
            write(f"fk.watch.shown({bar}, {length}, fk.watch.clock() - {begun})")

    @contextmanager
    def _turning(self, header: str) -> Generator[None, None, None]:
        """Open a loop whose turns carry values."""
        self.values.looping += 1
        with self.writer.block(header, barrier=True):
            yield
        self.values.looping -= 1

    def _stack(self, atom: Atom, *, stored: bool) -> Storage:
        """Return where a scanned array lies."""
        if not stored:
            assert not isinstance(atom, Literal)
            return self.values.storage[atom]
        store = self.values.new_scratch(Var(atom.aval))
        self.steps.fill(atom, store)
        return store

    def _row(self, store: Storage, t: Any) -> Storage:
        """Return row ``t`` of a stacked value."""
        base = store.base + t * store.strides[0]
        return Storage(store.name, store.strides[1:], base, self.writer.scope.depth)


def _every(var: Var) -> Any:
    return product(*map(range, var.aval.shape))


def _spares_of(carries: Sequence[_Carried], outputs: Sequence[Atom]) -> dict[Var, Storage]:
    return {
        atom: c.spare
        for c, atom in zip(carries, outputs, strict=True)
        if c.spare is not None and isinstance(atom, Var)
    }
