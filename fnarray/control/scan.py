"""Loops over the leading axis of arrays: ``scan``, and ``map`` upon it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast, overload

from ..config import config
from ..core import tree
from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.forms import Scan, Watch
from ..core.graph import ClosedGraph, eval_graph
from ..core.keep import remembered
from ..core.ref import AbstractRef, Ref, check_distinct, row_of
from ..core.source import boundary, user_source
from ..core.surgery import rearranged
from ..core.trace import Tracer, bind
from ..errors import ConcretizationTypeError
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import Overlay, as_seen
from ..ops.shape import expand_dims, reshape
from ..ops.slicing import concatenate, index_in_dim, slice_in_dim
from ..transforms.batch import Axis
from ..transforms.graphs import batch_graph
from . import scan_rules
from ._looping import looping
from .admission import admit
from .flow import check_functions, operands, parameter_name, settle, unwatched
from .in_place import runs_in_place
from .refs import give_back, values_of
from .signature import Signature, fun_name, fun_text, spec_of_call
from .tracing import Traced, traced

__all__ = ["map", "scan"]

C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")


def _scan_aval(
    *avals: ShapedArray, jaxpr: ClosedGraph, length: int, num_carry: int, **params: Any
) -> tuple[ShapedArray, ...]:
    outs = jaxpr.out_avals
    rows = (a.update(shape=(length, *a.shape)) for a in outs[num_carry:])
    return (*outs[:num_carry], *rows)


scan_p = looping(
    "scan",
    scan_rules.FAMILY,
    aval=_scan_aval,
    form=lambda ins, outs, *, jaxpr, length, num_carry, num_consts, reverse, **others: Scan(
        jaxpr, length, reverse, num_consts, num_carry, **others
    ),
    linearize=scan_rules.LINEARIZE,
    transpose=scan_rules.TRANSPOSE,
)


@overload
def scan(
    f: Callable[[Array, X], tuple[Array, Y]],
    init: complex,
    xs: X = ...,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Array, Y]: ...


@overload
def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X = ...,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[C, Y]: ...


@overload
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]: ...


@boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Loop over the leading axis of ``xs``, carrying state, collecting a row of results per turn.

    ``carry = init; for x in xs: carry, y = f(carry, x)`` as one native loop; returns the last
    carry and all ``y``, stacked.

    Parameters
    ----------
    f : callable
        ``(carry, x)`` to ``(carry, y)``, the carry of the structure, shapes and dtypes it came in.
    init : pytree
        The first carry. A weakly typed number takes the dtype that ``f`` gives it.
    xs : pytree of arrays, optional
        With leading axes of one size; None has no leaves, and ``length`` tells the turns.
    length : int, optional
    reverse : bool
        Whether to go from the last row to the first; the rows of ``y`` stay beside those of ``xs``.
    unroll : int or bool
        How many turns to lay out in a row; True is all of them. Results do not depend on it.
    _split_transpose : bool
        Accepted for compatibility.

    Returns
    -------
    carry, ys : pytrees

    Raises
    ------
    TypeError
        ``f`` is not callable, gives no pair, or changes the carry's structure or a type.
    ValueError
        Leading axes differ, or there are none and no ``length``.
    ConcretizationTypeError
        ``length`` is traced.
    """
    f, watched = unwatched(f)
    check_functions("scan", f=f, given=(init, xs))
    leaves, _, x_avals = operands("scan", xs)
    check_distinct(fun_name(f), "scan", [*tree.leaves(init), *leaves], 0)
    length = _length(xs, x_avals, length)
    watch = watched.watch("scan", length) if watched else None
    if config.disable_jit:
        with admit(f, "scan"):
            return _scan_in_python(f, init, xs, length, bool(reverse), watch)
    rows = tuple(_row(a) for a in x_avals)
    spec = spec_of_call(init, xs)

    def trace(avals: tuple[ShapedArray, ...]) -> Traced:
        t = traced(f, Signature(spec, avals + rows), user="scan")
        _check_pair(f, t)
        return t

    name = parameter_name(f, 0, "carry")
    start, body = settle("scan", f, init, trace, name=name, carried=lambda pair: pair.child(0))
    if length and runs_in_place(body):
        with admit(f, "scan"):
            init = tree.structure(init).unflatten(start)
            return _scan_in_python(f, init, xs, length, bool(reverse), watch)
    unrolled = turns("scan", unroll, length)
    return run_scan(body, start, leaves, length, bool(reverse), unrolled, watch)


