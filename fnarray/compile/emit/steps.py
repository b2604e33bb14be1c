"""Steps of a kernel that are no nests and no control flow: layouts, updates, calls of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import chain, islice, product
from math import prod
from typing import Any

import numpy as np

from ...core.avals import ShapedArray
from ...core.forms import Contract, Library, Piece, Pieces, Update
from ...core.graph import Atom, Literal, Var
from ...core.symbolic import leaves, scalar
from ...errors import UnsupportedOnTarget
from ..ir import Node
from ..schedule.access import Indices, row_major
from ..schedule.nests import Step, counter, register_name
from ..schedule.plan import Body, Layout, Operands
from ..target import weighed
from .loops import split
from .source import CORES
from .values import Storage, Values

#: The work of moving an element (`schedule.work`).
_COPIED = 2
#: A piece of a layout is small if so many like it would not make the whole.
_PIECES = 16
#: Rows of so many elements that are several pieces are written at once. Column by column each line
#: of memory is written, and what they share is read, as often as there are columns: 100,000 cross
#: products took 294 us, and so 153.
_ROW = 8
#: Rows or columns that a product must have for threads to share them.
_THIN = 64
#: Rows, terms and columns of a product that has a routine of its own, whose text is short.
_FEW = 64
#: Parts of a pass for each thread, and its operations that take as long as one of a loop's that is
#: worth sharing: vectors compute them, and each part has tables of its own.
_PARTS, _FAST = 2, 8
#: Of so many updates, and neighbours of each, some are looked at; of these most must go where the
#: one before goes. What the processor guesses wrong, as a run ends, costs it 27 cycles: runs of 16
#: took 0.72 of the time (9.6 million), of 16 or so 0.83, of 8 or so 1.5. Of 8,000 in runs of 50 it
#: is 0.53, in no order 0.98; of fewer the second loop takes LLVM longer than it will ever save.
_MANY, _LOOKS, _MOST = 1 << 13, 16, 236
#: The largest integer of BLAS.
_INT = 2**31 - 1


class Steps:
    """Spells the steps of bodies."""

    def __init__(self, values: Values):
        self.values = values
        self.writer = values.writer

    def step(self, step: Step, body: Body) -> None:
        """Emit a step that is not control flow."""
        form, flow = step.node.form, body.flows.get(step)
        if isinstance(form, Pieces):
            if step in body.unrolled:
                self._pieces_unrolled(step.node, form)
            else:
                assert isinstance(flow, Layout)
                self._pieces(step.node, form, flow)
        elif isinstance(form, Update):
            if step in body.unrolled:
                self._update_unrolled(step.node, form)
            else:
                self._update(step.node, form, filled=step.node.out in body.filled)
        elif isinstance(form, Library):
            assert isinstance(flow, Operands)
            self._call(step.node, form, flow)
        else:
            assert isinstance(form, Contract)
            assert isinstance(flow, Operands)
            self._product(step.node, form, flow)

    # -- whole arrays ------------------------------------------------------------------------

    def copy(self, source: Storage, to: Storage, shape: tuple[int, ...]) -> None:
        """Copy a whole array between storages."""
        self.values.share(_COPIED * prod(shape))
        with ExitStack() as stack:
            if source.strides == to.strides == row_major(shape):
                (i,) = self.values.loops(stack, (prod(shape),))
                read, write = source.base + i, to.base + i
            else:
                idx = self.values.loops(stack, shape)
                read, write = source.offset(idx), to.offset(idx)
            element = f"{source.name}[{self.values.index(read)}]"
            self.writer.line(f"{to.name}[{self.values.index(write)}] = {element}")

    def fill(self, atom: Atom, store: Storage) -> None:
        """Write a value, wherever it lives, into a storage."""
        aval = atom.aval
        source = self.values.stored(atom)
        if source is not None:
            self.copy(source, store, aval.shape)
        elif aval.size <= self.values.limits.registers:
            for idx in product(*map(range, aval.shape)):
                self._put(store, idx, self.values.value(atom, idx), aval.dtype)
        else:
            self.values.share(_COPIED * aval.size)
            with ExitStack() as stack:
                idx = self.values.loops(stack, aval.shape)
                self._put(store, idx, self.values.value(atom, idx), aval.dtype)

    def whole(self, store: Storage, size: int) -> str:
        """Return the rank-1 array of a value that lies contiguously."""
        if store.base == 0:
            return store.name
        low = self.values.index(store.base)
        return f"{store.name}[{low} : {self.values.index(store.base + size)}]"

    def _put(self, store: Storage, idx: Indices, name: str, dtype: np.dtype) -> None:
        self.values.put(store.name, store.offset(idx), name, dtype)

    def _array(self, atom: Atom, *, stored: bool) -> str:
        """Return the rank-1 array that holds a value, written first where it has none."""
        if not stored:
            assert not isinstance(atom, Literal)
            return self.whole(self.values.storage[atom], atom.aval.size)
        store = self.values.new_scratch(Var(atom.aval))
        self.fill(atom, store)
        return store.name

    # -- layouts -----------------------------------------------------------------------------

    def _pieces(self, node: Node, form: Pieces, layout: Layout) -> None:
        store, dtype = self.values.storage[node.out], node.out.aval.dtype
        if form.fill is not None:
            fill = self.values.value(node.ins[form.fill], ())
            for starts, extents in _around(form.pieces, node.out.aval.shape):
                self.values.share(prod(extents))
                with ExitStack() as stack:
                    at = zip(starts, self.values.loops(stack, extents), strict=True)
                    self._put(store, tuple(low + i for low, i in at), fill, dtype)
        for pieces, runs in _abreast(form.pieces, layout.runs, nested=self._nests()):
            # A column is left to who has its rows: each of its elements is on a line of its own.
            shape, size = node.out.aval.shape, node.out.aval.size
            elements = sum(prod(piece.extents) for piece in pieces)
            high = bool(shape) and 2 * pieces[0].extents[0] >= shape[0]
            large = _PIECES * elements >= size
            self.values.share(_COPIED * size if high or large else 0)
            with ExitStack() as rows:
                lead = self._counters(rows, pieces[0].extents[: sum(runs)], runs)
                for piece in pieces:
                    along = piece.extents[sum(runs) :]
                    with ExitStack() as row:
                        e = (*lead, *(self.values.loops(row, along) if along else ()))
                        self._put_element(node, piece, e, store, dtype)

    def _nests(self) -> bool:
        """Whether loops may stand in a loop: they may not where threads share each of them."""
        return True

    def _put_element(
        self, node: Node, piece: Piece, e: Indices, store: Storage, dtype: np.dtype
    ) -> None:
        """Write the element of a piece at a place in it."""
        source = tuple(s + i for s, i in zip(piece.start, e, strict=True))
        name = self.values.value(node.ins[piece.operand], source)
        at = tuple(o + i * k for o, i, k in zip(piece.offset, e, piece.stride, strict=True))
        self._put(store, at, name, dtype)

    def _counters(
        self, stack: ExitStack, extents: tuple[int, ...], runs: tuple[int, ...]
    ) -> list[Any]:
        """Open a loop for each run of axes; return a counter for each axis."""
        axes = iter(extents)
        together = [tuple(islice(axes, n)) for n in runs]
        counters = self.values.loops(stack, tuple(map(prod, together)))
        return [i for some, c in zip(together, counters, strict=True) for i in split(some, c)]

    def _pieces_unrolled(self, node: Node, form: Pieces) -> None:
        for idx in product(*map(range, node.out.aval.shape)):
            name = self._piece_at(node, form, idx)
            self.writer.remember((node.out, idx), name)
            self.values.deliver(node.out, idx, name)

    def _piece_at(self, node: Node, form: Pieces, idx: tuple[int, ...]) -> str:
        for piece in form.pieces:
            steps = [
                divmod(i - o, k) for i, o, k in zip(idx, piece.offset, piece.stride, strict=True)
            ]
            inside = all(
                rest == 0 and 0 <= q < n for (q, rest), n in zip(steps, piece.extents, strict=True)
            )
            if inside:
                source = tuple(s + q for s, (q, _) in zip(piece.start, steps, strict=True))
                return self.values.value(node.ins[piece.operand], source)
        assert form.fill is not None
        return self.values.value(node.ins[form.fill], ())

    # -- updates -----------------------------------------------------------------------------

    def _update(self, node: Node, form: Update, *, filled: bool) -> None:
        store = self.values.storage[node.out]
        if filled:
            self.fill(node.ins[0], store)
        if 0 in form.extents:
            return
        if not self._comes_in_runs(form):
            self._updates(node, form, store, None)
            return
        last = self.writer.assign("i64(-1)", None, "last")
        run = last, self.writer.assign(self.values.literal(0, node.out.aval.dtype), None, "run")
        with self.writer.block(f"if {self._are_alike(node, form, store)}:", barrier=True):
            self._updates(node, form, store, run)
        with self.writer.block("else:", barrier=True):
            self._updates(node, form, store, None)

    def _updates(
        self, node: Node, form: Update, store: Storage, run: tuple[str, str] | None
    ) -> None:
        """Make all updates, in order."""
        with ExitStack() as stack:
            read, valid, tested = self.values.reader(node), form.valid, self._tested(form)
            u = self.values.loops(stack, form.extents[:tested])
            rest = (0,) * (len(form.extents) - tested)
            # The loop is one of scalars: a comparison less is 17 % of a sparse product.
            test = None
            if valid is not None:
                test = self.values.test(valid((*u, *rest), read), once=True)
            if test is not None:
                stack.enter_context(self.writer.block(f"if {test}:", barrier=True))
            if rest:
                u = (*u, *self.values.loops(stack, form.extents[tested:]))
            at = form.index(u, read)
            new = self.values.value(node.ins[form.value], u)
            if run is None:
                self._merge(node, form, store, store.offset(at), new)
            else:
                self._add_to_run(node, form, store, store.offset(at), new, run)

    def _tested(self, form: Update) -> int:
        """Return how many loops are around the test whether updates have a place: rows have one."""
        counters = tuple(counter(k, n) if n > 1 else 0 for k, n in enumerate(form.extents))
        if form.valid is None:
            return len(counters)
        found: set[Any] = set()

        def read(k: int, idx: Indices) -> Any:
            found.update(*map(leaves, idx))
            return scalar("read")

        for _, ix, _ in form.valid(counters, read):
            found.update(leaves(ix))
        used = [k for k, c in enumerate(counters) if c and found & leaves(c)]
        return max(used, default=-1) + 1

    def _comes_in_runs(self, form: Update) -> bool:
        """Whether many updates, one at a time, may go to one element in a row."""
        long = [n for n in form.extents if n > 1]
        return form.combine != "{1}" and not form.apart and len(long) == 1 and long[0] >= _MANY

    def _are_alike(self, node: Node, form: Update, store: Storage) -> str:
        """Return the test that most updates go where the one before goes, by looks at some.

        Neighbours, since each place that is looked at is a page that was not read for long.
        """
        count = self.writer.assign("i64(0)", None, "count")
        apart = (max(form.extents) - 1) // _LOOKS
        read = self.values.reader(node)
        with ExitStack() as stack:
            i = self.values.loop(stack, _LOOKS) * apart + self.values.loop(stack, _LOOKS)
            first, second = (
                self.values.spelled(store.offset(form.index(u, read)))
                for u in (tuple(k if n > 1 else 0 for n in form.extents) for k in (i, i + 1))
            )
            self.writer.line(f"{count} = {count} + i64({first} == {second})")
        return f"{count} >= {_MOST}"

    def _add_to_run(
        self, node: Node, form: Update, store: Storage, offset: Any, new: str, run: tuple[str, str]
    ) -> None:
        """Combine an element with an update; the next one to it need not wait for the store."""
        last, total = run
        dtype = node.out.aval.dtype
        place = self.values.spelled(offset)
        with self.writer.block(f"if {place} != {last}:", barrier=True):
            self.writer.line(f"{last} = {place}")
            self.writer.line(f"{total} = {self.values.fetch(store.name, offset, dtype)}")
        self.writer.line(f"{total} = {self.values.updated(node, form.combine, total, new)}")
        self.values.put(store.name, offset, total, dtype)

    def _merge(self, node: Node, form: Update, store: Storage, offset: Any, new: str) -> None:
        """Combine an element of a result with an update."""
        dtype = node.out.aval.dtype
        if form.combine != "{1}":
            fetched = self.values.fetch(store.name, offset, dtype)
            old = self.writer.assign(fetched, None, "old")
            new = self.values.updated(node, form.combine, old, new)
        self.values.put(store.name, offset, new, dtype)

    def _update_unrolled(self, node: Node, form: Update) -> None:
        read = self.values.reader(node)
        every = product(*map(range, node.out.aval.shape))
        elements: dict[Any, str] = {idx: self.values.value(node.ins[0], idx) for idx in every}
        for u in product(*map(range, form.extents)):
            at = form.index(u, read)
            if form.valid is not None and any(
                not low <= ix < high for low, ix, high in form.valid(u, read)
            ):
                continue
            new = self.values.value(node.ins[form.value], u)
            if form.combine != "{1}":
                new = self.values.updated(node, form.combine, elements[at], new)
            elements[at] = new
        for idx, name in elements.items():
            self.writer.remember((node.out, idx), name)
            self.values.deliver(node.out, idx, name)

    # -- kernels -----------------------------------------------------------------------------

    def _call(self, node: Node, form: Library, operands: Operands) -> None:
        arrays = [self._array(a, stored=s) for a, s in zip(node.ins, operands.stored, strict=True)]
        arrays += [self._array(v, stored=False) for v in node.outs]
        if form.blas:
            self.values.product = max(self.values.product, self.values.limits.serial + 1)
        sizes = [x.aval.size for x in (*node.ins, *node.outs)]
        if not (self._in_passes(form, arrays) or self._in_parts(form, arrays, sizes)):
            self.writer.line(f"{form.op}({', '.join([*arrays, *self._statics(form.statics)])})")
        self._read_scalars(node.outs)

    def _statics(self, statics: Iterable[Any]) -> list[str]:
        whole = (isinstance(s, int) and not isinstance(s, bool) for s in statics)
        number = self.values.number
        return [number(s) if w else repr(s) for s, w in zip(statics, whole, strict=True)]

    def _in_passes(self, form: Library, arrays: list[str]) -> bool:
        """Write the passes of a step, which threads share, if it is worth it; return whether."""
        source, out = arrays[0], arrays[-1]
        for k, (op, statics) in enumerate(form.passes):
            if not self.values.share((form.flops or 0) // (_FAST * len(form.passes))):
                return False
            parts = f"{self.values.argument('i64', CORES, 'cores')} * {_PARTS}"
            part = self.writer.fresh("i")
            with self.writer.block(f"for {part} in range({parts}):"):
                args = [out if k else source, out, *self._statics(statics), part, parts]
                self.writer.line(f"{op}({', '.join(args)})")
        return bool(form.passes)

    def _in_parts(self, form: Library, arrays: list[str], sizes: list[int]) -> bool:
        """Write calls for parts of a stack, which threads share, if it is worth it.

        64 complex systems of 50 equations took 1.4 ms on one thread. A call for each matrix would
        take 20 ns.
        """
        count = form.statics[0] if form.stacked else 1
        if count < 2 or not self.values.share(form.flops or 0):
            return False
        number, writer = self.values.number, self.writer
        parts = f"{self.values.argument('i64', CORES, 'cores')} * {_PARTS}"
        part, low, high = map(writer.fresh, ("i", "low", "high"))
        with writer.block(f"for {part} in range({parts}):"):
            writer.line(f"{low} = {number(count)} * {part} // ({parts})")
            writer.line(f"{high} = {number(count)} * ({part} + 1) // ({parts})")
            args: list[str] = []
            for array, size in zip(arrays, sizes, strict=True):
                each = number(size // count)
                args.append(f"{array}[{each} * {low} : {each} * {high}]")
            args += [f"{high} - {low}", *self._statics(form.statics[1:])]
            writer.line(f"{form.op}({', '.join(args)})")
        return True

    def _read_scalars(self, results: Iterable[Var]) -> None:
        """Read the rank-0 results of a kernel, which writes arrays, into registers."""
        for var in results:
            if not var.aval.shape:
                array = self._array(var, stored=False)
                element = self.values.fetch(array, 0, var.aval.dtype)
                self.writer.remember((var, ()), self.writer.assign(element))

    def _product(self, node: Node, form: Contract, operands: Operands) -> None:
        """Library the matrix product kernel on operands brought to (batch, row, column) order."""
        lhs, rhs = (a.aval.shape for a in node.ins)
        out = node.out.aval
        wide = np.dtype(register_name(out.dtype))
        arrays = [
            self._array(a, stored=stored) if order is None else self._reordered(a, order, wide)
            for a, stored, order in zip(node.ins, operands.stored, operands.orders, strict=True)
        ]
        batch = prod(lhs[a] for a in form.lhs_batch)
        inner = prod(lhs[a] for a in form.lhs_contract)
        rows, columns = (prod(shape) // (batch * inner) for shape in (lhs, rhs))
        if node.out.aval.dtype.kind in "fc" and max(rows, inner, columns) > _INT:
            raise UnsupportedOnTarget(
                f"{node.eqn.primitive} at {node.eqn.source}: BLAS counts rows and columns to "
                f"{_INT}, got ({rows}, {inner}) @ ({inner}, {columns}) inside of a loop. "
                "Multiply outside of it, or part by part."
            )
        work = weighed(rows * inner * columns, node.out.aval.dtype)
        self.values.product = max(self.values.product, work)
        sizes = [self.values.number(n) for n in (batch, rows, inner, columns)]
        sizes += map(str, map(int, operands.turned))
        sums = None if wide == out.dtype else self.values.new_scratch(Var(out.update(dtype=wide)))
        arrays.append(sums.name if sums else self._array(node.out, stored=False))
        if (
            batch == 1
            and out.dtype.kind == "f"
            and min(rows, columns) > 1
            and max(rows, inner, columns) <= _FEW
        ):
            self.writer.line(f"fk.gemm.few({', '.join([*arrays, *sizes[1:]])})")
        else:
            share = batch == 1 and max(rows, columns) >= _THIN
            self._multiply(arrays, sizes, work if share else 0)
        if sums:
            with ExitStack() as stack:
                idx = self.values.loops(stack, out.shape)
                element = self.values.fetch(sums.name, sums.offset(idx), wide)
                self._put(self.values.storage[node.out], idx, element, out.dtype)
        self._read_scalars((node.out,))

    def _multiply(self, arrays: list[str], sizes: list[str], work: int) -> None:
        """Call BLAS, once or for the part of each thread."""
        limits = self.values.limits
        if self.values.parts or not limits.split <= work <= limits.alone:
            self.writer.line(f"fk.gemm.batched({', '.join([*arrays, *sizes])})")
            return
        cores = self.values.argument("i64", CORES, "cores")
        self.writer.line(f"fk.threads.share({cores}, {cores})")
        part = self.writer.fresh("i")
        with self.writer.block(f"for {part} in range({cores}):"):
            args = ", ".join([*arrays, *sizes[1:], part, cores])
            self.writer.line(f"fk.gemm.part({args})")

    def _reordered(self, atom: Atom, axes: tuple[int, ...], dtype: np.dtype) -> str:
        """Write an operand to an array with its axes in another order, in another dtype."""
        shape = tuple(atom.aval.shape[a] for a in axes)
        store = self.values.new_scratch(Var(ShapedArray(shape, dtype)))
        with ExitStack() as stack:
            idx = self.values.loops(stack, shape)
            source = tuple(idx[axes.index(a)] for a in range(len(axes)))
            self._put(store, idx, self.values.value(atom, source), dtype)
        return store.name


def _around(
    pieces: tuple[Piece, ...], shape: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return boxes that hold what pieces leave free: where each begins, and its extents.

    They are the margins of a piece that is alone and most of the whole, or else the whole: a wave
    of 500 x 500 whose neighbours were padded like that took 0.94 of the time.
    """
    piece = pieces[0] if len(pieces) == 1 else None
    if piece is None or max(piece.stride, default=1) > 1 or 2 * prod(piece.extents) < prod(shape):
        return [((0,) * len(shape), shape)]
    boxes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for a, (low, n, whole) in enumerate(zip(piece.offset, piece.extents, shape, strict=True)):
        for start, extent in ((0, low), (low + n, whole - low - n)):
            if extent:
                starts = (*piece.offset[:a], start, *(0 for _ in shape[a + 1 :]))
                boxes.append((starts, (*piece.extents[:a], extent, *shape[a + 1 :])))
    return boxes


