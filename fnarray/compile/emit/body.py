"""The body of a kernel: values at indices, loads, stores, and the loops of nests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...core.dtypes import bfloat16
from ...core.forms import Bound, Iota, Map, Operand, Reduce, Reindex
from ...core.graph import Atom, ClosedGraph, Literal, Var
from ...core.symbolic import (
    Ix,
    LoopVar,
    Opaque,
    bounds,
    leaves,
    scalar,
    substitute,
    text,
    variable,
)
from ...errors import UnsupportedOnTarget
from ..schedule.access import Indices, broadcast_index
from ..schedule.fuse import Tree
from ..schedule.nests import Nest, counter_var, reduction_of, register_name
from ..simplify import Node, simplified
from .writer import Writer

#: Integers up to this size are spelled out in kernels; larger ones, which are sizes, strides and
#: offsets, are arguments, so that another size of array runs the same kernel.
SPELLED = 16

SHORT = {
    "bool": "b1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "u16", "bfloat16": "u16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
HALF = {"float16": "f16", "bfloat16": "bf16"}


def row_major(shape: Iterable[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a C-ordered array."""
    strides: list[int] = []
    step = 1
    for n in reversed(tuple(shape)):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a value lies: a rank-1 array, an offset, a stride per axis (0 for a contracted one).

    ``depth`` is the scope from which on it may be read.
    """

    name: str
    strides: tuple[int, ...]
    base: Any = 0
    depth: int = 0

    def offset(self, idx: Indices) -> Any:
        """Return the position of an element."""
        total = self.base
        for i, stride in zip(idx, self.strides, strict=True):
            total = total + i * stride
        return total


class Body(Writer):
    """Emits one kernel's statements.

    Parameters
    ----------
    sizes : frozenset of int
        Sizes of arrays in the program: literals that equal one of them are taken for sizes, and
        become arguments.
    """

    def __init__(self, sizes: frozenset[int] = frozenset()):
        super().__init__()
        self.sizes = sizes
        self.inlined: dict[Var, Node] = {}
        self.storage: dict[Var, Storage] = {}
        self.scalars: dict[tuple[str, Any], str] = {}  # (code, value) -> parameter
        self.counted: set[str] = set()  # counters that run from 0, known not to be negative
        self.scratch: dict[str, tuple[str, int]] = {}  # parameter -> (code, length)

    # -- constants ---------------------------------------------------------------------------

    def number(self, n: int) -> str:
        """Spell an integer of index arithmetic."""
        if abs(n) <= SPELLED:
            return str(n)
        if n < 0:
            return f"-{self.argument('i64', -n, 'n')}"
        return self.argument("i64", n, "n")

    def argument(self, code: str, value: Any, prefix: str) -> str:
        """Return the scalar parameter that brings a value in."""
        key = (code, value)
        if key not in self.scalars:
            self.scalars[key] = self.fresh(prefix)
            self.depth_of[self.scalars[key]] = 0
        return self.scalars[key]

    def literal(self, value: Any, dtype: np.dtype) -> str:
        """Return a name or literal for a constant in the register type of ``dtype``."""
        code = "f32" if dtype.name in HALF else SHORT[dtype.name]
        if code == "b1":
            return str(bool(value))
        if code in ("c64", "c128"):
            return self._constant(f"{code}(complex({_real(value.real)}, {_real(value.imag)}))")
        plain = float(value) if dtype.kind in "fV" else int(value)
        if plain == plain and abs(plain) > SPELLED and plain in self.sizes:
            return self.argument(code, plain, "v")
        if code == "f64":
            return _real(plain)
        return self._constant(f"{code}({_real(plain) if code == 'f32' else plain})")

    def _constant(self, spelled: str) -> str:
        known = self.scopes[0].memo.get(spelled)
        if known is None:
            known = self.fresh("c")
            self.scopes[0].lines.insert(0, f"{known} = {spelled}")
            self.scopes[0].memo[spelled] = known
            self.depth_of[known] = 0
        return known

    # -- indices -----------------------------------------------------------------------------

    def depth_of_index(self, ix: Any) -> int:
        """Return the depth of the innermost scope an index depends on."""
        return max((self.depth_of[a.name] for a in leaves(ix)), default=0)

    def index(self, ix: Any) -> str:
        """Return an index as source, as an element position: unsigned unless plainly not < 0."""
        spelled = text(ix, self.number)
        if isinstance(ix, int) or spelled in self.counted:
            return spelled
        return f"u({spelled})"

    def integer(self, atom: Atom, idx: Indices) -> Any:
        """Return the integer that a value holds, as an index."""
        if isinstance(atom, Literal):
            return int(atom.val)
        name = self.value(atom, idx)
        key = ("index", name)
        known = self.recall(key)
        if known is None:
            depth = self.depth_of[name]
            known = self.assign(f"i64({name})", depth, "j")
            self.remember(key, known, depth)
        kind, bits = atom.aval.dtype.kind, 8 * atom.aval.dtype.itemsize
        if kind == "b":
            return scalar(known, 0, 1)
        if kind == "u" and bits < 64:
            return scalar(known, 0, (1 << bits) - 1)
        return scalar(known) if bits == 64 else scalar(known, -(1 << bits - 1), (1 << bits - 1) - 1)

    def reader(self, node: Node) -> Callable[[int, Indices], Any]:
        """Return the ``read`` of a node's index functions."""
        return lambda k, idx: self.integer(node.ins[k], idx)

    def test(self, conditions: Iterable[Bound]) -> str | None:
        """Return the test that indices are within bounds; None when they always are."""
        tests = []
        for low, ix, high in conditions:
            least, most = bounds(ix)
            spelled = text(ix, self.number)
            if least < low:
                tests.append(f"{spelled} >= {self.number(low)}")
            if most >= high:
                tests.append(f"{spelled} < {self.number(high)}")
        return " and ".join(tests) or None

    # -- values ------------------------------------------------------------------------------

    def value(self, atom: Atom, idx: Indices) -> str:
        """Return a name or literal for an element of a value."""
        if isinstance(atom, Literal):
            return self.literal(atom.val, atom.aval.dtype)
        known = self.recall((atom, idx))
        if known is not None:
            return known
        store = self.storage.get(atom)
        if store is not None:
            return self._load(atom, idx, store)
        return self.compute(self.inlined[atom], idx)

    def _load(self, var: Var, idx: Indices, store: Storage) -> str:
        if not var.aval.size:  # inside a loop that never runs, out of which a load may move
            return self.literal(0, var.aval.dtype)
        offset = store.offset(idx)
        depth = max(store.depth, self.depth_of_index(offset), self.floor)
        name = self.assign(self.fetch(store.name, offset, var.aval.dtype), depth)
        self.remember((var, idx), name, depth)
        return name

    def fetch(self, array: str, offset: Any, dtype: np.dtype) -> str:
        """Return the expression of an element in its register type."""
        element = f"{array}[{self.index(offset)}]"
        half = HALF.get(dtype.name)
        return f"sc.{half}_load({element})" if half else element

    def put(self, array: str, offset: Any, name: str, dtype: np.dtype) -> None:
        """Store a register's value."""
        half = HALF.get(dtype.name)
        self.line(f"{array}[{self.index(offset)}] = {f'sc.{half}_store({name})' if half else name}")

    def round(self, expression: str, dtype: np.dtype) -> str:
        """Return an expression rounded to a half type, as each operation's result is."""
        half = HALF.get(dtype.name)
        return f"sc.{half}_load(sc.{half}_store({expression}))" if half else expression

    def compute(self, node: Node, idx: Indices) -> str:
        """Compute an element of an elementwise or reindexing node."""
        form, out = node.form, node.out
        if isinstance(form, Map):
            operands = [self.value(a, broadcast_index(a.aval.shape, idx)) for a in node.ins]
            depth = max((self.depth_of.get(o, 0) for o in operands), default=0)
            name = self.assign(self.round(form.template.format(*operands), out.aval.dtype), depth)
        elif isinstance(form, Iota):
            ix = idx[form.dimension]
            dtype = out.aval.dtype
            cast = SHORT[dtype.name] if dtype.kind == "c" else f"sc.to_{register_name(dtype)}"
            depth = self.depth_of_index(ix)
            name = self.assign(self.round(f"{cast}({text(ix, self.number)})", dtype), depth)
        else:
            name = self._reindexed(node, form, idx)
            depth = self.depth_of.get(name, 0)
        self.remember((out, idx), name, depth)
        return name

    def _reindexed(self, node: Node, form: Reindex, idx: Indices) -> str:
        read = self.reader(node)
        source = form.index(idx, read)
        test = self.test(form.valid(idx, read)) if form.valid is not None else None
        if test is None:
            return self.value(node.ins[0], source)
        name = self.declare(self.fresh("t"))
        self.line(f"{name} = {self.literal(form.fill, node.out.aval.dtype)}")
        with self.block(f"if {test}:", barrier=True):
            self.line(f"{name} = {self.value(node.ins[0], source)}")
        return name

    # -- nests -------------------------------------------------------------------------------

    def emit_items(self, items: Iterable[Tree | Nest], counters: tuple[Any, ...] = ()) -> None:
        """Emit trees and nests, inside loops with the given counters."""
        for item in items:
            if isinstance(item, Nest):
                self._finish(item, counters)
            else:
                self.emit_tree(item, counters)

    def emit_tree(self, tree: Tree, counters: tuple[Any, ...], span: str | None = None) -> None:
        """Emit a fused loop.

        Parameters
        ----------
        span : str, optional
            Source of the range to run instead of the whole extent.
        """
        depth, extent, children = self._collapse(tree)
        for nest in tree.members:
            if nest.parallel_depth == tree.depth < len(nest.loops):
                self._begin(nest, counters)
        name = self.fresh("i")
        if span is None:
            self.counted.add(name)
        with self.block(f"for {name} in range({span or self.number(extent)}):"):
            self.declare(name)
            self.entered(tree, depth)
            flat = variable(name, extent)
            self.emit_items(children, (*counters, *self._split(tree, depth, flat)))
        for nest in tree.members:
            if nest.parallel_depth == tree.depth < len(nest.loops):
                self._end(nest, counters)

    def entered(self, tree: Tree, last: int) -> None:
        """Note that a fused loop standing for depths up to ``last`` is open (overridden)."""

    def _split(self, tree: Tree, depth: int, flat: Any) -> list[Any]:
        """Return the counters of the loops that one loop stands for."""
        extents = [tree.members[0].loops[k].extent for k in range(tree.depth, depth + 1)]
        out: list[Any] = []
        for n in reversed(extents[1:]):
            out.append(flat % n)
            flat = flat // n
        return [flat, *reversed(out)]

    def _collapse(self, tree: Tree) -> tuple[int, int, list[Any]]:
        """Return the last depth, total extent and children of the loops that can run as one.

        Loops nested perfectly run as one counter where every array they touch is traversed
        contiguously by it.
        """
        depth, extent, children = tree.depth, tree.extent, tree.children
        while len(children) == 1 and isinstance(children[0], Tree):
            inner = children[0]
            if len(inner.members) != len(tree.members):
                break
            pairs = [(m.loops[depth].reduced, m.loops[depth + 1].reduced) for m in tree.members]
            if any(a != b for a, b in pairs):
                break
            if not all(self._contiguous(m, tree.depth, depth + 1) for m in tree.members):
                break
            depth, extent, children = depth + 1, extent * inner.extent, inner.children
        return depth, extent, children

    def _contiguous(self, nest: Nest, first: int, last: int) -> bool:
        total = prod(nest.loops[k].extent for k in range(first, last + 1))
        if not total:
            return False
        flat = variable("flat", total)
        values: dict[Any, Any] = {}
        for k in range(last, first - 1, -1):
            n = nest.loops[k].extent
            values[counter_var(k, n)] = flat % n if k > first else flat
            flat = flat // n

        def plain(ix: Any) -> bool:
            ix = substitute(ix, values)
            return isinstance(ix, int) or not any(isinstance(a, Opaque) for a in ix.terms)

        for var, indices in nest.reads.items():
            if var not in self.storage:
                continue  # a register of a shared loop
            strides = self.storage[var].strides
            for idx in indices:
                if not plain(sum((i * s for i, s in zip(idx, strides, strict=True)), 0)):
                    return False
        writes = [nest.out] if nest.parallel_depth > first or nest.in_memory else []
        for out in writes:
            if nest.node.out not in self.storage:
                continue
            strides = self.storage[nest.node.out].strides
            if not plain(sum((i * s for i, s in zip(out, strides, strict=True)), 0)):
                return False
        return all(plain(v) for v in nest.values)

    def _place(self, nest: Nest, counters: tuple[Any, ...]) -> tuple[Indices, Indices]:
        """Return a nest's output and folded indices in the counters of the open loops."""
        values: dict[Any, Any] = {
            counter_var(k, loop.extent): counters[k] if k < len(counters) else 0
            for k, loop in enumerate(nest.loops)
        }
        out = tuple(substitute(ix, values) for ix in nest.out)
        return out, tuple(substitute(ix, values) for ix in nest.inner)

    def _start(self, form: Reduce, node: Node, j: int, dtype: np.dtype) -> str:
        init = form.inits[j]
        if isinstance(init, Operand):
            return self.value(node.ins[init.number], ())
        return self.literal(np.asarray(init, dtype)[()], dtype)

    def _accumulators(self, form: Reduce, node: Node) -> list[np.dtype]:
        if form.dtypes is not None:
            return [np.dtype(d) for d in form.dtypes]
        return [v.aval.dtype for v in node.outs]

    def _begin(self, nest: Nest, counters: tuple[Any, ...]) -> None:
        """Start a fold: set its accumulators, scalars or a box of the result."""
        form = reduction_of(nest.node)
        assert form is not None
        dtypes = self._accumulators(form, nest.node)
        if not nest.in_memory:
            names = []
            for j, dtype in enumerate(dtypes):
                start = self._start(form, nest.node, j, dtype)
                names.append(self.assign(start, None, "acc"))
            self.remember(("acc", nest), ",".join(names))
            return
        start = self._start(form, nest.node, 0, dtypes[0])
        store = self.storage[nest.node.out]
        inner = [k for k in range(len(counters), len(nest.loops)) if not nest.loops[k].reduced]
        with ExitStack() as stack:
            values = {}
            for k in inner:
                extent = nest.loops[k].extent
                name = self.fresh("i")
                self.counted.add(name)
                stack.enter_context(self.block(f"for {name} in range({self.number(extent)}):"))
                self.declare(name)
                values[counter_var(k, extent)] = variable(name, extent)
            full = tuple(
                substitute(ix, {**values, **self._known(nest, counters)}) for ix in nest.out
            )
            self.put(store.name, store.offset(full), start, nest.node.out.aval.dtype)

    def _known(self, nest: Nest, counters: tuple[Any, ...]) -> dict[LoopVar, Any]:
        return {
            counter_var(k, nest.loops[k].extent): counters[k]
            for k in range(len(counters))
            if k < len(nest.loops)
        }

    def _finish(self, nest: Nest, counters: tuple[Any, ...]) -> None:
        """Emit the innermost part of a nest: one element, or one term of a fold."""
        node = nest.node
        out, inner = self._place(nest, counters)
        form = reduction_of(node)
        if form is None:
            name = self.value_of_root(node, out)
            self._deliver(node.out, out, name)
        else:
            self._term(nest, form, out, inner)
            if not nest.loops or not any(loop.reduced for loop in nest.loops):
                self._end(nest, counters)

    def value_of_root(self, node: Node, idx: Indices) -> str:
        """Compute an element of a node that has storage of its own."""
        name = self.compute(node, idx)
        self.remember((node.out, idx), name, self.depth_of.get(name, 0))
        return name

    def _deliver(self, var: Var, idx: Indices, name: str) -> None:
        store = self.storage.get(var)
        if store is not None:
            self.put(store.name, store.offset(idx), name, var.aval.dtype)

    def _term(self, nest: Nest, form: Reduce, out: Indices, inner: Indices) -> None:
        node = nest.node
        known = self.recall(("acc", nest))
        if known is None and not nest.in_memory:  # every folded loop has one iteration
            self._begin(nest, ())
            known = self.recall(("acc", nest))
        test = self.test(form.valid(out, inner)) if form.valid is not None else None
        with ExitStack() as stack:
            if test is not None:
                stack.enter_context(self.block(f"if {test}:", barrier=True))
            operands = [
                self.value(a, index(out, inner))
                for a, index in zip(node.ins, form.index, strict=False)
            ]
            spelled = {}
            if any("{r" in t for t in form.terms):  # else spelling would ask for size arguments
                spelled = {f"r{k}": text(ix, self.number) for k, ix in enumerate(inner)}
            terms = [t.format(*operands, **spelled) for t in form.terms]
            if nest.in_memory:
                store = self.storage[node.out]
                offset = store.offset(out)
                old = self.fetch(store.name, offset, node.out.aval.dtype)
                new = self.combined(form, [old], terms)[0]
                self.put(store.name, offset, new, node.out.aval.dtype)
                return
            assert known is not None
            names = known.split(",")
            if len(names) > 1 or isinstance(form.combine, ClosedGraph):
                terms = [self.assign(t, None, "x") for t in terms]
            new = self.combined(form, names, terms)
            if len(names) > 1:
                new = [self.assign(n, None, "y") for n in new]
            for name, expression in zip(names, new, strict=True):
                self.line(f"{name} = {expression}")

    def combined(self, form: Reduce, old: list[str], terms: list[str]) -> list[str]:
        """Return the expressions of the accumulators' new values."""
        if isinstance(form.combine, ClosedGraph):
            return self.scalar_graph(form.combine, [*old, *terms])
        named = {f"a{j}": a for j, a in enumerate(old)} | {f"x{j}": x for j, x in enumerate(terms)}
        return [c.format(**named) for c in form.combine]

    def scalar_graph(self, graph: ClosedGraph, args: list[str]) -> list[str]:
        """Emit a graph of rank-0 values on registers; return the names of its results.

        Raises
        ------
        UnsupportedOnTarget
            It does more than compute with numbers: loops, branches, calls of Python functions.
        """
        block = simplified(graph.jaxpr)
        for node in block.nodes:
            if not isinstance(node.form, Map | Iota | Reindex):
                raise UnsupportedOnTarget(
                    f"{node.eqn.primitive} at {node.eqn.source}: the function of a reduction, "
                    "window or scatter runs inside its loop, and may hold elementwise operations "
                    "only. Use lax.fori_loop or lax.associative_scan."
                )
        for var, name in zip(block.inputs, args, strict=True):
            # A name of its own: the accumulator's is about to change.
            self.remember((var, ()), self.assign(name, None, "x"))
        self.inlined.update((n.out, n) for n in block.nodes)
        return [self.value(a, ()) for a in block.outputs]

    def _result(self, name: str, dtype: np.dtype, var: Var) -> str:
        """Return an accumulator's value in the result's dtype."""
        want = var.aval.dtype
        if dtype == want:
            return name
        return self.assign(self.round(f"sc.to_{register_name(want)}({name})", want), None)

    def _end(self, nest: Nest, counters: tuple[Any, ...]) -> None:
        """Finish a fold: its accumulators become the results."""
        if nest.in_memory:
            return
        form = reduction_of(nest.node)
        assert form is not None
        known = self.recall(("acc", nest))
        assert known is not None
        out, _ = self._place(nest, counters)
        names = known.split(",")
        dtypes = self._accumulators(form, nest.node)
        for var, j in zip(nest.node.outs, form.results, strict=True):
            name = self._result(names[j], dtypes[j], var)
            self.remember((var, out), name)
            self._deliver(var, out, name)

    # -- unrolled ----------------------------------------------------------------------------

    def unroll(self, nest: Nest) -> None:
        """Emit a small nest with its loops written out; its elements become registers."""
        node = nest.node
        form = reduction_of(node)
        for idx in product(*(range(n) for n in node.out.aval.shape)):
            if form is None:
                name = self.value_of_root(node, idx)
                self._deliver(node.out, idx, name)
                continue
            dtypes = self._accumulators(form, node)
            old = [self._start(form, node, j, d) for j, d in enumerate(dtypes)]
            for inner in product(*(range(n) for n in form.extents)):
                if form.valid is not None and self.test(form.valid(idx, inner)) is not None:
                    continue
                operands = [
                    self.value(a, index(idx, inner))
                    for a, index in zip(node.ins, form.index, strict=False)
                ]
                terms = [
                    t.format(*operands, **{f"r{k}": i for k, i in enumerate(inner)})
                    for t in form.terms
                ]
                new = self.combined(form, old, terms)
                old = [self.assign(n, None, "acc") for n in new]
            for var, j in zip(node.outs, form.results, strict=True):
                name = self._result(old[j], dtypes[j], var)
                self.remember((var, idx), name)
                self._deliver(var, idx, name)


def _real(x: Any) -> str:
    x = float(x)
    if x != x:
        return "nan"
    if x in (float("inf"), float("-inf")):
        return "inf" if x > 0 else "-inf"
    return repr(x)


__all__ = ["HALF", "SHORT", "Body", "Ix", "Storage", "bfloat16", "row_major"]
