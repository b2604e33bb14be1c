"""Which values are computed once and kept, and which are written into their readers' loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod
from typing import cast

from ...core.forms import (
    Branch,
    Contract,
    Iota,
    Library,
    Map,
    Operand,
    Overlay,
    Pieces,
    Reduce,
    Reindex,
    Scan,
    Update,
    While,
)
from ...core.graph import Atom, Literal, Var
from ...core.symbolic import variable
from ...errors import UnsupportedOnTarget
from ..boxes import nothing
from ..ir import Block, Node, users_of
from ..target import Limits, Target
from .access import AccessWalk
from .nests import (
    Indices,
    Nest,
    Selection,
    Statement,
    Step,
    make_nest,
    make_overlay,
    over_copy,
    overwrites_reads,
    takes_turns,
)
from .plan import Reason
from .work import iterations, operations_of, products_of, work_of

INLINE = (Map, Iota, Reindex)
#: What a division costs.
DIVISION = 3
#: From which cost on a number that several others are made of is kept.
KEPT = 4
#: From so many arrays on a value that three places read is kept: each would read them all. What
#: each layer of a network adds to was the sum of all that earlier ones had, so that no two layers
#: were one text: the first call of a transformer of twelve took 870 ms, and 340.
STREAMS = 4
#: Elements up to which fewer arrays do where more places read them: a loop for those costs nothing,
#: and what each turn of Newton's method hands to the next was all that earlier ones had taken off.
BRIEF = 64
#: Dear values, which others read too, that a sum takes before it is kept, where they are made of as
#: few arrays: in one loop with them it takes them from registers. What would take all 49 weights of
#: a window at the end touched too many arrays for that (see `fuse.LONG`).
TAKEN = 6
CONTROL = (Branch, While, Scan)
#: What vectors leave of a row is taken number by number: rows that are no whole vectors have to be
#: longer by this (100 turns of Adam on rows of 200 took 1.43 ms as loops, and 1.03 by BLAS), but
#: for what the host would be asked: 300,000 to 4,000,000 numbers by vectors of 65 to 300 took it 56
#: to 944 us, and loops 25 to 666.
_WHOLE, _LONGER = 16, 8
#: Rows so short are not left to BLAS, if a vector meets them: 50,000 of 8 took it 187 us and loops
#: 88, of 9 261 and 110, of 16 290 and 236 (JAX 132, 157); of 17 loops took longer.
_SHORT = 16
#: Columns up to which one loop lays out all: see `emit.steps`.
_COLUMNS = 8

#: Notes a decision: ``note(stage, node, choice, why)``.
Note = Callable[[Reason], None]


def select(
    block: Block, target: Target, note: Note, *, in_loop: bool, carries: int = 0
) -> Selection:
    """Choose the statements of a block, and of the blocks its nodes hold.

    Parameters
    ----------
    in_loop : bool
        Whether it is the body of a loop or branch, where scalars and small arrays belong in
        registers.
    carries : int
        How many of the last inputs, and of the first results, a loop carries.

    Raises
    ------
    UnsupportedOnTarget
        The function of a fold does more than compute with numbers.
    """
    roots = _roots(block, target.limits, note, in_loop=in_loop)
    inlined = {n.out: n for n in block.nodes if n not in roots}
    kept = set(block.inputs).difference(block.owned)
    writer = {n.out: n for n in block.nodes if isinstance(n.form, Update | Overlay)}
    twofold: set[Var] = set()
    for node in writer.values():
        below = _beneath(node, writer).difference(() if in_loop else kept)
        if isinstance(node.form, Update):
            below.add(node.ins[0])
        _settle_operands(node, below, inlined, note)
        if isinstance(node.form, Overlay) and (in_loop or node.ins[0] not in kept):
            if _renews(node, block, carries, inlined, target.limits):
                twofold.add(node.out)
            else:
                _settle_value(node, inlined, note)
    statements: list[Statement] = []
    for node in block.nodes:
        if not node.outs or node.out not in inlined:
            if isinstance(node.form, Overlay) and node.ins[0] in inlined:
                _check_function(node)
                why = "what it is laid over is computed where it is read, or read again later"
                note(Reason("select", node, "copies what it updates", why))
                statements += over_copy(node, inlined)
            else:
                statements.append(_statement(node, inlined, target, note))
    unrolled = frozenset(s for s in statements if in_loop and _unrolls(s, inlined, target.limits))
    return Selection(block, tuple(statements), inlined, unrolled, frozenset(twofold))


def is_library(node: Node, limits: Limits) -> bool:
    """Whether a contraction is a library call rather than loops."""
    if not isinstance(node.form, Contract):
        return False
    form, (lhs, rhs) = node.form, (a.aval for a in node.ins)
    inner = prod(lhs.shape[a] for a in form.lhs_contract)
    batch = prod(lhs.shape[a] for a in form.lhs_batch)
    if prod(node.out.aval.shape) == batch:
        return False  # of vectors: loops are as fast as memory, and as exact as sums are
    if batch > 1 and products_of(node) <= batch * limits.thin:
        return False
    # Loops over a vector, or a few columns, are as fast as memory: no call is worth its cost there.
    sides = [x.size // max(batch * inner, 1) for x in (lhs, rhs)]
    row = max(lhs, rhs, key=lambda x: x.size).shape[-1]
    if min(sides) == 1 and _is_of_short_rows(node):
        return False
    at_once = row % _WHOLE == 0 or products_of(node) > limits.serial
    if min(sides) == 1 and row >= limits.vectors * (1 if at_once else _LONGER):
        return False
    columns = sides[1]
    times = 8 if inner * columns < limits.thin else 3 if columns <= limits.narrow else 1
    return products_of(node) > limits.library * times


def _is_of_short_rows(node: Node) -> bool:
    """Whether a matrix's rows, by a vector, are as short as folds along rows that are vectors."""
    form, (lhs, rhs) = node.form, (a.aval for a in node.ins)
    matrix, axes = (lhs, form.lhs_contract) if lhs.size > rhs.size else (rhs, form.rhs_contract)
    return matrix.shape[-1] <= _SHORT and axes == (matrix.ndim - 1,) and matrix.dtype.char in "fd"


