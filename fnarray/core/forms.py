"""Loop forms: the closed set of ways in which an operation lowers.

The compile wing sees these and never an operation's name. Index functions get tuples of indices
(``int`` or ``symbolic.Ix``; use ``+ - * // %`` by integers and ``symbolic.clamp``) and return
them; ``read(k, idx)`` inside them gives the integer that operand ``k`` holds at ``idx``.

Templates are expressions over ``{0} {1} ...`` in the kernels' namespace: ``sc`` is
``fnarray_kernels.scalar``, ``vm`` is ``fnarray_kernels.vmath``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from .frozen import frozen
from .graph import ClosedGraph, Eqn
from .small import is_small

Indices = tuple[Any, ...]
Read = Callable[[int, Indices], Any]
#: ``(low, index, high)``: holds where ``low <= index < high``.
Bound = tuple[int, Any, int]


@frozen
class Map:
    """``out[i] = template(in_0[i], in_1[i], ...)``; operands broadcast (rank 0, or axes of size 1).

    ``cost`` is in units of one addition; from 8 on the scheduler avoids computing it twice. Not
    ``exact`` is what leaves the sign of a zero to who computes: the larger of 0 and -0.
    """

    template: str
    cost: int = 1
    exact: bool = True


@frozen
class Iota:
    """``out[i] = i[dimension]`` in the dtype of the result."""

    dimension: int


@frozen
class Reindex:
    """``out[i] = in_0[index(i, read)]``, or ``fill`` where ``valid(i, read)`` has a bound broken.

    ``index`` must stay inside the operand wherever the bounds hold. ``fill`` is a scalar in the
    result's dtype, or an `Operand` whose element ``i`` stands there (to which no operation lowers).
    Further operands are integers, read by ``read(k, idx)``.
    """

    index: Callable[[Indices, Read], Indices]
    valid: Callable[[Indices, Read], tuple[Bound, ...]] | None = None
    fill: Any = None


@frozen
class Piece:
    """A box of operand ``operand`` from ``start``, of shape ``extents``, laid into the result.

    Element ``e`` of the box goes to ``offset + e * stride``.
    """

    operand: int
    start: tuple[int, ...]
    extents: tuple[int, ...]
    offset: tuple[int, ...]
    stride: tuple[int, ...]


@frozen
class Pieces:
    """The result laid out from boxes; ``fill`` is the rank-0 operand that fills the rest."""

    pieces: tuple[Piece, ...]
    fill: int | None = None


@frozen
class Reduce:
    """``out[o] = fold over r of term(in_k[index_k(o, r)] ...)`` for ``r`` in ``extents``.

    Parameters
    ----------
    extents : tuple of int
        Space of ``r``.
    index : tuple of callables
        For each array operand, ``(o, r) -> idx``.
    inits : tuple
        Start of each accumulator: a scalar, or ``"first"`` operand number as ``int`` wrapped in
        `Operand` (a rank-0 operand).
    combine : tuple of str, or ClosedGraph
        New value of each accumulator, over ``{a0} {a1} ...`` (accumulators) and ``{x0} {x1} ...``
        (terms); or a graph of ``(*accumulators, *terms)``.
    terms : tuple of str
        What is folded: over ``{0} {1} ...`` (operands at their indices) and ``{r0} {r1} ...``
        (``r`` as int64).
    results : tuple of int
        Which accumulators are the outputs.
    dtypes : tuple of dtype, optional
        Dtypes of the accumulators where they differ from the outputs'.
    valid : callable, optional
        ``(o, r) -> bounds``: terms outside are left out (windows over padding).
    axes : tuple of int, optional
        For a plain reduction of operand 0 along axes: lets the loops run in the operand's order.
    in_order : tuple of str, optional
        ``combine`` where terms are to be taken from first to last, if that leaves the order open.
    """

    extents: tuple[int, ...]
    index: tuple[Callable[[Indices, Indices], Indices], ...]
    inits: tuple[Any, ...]
    combine: tuple[str, ...] | ClosedGraph
    terms: tuple[str, ...] = ("{0}",)
    results: tuple[int, ...] = (0,)
    dtypes: tuple[Any, ...] | None = None
    valid: Callable[[Indices, Indices], tuple[Bound, ...]] | None = None
    axes: tuple[int, ...] | None = None
    in_order: tuple[str, ...] | None = None


@frozen
class Operand:
    """A rank-0 operand as the start of an accumulator, or one that a reindexing falls back on."""

    number: int


@frozen
class Contract:
    """``dot_general``: sum of products over contracted axes, batched; result batch, lhs, rhs axes.

    The scheduler makes a library call of a large one and a `Reduce` of a small one.
    """

    lhs_contract: tuple[int, ...]
    rhs_contract: tuple[int, ...]
    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]


@frozen
class Update:
    """The operand with elements replaced: scatters and ``dynamic_update_slice``.

    For ``u`` in ``extents``, in order: where the bounds hold, ``out[index(u, read)] =
    combine(out[...], in_value[u])``. In place where operand 0 is dead afterwards.

    Parameters
    ----------
    extents : tuple of int
        Shape of operand ``value``.
    index, valid : callables
        As in `Reindex`, over ``u``.
    value : int
        Number of the operand that holds the updates.
    combine : str or ClosedGraph
        Over ``{0}`` (old) and ``{1}`` (update).
    apart : bool
        Whether no two updates go to one place, so that their order does not matter.
    """

    extents: tuple[int, ...]
    index: Callable[[Indices, Read], Indices]
    value: int
    combine: str | ClosedGraph = "{1}"
    valid: Callable[[Indices, Read], tuple[Bound, ...]] | None = None
    apart: bool = False


@frozen
class Overlay:
    """The operand with a box of its elements replaced: an update whose places are known.

    For ``u`` in ``extents``, in any order: ``out[index(u)] = combine(in_0[index(u)], in_1[u])``,
    where ``index(u)`` is ``offset[d] + stride[d] * u[axes[d]]`` along each axis ``d``, or
    ``offset[d]`` where ``axes[d]`` is None. No element is replaced twice.

    No operation lowers to it: the compile wing makes it of an `Update`.
    """

    extents: tuple[int, ...]
    axes: tuple[int | None, ...]
    offset: tuple[int, ...]
    stride: tuple[int, ...]
    combine: str | ClosedGraph = "{1}"

    def index(self, u: Indices) -> Indices:
        """Return where an element of the box is in the operand."""
        places = zip(self.offset, self.stride, self.axes, strict=True)
        return tuple(o if a is None else u[a] * s + o for o, s, a in places)


@frozen
class KernelRef:
    """A function of the kernels' package: ``fnarray_kernels.module.function``.

    That each stands for something, for every dtype, is a test: the kernels are above this floor.
    """

    module: str
    function: str

    def __str__(self) -> str:
        return f"fk.{self.module}.{self.function}"


@frozen
class Library:
    """A whole-array step that a target's library provides.

    The target chooses: its kernel, a library that it binds (LAPACK, cuSOLVER), the primitive's
    ``eval`` on the host, or refusal.

    Parameters
    ----------
    op : KernelRef
        What to compute: ``KernelRef("linalg", "cholesky")``. Where there is a kernel, it is called
        ``op(*ins, *outs, *statics)`` with every array flattened to rank 1 in C order (a rank-0
        array has length 1).
    statics : tuple of int, float, bool
        Further arguments of the kernel.
    size : int
        What the choice goes by: the order of a matrix, the elements that are sorted.
    kernel : bool
        Whether the kernels' package has it for these dtypes. Loops that hold a step without a
        kernel run step by step from Python.
    flops : int, optional
        Operations, for reports; None where the algorithm does as many as it needs.
    blas : bool
        Whether the kernel calls BLAS or LAPACK for so much that these would take threads.
    passes : tuple of (KernelRef, tuple)
        Kernels that do the same one after another, each in parts that threads may take: called
        ``op(source, out, *statics, part, parts)``, the first with the operand, others with the
        result as their source.
    stacked : bool
        Whether ``statics`` begin with the length of the arrays' first axes, along which the kernel
        does the same, so that threads may take parts of it.
    exact : bool
        Whether the kernel calls what ``eval`` calls, and gives its bits.
    """

    op: KernelRef
    statics: tuple[Any, ...] = ()
    size: int = 0
    kernel: bool = True
    flops: int | None = None
    blas: bool = False
    passes: tuple[tuple[KernelRef, tuple[Any, ...]], ...] = ()
    stacked: bool = False
    exact: bool = False


#: What only the primitive's ``eval`` computes.
HOST = Library(KernelRef("host", "eval"), kernel=False)
#: A sum of products: no operation lowers to it, the compile wing makes it (`compile.summands`).
SUMMED = KernelRef("host", "products")


def is_product(form: Any) -> bool:
    """Whether a form is a product, or a sum of some."""
    return isinstance(form, Contract) or (isinstance(form, Library) and form.op == SUMMED)


def on_host(name: str) -> Library:
    """Return `HOST` by a name, under which a target may have a library that computes it."""
    return Library(KernelRef("host", name), kernel=False)


@frozen
class Inline:
    """A nested graph whose equations stand in for this one: a call, a custom-derivative call.

    ``apart`` keeps them from being taken for equal ones elsewhere: what they compute is computed
    again, as `checkpoint` asks.
    """

    graph: ClosedGraph
    apart: bool = False


@frozen
class Branch:
    """``branches[clamp(in_0)](*rest)``."""

    branches: tuple[ClosedGraph, ...]


@frozen
class While:
    """Operands are ``cond_consts, body_consts, carry``; results are the carry."""

    cond: ClosedGraph
    body: ClosedGraph
    cond_nconsts: int
    body_nconsts: int


@frozen
class Watch:
    """A loop tells how far it is: after each ``step`` turns it looks whether it is time to.

    Attributes
    ----------
    number : int
        Whose loop it is, as `core.watch.shows` has it.
    step : int
    every : int
        Milliseconds that it runs before it tells first, and from one time to the next.
    """

    number: int
    step: int
    every: int


@frozen
class Scan:
    """Operands are ``consts, carry, xs``; results are ``carry, ys``."""

    body: ClosedGraph
    length: int
    reverse: bool
    num_consts: int
    num_carry: int
    unroll: int = field(default=1)
    watch: Watch | None = None


@frozen
class Lanes:
    """A loop in each of ``count`` lanes, which end after different numbers of turns.

    The target chooses: lanes on their own, one after another or each on a thread, or groups of
    lanes that turn together until the slowest of the group is done.

    Parameters
    ----------
    lane : ClosedGraph
        What one lane computes.
    count : int
    batched : tuple of bool
        Which operands have a row for each lane, in front, as all results have; the others are the
        same for all.
    together : callable, optional
        ``together(width, batched)``: the graph of that many lanes that turn together, where
        operands are batched as said there. None where lanes that are done must not turn on, since
        a turn does more than compute.
    """

    lane: ClosedGraph
    count: int
    batched: tuple[bool, ...]
    together: Callable[[int, tuple[bool, ...]], ClosedGraph] | None = None


Elementwise = Map | Iota | Reindex
Loop = While | Scan | Lanes
Form = (
    Elementwise | Pieces | Reduce | Contract | Update | Overlay | Library | Inline | Branch | Loop
)


#: Forms of equations that hold graphs.
_HOLDING = frozenset((Inline, Branch, While, Scan, Lanes))


def form_of(eqn: Eqn) -> Any:
    """Return how an equation lowers; on arrays of small types, which no kernel holds, by its eval.

    Equations that hold graphs lower to them all the same.
    """
    form = eqn.form()
    if type(form) in _HOLDING:
        return form
    for atom in (*eqn.invars, *eqn.outvars):
        if is_small(atom.aval.dtype):
            return HOST
    return form
