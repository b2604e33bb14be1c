"""The loops of a kernel: fused trees, folds, and small nests written out."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.forms import Operand, Overlay, Reduce
from ...core.symbolic import substitute, text, variable
from ..ir import Node
from ..schedule.access import Indices
from ..schedule.nests import Nest, counter_var, register_name
from ..schedule.plan import Body, Scratch, Tree
from .sums import Sums, row
from .values import Counters, Values

if TYPE_CHECKING:
    from .masks import Masked

#: Sums of up to so many terms are added in order in each turn of a loop: rows that turn in groups
#: (decision 0114) have other loops around them, by which LLVM orders what it may order.
IN_ORDER = 8


class Loops:
    """Spells the nests of bodies.

    Attributes
    ----------
    span : str
        Source of the range of the outermost loop, where the kernel runs a part of it.
    in_blocks : bool
        Whether long sums are taken in blocks.
    """

    in_blocks = True

    def __init__(self, values: Values):
        self.values = values
        self.writer = values.writer
        self.sums = Sums(values)
        self.span = ""
        #: Of each fold that is open: the accumulators of each place that is folded side by side.
        self._accumulators: dict[Nest, list[list[str]]] = {}

    # -- trees -------------------------------------------------------------------------------

    def tree(self, tree: Tree, body: Body, counters: Counters = ()) -> None:
        """Emit a fused loop, inside loops with the given counters."""
        folded = [m for m in tree.members if m.parallel_depth == tree.depth < len(m.loops)]
        for nest in folded:
            with self.writer.spelling(nest.node):
                self._begin(nest, counters, tree)
        chunk = self.span if tree.depth == 0 else ""
        span = chunk or self.values.number(tree.extent)
        turns = {m: n for m in tree.members if (n := self.sums.turns(m, tree))}
        with ExitStack() as stack:
            stack.enter_context(self.writer.spelling(*(m.node for m in tree.members)))
            if turns:
                span = self._block(stack, span, min(turns.values()))
            for nest in tree.members:
                if self.in_blocks and self.sums.rows(nest, tree):
                    stack.enter_context(self._row_sum(nest))
            name = self.writer.fresh("i")
            if not chunk and not turns:
                self.values.counted.add(name)
            inside = (*counters, *split(tree.extents, variable(name, tree.extent)))
            within = None if chunk or turns else self._masked(tree, inside)
            if within is not None:
                span = f"{within.low}, {within.high}"
            with self.writer.block(f"for {name} in range({span}):"):
                self.writer.declare(name)
                self._enter(tree, body)
                if within is not None and within.chosen is not None:
                    masked, chosen = within.chosen
                    self.writer.remember(masked, self.values.value(*chosen))
                over = replaced(tree.children)
                for child in tree.children:
                    if isinstance(child, Nest):
                        self.nest(child, inside, stored=child not in over)
                    else:
                        self.tree(child, body, inside)
            for nest in turns:
                with self.writer.spelling(nest.node):
                    self.sums.add(nest, counters)
        for nest in folded:
            with self.writer.spelling(nest.node):
                self._end(nest, counters)

    @contextmanager
    def _row_sum(self, nest: Nest) -> Generator[None, None, None]:
        """Have a loop inside of others of its fold sum by itself."""
        assert nest.fold is not None
        parts = self._accumulators[nest]
        (dtype,) = accumulator_dtypes(nest.fold, nest.node)
        with self.sums.row(parts, dtype) as self._accumulators[nest]:
            yield
        self._accumulators[nest] = parts

    def _masked(self, tree: Tree, counters: Counters) -> Masked | None:
        """Return the range of a fold's terms that a mask lets pass, the rest of them folded."""
        (nest, *others) = tree.children
        if others or not isinstance(nest, Nest) or nest.fold is None or self.sums.has(nest):
            return None
        if self.values.stored(nest.node.ins[0]) is not None:
            return None
        from .masks import masked  # which programs without sums of what they compute never need

        place = nest.fold.index[0](*_place(nest, counters))
        within = masked(self.values, tree, nest, counters[-1], place)
        if within is not None and within.left_out is not None:
            left_out = self.values.literal(within.left_out.val, within.left_out.aval.dtype)
            with self.writer.block(f"if {within.misses}:", barrier=True):
                (names,) = self._accumulators[nest]
                (new,) = self._combined(nest.fold, nest.node, names, [left_out])
                self.writer.line(f"{names[0]} = {new}")
        return within

    def _block(self, stack: ExitStack, span: str, turns: int) -> str:
        """Open the loop over the blocks of a range; return the range of one."""
        first, last = span.split(", ") if ", " in span else ("0", span)
        name = self.writer.fresh("b")
        stack.enter_context(self.writer.block(f"for {name} in range({first}, {last}, {turns}):"))
        self.writer.declare(name)
        return f"{name}, min({name} + {turns}, {last})"

    def _enter(self, tree: Tree, body: Body) -> None:
        """Note that the tree's loop is open: row buffers that live in it may be read from here."""
        storage = self.values.storage
        for nest in tree.members:
            for var in nest.node.outs:
                place = body.places.get(var)
                if isinstance(place, Scratch) and tree.depth < place.depth <= tree.last + 1:
                    storage[var] = storage[var].read_from(self.writer.scope.depth)

    def nest(self, nest: Nest, counters: Counters, *, stored: bool = True) -> None:
        """Emit the innermost part of a nest: one element, or one term of a fold.

        An element that is not ``stored`` is known by name to who replaces it.
        """
        with self.writer.spelling(nest.node):
            self._nest(nest, counters, stored=stored)

    def _nest(self, nest: Nest, counters: Counters, *, stored: bool) -> None:
        out, inner = _place(nest, counters)
        if nest.fold is None:
            form = nest.node.form
            if isinstance(form, Overlay):
                name = self._overlaid(nest, form, out, inner)
            else:
                name = self._root(nest.node, out)
            if stored:
                self.values.deliver(nest.node.out, out, name)
            return
        self._term(nest, nest.fold, out, inner)
        if not any(loop.reduced for loop in nest.loops):
            self._end(nest, counters)

    def _overlaid(self, nest: Nest, form: Overlay, idx: Indices, u: Indices) -> str:
        """Compute the element of an overlay that replaces the one at ``idx``."""
        node, values = nest.node, self.values
        name = values.value(node.ins[1], u)
        if form.combine != "{1}":
            name = values.updated(node, form.combine, values.value(node.ins[0], idx), name)
        self.writer.remember((node.out, idx), name, self.writer.depth_of.get(name, 0))
        return name

    def _root(self, node: Node, idx: Indices) -> str:
        """Compute an element of a node that is a statement of its own."""
        name = self.values.compute(node, idx)
        self.writer.remember((node.out, idx), name, self.writer.depth_of.get(name, 0))
        return name

    # -- folds -------------------------------------------------------------------------------

    def _start(self, fold: Reduce, node: Node, j: int, dtype: np.dtype) -> str:
        init = fold.inits[j]
        if isinstance(init, Operand):
            return self.values.value(node.ins[init.number], ())
        return self.values.literal(np.asarray(init, dtype)[()], dtype)

    def _begin(self, nest: Nest, counters: Counters, tree: Tree | None = None) -> None:
        """Start a fold: set its accumulators, scalars or a box of the result."""
        fold, node = nest.fold, nest.node
        assert fold is not None
        dtypes = accumulator_dtypes(fold, node)
        accumulators: list[list[str]] = []
        if nest.in_memory:
            start = self._start(fold, node, 0, dtypes[0])
            store = self.values.storage[node.out]
            with ExitStack() as stack:
                place = row(stack, nest, counters, self.values)
                self.values.put(store.name, store.offset(place), start, node.out.aval.dtype)
        else:
            accumulators = [
                [
                    self.writer.assign(self._start(fold, node, j, dtype), None, "acc")
                    for j, dtype in enumerate(dtypes)
                ]
                for _ in nest.places(nest.out)
            ]
        if self.in_blocks and tree is not None and self.sums.takes(nest, tree):
            accumulators = self.sums.begin(nest, accumulators, counters)
        self._accumulators[nest] = accumulators

    def _term(self, nest: Nest, fold: Reduce, out: Indices, inner: Indices) -> None:
        """Fold one term, of each place that is folded side by side."""
        if nest.in_memory:
            self._term_at(nest, fold, out, inner, [])
            return
        if nest not in self._accumulators:
            self._begin(nest, ())  # every folded loop has one iteration
        for place, names in zip(nest.places(out), self._accumulators[nest], strict=True):
            self._term_at(nest, fold, place, inner, names)

    def _term_at(
        self, nest: Nest, fold: Reduce, out: Indices, inner: Indices, names: list[str]
    ) -> None:
        values, node = self.values, nest.node
        test = values.test(fold.valid(out, inner)) if fold.valid is not None else None
        with ExitStack() as stack:
            if test is not None:
                stack.enter_context(self.writer.block(f"if {test}:", barrier=True))
            terms = self._terms(fold, node, out, inner)
            if nest.in_memory:
                store = self.sums.stored.get(nest) or values.storage[node.out]
                offset = store.offset(out)
                old = values.fetch(store.name, offset, node.out.aval.dtype)
                new = self._combined(fold, node, [old], terms)[0]
                values.put(store.name, offset, new, node.out.aval.dtype)
                return
            if len(names) > 1 or node.bodies:
                terms = [self.writer.assign(t, None, "x") for t in terms]
            new = self._combined(fold, node, names, terms)
            if len(names) > 1:
                new = [self.writer.assign(n, None, "y") for n in new]
            for name, expression in zip(names, new, strict=True):
                self.writer.line(f"{name} = {expression}")

    def _terms(self, fold: Reduce, node: Node, out: Indices, inner: Indices) -> list[str]:
        """Return the expressions of what is folded at one place."""
        operands = [
            self.values.value(a, index(out, inner))
            for a, index in zip(node.ins, fold.index, strict=False)
        ]
        spelled = {}
        if any("{r" in t for t in fold.terms):  # else spelling would ask for size arguments
            spelled = {
                f"r{k}": str(ix) if isinstance(ix, int) else text(ix, self.values.number)
                for k, ix in enumerate(inner)
            }
        return [t.format(*operands, **spelled) for t in fold.terms]

    def _combined(self, fold: Reduce, node: Node, old: list[str], terms: list[str]) -> list[str]:
        """Return the expressions of the accumulators' new values."""
        if not isinstance(fold.combine, tuple):
            return self.values.scalar_block(node.bodies[0], [*old, *terms])
        named = {f"a{j}": a for j, a in enumerate(old)} | {f"x{j}": x for j, x in enumerate(terms)}
        spelled = fold.combine
        if self.values.looping and node.form is fold and prod(fold.extents) <= IN_ORDER:
            spelled = fold.in_order or spelled
        return [c.format(**named) for c in spelled]

    def _end(self, nest: Nest, counters: Counters) -> None:
        """Finish a fold: its accumulators become the results."""
        accumulators = self._accumulators[nest]
        if self.sums.has(nest):
            accumulators = self.sums.end(nest, counters)
        if nest.in_memory:
            return
        assert nest.fold is not None
        out, _ = _place(nest, counters)
        for place, names in zip(nest.places(out), accumulators, strict=True):
            self._results(nest, nest.fold, place, names)

    def _results(self, nest: Nest, fold: Reduce, idx: Indices, names: list[str]) -> None:
        dtypes = accumulator_dtypes(fold, nest.node)
        for var, j in zip(nest.node.outs, fold.results, strict=True):
            name, want = names[j], var.aval.dtype
            if dtypes[j] != want:
                cast = f"sc.to_{register_name(want)}({name})"
                name = self.writer.assign(self.values.round(cast, want), None)
            self.writer.remember((var, idx), name)
            self.values.deliver(var, idx, name)

    # -- written out -------------------------------------------------------------------------

    def unrolled(self, nest: Nest) -> None:
        """Emit a small nest with its loops written out; its elements become registers."""
        node, fold = nest.node, nest.fold
        form = node.form
        box = {}
        if isinstance(form, Overlay):
            box = {form.index(u): u for u in _every(form.extents)}
        for idx in _every(node.out.aval.shape):
            if isinstance(form, Overlay):
                u = box.get(idx)
                if u is not None:
                    name = self._overlaid(nest, form, idx, u)
                else:
                    name = self.values.value(node.ins[0], idx)
                    self.writer.remember((node.out, idx), name)
                self.values.deliver(node.out, idx, name)
                continue
            if fold is None:
                self.values.deliver(node.out, idx, self._root(node, idx))
                continue
            dtypes = accumulator_dtypes(fold, node)
            old = [self._start(fold, node, j, d) for j, d in enumerate(dtypes)]
            for inner in _every(fold.extents):
                if fold.valid is not None and self.values.test(fold.valid(idx, inner)) is not None:
                    continue
                terms = self._terms(fold, node, idx, inner)
                new = self._combined(fold, node, old, terms)
                old = [self.writer.assign(n, None, "acc") for n in new]
            self._results(nest, fold, idx, old)