def _read_whole(nodes: Iterable[Node], limits: Limits, rows: Set[Atom]) -> set[Atom]:
    """Return what nodes read as whole arrays rather than element by element."""
    found: set[Atom] = set()
    for node in nodes:
        if type(node.form) in INLINE:
            continue
        if isinstance(node.form, Scan):
            first = node.form.num_consts + node.form.num_carry
            found.update(a for k, a in enumerate(node.ins) if k < first or a not in rows)
        elif isinstance(node.form, (Library, *CONTROL)) or is_library(node, limits):
            found.update(node.ins)
        elif isinstance(node.form, Update):
            found.add(node.ins[0])
    return found


def _taken_one_by_one(nodes: Iterable[Node]) -> set[Atom]:
    """Return arrays of which each turn of a loop takes a number, and carries numbers alone.

    Turns that wait for each other have time to compute it: a row of Seidel's means took as long as
    its sums, kept and read again, on top of its divisions. Nothing is written while they run that
    could be read.
    """
    found: set[Atom] = set()
    for node in nodes:
        if isinstance(node.form, Scan) and node.form.num_carry:
            first = node.form.num_consts + node.form.num_carry
            if not any(a.aval.shape for a in node.ins[node.form.num_consts : first]):
                found.update(a for a in node.ins[first:] if a.aval.ndim == 1)
    return found


def _gathers(user: Node) -> bool:
    """Whether a node reads an array's elements more than once, at places known at run time.

    Nothing of that is in a cache, as a rule: each element is read once, in place of those that it
    is made of (three products of a sparse matrix of 3.2M elements took 38 ms, and 31).
    """
    if not isinstance(user.form, Reindex) or len(user.ins) < 2:
        return False
    return user.out.aval.size > user.ins[0].aval.size and not isinstance(user.form.fill, Operand)


def _are_places(value: Var, users: Sequence[Node]) -> bool:
    """Whether a value is read by several updates alone, for where they go.

    An update is as long as its instructions: places from the end are told once (three products of
    a sparse matrix of 16,000 numbers took 58 us, and take 46; of 3.2M 13.4 ms, and 12.6).
    """
    return len(users) > 1 and all(
        isinstance(user.form, Update) and value not in (user.ins[0], user.ins[user.form.value])
        for user in users
    )


def _is_masked(node: Node) -> bool:
    """Whether a node reads an array where places that are known when it is compiled are in it."""
    form = node.form
    if not isinstance(form, Reindex) or form.valid is None:
        return False
    return len(node.ins) == 1 or isinstance(form.fill, Operand)