def _row(aval: Any) -> Any:
    """Return what a turn gets of an operand: a row of an array, or of a Ref."""
    if type(aval) is AbstractRef:
        return AbstractRef(_row(aval.inner_aval))
    if aval.cuts[0]:
        raise ValueError(
            f"lax.scan: 0th dimension of all xs should be replicated, at {user_source()}: turns "
            f"run along it. Got {aval.str_short()}. Use fnarray.reshard before it."
        )
    return aval.update(shape=aval.shape[1:])


def turns(where: str, unroll: Any, length: int) -> int:
    """Return ``unroll`` as a number of turns."""
    if unroll is None or isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    if operator.index(unroll) < 0:
        raise ValueError(
            f"lax.{where}: unroll must be a bool or an int of at least 0, got {unroll}."
        )
    return max(operator.index(unroll), 1)


def _length(xs: Any, avals: Sequence[ShapedArray], length: Any) -> int:
    """Return the number of turns; raise the errors of sizes that do not fit."""
    if isinstance(length, Tracer):
        raise ConcretizationTypeError(
            f"lax.scan: length must be known while tracing, got {length!r}, which is "
            f"{length.where_from()}. Use fori_loop or while_loop for a number of turns that is "
            "computed, or mark the argument it depends on static."
        )
    if length is not None:
        try:
            # Programs divide sizes by "/": a float that is a whole number counts, as in JAX.
            whole = hasattr(length, "is_integer") and length.is_integer()
            length = int(length) if whole else operator.index(length)
        except TypeError as error:
            raise TypeError(f"lax.scan: length must be an int, got {length!r}.") from error
        if length < 0:
            raise ValueError(f"lax.scan: length must not be negative, got {length}.")
    paths = [f"xs{tree.keystr(p)}" for p, _ in tree.leaves_with_path(xs)]
    seen = [x.kind if isinstance(x, Overlay) else x for x in as_seen(avals, xs)]
    shown = [f"{p}: {x.str_short()}" for p, x in zip(paths, seen, strict=True)]
    if bad := [s for s, x in zip(shown, seen, strict=True) if not x.shape]:
        raise ValueError(
            f"lax.scan got a value with no leading axis to scan over: {', '.join(bad)}."
        )
    sizes = {a.shape[0] for a in avals}
    if len(sizes) > 1:
        raise ValueError(
            f"lax.scan got values with different leading axis sizes: {', '.join(shown)}."
        )
    if not sizes and length is None:
        raise ValueError("lax.scan got no values to scan over and length is not provided.")
    if sizes and length not in (None, *sizes):
        raise ValueError(
            f"lax.scan got length={length}, which disagrees with the leading axis sizes of "
            f"{', '.join(shown)}."
        )
    return sizes.pop() if sizes else cast("int", length)


def _check_pair(f: Callable[..., Any], t: Traced) -> None:
    if t.out_spec.type not in (tuple, list) or t.out_spec.num_children != 2:
        got = t.out_spec.unflatten([a.str_short() for a in t.out_avals])
        raise TypeError(
            f"scan body output must be a pair, got {got} from {fun_text(f)}. "
            "Return (carry, y), with None for y where there is nothing to collect."
        )


# ---- running -------------------------------------------------------------------------------------


def run_scan(
    body: Traced,
    init: Sequence[Any],
    xs: Sequence[Any],
    length: int,
    reverse: bool,
    unroll: int,
    watch: Watch | None = None,
) -> Any:
    """Bind the primitive for a traced body; return the result in the body's structure."""
    params = {"length": length, "reverse": reverse, "unroll": unroll}
    if watch is not None:
        params["watch"] = watch
    if body.written_refs is not None:
        return _run_with_refs(body, init, xs, params)
    return body.out_spec.unflatten(_run_core(body.closed, body.consts, init, xs, params))


