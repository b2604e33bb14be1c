"""From a traced graph to the nodes that are scheduled: calls inlined, dead and equal work gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.contraction import free_axes
from ..core.forms import (
    Branch,
    Contract,
    Inline,
    Lanes,
    Map,
    Overlay,
    Piece,
    Pieces,
    Reduce,
    Reindex,
    Scan,
    Update,
    While,
    form_of,
)
from ..core.graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var, eqn_effects
from ..core.libraries import NotLoaded, by_no_library
from ..core.source import UNKNOWN, Source, Stack, located
from ..core.surgery import rearranged
from ..core.symbolic import variable
from .boxes import follow_indices
from .ir import AddedStep, Block, Node, users_of
from .target import Target

Groups = tuple[tuple[int, ...], ...]
#: Forms of equations that hold graphs, and may be equal.
_HOLDING = frozenset((Branch, Scan, While))


def inline_calls(graph: Graph, around: Stack = ()) -> Block:
    """Return the graph as a block, nested calls replaced by their equations, vars renamed.

    Labels of an equation come after those of the equations that it is in, and after ``around``.
    """
    nodes: list[Node] = []
    aliases: dict[Var, Atom] = {}

    def alias(atom: Atom) -> Atom:
        if isinstance(atom, Literal):
            return atom
        name = Var(atom.aval)
        aliases[name] = atom
        return name

    def walk(inner: Graph, args: Sequence[Atom], source: Source = UNKNOWN) -> list[Atom]:
        env: dict[Var, Atom] = dict(zip((*inner.constvars, *inner.invars), args, strict=True))

        def read(atom: Atom) -> Atom:
            return atom if isinstance(atom, Literal) else env[atom]

        for eqn in inner.eqns:
            form, at = form_of(eqn), source
            if eqn.source is not UNKNOWN:
                at = eqn.source.labelled((*source.stack, *eqn.source.stack))
            ins = tuple(map(read, eqn.invars))
            if isinstance(form, Inline):
                if form.apart:
                    ins = tuple(map(alias, ins))
                outs = walk(form.graph.jaxpr, ins, at)
                env.update(zip(eqn.outvars, outs, strict=True))
                continue
            if isinstance(form, Scan | While):
                form, ins = lift(form, ins, at)
            outvars = tuple(Var(v.aval) for v in eqn.outvars)
            env.update(zip(eqn.outvars, outvars, strict=True))
            nodes.append(Node(Eqn(eqn.primitive, ins, outvars, eqn.params, at), form))
        return [read(a) for a in inner.outvars]

    def lift(
        form: Scan | While, ins: tuple[Atom, ...], source: Source
    ) -> tuple[Scan | While, tuple[Atom, ...]]:
        """Compute before a loop what its turns would compute alike."""
        from .lift import parted  # which programs without loops never need

        scan = isinstance(form, Scan)
        start, count = (0, form.num_consts) if scan else (form.cond_nconsts, form.body_nconsts)
        parts = None if form.body.consts else parted(form.body.jaxpr, count)
        if parts is None or (scan and form.length < 2):
            return form, ins
        end = start + count
        before, body = parts[0], ClosedGraph(parts[1])
        found = walk(before, ins[start:end], UNKNOWN.labelled(source.stack))
        ins, count = (*ins[:end], *found, *ins[end:]), count + len(found)
        if scan:
            return replace(form, body=body, num_consts=count), ins
        return replace(form, body=body, body_nconsts=count), ins

    inputs = tuple(Var(v.aval) for v in (*graph.constvars, *graph.invars))
    outputs = walk(graph, inputs, UNKNOWN.labelled(around))
    return Block(inputs, tuple(nodes), tuple(outputs), aliases)


#: A power of real numbers. Programs give exponents as numbers, and most of those are halves.
_POWER = "vm.pow({0}, {1})"


def _power_of(number: float) -> Map | None:
    """Return the text of a power that takes no logarithm, if the exponent is such a number."""
    if number == 2:
        return Map("({0} * {0})", 1)
    roots = import_module("fnarray_kernels.vmath.roots")  # which few programs need
    name: str | None = roots.BY_EXPONENT.get(number)
    return Map(f"vm.{name}({{0}})", 4 if number in (3, 4) else 10) if name is not None else None


def fold_constants(block: Block) -> Block:
    """Evaluate scalar maps of literals, and write powers by halves as products and roots."""
    env: dict[Var, Atom] = {}
    nodes: list[Node] = []
    numbers: dict[Atom, Any] = {}  # what an array has everywhere
    for old in block.nodes:
        node = old.reading(env)
        form, first = node.form, node.ins[0] if node.ins else None
        if isinstance(form, Reindex) and form.valid is None and isinstance(first, Literal):
            numbers[node.out] = first.val
        if not isinstance(form, Map):
            nodes.append(node)
        elif not node.out.aval.shape and all(isinstance(a, Literal) for a in node.ins):
            ins = [np.asarray(a.val) for a in node.ins if isinstance(a, Literal)]
            env[node.out] = Literal(_value(node, form, ins), node.out.aval)
        elif form.template == _POWER and first is not None and first.aval == node.out.aval:
            exponent = node.ins[1]
            number = exponent.val if isinstance(exponent, Literal) else numbers.get(exponent)
            if number is not None and number == 1:
                env[node.out] = first
                continue
            if number is not None and (power := _power_of(float(number))):
                # The number stays an operand: by it `share_equal` tells one power from another.
                dtype = exponent.aval.dtype
                known = Literal(np.asarray(number, dtype), ShapedArray((), dtype))
                node = replace(node.taking([first, known]), form=power)
            nodes.append(node)
        else:
            nodes.append(node)
    return block.rebuilt(nodes, env)


def _value(node: Node, form: Map, ins: list[np.ndarray]) -> Any:
    """Evaluate a map of numbers: by NumPy, or as kernels do, where SciPy would have to be asked."""
    with np.errstate(all="ignore"):
        try:
            with by_no_library():
                return node.eqn.primitive.eval(*ins, **node.eqn.params)
        except NotLoaded:
            constants = import_module(".constants", __package__)  # which few programs need
            return constants.by_text(form.template, ins, node.out.aval.dtype)


def empty_at_once(block: Block) -> Block:
    """Make what has no element of nothing: a value that only it reads need not be computed.

    It also keeps the schedule's promise that what a nest reads is made before it: the nest of a
    reduction does not run for a reader whose loops take no turn.
    """
    nodes: list[Node] = []
    for node in block.nodes:
        eqn = node.eqn
        if any(v.aval.size for v in node.outs) or not node.ins or _must_run(eqn):
            nodes.append(node)
            continue
        for out in node.outs:
            zero = Literal(np.zeros((), out.aval.dtype), ShapedArray((), out.aval.dtype))
            made = Eqn(_EMPTY, (zero,), (out,), {"shape": out.aval.shape}, eqn.source)
            nodes.append(Node(made, Reindex(lambda i, read: ())))
    return block.rebuilt(nodes, {})


def _must_run(eqn: Eqn) -> bool:
    return bool(eqn_effects(eqn)) or eqn.primitive.collective is not None


def share_equal(block: Block) -> Block:
    """Compute equal equations once."""
    env: dict[Var, Atom] = {}
    seen: dict[Any, Node] = {}
    nodes: list[Node] = []
    for old in block.nodes:
        node = old.reading(env)
        if eqn_effects(node.eqn):
            nodes.append(node)
            continue
        try:
            key = _key(node)
            first = seen.setdefault(key, node)
        except TypeError:  # params without hash or order: functions, graphs
            first = node
        if first is node:
            nodes.append(node)
        else:
            env.update(zip(node.outs, first.outs, strict=True))
    return block.rebuilt(nodes, env)


def _key(node: Node) -> Any:
    ins = tuple((a.val.tobytes(), a.aval) if isinstance(a, Literal) else a for a in node.ins)
    params = node.eqn.params
    if node.form.__class__ in _HOLDING:
        from .equal import content  # which programs without loops and branches never need

        params = {name: content(value) for name, value in params.items()}
    return node.eqn.primitive, ins, tuple(sorted(params.items())) if params else ()


def resolve_aliases(block: Block) -> Block:
    """Library every value by its one name."""
    if not block.aliases:
        return block
    env: dict[Var, Atom] = {}
    for name, atom in block.aliases.items():
        while isinstance(atom, Var) and atom in block.aliases:
            atom = block.aliases[atom]
        env[name] = atom
    named = block.rebuilt((node.reading(env) for node in block.nodes), env)
    return replace(named, aliases={})


def drop_dead(block: Block) -> Block:
    """Drop nodes whose results nobody needs."""
    live = {a for a in block.outputs if isinstance(a, Var)}
    kept: list[Node] = []
    for node in reversed(block.nodes):
        if not live.isdisjoint(node.outs) or eqn_effects(node.eqn):
            kept.append(node)
            live.update([a for a in node.ins if type(a) is Var])
    return Block(block.inputs, tuple(reversed(kept)), block.outputs)


#: A result of a body that would be an operand: arrays that leave a body are its own.
COPY: Any = AddedStep("copy")
_SPREAD: Any = AddedStep("spread")
_TIMES: Any = AddedStep("times")
_TURNED: Any = AddedStep("turned")
_ROWS: Any = AddedStep("rows")
_FILLING: Any = AddedStep("filling")
_FILLED: Any = AddedStep("filled")
_SCAN: Any = AddedStep("scan")
_EMPTY: Any = AddedStep("empty")
_FLOATS = frozenset({"float32", "float64", "complex64", "complex128"})


def multiply_outer(block: Block) -> Block:
    """Make contractions over a single element products, which are written into their readers."""
    nodes: list[Node] = []
    for node in block.nodes:
        form = node.form
        if not isinstance(form, Contract) or not _is_outer(node):
            nodes.append(node)
            continue
        wide: list[Var] = []
        free = len(form.lhs_batch)
        for side, contract, batch in (
            (0, form.lhs_contract, form.lhs_batch),
            (1, form.rhs_contract, form.rhs_batch),
        ):
            # Where each of the operand's axes is in the result: batch, left's own, right's own.
            place: dict[int, int] = {a: j for j, a in enumerate(batch)}
            for a in range(node.ins[side].aval.ndim):
                if a not in place and a not in contract:
                    place[a], free = free, free + 1
            reads = tuple(place.get(a) for a in range(node.ins[side].aval.ndim))
            var = Var(node.out.aval)
            index = Reindex(lambda i, read, at=reads: tuple(0 if p is None else i[p] for p in at))
            params = {"axes": reads, "shape": var.aval.shape}  # what tells it from others
            eqn = Eqn(_SPREAD, (node.ins[side],), (var,), params, node.eqn.source)
            nodes.append(Node(eqn, index))
            wide.append(var)
        eqn = Eqn(_TIMES, tuple(wide), node.outs, {}, node.eqn.source)
        nodes.append(Node(eqn, Map("({0} * {1})", 1)))
    return block.rebuilt(nodes, {})


def _is_outer(node: Node) -> bool:
    form: Contract = node.form
    lhs, rhs = (a.aval for a in node.ins[:2])
    dtypes = {lhs.dtype.name, rhs.dtype.name, node.out.aval.dtype.name}
    single = all(lhs.shape[a] == 1 for a in form.lhs_contract)
    arrays = all(isinstance(a, Var) for a in node.ins)
    return single and arrays and len(dtypes) == 1 and dtypes <= _FLOATS


def turn_products(block: Block) -> Block:
    """Exchange the factors of a product of matrices that is only read transposed.

    Reverse mode makes ``(g.T @ x).T``, which is ``x.T @ g``: BLAS reads transposed factors as fast
    as others, and nothing is left to transpose.
    """
    if not any(isinstance(node.form, Contract) for node in block.nodes):
        return block
    users = users_of(block.nodes)
    outputs = {a for a in (*block.outputs, *block.aliases.values()) if isinstance(a, Var)}
    turned: dict[Var, Node] = {}
    for node in block.nodes:
        readers = users.get(node.out, []) if node.outs else []
        if isinstance(node.form, Contract) and len(readers) == 1 and node.out not in outputs:
            # One axis of each factor: two of one keep their order, exchanged or not.
            own = node.ins[0].aval.ndim - len(node.form.lhs_contract)
            if own == 1 and not node.form.lhs_batch and _is_turn(readers[0]):
                turned[node.out] = node
    nodes: list[Node] = []
    for node in block.nodes:
        if node.outs and node.out in turned:
            continue
        source = turned.get(node.ins[0]) if node.ins and isinstance(node.ins[0], Var) else None
        if source is None:
            nodes.append(node)
            continue
        f, (lhs, rhs) = source.form, source.ins
        form = Contract(f.rhs_contract, f.lhs_contract, (), ())
        params = {"of": source.eqn.primitive, **source.eqn.params}
        nodes.append(Node(Eqn(_TURNED, (rhs, lhs), node.outs, params, source.eqn.source), form))
    return replace(block, nodes=tuple(nodes))


def _is_turn(node: Node) -> bool:
    """Whether a node is the transpose of a matrix."""
    return node.out.aval.ndim == 2 and _permutation(node) == (1, 0)


def absorb_transposes(block: Block) -> Block:
    """Contract what a transposition was made of: BLAS reads matrices either way.

    Written out, the transpose of 1,000 x 500 numbers takes half as long as their covariance.
    """
    makers = {v: node for node in block.nodes for v in node.outs}
    nodes: list[Node] = []
    for node in block.nodes:
        if isinstance(node.form, Contract):
            f = node.form
            lhs, *left = _untransposed(node.ins[0], (f.lhs_contract, f.lhs_batch), makers)
            rhs, *right = _untransposed(node.ins[1], (f.rhs_contract, f.rhs_batch), makers)
            if (lhs, rhs) != node.ins[:2]:
                form = Contract(left[0], right[0], left[1], right[1])
                params = {**node.eqn.params, "form": form}  # what tells it from others
                eqn = Eqn(node.eqn.primitive, (lhs, rhs), node.outs, params, node.eqn.source)
                node = Node(eqn, form)
        nodes.append(node)
    return replace(block, nodes=tuple(nodes))


def _untransposed(atom: Atom, groups: Groups, makers: Mapping[Var, Node]) -> tuple[Any, ...]:
    """Return an operand before its transpositions, and where groups of its axes are there.

    The axes that are in no group keep their order, as the result has them.
    """
    while isinstance(atom, Var) and atom in makers:
        axes = _permutation(makers[atom])
        if axes is None:
            break
        free = [axes[a] for a in free_axes(len(axes), *groups)]
        if free != sorted(free):
            break
        atom = makers[atom].ins[0]
        groups = tuple(tuple(axes[a] for a in group) for group in groups)
    return atom, *groups


def _permutation(node: Node) -> tuple[int, ...] | None:
    """Return which axis of its operand each axis of a transposition is; None for other nodes."""
    if not isinstance(node.form, Reindex) or node.form.valid is not None or len(node.ins) != 1:
        return None
    shape = node.out.aval.shape
    if min(shape, default=0) < 2 or node.ins[0].aval.ndim != len(shape):
        return None
    places = tuple(variable(f"i{a}", extent) for a, extent in enumerate(shape))
    found = node.form.index(places, _unread)
    if not all(place in found for place in places):
        return None
    axes = tuple(found.index(place) for place in places)
    whole = tuple(node.ins[0].aval.shape[a] for a in axes) == shape  # not a slice
    return axes if whole else None


def _unread(operand: int, index: Any) -> Any:
    raise AssertionError("a transposition reads no indices")


# ---- loops in lanes ------------------------------------------------------------------------------


def lower_lanes(block: Block, target: Target) -> Block:
    """Make of loops in lanes what runs on a target: groups that turn together, or single lanes."""
    makers = {v: node for node in block.nodes for v in node.outs}
    nodes: list[Node] = []
    aliases: dict[Var, Atom] = dict(block.aliases)
    env: dict[Var, Atom] = {}
    for old in block.nodes:
        node = old.reading(env)
        if isinstance(node.form, Lanes):
            part = _in_lanes(node, makers, target)
            nodes += part.nodes
            aliases |= part.aliases
            env.update(zip(node.outs, part.outputs, strict=True))
        else:
            nodes.append(node)
    return replace(block, aliases=aliases).rebuilt(nodes, env)


def _in_lanes(node: Node, makers: Mapping[Var, Node], target: Target) -> Block:
    """Return the nodes that stand for loops in lanes."""
    form, limits = node.form, target.limits
    pairs = [_unrepeated(a, f, makers) for a, f in zip(node.ins, form.batched, strict=True)]
    operands, batched = [a for a, _ in pairs], tuple(f for _, f in pairs)
    state = sum(a.size for a in form.lane.out_avals)
    if limits.lanes > 1 and state <= limits.lane_state and form.together is not None:
        width = min(limits.lanes, form.count)
        with located(node.eqn.source):
            group = form.together(width, batched)
        if form.count > width:
            return _in_groups(node, group, operands, batched, width)
        return _substituted(
            lower_lanes(inline_calls(group.jaxpr, node.eqn.source.stack), target), operands
        )
    scan = _over_rows(node, form.lane, operands, batched, node.outs)
    return Block((), (scan,), scan.outs)


def _unrepeated(atom: Atom, batched: bool, makers: Mapping[Var, Node]) -> tuple[Atom, bool]:
    """Return an operand, and whether lanes differ in it: not if it was made by repeating one."""
    maker = makers.get(atom) if batched and isinstance(atom, Var) else None
    if maker is None or not isinstance(maker.form, Reindex) or len(maker.ins) != 1:
        return atom, batched
    i = tuple(variable(f"i{k}", n) for k, n in enumerate(atom.aval.shape))
    repeats = maker.form.valid is None and maker.form.index(i, _unread) == i[1:]
    return (maker.ins[0], False) if repeats else (atom, batched)


def _substituted(block: Block, operands: Sequence[Atom]) -> Block:
    """Return a block on operands in place of its inputs."""
    env = dict(zip(block.inputs, operands, strict=True))
    return block.rebuilt((node.reading(env) for node in block.nodes), env)


def _over_rows(
    node: Node,
    graph: ClosedGraph,
    operands: Sequence[Atom],
    batched: Sequence[bool],
    results: Sequence[Var],
) -> Node:
    """Return a loop that runs a graph for each row of some operands, and carries nothing."""
    order = sorted(range(len(operands)), key=lambda k: batched[k])
    body = rearranged(graph, tuple(order))
    ins = tuple(operands[k] for k in order)
    eqn = Eqn(_SCAN, ins, tuple(results), {"jaxpr": body}, node.eqn.source)
    return Node(eqn, Scan(body, results[0].aval.shape[0], False, len(order) - sum(batched), 0))


def _in_groups(
    node: Node, group: ClosedGraph, operands: Sequence[Atom], batched: Sequence[bool], width: int
) -> Block:
    """Run lanes in groups of a width; the last lane fills the last group up."""
    count, source = node.form.count, node.eqn.source
    groups = -(-count // width)
    nodes: list[Node] = []

    def made(step: Any, ins: tuple[Atom, ...], shape: tuple[int, ...], form: Any) -> Var:
        out = Var(ins[0].aval.update(shape=shape))
        nodes.append(Node(Eqn(step, ins, (out,), {"shape": shape}, source), form))
        return out

    def in_groups(x: Atom) -> Var:
        row, missing = x.aval.shape[1:], groups * width - count
        if missing:
            last = Reindex(lambda i, read: (count - 1, *i[1:]))
            filling = made(_FILLING, (x,), (missing, *row), last)
            zero, one = (0,) * len(row), (1,) * (1 + len(row))
            pieces = (
                Piece(0, (0, *zero), x.aval.shape, (0, *zero), one),
                Piece(1, (0, *zero), (missing, *row), (count, *zero), one),
            )
            x = made(_FILLED, (x, filling), (groups * width, *row), Pieces(pieces))
        index = Reindex(lambda i, read: (i[0] * width + i[1], *i[2:]))
        return made(_ROWS, (x,), (groups, width, *row), index)

    rows = [in_groups(x) if f else x for x, f in zip(operands, batched, strict=True)]
    grouped = [Var(v.aval.update(shape=(groups, width, *v.aval.shape[1:]))) for v in node.outs]
    nodes.append(_over_rows(node, group, rows, batched, grouped))
    index = Reindex(lambda i, read: (i[0] // width, i[0] % width, *i[1:]))
    outs = [made(_ROWS, (v,), (count, *v.aval.shape[2:]), index) for v in grouped]
    return Block((), tuple(nodes), tuple(outs))


def lower_bodies(block: Block, target: Target) -> Block:
    """Give nodes the graphs that they hold as blocks, simplified."""
    return replace(block, nodes=tuple(_with_bodies(node, target) for node in block.nodes))


def _with_bodies(node: Node, target: Target) -> Node:
    form, around = node.form, node.eqn.source.stack
    if isinstance(form, Branch):
        bodies = tuple(body_block(b, target, around=around) for b in form.branches)
        return replace(node, bodies=bodies)
    if isinstance(form, While):
        body = body_block(form.body, target, len(node.outs), around)
        return replace(node, bodies=(body_block(form.cond, target, around=around), body))
    if isinstance(form, Scan):
        body = body_block(_carries_last(form), target, form.num_carry, around)
        return replace(node, bodies=(body,))
    if isinstance(form, Reduce | Update | Overlay) and isinstance(form.combine, ClosedGraph):
        return replace(node, bodies=(simplified(form.combine.jaxpr, target, around),))
    return node


def _carries_last(form: Scan) -> ClosedGraph:
    """Return the body's graph with its inputs reordered: constants, rows, carries."""
    graph = form.body.jaxpr
    nk, nc = form.num_consts, form.num_carry
    ins = graph.invars
    order = (*ins[:nk], *ins[nk + nc :], *ins[nk : nk + nc])
    return ClosedGraph(replace(graph, invars=order), form.body.consts)


