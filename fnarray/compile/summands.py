"""Products of boxes of one array read them where they lie, and sums of these are one step.

Convolutions that are written out, ``sum(einsum(padded[:, i : i + n], w[i]) for i in ...)``, copied
each box, wrote each product, and read all of them again to add them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any

from ..core.forms import SUMMED, Contract, Library, Map, Reindex
from ..core.frozen import frozen
from ..core.graph import Atom, Eqn, Literal, Var
from ..core.symbolic import variable
from .boxes import Lines, lines_of, nothing
from .ir import AddedStep, Block, Node, users_of
from .schedule.work import products_of
from .simplify import drop_dead
from .target import Target

_SUMMED: Any = AddedStep("products")


@frozen
class Box:
    """Elements of an operand at even distances.

    Attributes
    ----------
    operand : int
        Number of the operand.
    extents : tuple of int
        Their axes.
    lines : Lines
        Where they are.
    """

    operand: int
    extents: tuple[int, ...]
    lines: Lines


@frozen
class Summand:
    """A contraction of two boxes."""

    form: Contract
    lhs: Box
    rhs: Box


@frozen
class Sum:
    """What a step adds up: products in order, to operand ``start`` where that is not None."""

    summands: tuple[Summand, ...]
    start: int | None


@frozen(eq=False)
class _Place:
    """An array and a box of its elements."""

    var: Var
    extents: tuple[int, ...]
    lines: Lines

    @property
    def size(self) -> int:
        return prod(self.extents)


@frozen(eq=False)
class _Product:
    """A product whose factors are read where they lie, and how many multiplications it is."""

    form: Contract
    lhs: _Place
    rhs: _Place
    work: int


#: What a sum begins with, if it does, and what is added.
_Growing = tuple[Atom | None, list[_Product]]


def sum_products(block: Block, target: Target) -> Block:
    """Make steps of products of boxes that several read of one array, and of sums of these."""
    found = _products(block, target)
    if not found:
        return block
    users, kept = users_of(block.nodes), {a for a in block.outputs if isinstance(a, Var)}
    sums: dict[Var, _Growing] = {v: (None, [p]) for v, p in found.items()}

    def passing(atom: Atom, some: Mapping[Var, Any]) -> Var | None:
        """Return a value if it is one of some that one node reads."""
        if not isinstance(atom, Var) or atom not in some or atom in kept:
            return None
        return atom if len(users[atom]) == 1 else None

    def grown(node: Node) -> tuple[_Growing, set[Atom]] | None:
        """Return a sum with another product or a start, and of what, if an addition makes it."""
        if not isinstance(node.form, Map) or node.form.template != "({0} + {1})":
            return None
        for a, b in (node.ins, node.ins[::-1]):
            last, before = passing(b, found), passing(a, sums)
            if a is b or last is None:
                continue
            if before is not None:
                start, products = sums[before]
                return (start, [*products, found[last]]), {before, last}
            if a.aval.shape in ((), node.out.aval.shape) and _goes_on(node, users, kept, found):
                return (a, [found[last]]), {last}
        return None

    taken: set[Atom] = set()
    for node in block.nodes:
        if (made := grown(node)) is not None:
            sums[node.out], parts = made
            taken |= parts
    nodes = [
        _step(node, *sums[node.out]) if node.outs and node.out in sums else node
        for node in block.nodes
        if not node.outs or node.out not in taken
    ]
    return drop_dead(Block(block.inputs, tuple(nodes), block.outputs, block.aliases))


def _goes_on(
    node: Node, users: Mapping[Var, list[Node]], kept: set[Var], found: Mapping[Var, _Product]
) -> bool:
    """Whether another product is added to a sum next: copying what one begins with pays then."""
    readers = users.get(node.out, [])
    if node.out in kept or len(readers) != 1 or not isinstance(readers[0].form, Map):
        return False
    other = [a for a in readers[0].ins if a is not node.out]
    return readers[0].form.template == "({0} + {1})" and len(other) == 1 and other[0] in found


def _products(block: Block, target: Target) -> dict[Var, _Product]:
    """Find large products of boxes of which several are of one array."""
    contracts = [n for n in block.nodes if isinstance(n.form, Contract)]
    if len(contracts) < 2:
        return {}
    makers = {v: node for node in block.nodes for v in node.outs}
    found: dict[Var, tuple[_Product, Var]] = {}
    for node in contracts:
        dtypes = {a.aval.dtype for a in (*node.ins, node.out)}
        if node.form.lhs_batch or len(dtypes) > 1 or not target.sums(node.out.aval.dtype):
            continue
        if not target.is_step(node, target.limits):
            continue
        lhs, rhs = (_place(a, makers) for a in node.ins)
        if lhs is None or rhs is None:
            continue
        # To copy the smaller one takes little beside the product.
        large, whole = (lhs, rhs)[lhs.size < rhs.size], max(lhs.size, rhs.size)
        if whole < large.var.aval.size:
            found[node.out] = _Product(node.form, lhs, rhs, products_of(node)), large.var
    count = Counter(source for _, source in found.values())
    return {var: p for var, (p, source) in found.items() if count[source] > 1}


def _place(atom: Atom, makers: Mapping[Var, Node]) -> _Place | None:
    """Return the array that an operand is a box of: the operand itself at the least."""
    if isinstance(atom, Literal):
        return None
    extents = atom.aval.shape
    idx = tuple(variable(f"u{d}", n) for d, n in enumerate(extents))
    lines = lines_of(idx)
    assert lines is not None
    place = _Place(atom, extents, lines)
    while (maker := makers.get(atom)) is not None and isinstance(maker.form, Reindex):
        (source, *more), form = maker.ins, maker.form
        if form.valid is not None or more or isinstance(source, Literal):
            break
        atom, idx = source, form.index(idx, nothing)
        lines = lines_of(idx)
        used = lines and {a for a in lines.axes if a is not None}
        if lines is None or used != {d for d, n in enumerate(extents) if n > 1}:
            break
        place = _Place(atom, extents, lines)
    return place


def _step(node: Node, start: Atom | None, products: list[_Product]) -> Node:
    """Return the step of a sum that a node was the last of."""
    atoms = dict.fromkeys(p.var for product in products for p in (product.lhs, product.rhs))
    operands: list[Atom] = [*atoms, *([] if start is None else [start])]
    numbers = {var: k for k, var in enumerate(atoms)}

    def box(place: _Place) -> Box:
        return Box(numbers[place.var], place.extents, place.lines)

    summands = tuple(Summand(p.form, box(p.lhs), box(p.rhs)) for p in products)
    sum_ = Sum(summands, None if start is None else len(atoms))
    flops = 2 * sum(p.work for p in products)
    eqn = Eqn(_SUMMED, tuple(operands), node.outs, {}, node.eqn.source)
    return Node(eqn, Library(SUMMED, (sum_,), kernel=False, flops=flops))
