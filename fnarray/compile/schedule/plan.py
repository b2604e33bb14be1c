"""The plan: everything that is decided about a program before a line of it is written.

Emission reads it and spells it. A plan is frozen and recursive: a step that holds graphs has the
plans of their bodies, and says how values enter and leave them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod

from ...core.frozen import frozen
from ...core.graph import Atom, Var
from ..ir import Block, Node
from ..target import Limits
from .access import row_major
from .nests import Nest, Statement, Step

# ---- where values lie ----------------------------------------------------------------------------


@frozen
class Given:
    """In an array that whoever runs the body has: an argument of the kernel, a row, a carry."""


@frozen
class Same:
    """Where another value lies, whose storage this one takes over, only reads, or shows.

    The other value may be of another shape: both are then in C order.
    """

    var: Var


@frozen
class Scratch:
    """In a working array of the kernel.

    Attributes
    ----------
    contracted : tuple of bool
        Axes of which one element is kept: those of the loops that writer and readers share.
    depth : int
        How many loops they share.
    """

    contracted: tuple[bool, ...]
    depth: int = 0


#: A value without a place is held in registers, element by element.
Place = Given | Same | Scratch


# ---- statements ----------------------------------------------------------------------------------


@frozen(eq=False)
class Tree:
    """A loop that nests share.

    Attributes
    ----------
    depth, last : int
        The loops of its members that it stands for: perfectly nested loops run as one counter where
        every array they touch is traversed contiguously by it.
    extents : tuple of int
        Of those loops.
    members : tuple of Nest
        All nests inside.
    children : tuple of Tree or Nest
        What runs in each iteration, in order.
    """

    depth: int
    last: int
    extents: tuple[int, ...]
    members: tuple[Nest, ...]
    children: tuple[Tree | Nest, ...]

    @property
    def extent(self) -> int:
        """Iterations of the loop."""
        return prod(self.extents)


Item = Tree | Nest | Step


#: Inputs of a body that stand for values outside: input, value, and where it lies: as the value
#: (`Same`), in working storage to be filled first, or in registers.
Entries = tuple[tuple[Var, Atom, Place | None], ...]


@frozen(eq=False)
class Arm:
    """One alternative of a branch.

    Attributes
    ----------
    number : int
    body : Body
    entries : Entries
    outputs : tuple of Atom
        The values of the branch's results in this alternative.
    """

    number: int
    body: Body
    entries: Entries
    outputs: tuple[Atom, ...]


@frozen(eq=False)
class Arms:
    """How a branch runs.

    Attributes
    ----------
    arms : tuple of Arm
        The alternatives that can be taken.
    registers : tuple of Var
        Results held in registers; the others lie where their places say.
    donors : mapping
        Results that begin as an operand and are updated in place: result to operand.
    """

    arms: tuple[Arm, ...]
    registers: tuple[Var, ...]
    donors: Mapping[Var, Var]


@frozen(eq=False)
class Carry:
    """A loop-carried value.

    Attributes
    ----------
    var, init, result : Var, Atom, Var
        The body's input, its first value, the loop's result.
    place : Place or None
        Where the carry lies; None for registers.
    filled : bool
        Whether the first value must be copied there.
    scratch : bool
        Whether that is working storage of the loop's own, not the result's place.
    spare : bool
        Whether the body cannot work in place and writes a second buffer, exchanged with the first
        after each turn.
    same : bool
        Whether that begins as a copy, of which turns write a box.
    """

    var: Var
    init: Atom
    result: Var
    place: Place | None
    filled: bool = False
    scratch: bool = False
    spare: bool = False
    same: bool = False


@frozen(eq=False)
class Turns:
    """How a loop runs.

    Attributes
    ----------
    carries : tuple of Carry
    body : Body
    entries : Entries
        Of the test and the body.
    test : Body or None
        What a ``while`` computes before each turn; its inputs for the carries are ``tested``.
    rows : tuple of (Var, Atom, bool or None)
        Inputs that are rows of stacked operands, and whether the operand must be stored first; None
        where each turn computes its number.
    stacked : tuple of (Var, Atom)
        Results that are stacked, and the body's value for each row.
    """

    carries: tuple[Carry, ...]
    body: Body
    entries: Entries
    test: Body | None = None
    tested: tuple[Var, ...] = ()
    rows: tuple[tuple[Var, Atom, bool | None], ...] = ()
    stacked: tuple[tuple[Var, Atom], ...] = ()


@frozen
class Operands:
    """How a library kernel that is called inside of a kernel gets its operands.

    Attributes
    ----------
    stored : tuple of bool
        Which operands must be written to an array first.
    orders : tuple of (tuple of int or None)
        For a contraction: the order of axes in which an operand must be written first.
    turned : tuple of bool
        For a contraction: of which operands the columns lie together, which BLAS reads as well.
    """

    stored: tuple[bool, ...]
    orders: tuple[tuple[int, ...] | None, ...] = ()
    turned: tuple[bool, ...] = ()


@frozen
class Layout:
    """How pieces are laid out.

    Attributes
    ----------
    runs : tuple of (tuple of int)
        For each piece, over how many of its axes each counter runs, outermost first.
    """

    runs: tuple[tuple[int, ...], ...]


Flow = Arms | Turns | Operands | Layout


@frozen(eq=False)
class Body:
    """What runs, in order, and where each value lies.

    Attributes
    ----------
    block : Block
    items : tuple of Item
    inlined : mapping
        Nodes that are written into their readers, by result.
    unrolled : frozenset of Statement
        Statements whose loops are written out, their results held in registers.
    places : mapping
        Where results lie, in the order in which storage is named.
    filled : frozenset of Var
        Results that begin as a copy of the operand that they are an update of.
    flows : mapping
        How steps run that hold bodies or call kernels.
    shared : mapping
        Loops that threads share, and their work.
    """

    block: Block
    items: tuple[Item, ...]
    inlined: Mapping[Var, Node]
    unrolled: frozenset[Statement]
    places: Mapping[Var, Place]
    filled: frozenset[Var]
    flows: Mapping[Step, Flow]
    shared: Mapping[Tree, int] = field(default_factory=dict["Tree", int])


# ---- programs ------------------------------------------------------------------------------------


@frozen
class Reason:
    """Why something was not done that would have saved work.

    Attributes
    ----------
    stage : str
        Which stage decided.
    node : Node
        About which node.
    choice, why : str
        What was decided, and the reason.
    """

    stage: str
    node: Node
    choice: str
    why: str

    def __str__(self) -> str:
        where = f"{self.node.eqn.primitive} at {self.node.eqn.source}"
        return f"{where}: {self.choice}, since {self.why}"


@frozen(eq=False)
class Region:
    """Consecutive items that run as one kernel, or one step that the driver takes.

    Attributes
    ----------
    body : Body
    step : Node or None
        The node of a step, or of a view.
    view : bool
        Whether the result is the operand's storage in another shape.
    inputs, outputs : tuple of Var
        Values that the kernel reads and makes, scratch apart.
    aliases : mapping
        Outputs that are written over an input: result to operand.
    span : int or None
        Iterations of the outermost loop where it runs in chunks, on threads.
    folds : tuple of Var
        Outputs that the chunks fold, to be added up afterwards.
    released : tuple of Var
        Values that nobody reads after the region.
    """

    body: Body | None
    step: Node | None
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    aliases: Mapping[Var, Var] = field(default_factory=dict[Var, Var])
    span: int | None = None
    folds: tuple[Var, ...] = ()
    released: tuple[Var, ...] = ()
    view: bool = False


@frozen(eq=False)
class Plan:
    """A whole program, decided.

    Attributes
    ----------
    block : Block
    regions : tuple of Region
        In order.
    sizes : frozenset of int
        Sizes of arrays: numbers that equal one are taken for sizes, and become arguments.
    limits : Limits
        Those of the target, but for what the program lowered.
    reasons : tuple of Reason
        What was not done, and why.
    """

    block: Block
    regions: tuple[Region, ...]
    sizes: frozenset[int]
    limits: Limits
    reasons: tuple[Reason, ...]


def statements_of(items: tuple[Item, ...]) -> list[Statement]:
    """Return the nests and steps of items, in order."""
    out: list[Statement] = []
    for item in items:
        out.extend(item.members if isinstance(item, Tree) else [item])
    return out


def strides_of(places: Mapping[Var, Place], var: Var) -> tuple[int, ...]:
    """Return the strides, in elements, of a value that lies in memory; 0 for contracted axes."""
    shape = var.aval.shape
    home = home_of(places, var)
    place = places[home]
    if isinstance(place, Scratch) and home.aval.shape == shape:
        return contracted_strides(shape, place.contracted)
    return row_major(shape)


def contracted_strides(shape: Sequence[int], contracted: Sequence[bool]) -> tuple[int, ...]:
    """Return the strides of an array that keeps one element of the axes marked, which get 0."""
    kept = [1 if c else n for n, c in zip(shape, contracted, strict=True)]
    return tuple(0 if c else s for s, c in zip(row_major(kept), contracted, strict=True))


def home_of(places: Mapping[Var, Place], var: Var) -> Var:
    """Return the value whose storage a value shares, which is the same for all that share it."""
    while isinstance(place := places[var], Same):
        var = place.var
    return var