def copy_of(atom: Atom, source: Source = UNKNOWN) -> Node:
    """Return the copy of a value."""
    return Node(Eqn(COPY, (atom,), (Var(atom.aval),), {}, source), Reindex(lambda i, read: i))


def body_block(graph: ClosedGraph, target: Target, keep: int = 0, around: Stack = ()) -> Block:
    """Return a graph as a block in which every array output is a value of its own.

    Outputs that are inputs, literals or repeats get a copy; ``keep`` leading outputs may be the
    input at ``keep``'s position, of the last ones, unchanged.
    """
    block = simplified(graph.jaxpr, target, around)
    carried = block.inputs[-keep:] if keep else ()
    if carried:
        from .waits import waiting_last  # which programs without loops never need

        block = drop_dead(waiting_last(block, carried))
    nodes = list(block.nodes)
    outputs: list[Atom] = []
    made = {v for n in nodes for v in n.outs}
    used: set[Var] = set()
    for j, atom in enumerate(block.outputs):
        own = isinstance(atom, Var) and atom in made and atom not in used
        passed = j < keep and atom is carried[j]
        if not atom.aval.shape or own or passed:
            outputs.append(atom)
        else:
            nodes.append(copy_of(atom))
            outputs.append(nodes[-1].out)
        if isinstance(atom, Var):
            used.add(atom)
    return Block(block.inputs, tuple(nodes), tuple(outputs))