def _roots(block: Block, limits: Limits, note: Note, *, in_loop: bool) -> set[Node]:
    """Return the nodes whose results are computed by statements of their own.

    The others, cheap or read once per element, are written into the loops that read them.
    """
    users, outputs = users_of(block.nodes), set(block.outputs)
    rows = _taken_one_by_one(block.nodes) if in_loop else set[Atom]()
    whole = _read_whole(block.nodes, limits, rows)
    gathered = {a for node in block.nodes if _gathers(node) for a in node.ins}
    folds = [n for n in block.nodes if isinstance(n.form, Reduce)]
    serial = {a for n in folds if takes_turns(n.form) for a in n.ins}
    masked = {n.ins[0] for n in block.nodes if _is_masked(n)}
    turns, laid = _turns(block.nodes), _laid_at_once(block.nodes, users, outputs)
    inline = [node for node in block.nodes if isinstance(node.form, INLINE)]
    roots = set(block.nodes).difference(inline)
    written: dict[Var, _Written] = {}
    kept: dict[Var, frozenset[Var]] = {}  # dear values, and the arrays that each is made of
    registers = not in_loop and limits.numbers > 1  # a kernel holds more than one
    reach = _reach(block, users, in_loop=in_loop) if in_loop or limits.numbers > 1 else {}
    made = {v: n for n in folds for v in n.outs}
    for node in inline:
        out = node.out
        it = written[out] = _into(node, written)
        several = () if out in laid else users.get(out, ())
        more = 0 if in_loop else _free(out, it, limits)
        repeated = len(several) > 1 + more or turns.get(out, 0) > out.aval.size
        why = ""
        if out in outputs:
            why = "it is a result"
        elif out in whole:
            why = "a step reads it as a whole array"
        elif in_loop and out.aval.size <= limits.registers:
            why = "it is small and lives in registers"
        elif it.cost >= KEPT and registers and _is_shared(out, several):
            why = "several numbers are made of it, and a register holds it"
        elif not in_loop and _streams(out, len(it.sources), len(several)):
            why = f"it is made of {len(it.sources)} arrays and is read {len(several)} times"
        elif it.cost >= limits.dear and repeated:
            why = f"it costs {it.cost} additions and is read more than once"
        elif it.cost >= limits.dear and out in serial:
            why = f"it costs {it.cost} additions, and who reads it takes one after another"
        elif it.most >= DIVISION and reach.get(out, 0) >= limits.spread * max(out.aval.size, 1):
            why = f"it costs {it.cost} additions and is read {limits.spread} times or more"
        elif it.arrays > 1 and out in gathered:
            why = f"each of its elements reads {it.arrays}, and is gathered more than once"
        elif it.cost > 1 and registers and _are_places(out, several):
            why = f"{len(several)} updates take places from it"
        elif out in masked and (it.cost > limits.masked or (it.masked and it.cost)):
            why = f"it costs {it.cost} additions, and is read under a mask"
        elif out in rows and (it.most >= DIVISION or it.cost > limits.plain):
            why = f"it costs {it.cost} additions, and turns that wait for each other take it"
        elif _narrows(node, made):
            why = "a fold ends with it, and it is narrower than what was folded"
        elif not in_loop and _takes(out, it, kept):
            why = f"it takes {TAKEN} dear values as they are made"
        elif it.height > limits.tall:
            why = f"{limits.tall} values are written into it already"
        if why:
            roots.add(node)
            if it.cost >= limits.dear and repeated:
                kept[out] = it.sources
            written[out] = _read_from(out)
            note(Reason("select", node, "computed by a statement of its own", why))
    return roots


def _free(value: Var, it: _Written, limits: Limits) -> int:
    """Return how often more a value may be computed than once.

    What is padded is computed in branches, and what a loop works on lies in a near cache: of those
    no computation is free.
    """
    plain = it.most < limits.dear and value.aval.dtype.kind in "bf"
    return limits.plain // max(it.cost, 1) if plain else 0


@dataclass(slots=True)
class _Written:
    """What is written into the reader of a value: additions, and what else they are known by.

    Attributes
    ----------
    cost, most : int
        Of all operations, and of the dearest.
    height : int
        How many are written into each other.
    arrays : int
        How many elements of arrays are read for one of the value.
    masked : bool
        Whether any is read under a mask.
    sources : frozenset of Var
        Of which arrays.
    """

    cost: int
    most: int
    height: int
    arrays: int
    masked: bool
    sources: frozenset[Var]


def _read_from(value: Var) -> _Written:
    sources = frozenset((value,) if value.aval.shape else ())
    return _Written(0, 0, 0, len(sources), False, sources)


def _streams(value: Var, sources: int, readers: int) -> bool:
    """Whether readers of a value would read more arrays than those it is made of, and it."""
    if sources >= STREAMS or value.aval.size > BRIEF:
        return sources >= STREAMS and readers > 1
    return (sources - 1) * (readers - 1) >= STREAMS - 1