def _run_with_refs(
    body: Traced, init: Sequence[Any], xs: Sequence[Any], params: dict[str, Any]
) -> Any:
    """Carry what a body writes to Refs that it is closed over; stack what it writes to rows."""
    n, carried, results = len(body.consts), len(init), body.out_spec.num_leaves
    operands = [*body.consts, *init, *xs]
    check_distinct(body.name, "scan", operands, n)
    of_outside = [(k, results + j) for j, k in enumerate(body.written) if k < n]
    of_rows = [(k, results + j) for j, k in enumerate(body.written) if k >= n]
    kept = [k for k in range(n) if k not in body.written]
    graph = rearranged(
        body.closed,
        (
            *kept,
            *range(n, n + carried),
            *(k for k, _ in of_outside),
            *range(n + carried, len(operands)),
        ),
        (
            *range(carried),
            *(j for _, j in of_outside),
            *range(carried, results),
            *(j for _, j in of_rows),
        ),
    )
    outs = _run_core(
        graph,
        values_of([operands[k] for k in kept]),
        [*init, *values_of([operands[k] for k, _ in of_outside])],
        values_of(xs),
        params,
    )
    m = carried + len(of_outside)
    give_back(operands, [k for k, _ in of_outside], outs[carried:m])
    give_back(operands, [k for k, _ in of_rows], outs[len(outs) - len(of_rows) :])
    return body.out_spec.unflatten([*outs[:carried], *outs[m : len(outs) - len(of_rows)]])


def _run_core(
    closed: ClosedGraph,
    consts: Sequence[Any],
    init: Sequence[Any],
    xs: Sequence[Any],
    params: dict[str, Any],
) -> list[Any]:
    """Bind the primitive for the graph of a body; return carry and rows."""
    core = _core(closed, len(consts), len(init))
    init = [as_array(x) for x in init]
    outs = bind(
        scan_p,
        *consts,
        *(init[i] for i in core.invariant),
        *(x for i, x in enumerate(init) if i not in core.invariant),
        *xs,
        jaxpr=core.graph,
        num_consts=len(consts) + len(core.invariant),
        num_carry=len(init) - len(core.invariant),
        **params,
    )
    done = iter(outs)
    carry = [x if i in core.invariant else next(done) for i, x in enumerate(init)]
    ys = [next(done) if k is None else as_array(xs[k]) for k in core.forwarded]
    return [*carry, *ys]


class _Core:
    """What is left of a body to loop over.

    Attributes
    ----------
    graph : ClosedGraph
    invariant : tuple of int
        Parts of the carry that every turn leaves as they are: constants of the loop.
    forwarded : tuple of (int or None)
        For each ``y``, the operand it is a copy of.
    """

    __slots__ = ("forwarded", "graph", "invariant")

    def __init__(
        self, graph: ClosedGraph, invariant: tuple[int, ...], forwarded: tuple[int | None, ...]
    ):
        self.graph = graph
        self.invariant = invariant
        self.forwarded = forwarded


@remembered(4096)
def _core(closed: ClosedGraph, num_consts: int, num_carry: int) -> _Core:
    """Take unchanged carries and copied rows out of a body."""
    g = closed.jaxpr
    first = num_consts + num_carry
    carry, xs = g.invars[num_consts:first], g.invars[first:]
    outs, ys = g.outvars[:num_carry], g.outvars[num_carry:]
    invariant = tuple(i for i, v in enumerate(carry) if outs[i] is v)
    forwarded = tuple(xs.index(y) if y in xs else None for y in ys)
    if not invariant and not any(k is not None for k in forwarded):
        return _Core(closed, (), forwarded)
    moving = [i for i in range(num_carry) if i not in invariant]
    graph = rearranged(
        closed,
        (
            *range(num_consts),
            *(num_consts + i for i in (*invariant, *moving)),
            *range(first, first + len(xs)),
        ),
        (*moving, *(num_carry + i for i, k in enumerate(forwarded) if k is None)),
    )
    return _Core(graph, invariant, forwarded)