SIMPLIFY: tuple[tuple[str, Callable[[Block], Block]], ...] = (
    ("make empty results at once", empty_at_once),
    ("multiply outer products", multiply_outer),
    ("turn products", turn_products),
    ("fold constants", fold_constants),
    ("share equal equations", share_equal),
    ("resolve aliases", resolve_aliases),
    ("absorb transposes", absorb_transposes),
    ("follow indices", follow_indices),
    ("drop dead equations", drop_dead),
)


def simplified(graph: Graph, target: Target, around: Stack = ()) -> Block:
    """Return the graph inlined and simplified, and so the graphs that its nodes hold."""
    block = lower_lanes(inline_calls(graph, around), target)
    if any(isinstance(n.form, Scan) for n in block.nodes):
        from .exchange import turned_twice  # which programs without loops never need
        from .sink import made_within

        block = made_within(block)
        if target.limits.twofold:
            block = turned_twice(block, target.limits)
    for _, step in SIMPLIFY:
        block = step(block)
    if any(isinstance(n.form, Pieces | Overlay) for n in block.nodes):
        from .pieces import read_pieces  # which few programs need

        block = read_pieces(block, target.limits)
    block = lower_bodies(block, target)
    if not any(isinstance(n.form, Scan | While) for n in block.nodes):
        return block
    from .lift import counted_within  # which programs without loops never need

    if target.limits.group:
        from .groups import turned_in_groups

        block = turned_in_groups(block, target.limits)
    return drop_dead(counted_within(block))
