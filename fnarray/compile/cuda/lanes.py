"""Loops over arrays whose elements never meet: a thread for each, its carries in registers.

A scan over a carried vector, whose turns compute elementwise, is as many scans over numbers. The
plan sees one loop of array operations; here every array is its element of one lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

from ...core.forms import Iota, Map, Reindex, Scan, While
from ...core.graph import Atom, Literal, Var
from ...core.symbolic import variable
from ..emit.loops import split
from ..emit.values import Storage
from ..ir import Block, Node
from ..schedule.access import Indices
from .grids import LANES, Grid, grid_of
from .trees import WIDE
from .values import GridValues

Shape = tuple[int, ...]


# ---- which loops these are -----------------------------------------------------------------------


def lane_shape(node: Node) -> Shape | None:
    """Return the shape of a loop's lanes, one element of its arrays each; None where they meet."""
    form = node.form
    if isinstance(form, Scan):
        if not form.num_carry:
            return None
        (block,), tests = node.bodies, []
        firm = block.inputs[: form.num_consts]
    elif isinstance(form, While):
        test, block = node.bodies
        tests, firm = [test], block.inputs[: form.body_nconsts]
    else:
        return None
    values = [v for n in block.nodes for v in n.outs]
    values += [v for v in block.inputs if v not in firm]
    shapes = {v.aval.shape for v in values} - {()}
    if len(shapes) != 1 or prod(shape := shapes.pop()) < WIDE:
        return None
    apart = all(_is_apart(n, set(firm)) for n in block.nodes)
    alone = all(_is_apart(n, set()) and not n.out.aval.shape for b in tests for n in b.nodes)
    whole = all(a.aval.shape in ((), shape) for a in block.outputs)
    return shape if apart and alone and whole and _tests_numbers(tests) else None


def _is_apart(node: Node, firm: set[Var]) -> bool:
    """Whether an element of a result needs no element of another lane."""
    if isinstance(node.form, Map | Iota):
        return all(not a.aval.shape or a.aval.shape == node.out.aval.shape for a in node.ins)
    if not isinstance(node.form, Reindex):
        return False
    return all(not a.aval.shape or a in firm for a in node.ins)


def _tests_numbers(tests: Sequence[Block]) -> bool:
    """Whether what a test reads of the carries is numbers, which all lanes share."""
    return all(
        isinstance(a, Literal) or not a.aval.shape
        for block in tests
        for n in block.nodes
        for a in n.ins
    )


# ---- their text ----------------------------------------------------------------------------------


class LaneFlow:
    """Spells such a loop."""

    def __init__(self, values: GridValues, node: Node):
        self.values = values
        self.writer = values.writer
        self.node = node
        self.at: Indices = ()

    def write(self, shape: Shape) -> Grid:
        """Write the loop, for all lanes; return the grid."""
        total = prod(shape)
        with ExitStack() as stack:
            lane = self.values.turns(stack, total, "thread()", "threads()")
            self.at = tuple(split(shape, lane))
            form = self.node.form
            if isinstance(form, Scan):
                self._scan(form)
            else:
                self._while(form)
        return grid_of(total, LANES, 1 << 20)

    def _index(self, var: Atom) -> Indices:
        return self.at if var.aval.shape else ()

    def _enter(self, inputs: Sequence[Var], atoms: Sequence[Atom]) -> None:
        """Make a body's inputs stand for values outside."""
        for var, atom in zip(inputs, atoms, strict=True):
            store = self.values.stored(atom)
            if store is not None and var.aval.shape:
                self.values.storage[var] = store
            else:
                at = self._index(var)
                self.writer.remember((var, at), self.values.value(atom, at))

    def _begin(self, inits: Sequence[Atom]) -> list[str]:
        firsts = [self.values.value(a, self._index(a)) for a in inits]
        names = [self.writer.declare(self.writer.fresh("c")) for _ in inits]
        for name, value in zip(names, firsts, strict=True):
            self.writer.line(f"{name} = {value}")
        return names

    def _show(self, variables: Sequence[Var], names: Sequence[str]) -> None:
        for var, name in zip(variables, names, strict=True):
            self.writer.remember((var, self._index(var)), name)

    def _advance(self, names: Sequence[str], outputs: Sequence[Atom]) -> None:
        values = [self.values.value(a, self._index(a)) for a in outputs]
        moves = [(n, v) for n, v in zip(names, values, strict=True) if n != v]
        changed = {n for n, _ in moves}
        held = [(n, self.writer.assign(v, None) if v in changed else v) for n, v in moves]
        for name, value in held:
            self.writer.line(f"{name} = {value}")

    def _end(self, results: Sequence[Var], names: Sequence[str]) -> None:
        for var, name in zip(results, names, strict=True):
            self.values.deliver(var, self._index(var), name)

    def _scan(self, form: Scan) -> None:
        node, (block,) = self.node, self.node.bodies
        nk, nc = form.num_consts, form.num_carry
        first = len(block.inputs) - nc
        self._enter(block.inputs[:nk], node.ins[:nk])
        names = self._begin(node.ins[nk : nk + nc])
        counter = self.writer.fresh("s")
        self.values.counted.add(counter)
        header = f"for {counter} in range({self.values.number(form.length)}):"
        with self.writer.block(header, barrier=True):
            self.writer.declare(counter)
            t = variable(counter, form.length)
            t = form.length - 1 - t if form.reverse else t
            self._show(block.inputs[first:], names)
            for var, atom in zip(block.inputs[nk:first], node.ins[nk + nc :], strict=True):
                self.values.storage[var] = _row(self.values.storage[_var(atom)], t, self._depth)
            self.values.inlined.update((n.out, n) for n in block.nodes)
            for var, atom in zip(node.outs[nc:], block.outputs[nc:], strict=True):
                value = self.values.value(atom, self._index(atom))
                row = _row(self.values.storage[var], t, self._depth)
                self.values.put(row.name, row.offset(self._index(atom)), value, var.aval.dtype)
            self._advance(names, block.outputs[:nc])
        self._end(node.outs[:nc], names)

    @property
    def _depth(self) -> int:
        return self.writer.scope.depth

    def _while(self, form: While) -> None:
        node, (test, block) = self.node, self.node.bodies
        nc, nb = form.cond_nconsts, form.body_nconsts
        self._enter(test.inputs[:nc], node.ins[:nc])
        self._enter(block.inputs[:nb], node.ins[nc : nc + nb])
        names = self._begin(node.ins[nc + nb :])
        with self.writer.block("while True:", barrier=True):
            self._show(test.inputs[nc:], names)
            self._show(block.inputs[nb:], names)
            self.values.inlined.update((n.out, n) for b in (test, block) for n in b.nodes)
            holds = self.values.value(test.outputs[0], ())
            with self.writer.block(f"if not {holds}:", barrier=True):
                self.writer.line("break")
            self._advance(names, block.outputs)
        self._end(node.outs, names)


def _var(atom: Atom) -> Var:
    assert isinstance(atom, Var)
    return atom


def _row(store: Storage, t: Any, depth: int) -> Storage:
    return Storage(store.name, store.strides[1:], store.base + t * store.strides[0], depth)