def _scan_in_python(
    f: Callable, init: Any, xs: Any, length: int, reverse: bool, watch: Watch | None
) -> tuple[Any, Any]:
    """Run a scan op by op, under ``disable_jit``."""
    if length == 0:
        raise ValueError("lax.scan of length 0 under disable_jit: the type of ys is not known.")
    from ..core.watch import ticking  # which few programs need

    carry, rows = init, []
    turns = range(length)
    for i in ticking(watch, reversed(turns) if reverse else turns):
        carry, y = f(carry, tree.map(lambda x, i=i: _turn_of(x, i), xs))
        rows.append(y)
    return carry, stack(rows[::-1] if reverse else rows)


def _turn_of(x: Any, i: int) -> Any:
    return row_of(x, i) if type(x) is Ref else index_in_dim(x, i, keepdims=False)


def stack(rows: Sequence[Any]) -> Any:
    """Join trees of one structure along a new leading axis."""
    return tree.map(lambda *ys: concatenate([expand_dims(as_array(y), (0,)) for y in ys], 0), *rows)


# ---- map -----------------------------------------------------------------------------------------


@overload
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y: ...


@overload
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any: ...


@boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row of ``xs``; stack the results.

    Parameters
    ----------
    f : callable
    xs : pytree of arrays
        With leading axes of one size.
    batch_size : int, optional
        Compute this many rows at once, as one batch: for functions whose batches are faster than
        a native loop over rows, such as products of matrices. Functions that use Refs of outside
        take one row after the other all the same.

    Raises
    ------
    TypeError
        ``f`` is not callable.
    ValueError
        Leading axes differ or there are none, or ``batch_size`` is not positive.
    """
    check_functions("map", f=f, given=(xs,))
    if batch_size is not None and operator.index(batch_size) <= 0:
        raise ValueError(f"lax.map: batch_size must be positive, got {batch_size}.")
    leaves, _, avals = operands("map", xs)
    length = _length(xs, avals, None)
    if config.disable_jit:
        with admit(f, "map"):
            return _scan_in_python(lambda _, x: ((), f(x)), (), xs, length, False, None)[1]
    rows = tuple(_row(a) for a in avals)
    body = traced(f, Signature(spec_of_call(xs), rows), user="map")
    # Rows that use Refs of outside keep their order, in which one reads what another has written.
    if batch_size is None or not length or body.written_refs is not None:
        return run_scan(body, (), leaves, length, False, 1)
    return _in_batches(body, leaves, length, batch_size)


def _in_batches(body: Traced, xs: Sequence[Any], length: int, size: int) -> Any:
    """Map over batches of rows; those left over are one more."""
    whole = length - length % size
    parts = []
    if whole:
        chunks = [
            reshape(slice_in_dim(x, 0, whole), (whole // size, size, *x.shape[1:])) for x in xs
        ]
        out = run_scan(_batched(body, len(xs), size), (), chunks, whole // size, False, 1)
        parts.append([reshape(y, (whole, *y.shape[2:])) for y in tree.leaves(out)])
    if whole < length:
        last = _batched(body, len(xs), length - whole)
        rest = [slice_in_dim(x, whole, length) for x in xs]
        parts.append(eval_graph(last.closed.jaxpr, (), [*last.consts, *rest], bind))
    if len(parts) > 1:
        parts = [[concatenate(pair, 0) for pair in zip(*parts, strict=True)]]
    return body.out_spec.unflatten(parts[0])


def _batched(body: Traced, rows: int, size: int) -> Traced:
    """Return a body of a map, traced for a row, as one for a batch of them."""
    flags = (False,) * len(body.consts) + (True,) * rows
    whole = batch_graph(body.closed, flags, Axis(size), (True,) * len(body.out_avals))
    return replace(body, closed=whole.graph, consts=(*whole.consts, *body.consts))