def _into(node: Node, written: Mapping[Var, _Written]) -> _Written:
    own = node.form.cost if isinstance(node.form, Map) else 0
    below = [written.get(a) or _read_from(a) for a in node.ins if isinstance(a, Var)]
    return _Written(
        own + sum(x.cost for x in below),
        max([own, *(x.most for x in below)]),
        1 + max((x.height for x in below), default=0),
        sum(x.arrays for x in below),
        _is_masked(node) or any(x.masked for x in below),
        frozenset[Var]().union(*(x.sources for x in below)),
    )


def _takes(value: Var, it: _Written, kept: Mapping[Var, frozenset[Var]]) -> bool:
    """Whether a value takes many that are kept and that its own loop could make, of few arrays."""
    found = [v for v in it.sources if v in kept and v.aval.shape == value.aval.shape]
    return len(found) > TAKEN and len(frozenset[Var]().union(*(kept[v] for v in found))) <= TAKEN


def _is_shared(number: Var, users: Sequence[Node]) -> bool:
    """Whether several single numbers are made of one, and nothing else is."""
    if number.aval.shape or len(users) < 2:
        return False
    return not any(v.aval.shape for user in users for v in user.outs)


def _turns(nodes: Iterable[Node]) -> dict[Atom, int]:
    """Return how many turns those that read a value take at most."""
    turns: dict[Atom, int] = {}
    for node in nodes:
        if isinstance(node.form, Pieces):  # each is laid out once
            continue
        several = iterations(node)
        turns.update((a, several) for a in node.ins if several > turns.get(a, 0))
    return turns


def _laid_at_once(
    nodes: Sequence[Node], users: Mapping[Var, list[Node]], outputs: Set[Atom]
) -> dict[Var, Node]:
    """Return what is read, number by number, by columns of one stack alone, and that.

    All columns of a row are computed in one turn of its loop, and what they share once.
    """
    laid: dict[Var, Node] = {}
    for node in reversed(nodes):
        if len(node.outs) != 1 or node.out in outputs:
            continue
        size, ends = node.out.aval.size, set[Node | None]()
        for user in users.get(node.out, ()):
            if isinstance(user.form, Pieces):
                ends.add(user if _lays_columns(user, size) else None)
            else:
                same = (
                    user.out.aval.size == size if isinstance(user.form, Map) else _keeps_order(user)
                )
                ends.add(laid.get(user.out) if same else None)
        if len(ends) == 1 and (end := ends.pop()) is not None:
            laid[node.out] = end
    return laid


def _keeps_order(node: Node) -> bool:
    """Whether a node has the numbers that it reads in their order, whatever axes of one it adds."""
    form = node.form
    if not isinstance(form, Reindex) or form.valid is not None or len(node.ins) != 1:
        return False
    shape, axes = node.ins[0].aval.shape, node.out.aval.shape
    i = tuple(variable(f"i{a}", n) if n > 1 else 0 for a, n in enumerate(axes))
    found = [ix for ix, n in zip(form.index(i, nothing), shape, strict=True) if n > 1]
    return found == [ix for ix in i if ix] and [n for n in shape if n > 1] == [
        n for n in axes if n > 1
    ]


def _lays_columns(node: Node, rows: int) -> bool:
    """Whether a layout writes all its columns, of so many numbers, in the turns of one loop."""
    shape, pieces = node.out.aval.shape, node.form.pieces
    columns = all(p.extents[-1:] == (1,) and prod(p.extents) == rows for p in pieces)
    return node.form.fill is None and columns and 1 < shape[-1] <= _COLUMNS


def _reach(block: Block, users: Mapping[Var, list[Node]], *, in_loop: bool) -> dict[Var, int]:
    """Return how often a value is computed where it is written into the loops that read it.

    Outside of loops, all that read it at places of their own compute it, and a number is computed
    before the loops that read it. In loops, whoever reads it most is what counts.
    """
    found: dict[Var, int] = {}
    for node in reversed(block.nodes):
        for out in node.outs:
            own, places = [0], [0]
            for u in users.get(out, ()):
                if isinstance(u.form, Reindex):
                    places.append(found[u.out])
                else:
                    own.append(iterations(u))
            found[out] = max(*own, max(places) if in_loop else sum(places))
            if not in_loop and out.aval.size == 1:
                found[out] = 0
    return found


def _narrows(node: Node, folded: Mapping[Var, Node]) -> bool:
    """Whether a value is made of a fold's alone, and takes fewer bytes."""
    if not isinstance(node.form, Map) or len(node.ins) != 1 or node.ins[0] not in folded:
        return False
    return node.out.aval.dtype.itemsize < node.ins[0].aval.dtype.itemsize


