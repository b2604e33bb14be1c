"""Where every value lies: registers, a row of shared loops, working storage, an operand's place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...core.forms import Branch, Contract, Library, Scan, Update, While
from ...core.graph import Var
from ..target import Limits
from .collapse import collapsed
from .flow import Flows
from .fuse import fused, paths, shared_depth
from .memory import Places, requires_memory
from .nests import Nest, Selection, Statement, Step, counter
from .order import Order
from .plan import Body, Given, Item, Place, Reason, Same, Scratch, Tree, statements_of
from .work import tree_work


def body_of(
    selection: Selection, order: Order, targets: Mapping[Var, Place], places: Places
) -> Body:
    """Fuse and place the statements of a loop's or branch's body.

    Parameters
    ----------
    targets : mapping
        Where results must lie, by whoever runs the body.
    """
    items = fused(order, selection, places.target.limits, places.note)
    body = placed(selection, order, items, targets, places)
    return replace(body, shared=_shared(body, places.target.limits))


def _shared(body: Body, limits: Limits) -> dict[Tree, int]:
    """Return the loops of a body that are worth sharing among threads, and their work."""
    found: dict[Tree, int] = {}
    for item in body.items:
        if not isinstance(item, Tree) or not all(m.parallel_depth > 0 for m in item.members):
            continue
        work = tree_work(item, body.inlined)
        held = (body.places.get(v) for m in item.members for v in m.node.outs)
        rows = any(isinstance(place, Scratch) and any(place.contracted) for place in held)
        if work >= limits.shared and not rows:  # a row buffer would have to be each thread's own
            found[item] = work
    return found


def placed(
    selection: Selection,
    order: Order,
    items: tuple[Item, ...],
    targets: Mapping[Var, Place],
    places: Places,
) -> Body:
    """Decide where the results of items lie, and how their steps run."""
    chosen = set(selection.statements)
    # The order asked for a copy, and for an update over it.
    asked = {s.node.outs[0]: s.node for s in statements_of(items) if s not in chosen}
    for over in asked.values():
        donor = order.donated.get(over.outs[0])
        if donor is not None and (copy := asked.get(donor)):
            kept = copy.ins[0] in selection.block.inputs
            why = "it is the caller's, or another turn's" if kept else "it is read again later"
            places.note(Reason("order", over, "copies what it updates", why))
    results = _Results(selection, order, items, places)
    own = results.place(targets)
    flows = Flows(selection, order, places, body_of)
    done: list[Item] = []
    for item in items:
        if isinstance(item, Tree):
            done.append(collapsed(item, places.of))
        else:
            done.append(item)
        if isinstance(item, Step):
            flows.add(item)
    return Body(
        selection.block,
        tuple(done),
        selection.inlined,
        selection.unrolled,
        own,
        frozenset(flows.filled),
        flows.found,
    )


class _Results:
    """Places the results of a block's statements."""

    def __init__(self, selection: Selection, order: Order, items: tuple[Item, ...], places: Places):
        self.selection = selection
        self.donated = order.donated
        self.taken = set(order.donated.values())
        self.statements = statements_of(items)
        self.places = places
        self.paths = paths(items)
        self.outputs = order.results
        self.readers: dict[Var, list[Statement]] = {}
        for s in self.statements:
            for var in s.reads:
                self.readers.setdefault(var, []).append(s)

    def place(self, targets: Mapping[Var, Place]) -> dict[Var, Place]:
        """Return the places of results that are not held in registers, in order."""
        given = self._through(targets)
        own: dict[Var, Place] = {}
        for s in self.statements:
            for j, var in enumerate(s.node.outs):
                place = given.get(var) or self._place(s, j, var)
                if place is not None:
                    own[var] = self.places.of[var] = place
        return own

    def _through(self, targets: Mapping[Var, Place]) -> dict[Var, Place]:
        """Let values that a target's value is written over live in the target from the start."""
        made = {v for s in self.statements for v in s.node.outs}
        full = dict(targets)
        for var, place in targets.items():
            donor = self.donated.get(var)
            while donor is not None and donor in made and donor not in full:
                full[donor] = Same(var) if isinstance(place, Given) else place
                donor = self.donated.get(donor)
        return full

    def _place(self, s: Statement, j: int, var: Var) -> Place | None:
        donor = self.donated.get(var)
        readers = self.readers.get(var, [])
        unrolled = s in self.selection.unrolled
        if donor is not None and self.places.holds(donor):
            return Same(donor)
        if isinstance(s, Nest) and not unrolled:
            return self._nest(s, var, readers)
        if any(requires_memory(var, r, self.selection, self.places) for r in readers) or (
            not unrolled and self._in_memory(s, j)
        ):
            return Scratch((False,) * var.aval.ndim)
        return None

    def _in_memory(self, s: Statement, j: int) -> bool:
        """Whether result ``j`` of a step lives in memory whoever reads it."""
        form, var = s.node.form, s.node.outs[j]
        if isinstance(form, Branch | While) or (isinstance(form, Scan) and j < form.num_carry):
            return var.aval.size > self.places.target.limits.registers
        return bool(var.aval.shape) or isinstance(form, Library | Contract | Update)

    def _nest(self, s: Nest, var: Var, readers: list[Statement]) -> Place | None:
        """Keep of a nest's result what its readers need after the loops that they share with it."""
        if not var.aval.shape and not any(map(_reads_array, readers)):
            return None  # a register of the block
        depth = 0
        nests = [r for r in readers if isinstance(r, Nest) and r in self.paths]
        kept = var in self.outputs or var in self.taken
        if not kept and readers and len(nests) == len(readers):
            depth = min(shared_depth(self.paths[s], self.paths[r]) for r in nests)
            depth = min(depth, s.parallel_depth)
        alone = not s.in_memory and s.abreast is None
        if depth and depth == s.parallel_depth and alone:
            return None  # a register of the shared loop
        counters = [counter(k, s.loops[k].extent) for k in range(depth)]
        return Scratch(tuple(ix in counters for ix in s.out), depth)


def _reads_array(s: Statement) -> bool:
    return isinstance(s, Step) and isinstance(s.node.form, Library | Contract)
