"""A program cut into regions: kernels, run on one thread or in chunks, and steps of the driver."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from ...core.dtypes import is_half
from ...core.forms import Contract, Library, Scan
from ...core.graph import Var
from ..ir import Node
from ..target import Limits, Target
from .memory import Places
from .nests import Nest, Selection, Statement, Step
from .order import Order
from .place import placed
from .plan import Given, Item, Place, Reason, Region, Same, Tree, statements_of
from .select import Note
from .views import Views, shows_input, within
from .work import operations_of, products_of, row_work, tree_work


@dataclass(slots=True, eq=False)
class _Part:
    """Items that become a region."""

    items: list[Item] = field(default_factory=list[Item])
    step: bool = False
    chunked: bool = False
    view: bool = False
    #: Operations in loops and steps; and on single numbers, which no two statements repeat.
    length: int = 0
    numbers: set[Node] = field(default_factory=set[Node])

    @property
    def statements(self) -> list[Statement]:
        return statements_of(tuple(self.items))


def partitioned(
    selection: Selection, order: Order, items: Sequence[Item], target: Target, note: Note
) -> tuple[Region, ...]:
    """Cut a program into regions, and place the values of each."""
    parts = _parts(selection, items, target, note)
    last: dict[Var, int] = {}  # the last part that reads a value
    for k, part in enumerate(parts):
        last.update((v, k) for s in part.statements for v in s.reads)
    last.update((a, len(parts)) for a in selection.block.outputs if isinstance(a, Var))
    regions: list[Region] = []
    made: set[Var] = set()
    views = Views(selection, order)
    for k, part in enumerate(parts):

        def needed(var: Var, k: int = k) -> bool:
            """Whether a later part reads a value, or it is a result."""
            return last.get(var, -1) > k

        if target.limits.views and views.takes(part.statements, needed):
            region = _view(part.statements[0].node)
        else:
            region = _region(part, selection, order, target, note, needed)
        read = dict.fromkeys(v for s in part.statements for v in s.reads)
        taken = set(region.aliases.values())
        dead = tuple(v for v in read if v in made and not needed(v) and v not in taken)
        regions.append(replace(region, released=dead))
        made.update(v for s in part.statements for v in s.node.outs)
    return tuple(regions)


# ---- which items go together ---------------------------------------------------------------------


def _parts(selection: Selection, items: Sequence[Item], target: Target, note: Note) -> list[_Part]:
    limits = target.limits
    parts: list[_Part] = []
    operations = [_operations(item, selection) for item in items]
    turns = _turns(items, operations, limits)
    for k, (item, nodes) in enumerate(zip(items, operations, strict=True)):
        last = parts[-1] if parts else None
        node = statements_of((item,))[0].node
        if isinstance(item, Step) and target.is_step(node, limits):
            note(Reason("partition", node, "is a step of the driver", _why_step(node, target)))
            parts.append(_Part([item], step=True))
            continue
        if limits.views and shows_input(statements_of((item,))[0], selection.block):
            parts.append(_Part([item], view=True))
            continue
        if _chunked(item, selection, limits):
            if last is not None and not last.step:
                why = "its outermost loop is shared out among threads"
                note(Reason("partition", node, "begins a kernel", why))
            parts.append(_Part([item], chunked=True))
            continue
        if last is None or last.step or last.chunked or last.view:
            if last is not None and last.chunked:
                why = "the one before runs in chunks on threads, which this one would not pay for"
                note(Reason("partition", node, "begins a kernel", why))
            parts.append(_Part())
        elif last.length + len(last.numbers) // limits.numbers >= limits.kernel:
            why = f"the last one holds {last.length + len(last.numbers)} operations"
            note(Reason("partition", node, "begins a kernel", why))
            parts.append(_Part())
        elif k in turns:
            why = "what repeats is one kernel, called again"
            note(Reason("partition", node, "begins a kernel", why))
            parts.append(_Part())
        parts[-1].items.append(item)
        if _is_number(item):
            parts[-1].numbers |= nodes
        else:
            parts[-1].length += len(nodes)
    return parts


def _is_number(item: Item) -> bool:
    return isinstance(item, Nest) and not item.loops


def _operations(item: Item, selection: Selection) -> set[Node]:
    """Return the operations of an item, written into it or not."""
    statements = statements_of((item,))
    return set[Node]().union(*(operations_of(s.node, selection.inlined) for s in statements))


def _turns(items: Sequence[Item], operations: Sequence[set[Node]], limits: Limits) -> set[int]:
    """Return where kernels begin so that those of a stretch that repeats are one text."""
    costs = [
        len(nodes) / (limits.numbers if _is_number(item) else 1)
        for item, nodes in zip(items, operations, strict=True)
    ]
    if sum(costs) < limits.kernel / 2:
        return set()
    from .repeats import stretches, turns_together  # most programs have no need of it

    marks = [_mark(item, len(nodes)) for item, nodes in zip(items, operations, strict=True)]
    found: set[int] = set()
    for s in stretches(marks, costs, limits.kernel, limits.kernel / 2):
        cost = sum(costs[s.start : s.start + s.period])
        places = range(s.start, s.start + s.period * s.count + 1, s.period)
        found.update(places[:: turns_together(s.count, cost, limits.kernel / 4, limits.kernel)])
        found.add(places[-1])
    return found


def _mark(item: Item, operations: int) -> Hashable:
    """Return what items that may be one text have in common."""
    nodes = [s.node for s in statements_of((item,))]
    return operations, *((n.eqn.primitive, *(v.aval for v in n.outs)) for n in nodes)


def _why_step(node: Node, target: Target) -> str:
    """Say why the driver takes a node itself."""
    if why := target.why_step(node):
        return why
    form = node.form
    if isinstance(form, Contract):
        return f"a product of {products_of(node):,} multiplications is left to a routine of its own"
    if isinstance(form, Library):
        return "a library or the host does it, which no kernel can or does as well"
    return "what it holds is no kernel's, or a turn of it is worth more than one thread"


def _chunked(item: Item, selection: Selection, limits: Limits) -> bool:
    """Whether an item's outermost loop is worth running in chunks."""
    if isinstance(item, Step):
        form = item.node.form
        rows = isinstance(form, Scan) and form.num_carry == 0
        return rows and form.length * row_work(item.node.bodies[0], limits) >= limits.parallel
    if not isinstance(item, Tree) or tree_work(item, selection.inlined) < limits.parallel:
        return False
    return all(m.parallel_depth > 0 or _is_foldable(m) for m in item.members)


