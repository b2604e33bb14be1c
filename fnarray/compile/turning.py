"""A scan that Python turns: what a turn takes of the rows, and what runs it.

A turn of a watched loop is a block of the loop's own, so that Python looks at the clock between
blocks, and what is inside may be threads' work or a kernel's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.forms import Scan
from ..core.graph import ClosedGraph
from ..core.surgery import one_equation
from ..core.watch import ticking
from .ir import Node

Rows = int | slice


def rows_of(form: Scan) -> Iterator[Rows]:
    """Yield which rows each turn takes, in order; tell between them where the loop is watched."""
    if form.watch is None:
        turns = range(form.length)
        yield from reversed(turns) if form.reverse else turns
        return
    step = form.watch.step
    blocks = [slice(b, min(b + step, form.length)) for b in range(0, form.length, step)]
    yield from ticking(form.watch, blocks[::-1] if form.reverse else blocks, step)


def count(rows: Rows) -> int:
    """Return how many turns of the loop a turn of Python's is: 0 for one without a leading axis."""
    return rows.stop - rows.start if isinstance(rows, slice) else 0


def graphs_of_turns(node: Node) -> dict[int, ClosedGraph]:
    """Return what runs turns, by `count`: the body, or loops of so many turns."""
    form: Scan = node.form
    if form.watch is None:
        return {0: form.body}
    step, length = form.watch.step, form.length
    return {n: _loop(node, n) for n in {min(step, length), length % step or step}}


def _loop(node: Node, turns: int) -> ClosedGraph:
    """Return the graph of so many turns, not watched."""
    form: Scan = node.form
    first = form.num_consts + form.num_carry
    avals = [a.aval for a in node.ins]
    rows = (a.update(shape=(turns, *a.shape[1:])) for a in avals[first:])
    params = {
        "jaxpr": form.body,
        "length": turns,
        "reverse": form.reverse,
        "num_consts": form.num_consts,
        "num_carry": form.num_carry,
        "unroll": form.unroll,
    }
    return one_equation(node.eqn.primitive, (*avals[:first], *rows), tuple(params.items()))