def _abreast(
    pieces: Iterable[Piece], runs: Iterable[tuple[int, ...]], *, nested: bool
) -> list[tuple[tuple[Piece, ...], tuple[int, ...]]]:
    """Return the pieces that the same loops lay out, and over how many axes each counter runs.

    Pieces side by side share the loops over their rows, and have one each along these, if loops may
    be nested. Those that make short rows are cut into columns, which share all.
    """
    groups: list[tuple[Any, list[Piece], tuple[int, ...]]] = []
    for piece, run in zip(pieces, runs, strict=True):
        if 0 in piece.extents:
            continue
        lead = (*run[:-1], run[-1] - 1) if run[-1] > 1 else run[:-1]
        rows = lead, piece.extents[:-1], piece.offset[:-1], piece.stride[:-1]
        if groups and groups[-1][0] == rows and prod(piece.extents[:-1]) > 1:
            beside = [*groups[-1][1], piece]
            if nested or _is_short(beside):
                groups[-1] = rows, beside, lead if nested else (*lead, 1)
                continue
        groups.append((rows, [piece], run))
    return [(tuple(_cut(some)), run) for _, some, run in groups]


def _cut(beside: Sequence[Piece]) -> Iterable[Piece]:
    """Return pieces side by side, or their columns where these are few."""
    few = len(beside) > 1 and _is_short(beside)
    return chain.from_iterable(map(_columns, beside)) if few else beside


def _is_short(beside: Sequence[Piece]) -> bool:
    return sum(p.extents[-1] for p in beside) <= _ROW


def _columns(piece: Piece) -> Iterable[Piece]:
    """Yield the columns of a piece."""
    for k in range(piece.extents[-1]):
        start, offset = piece.start[-1] + k, piece.offset[-1] + k * piece.stride[-1]
        yield Piece(
            piece.operand,
            (*piece.start[:-1], start),
            (*piece.extents[:-1], 1),
            (*piece.offset[:-1], offset),
            piece.stride,
        )
