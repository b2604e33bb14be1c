"""Blocks inside a kernel: where each result lives, and the statements in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from ...core.forms import Branch, Call, Contract, Pieces, Scan, Update, While
from ...core.graph import Atom, Literal, Var
from ...core.symbolic import Scalar, leaves, variable
from ..schedule.fuse import Tree, paths, shared_depth
from ..schedule.nests import Nest, Statement, Step, counter
from ..schedule.plan import Item, Plan
from ..schedule.roots import SMALL
from .body import SHORT, Body, Storage, row_major

CONTROL = (Branch, While, Scan)


def statements_of(plan: Plan) -> list[Statement]:
    """Return the plan's nests and steps in order."""
    out: list[Statement] = []
    for item in plan.items:
        out.extend(item.members if isinstance(item, Tree) else [item])
    return out


class Blocks(Body):
    """Emits plans: decides storage, then runs through the items."""

    def __init__(self, sizes: frozenset[int] = frozenset()):
        super().__init__(sizes)
        self.keep: dict[Var, int] = {}  # shared loops around both writer and readers

    # -- storage -----------------------------------------------------------------------------

    def new_scratch(self, var: Var, contracted: tuple[bool, ...] | None = None) -> Storage:
        """Return working storage for a value, without the axes marked as contracted."""
        shape = var.aval.shape
        contracted = contracted or (False,) * len(shape)
        kept = [1 if c else n for n, c in zip(shape, contracted, strict=True)]
        strides = tuple(0 if c else s for s, c in zip(row_major(kept), contracted, strict=True))
        length = 1
        for n in kept:
            length *= n
        name = self.fresh("w")
        self.scratch[name] = (SHORT[var.aval.dtype.name], length)
        self.depth_of[name] = 0
        return Storage(name, strides, 0, self.scope.depth)

    def assign_storage(self, plan: Plan, targets: Mapping[Var, Storage], *, in_loop: bool) -> None:
        """Decide where each statement's results live: target, register, row buffer or scratch."""
        statements = statements_of(plan)
        targets = self._through(plan, targets)
        readers: dict[Var, list[Statement]] = {}
        for s in statements:
            for var in s.reads:
                readers.setdefault(var, []).append(s)
        outputs = {a for a in plan.block.outputs if isinstance(a, Var)}
        at = paths([i for i in plan.items if not isinstance(i, Step)])
        for s in statements:
            for j, var in enumerate(s.node.outs):
                mine = readers.get(var, [])
                if var in targets:
                    self.storage[var] = targets[var]
                elif var in plan.donated and plan.donated[var] in self.storage:
                    self.storage[var] = self.storage[plan.donated[var]]
                elif isinstance(s, Nest) and s not in plan.unrolled:
                    self._nest_storage(s, var, mine, at, var in outputs, in_loop=in_loop)
                elif any(self.requires_memory(var, r, plan) for r in mine) or (
                    s not in plan.unrolled and self.needs_storage(s, j)
                ):
                    self.storage[var] = self.new_scratch(var)

    @staticmethod
    def _through(plan: Plan, targets: Mapping[Var, Storage]) -> dict[Var, Storage]:
        """Let values that a target's value is written over live in the target from the start."""
        made = {v for s in statements_of(plan) for v in s.node.outs}
        full = dict(targets)
        for var, store in targets.items():
            donor = plan.donated.get(var)
            while donor is not None and donor in made and donor not in full:
                full[donor] = store
                donor = plan.donated.get(donor)
        return full

    def needs_storage(self, step: Statement, j: int) -> bool:
        """Whether result ``j`` of a step lives in memory whoever reads it."""
        return bool(step.node.outs[j].aval.shape) or isinstance(step.node.form, Call | Contract)

    def _nest_storage(
        self,
        s: Nest,
        var: Var,
        readers: list[Statement],
        at: dict[Nest, tuple[Tree, ...]],
        escapes: bool,
        *,
        in_loop: bool,
    ) -> None:
        together = [isinstance(r, Nest) and r in at for r in readers]
        if not var.aval.shape and not any(self._reads_array(var, r) for r in readers):
            return  # a register of the block
        depth = 0
        if not escapes and all(together) and readers:
            depth = min(shared_depth(at[s], at[r]) for r in readers if isinstance(r, Nest))
            depth = min(depth, s.parallel_depth)
        if depth and depth == s.parallel_depth and not s.in_memory:
            self.keep[var] = depth
            return  # a register of the shared loop
        counters = [counter(k, s.loops[k].extent) for k in range(depth)]
        contracted = tuple(ix in counters for ix in s.out)
        self.storage[var] = self.new_scratch(var, contracted)
        self.keep[var] = depth

    def _reads_array(self, var: Var, s: Statement) -> bool:
        return isinstance(s, Step) and isinstance(s.node.form, Call | Contract)

    def requires_memory(self, var: Var, s: Statement, plan: Plan) -> bool:
        """Whether a statement reads a value at places known only at run time."""
        if isinstance(s, Nest):
            spans = s not in plan.unrolled
            places = [ix for idx in s.reads[var] for ix in idx]
            if spans and not all(isinstance(ix, int) for ix in places):
                return True
            return any(isinstance(a, Scalar) for ix in places for a in leaves(ix))
        form = s.node.form
        if isinstance(form, Call | Contract):
            return True
        if not var.aval.shape:
            return False
        if isinstance(form, Update | Pieces):
            alone = var.aval.size == 1 and not (isinstance(form, Update) and var is s.node.ins[0])
            return s not in plan.unrolled and not alone
        return self.control_requires_memory(s, var)

    def control_requires_memory(self, s: Step, var: Var) -> bool:
        """Whether control flow needs an array operand in memory (overridden)."""
        return True

    # -- statements --------------------------------------------------------------------------

    def emit_plan(self, plan: Plan) -> None:
        """Emit a plan's items in order."""
        self.inlined.update(plan.inlined)
        for item in plan.items:
            self.emit_item(item, plan)

    def emit_item(self, item: Item, plan: Plan) -> None:
        """Emit one item."""
        node = item.members[0].node if isinstance(item, Tree) else item.node
        source = node.eqn.source
        if source.line:
            where = source.file.replace("\\", "/").rsplit("/", 1)[-1]
            self.note(f"# {where}:{source.line}: {source.text()}".rstrip(": "))
        if isinstance(item, Tree):
            self.emit_tree(item, ())
        elif isinstance(item, Nest):
            if item in plan.unrolled:
                self.unroll(item)
            else:
                self._finish(item, ())
        else:
            self.emit_step(item, plan)

    def entered(self, tree: Tree, last: int) -> None:
        """Note that loops up to depth ``last`` are open: their row buffers live from here."""
        for nest in tree.members:
            for var in nest.node.outs:
                if tree.depth < self.keep.get(var, 0) <= last + 1 and var in self.storage:
                    self.storage[var] = replace(self.storage[var], depth=self.scope.depth)

    def emit_step(self, step: Step, plan: Plan) -> None:
        """Emit a step that is not control flow."""
        form = step.node.form
        if isinstance(form, Pieces):
            self._pieces(step, form, plan)
        elif isinstance(form, Update):
            self._update(step, form, plan)
        elif isinstance(form, Call):
            self._call(step, form)
        elif isinstance(form, Contract):
            self._gemm(step, form)
        else:
            raise AssertionError(f"no emitter for {type(form).__name__}")

    def loops(self, stack: Any, extents: tuple[int, ...]) -> tuple[Any, ...]:
        """Open a loop per axis; return the counters."""
        out = []
        for n in extents:
            if n == 1:
                out.append(0)
                continue
            name = self.fresh("i")
            self.counted.add(name)
            stack.enter_context(self.block(f"for {name} in range({self.number(n)}):"))
            self.declare(name)
            out.append(variable(name, n))
        return tuple(out)

    def copy(self, source: Storage, to: Storage, shape: tuple[int, ...]) -> None:
        """Copy a whole array between storages."""
        if source.strides == to.strides == row_major(shape):
            with ExitStack() as stack:
                (i,) = self.loops(stack, (prod(shape),))
                element = f"{source.name}[{self.index(source.base + i)}]"
                self.line(f"{to.name}[{self.index(to.base + i)}] = {element}")
            return
        with ExitStack() as stack:
            idx = self.loops(stack, shape)
            element = f"{source.name}[{self.index(source.offset(idx))}]"
            self.line(f"{to.name}[{self.index(to.offset(idx))}] = {element}")

    def _pieces(self, step: Step, form: Pieces, plan: Plan) -> None:
        node, var = step.node, step.node.out
        if step in plan.unrolled:
            for idx in product(*(range(n) for n in var.aval.shape)):
                name = self._piece_at(node, form, idx)
                self.remember((var, idx), name)
                self._deliver(var, idx, name)
            return
        store = self.storage[var]
        dtype = var.aval.dtype
        if form.fill is not None:
            fill = self.value(node.ins[form.fill], ())
            with ExitStack() as stack:
                idx = self.loops(stack, var.aval.shape)
                self.put(store.name, store.offset(idx), fill, dtype)
        for piece in form.pieces:
            if 0 in piece.extents:
                continue
            with ExitStack() as stack:
                e = self.loops(stack, piece.extents)
                source = tuple(s + i for s, i in zip(piece.start, e, strict=True))
                name = self.value(node.ins[piece.operand], source)
                at = tuple(o + i * k for o, i, k in zip(piece.offset, e, piece.stride, strict=True))
                self.put(store.name, store.offset(at), name, dtype)

    def _piece_at(self, node: Any, form: Pieces, idx: tuple[int, ...]) -> str:
        for piece in form.pieces:
            steps = [
                divmod(i - o, k) for i, o, k in zip(idx, piece.offset, piece.stride, strict=True)
            ]
            inside = all(
                rest == 0 and 0 <= q < n for (q, rest), n in zip(steps, piece.extents, strict=True)
            )
            if inside:
                source = tuple(s + q for s, (q, _) in zip(piece.start, steps, strict=True))
                return self.value(node.ins[piece.operand], source)
        return self.value(node.ins[form.fill], ())

    def _update(self, step: Step, form: Update, plan: Plan) -> None:
        node, var = step.node, step.node.out
        dtype = var.aval.dtype
        operand = node.ins[0]
        if step in plan.unrolled:
            self._update_registers(step, form)
            return
        store = self.storage[var]
        if plan.donated.get(var) is not operand or self.stored(operand) != store:
            self.fill_from(operand, store)
        if 0 in form.extents:
            return
        with ExitStack() as stack:
            u = self.loops(stack, form.extents)
            read = self.reader(node)
            at = form.index(u, read)
            test = self.test(form.valid(u, read)) if form.valid is not None else None
            if test is not None:
                stack.enter_context(self.block(f"if {test}:", barrier=True))
            new = self.value(node.ins[form.value], u)
            offset = store.offset(at)
            if form.combine != "{1}":
                old = self.assign(self.fetch(store.name, offset, dtype), None, "old")
                new = self._combine_update(form, old, new, dtype)
            self.put(store.name, offset, new, dtype)

    def _combine_update(self, form: Update, old: str, new: str, dtype: Any) -> str:
        if isinstance(form.combine, str):
            return self.assign(self.round(form.combine.format(old, new), dtype), None, "new")
        return self.scalar_graph(form.combine, [old, new])[0]

    def _update_registers(self, step: Step, form: Update) -> None:
        node, var = step.node, step.node.out
        read = self.reader(node)
        values = {
            idx: self.value(node.ins[0], idx)
            for idx in product(*(range(n) for n in var.aval.shape))
        }
        for u in product(*(range(n) for n in form.extents)):
            at = form.index(u, read)
            if form.valid is not None and any(
                not low <= ix < high for low, ix, high in form.valid(u, read)
            ):
                continue
            new = self.value(node.ins[form.value], u)
            if form.combine != "{1}":
                new = self._combine_update(form, values[at], new, var.aval.dtype)
            values[at] = new
        for idx, name in values.items():
            self.remember((var, idx), name)
            self._deliver(var, idx, name)

    def stored(self, atom: Atom) -> Storage | None:
        """Return where a value lies, if it lies in memory."""
        return None if isinstance(atom, Literal) else self.storage.get(atom)

    def fill_from(self, atom: Atom, store: Storage) -> None:
        """Write a value, wherever it lives, into a storage."""
        aval = atom.aval
        source = self.stored(atom)
        if source is not None:
            if source != store:
                self.copy(source, store, aval.shape)
        elif aval.size <= SMALL:
            for idx in product(*(range(n) for n in aval.shape)):
                self.put(store.name, store.offset(idx), self.value(atom, idx), aval.dtype)
        else:
            with ExitStack() as stack:
                idx = self.loops(stack, aval.shape)
                self.put(store.name, store.offset(idx), self.value(atom, idx), aval.dtype)

    def whole(self, store: Storage, size: int) -> str:
        """Return the rank-1 array of a value that lies contiguously."""
        if store.base == 0:
            return store.name
        low = self.index(store.base)
        return f"{store.name}[{low} : {self.index(store.base + size)}]"

    def array_of(self, atom: Atom) -> str:
        """Return the rank-1 array that holds a value, stored first if it is not."""
        if not isinstance(atom, Literal) and atom in self.storage:
            return self.whole(self.storage[atom], atom.aval.size)
        var = Var(atom.aval)
        store = self.new_scratch(var)
        self.fill_from(atom, store)
        return store.name

    def _call(self, step: Step, form: Call) -> None:
        node = step.node
        arrays = [self.array_of(a) for a in node.ins]
        arrays += [self.array_of(v) for v in node.outs]
        statics = [
            self.number(s) if isinstance(s, int) and not isinstance(s, bool) else repr(s)
            for s in form.statics
        ]
        self.line(f"{form.function}({', '.join([*arrays, *statics])})")
        self._read_scalars(node.outs)

    def _read_scalars(self, results: Iterable[Var]) -> None:
        """Read the rank-0 results of a kernel, which writes arrays, into registers."""
        for var in results:
            if not var.aval.shape:
                element = self.fetch(self.array_of(var), 0, var.aval.dtype)
                self.remember((var, ()), self.assign(element))

    def _gemm(self, step: Step, form: Contract) -> None:
        """Call the matrix product kernel on operands brought to (batch, row, column) order."""
        node = step.node
        lhs, rhs = (a.aval for a in node.ins)
        out = node.out
        lhs_free = [a for a in range(lhs.ndim) if a not in (*form.lhs_contract, *form.lhs_batch)]
        rhs_free = [a for a in range(rhs.ndim) if a not in (*form.rhs_contract, *form.rhs_batch)]
        left = self._ordered(node.ins[0], (*form.lhs_batch, *lhs_free, *form.lhs_contract), out)
        right = self._ordered(node.ins[1], (*form.rhs_batch, *form.rhs_contract, *rhs_free), out)

        def extent(shape: tuple[int, ...], axes: Any) -> str:
            n = 1
            for a in axes:
                n *= shape[a]
            return self.number(n)

        sizes = [
            extent(lhs.shape, form.lhs_batch), extent(lhs.shape, lhs_free),
            extent(lhs.shape, form.lhs_contract), extent(rhs.shape, rhs_free),
        ]  # fmt: skip
        result = self.array_of(out)
        self.line(f"fk.gemm.batched({', '.join([left, right, result, *sizes])})")
        self._read_scalars((out,))

    def _ordered(self, atom: Atom, axes: tuple[int, ...], out: Var) -> str:
        if axes == tuple(range(atom.aval.ndim)) and atom.aval.dtype == out.aval.dtype:
            return self.array_of(atom)
        shape = tuple(atom.aval.shape[a] for a in axes)
        store = self.new_scratch(Var(out.aval.update(shape=shape)))
        with ExitStack() as stack:
            idx = self.loops(stack, shape)
            source = tuple(idx[axes.index(a)] for a in range(len(axes)))
            self.put(store.name, store.offset(idx), self.value(atom, source), out.aval.dtype)
        return store.name