def _beneath(update: Node, writer: Mapping[Var, Node]) -> set[Atom]:
    """Return what an update's operand was made of by other updates: all may lie in one place."""
    found: set[Atom] = set()
    while (below := writer.get(cast("Var", update.ins[0]))) is not None:
        update = below
        found.add(update.ins[0])
    return found


def _settle_operands(update: Node, over: Set[Atom], inlined: dict[Var, Node], note: Note) -> None:
    """Compute an update's operands beforehand where they read what is, or was, overwritten."""
    for atom in update.ins[1:]:
        if atom in inlined and not _reads(atom, inlined).keys().isdisjoint(over):
            node = inlined.pop(atom)
            note(Reason("select", node, "computed beforehand", "it reads what is overwritten"))


def _carried(form: While | Scan, node: Node) -> int:
    """Return how many values a loop carries."""
    return form.num_carry if isinstance(form, Scan) else len(node.outs)


def _renews(
    overlay: Node, block: Block, carries: int, inlined: Mapping[Var, Node], limits: Limits
) -> bool:
    """Whether a turn replaces most of a carry by what it computes of it: see `Limits.twofold`."""
    form, (old, value) = overlay.form, overlay.ins[:2]
    first, elements = len(block.inputs) - carries, prod(form.extents)
    pairs = zip(block.inputs[first:], block.outputs, strict=False)
    return (
        any(old is var and overlay.out is atom for var, atom in pairs)
        and form.combine == "{1}"
        and overlay.out.aval.size > limits.registers
        and 0 < limits.twofold <= elements
        and 2 * elements >= overlay.out.aval.size
        and value in inlined
        and overwrites_reads(make_overlay(overlay, inlined))
    )


def _settle_value(overlay: Node, inlined: dict[Var, Node], note: Note) -> None:
    """Compute what an overlay lays beforehand where that reads what it is about to overwrite."""
    value = overlay.ins[1]
    if overlay.ins[0] in inlined or value not in inlined:
        return
    if overwrites_reads(make_overlay(overlay, inlined)):
        node = inlined.pop(value)
        note(Reason("select", node, "computed beforehand", "it reads what is overwritten"))


def _reads(atom: Var, inlined: dict[Var, Node]) -> dict[Var, set[Indices]]:
    """Return what reading an element of a value reads; which element does not matter."""
    walk = AccessWalk(inlined)
    walk.visit(atom, tuple(0 for _ in atom.aval.shape))
    return walk.reads


def _statement(node: Node, inlined: dict[Var, Node], target: Target, note: Note) -> Statement:
    form = node.form
    if isinstance(form, Reduce | Update | Overlay):
        _check_function(node)
    if isinstance(form, (*INLINE, Reduce, Overlay)):
        return make_nest(node, inlined, target)
    if isinstance(form, Contract) and not is_library(node, target.limits):
        return make_nest(node, inlined, target)
    reads: dict[Var, set[Indices]] = {}
    for atom in node.ins:
        if not isinstance(atom, Literal):
            for var, idx in _reads(atom, inlined).items():
                reads.setdefault(var, set()).update(idx)
    bodies = ()
    if isinstance(form, CONTROL) and not target.is_step(node, target.limits):
        last = 0 if isinstance(form, Branch) else _carried(form, node)
        counts = (*[0] * (len(node.bodies) - 1), last)
        bodies = tuple(
            select(b, target, note, in_loop=True, carries=n)
            for b, n in zip(node.bodies, counts, strict=True)
        )
    return Step(node, reads, bodies)


def _check_function(node: Node) -> None:
    """Check that the function of a fold or an update can be written into its loop."""
    for block in node.bodies:
        for inner in block.nodes:
            if not isinstance(inner.form, INLINE):
                raise UnsupportedOnTarget(
                    f"{inner.eqn.primitive} at {inner.eqn.source}: the function of a reduction, "
                    "window or scatter runs inside its loop, and may hold elementwise operations "
                    "only. Use lax.fori_loop or lax.associative_scan."
                )


def _unrolls(s: Statement, inlined: dict[Var, Node], limits: Limits) -> bool:
    """Whether a statement in a loop is small and static enough to be written out."""
    node = s.node
    form = node.form
    if isinstance(form, CONTROL) or any(v.aval.size > limits.registers for v in node.outs):
        return False
    if isinstance(form, Update):
        return len(node.ins) == 2 and node.ins[0].aval.size <= limits.registers
    if isinstance(s, Nest):
        # Of more terms than registers hold a loop is as fast, and less to compile.
        if s.fold is not None and prod(s.fold.extents) > limits.registers:
            return False
        return iterations(node) * work_of(operations_of(node, inlined)) <= limits.unroll
    return not isinstance(form, Library | Contract)
