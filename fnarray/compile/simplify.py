"""From a traced graph to the nodes that are scheduled: calls inlined, dead and equal work gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.forms import Branch, Contract, Inline, Map, Reduce, Reindex, Scan, Update, While
from ..core.graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var, eqn_effects
from ..core.symbolic import variable
from .ir import Block, Node, users_of


def inline_calls(graph: Graph) -> Block:
    """Return the graph as a block, nested calls replaced by their equations, vars renamed."""
    nodes: list[Node] = []
    aliases: dict[Var, Atom] = {}

    def alias(atom: Atom) -> Atom:
        if isinstance(atom, Literal):
            return atom
        name = Var(atom.aval)
        aliases[name] = atom
        return name

    def walk(inner: Graph, args: Sequence[Atom]) -> list[Atom]:
        env: dict[Var, Atom] = dict(zip((*inner.constvars, *inner.invars), args, strict=True))

        def read(atom: Atom) -> Atom:
            return atom if isinstance(atom, Literal) else env[atom]

        for eqn in inner.eqns:
            form = eqn.form()
            ins = tuple(map(read, eqn.invars))
            if isinstance(form, Inline):
                if form.apart:
                    ins = tuple(map(alias, ins))
                outs = walk(form.graph.jaxpr, ins)
                env.update(zip(eqn.outvars, outs, strict=True))
                continue
            outvars = tuple(Var(v.aval) for v in eqn.outvars)
            env.update(zip(eqn.outvars, outvars, strict=True))
            nodes.append(Node(Eqn(eqn.primitive, ins, outvars, eqn.params, eqn.source), form))
        return [read(a) for a in inner.outvars]

    inputs = tuple(Var(v.aval) for v in (*graph.constvars, *graph.invars))
    outputs = walk(graph, inputs)
    return Block(inputs, tuple(nodes), tuple(outputs), aliases)


def _renamed(node: Node, env: dict[Var, Atom]) -> Node:
    """Return the node with operands replaced as ``env`` says."""
    if not any(a in env for a in node.ins if isinstance(a, Var)):
        return node
    return node.taking(env.get(a, a) if isinstance(a, Var) else a for a in node.ins)


def _rebuilt(block: Block, nodes: Iterable[Node], env: dict[Var, Atom]) -> Block:
    """Return a block of other nodes, its results and aliases replaced as ``env`` says."""

    def read(a: Atom) -> Atom:
        return env.get(a, a) if isinstance(a, Var) else a

    aliases = {name: read(a) for name, a in block.aliases.items()}
    return Block(block.inputs, tuple(nodes), tuple(map(read, block.outputs)), aliases)


def fold_constants(block: Block) -> Block:
    """Evaluate scalar maps of literals."""
    env: dict[Var, Atom] = {}
    nodes: list[Node] = []
    for old in block.nodes:
        node = _renamed(old, env)
        literal = all(isinstance(a, Literal) for a in node.ins)
        if literal and isinstance(node.form, Map) and not node.out.aval.shape:
            with np.errstate(all="ignore"):
                ins = [np.asarray(a.val) for a in node.ins if isinstance(a, Literal)]
                value = node.eqn.primitive.eval(*ins, **node.eqn.params)
            env[node.out] = Literal(value, node.out.aval)
        else:
            nodes.append(node)
    return _rebuilt(block, nodes, env)


def _key(node: Node) -> Any:
    ins = tuple((a.val.tobytes(), a.aval) if isinstance(a, Literal) else a for a in node.ins)
    return node.eqn.primitive, ins, tuple(sorted(node.eqn.params.items()))


def share_equal(block: Block) -> Block:
    """Compute equal equations once."""
    env: dict[Var, Atom] = {}
    seen: dict[Any, Node] = {}
    nodes: list[Node] = []
    for old in block.nodes:
        node = _renamed(old, env)
        if any(eqn_effects(node.eqn)):
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
    return _rebuilt(block, nodes, env)


def resolve_aliases(block: Block) -> Block:
    """Library every value by its one name."""
    if not block.aliases:
        return block
    env: dict[Var, Atom] = {}
    for name, atom in block.aliases.items():
        while isinstance(atom, Var) and atom in block.aliases:
            atom = block.aliases[atom]
        env[name] = atom
    named = _rebuilt(block, (_renamed(node, env) for node in block.nodes), env)
    return replace(named, aliases={})


def drop_dead(block: Block) -> Block:
    """Drop nodes whose results nobody needs."""
    live = {a for a in block.outputs if isinstance(a, Var)}
    kept: list[Node] = []
    for node in reversed(block.nodes):
        if any(eqn_effects(node.eqn)) or any(v in live for v in node.outs):
            kept.append(node)
            live.update(a for a in node.ins if isinstance(a, Var))
    return Block(block.inputs, tuple(reversed(kept)), block.outputs)


class _AddedStep:
    """Stands for the primitive of a step that the compiler adds."""

    effects = ()
    multiple_results = False

    def __init__(self, name: str):
        self.name = name


#: A result of a body that would be an operand: arrays that leave a body are its own.
COPY: Any = _AddedStep("copy")
_SPREAD: Any = _AddedStep("spread")
_TIMES: Any = _AddedStep("times")
_TURNED: Any = _AddedStep("turned")
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
    return _rebuilt(block, nodes, {})


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
    users = users_of(block.nodes)
    outputs = {a for a in (*block.outputs, *block.aliases.values()) if isinstance(a, Var)}
    turned: dict[Var, Node] = {}
    for node in block.nodes:
        readers = users.get(node.out, []) if node.outs else []
        if isinstance(node.form, Contract) and len(readers) == 1 and node.out not in outputs:
            f = node.form
            if not f.lhs_batch and node.out.aval.ndim == 2 and _is_turn(readers[0]):
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
    if not isinstance(node.form, Reindex) or node.form.valid is not None or len(node.ins) != 1:
        return False
    rows, columns = node.out.aval.shape if node.out.aval.ndim == 2 else (0, 0)
    if rows < 2 or columns < 2:
        return False
    i = variable("i", rows), variable("j", columns)
    return node.form.index(i, _unread) == (i[1], i[0])


def _unread(operand: int, index: Any) -> Any:
    raise AssertionError("a transposition reads no indices")


def lower_bodies(block: Block) -> Block:
    """Give nodes the graphs that they hold as blocks, simplified."""
    return replace(block, nodes=tuple(map(_with_bodies, block.nodes)))


def _with_bodies(node: Node) -> Node:
    form = node.form
    if isinstance(form, Branch):
        return replace(node, bodies=tuple(map(body_block, form.branches)))
    if isinstance(form, While):
        body = body_block(form.body, keep=len(node.outs))
        return replace(node, bodies=(body_block(form.cond), body))
    if isinstance(form, Scan):
        return replace(node, bodies=(body_block(_carries_last(form), keep=form.num_carry),))
    if isinstance(form, Reduce | Update) and isinstance(form.combine, ClosedGraph):
        return replace(node, bodies=(simplified(form.combine.jaxpr),))
    return node


def _carries_last(form: Scan) -> ClosedGraph:
    """Return the body's graph with its inputs reordered: constants, rows, carries."""
    graph = form.body.jaxpr
    nk, nc = form.num_consts, form.num_carry
    ins = graph.invars
    order = (*ins[:nk], *ins[nk + nc :], *ins[nk : nk + nc])
    return ClosedGraph(replace(graph, invars=order), form.body.consts)