def _every(shape: Iterable[int]) -> Iterable[tuple[int, ...]]:
    return product(*map(range, shape))


def replaced(children: Sequence[Tree | Nest]) -> set[Nest]:
    """Return the nests whose elements an overlay replaces in the same turn of their loop."""
    over = {c.node.ins[0]: c.out for c in children if isinstance(c, Nest) and lays(c)}
    nests = (c for c in children if isinstance(c, Nest) and c.fold is None)
    return {c for c in nests if over.get(c.node.out) == c.out}


def lays(nest: Nest) -> bool:
    """Whether a nest replaces a box of its operand."""
    return isinstance(nest.node.form, Overlay)


def split(extents: tuple[int, ...], flat: Any) -> list[Any]:
    """Return the counters of the loops that one counter stands for."""
    out: list[Any] = []
    for n in reversed(extents[1:]):
        n = max(n, 1)  # of 0, the loop never turns
        out.append(flat % n)
        flat = flat // n
    return [flat, *reversed(out)]


def _place(nest: Nest, counters: Counters) -> tuple[Indices, Indices]:
    """Return a nest's output and folded indices in the counters of the open loops."""
    at: dict[Any, Any] = {
        counter_var(k, loop.extent): counters[k] if k < len(counters) else 0
        for k, loop in enumerate(nest.loops)
    }
    out = tuple(substitute(ix, at) for ix in nest.out)
    return out, tuple(substitute(ix, at) for ix in nest.inner)


def accumulator_dtypes(fold: Reduce, node: Node) -> list[np.dtype]:
    """Return the dtypes of a fold's accumulators."""
    if fold.dtypes is not None:
        return [np.dtype(d) for d in fold.dtypes]
    return [v.aval.dtype for v in node.outs]