def _is_foldable(nest: Nest) -> bool:
    """Whether chunks of a nest's outermost, folded, loop can be added up afterwards."""
    fold = nest.fold
    if fold is None or not isinstance(fold.combine, tuple) or len(fold.combine) > 1:
        return False
    return fold.dtypes is None and not is_half(nest.node.out.aval.dtype)


# ---- regions -------------------------------------------------------------------------------------


def _view(node: Node) -> Region:
    (source,) = (a for a in node.ins if isinstance(a, Var))
    return Region(None, node, (source,), node.outs, {node.out: source}, view=True)


def _region(
    part: _Part,
    selection: Selection,
    order: Order,
    target: Target,
    note: Note,
    needed: Callable[[Var], bool],
) -> Region:
    statements = part.statements
    if part.step:
        node = statements[0].node
        ins = tuple(a for a in node.ins if isinstance(a, Var))
        return Region(None, node, ins, node.outs)
    inside = [v for s in statements for v in s.node.outs]
    own = set(inside)
    inputs = tuple(dict.fromkeys(v for s in statements for v in s.reads if v not in own))
    outputs = tuple(v for v in inside if needed(v))
    aliases: dict[Var, Var] = {}
    owned = selection.block.owned
    for var in outputs:
        donor = order.donated.get(var)
        while donor in own:
            donor = order.donated.get(donor)
        if donor in inputs and (donor in owned or donor not in selection.block.inputs):
            aliases[var] = donor
    places = Places(target, note, {var: Given() for var in inputs})
    targets: dict[Var, Place] = {}
    for var in outputs:
        place = Same(aliases[var]) if var in aliases else Given()
        targets[var] = places.of[var] = place
    items, shown = tuple(part.items), {}
    if target.limits.views and not part.chunked:
        items, shown, made = within(items, order, set(inputs), set(outputs).difference(aliases))
        targets.update(made)
        places.of.update(shown | made)
    body = placed(selection, order, items, targets, places)
    if shown:
        body = replace(body, places={**shown, **body.places})
    span, folds = None, ()
    if part.chunked:
        (item,) = body.items
        span = item.extent if isinstance(item, Tree) else statements[0].node.form.length
        nests = [s for s in statements if isinstance(s, Nest)]
        folds = tuple(s.node.out for s in nests if s.parallel_depth == 0 and s.node.out in outputs)
    return Region(body, None, inputs, outputs, aliases, span, folds)