def body_block(graph: ClosedGraph, keep: int = 0) -> Block:
    """Return a graph as a block in which every array output is a value of its own.

    Outputs that are inputs, literals or repeats get a copy; ``keep`` leading outputs may be the
    input at ``keep``'s position, of the last ones, unchanged.
    """
    block = simplified(graph.jaxpr)
    nodes = list(block.nodes)
    outputs: list[Atom] = []
    made = {v for n in nodes for v in n.outs}
    used: set[Var] = set()
    carried = block.inputs[-keep:] if keep else ()
    for j, atom in enumerate(block.outputs):
        own = isinstance(atom, Var) and atom in made and atom not in used
        passed = j < keep and atom is carried[j]
        if not atom.aval.shape or own or passed:
            outputs.append(atom)
        else:
            out = Var(atom.aval)
            nodes.append(Node(Eqn(COPY, (atom,), (out,), {}), Reindex(lambda i, read: i)))
            outputs.append(out)
        if isinstance(atom, Var):
            used.add(atom)
    return Block(block.inputs, tuple(nodes), tuple(outputs))


SIMPLIFY: tuple[tuple[str, Callable[[Block], Block]], ...] = (
    ("multiply outer products", multiply_outer),
    ("turn products", turn_products),
    ("fold constants", fold_constants),
    ("share equal equations", share_equal),
    ("resolve aliases", resolve_aliases),
    ("drop dead equations", drop_dead),
    ("lower the graphs that nodes hold", lower_bodies),
)


def simplified(graph: Graph) -> Block:
    """Return the graph inlined and simplified, and so the graphs that its nodes hold."""
    block = inline_calls(graph)
    for _, step in SIMPLIFY:
        block = step(block)
    return block
