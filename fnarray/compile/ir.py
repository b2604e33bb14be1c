"""What the compile wing works on: nodes, and blocks of them.

A node is an equation with its form at hand; a block is a straight-line program of nodes. A node
that holds graphs (a branch, a loop, a fold by a function) has them as blocks of its own, so that
one value is the whole program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from ..core.frozen import frozen
from ..core.graph import Atom, Eqn, Var


@frozen(eq=False)
class Node:
    """An equation with its form at hand. Known by identity.

    Attributes
    ----------
    form : core.forms.Form
        How it lowers; ``isinstance`` tests say which.
    bodies : tuple of Block
        The graphs that its form holds, in the form's order.
    """

    eqn: Eqn
    form: Any
    bodies: tuple[Block, ...] = ()

    @property
    def ins(self) -> tuple[Atom, ...]:
        """Operands."""
        return self.eqn.invars

    @property
    def outs(self) -> tuple[Var, ...]:
        """Results."""
        return self.eqn.outvars

    @property
    def out(self) -> Var:
        """The first result."""
        return self.eqn.outvars[0]

    def taking(self, operands: Iterable[Atom], results: Iterable[Var] | None = None) -> Node:
        """Return the node with other operands, and other results where given."""
        eqn = self.eqn
        outs = eqn.outvars if results is None else tuple(results)
        return replace(self, eqn=replace(eqn, invars=tuple(operands), outvars=outs))

    def reading(self, env: Mapping[Var, Atom]) -> Node:
        """Return the node with operands replaced as ``env`` says."""
        if not env or env.keys().isdisjoint(self.eqn.invars):
            return self
        return self.taking(env.get(a, a) if isinstance(a, Var) else a for a in self.ins)


@frozen(eq=False)
class Block:
    """A straight-line program of nodes: a graph whose calls are inlined.

    Every `Var` of a block is its own: two blocks of one graph share none.

    ``aliases`` are other names of values, by which equations that are to stay apart know their
    operands until equal ones have been shared. ``given`` are pairs (input, output) of a program
    that owns some of its inputs: the output may lie in the input's storage.
    """

    inputs: tuple[Var, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Atom, ...]
    aliases: dict[Var, Atom] = field(default_factory=dict[Var, Atom])
    given: tuple[tuple[int, int], ...] = ()

    @property
    def owned(self) -> dict[Var, Atom]:
        """The outputs that may lie where inputs do, by these."""
        return {self.inputs[k]: self.outputs[j] for k, j in self.given}

    def rebuilt(self, nodes: Iterable[Node], env: Mapping[Var, Atom]) -> Block:
        """Return a block of other nodes, its results and aliases replaced as ``env`` says."""

        def read(a: Atom) -> Atom:
            return env.get(a, a) if isinstance(a, Var) else a

        aliases = {name: read(a) for name, a in self.aliases.items()}
        return Block(self.inputs, tuple(nodes), tuple(map(read, self.outputs)), aliases)


def users_of(nodes: Iterable[Node]) -> dict[Var, list[Node]]:
    """Map each var to the nodes that read it, each once."""
    users: dict[Var, list[Node]] = {}
    for node in nodes:
        ins = node.eqn.invars
        for atom in ins if len(ins) == 1 else dict.fromkeys(ins):
            if type(atom) is Var:
                if (known := users.get(atom)) is None:
                    users[atom] = [node]
                else:
                    known.append(node)
    return users


def renamed(block: Block) -> Block:
    """Return a block of rank-0 maps with vars of its own, to be spelled once more."""
    env: dict[Atom, Atom] = {v: Var(v.aval) for v in block.inputs}
    env.update((v, Var(v.aval)) for node in block.nodes for v in node.outs)

    def read(atoms: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(env.get(a, a) for a in atoms)

    nodes = tuple(node.taking(read(node.ins), read(node.outs)) for node in block.nodes)
    return Block(read(block.inputs), nodes, read(block.outputs))


class AddedStep:
    """Stands for the primitive of a step that the compiler adds."""

    effects = ()
    collective = None
    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name
