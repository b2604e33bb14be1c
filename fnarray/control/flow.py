"""What calls of branches and loops have in common: operands, shared constants, carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from ..core import tree
from ..core.array import aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import result_type
from ..core.forms import Watch
from ..core.graph import ClosedGraph
from ..core.ref import AbstractRef, Ref
from ..core.surgery import rearranged
from ..ops.convert import convert
from .admission import admit
from .refs import refs_given
from .signature import fun_text, parameters_of
from .tracing import Traced

Avals = tuple[ShapedArray, ...]

# ---- operands ------------------------------------------------------------------------------------


class Watched(Protocol):
    """Says how a loop is watched."""

    def watch(self, where: str, turns: int) -> Watch | None:
        """Return how a loop of so many turns is."""
        ...

    def parts(self) -> tuple[int, int]:
        """Return into how many parts a loop of unknown length is cut, and the turns of each."""
        ...

    def of(self, part: Callable[..., Any]) -> Callable[..., Any]:
        """Return the body of a loop over such parts, watched."""
        ...


def unwatched(body: Any) -> tuple[Any, Watched | None]:
    """Return a loop's body itself, and how it is watched, if it is."""
    found: Any = getattr(cast("Any", type(body)), "__fnarray_watched__", None)
    return found(body) if found is not None else (body, None)


def check_functions(where: str, *, given: Sequence[Any] = (), **funs: Any) -> None:
    """Raise `TypeError` for what should be a function and is none, `EffectError` for impure ones.

    All are checked before the first is traced. ``given`` is what they will be called with, as far
    as it is known: a Ref may be written.
    """
    for name, fun in funs.items():
        if not callable(fun):
            raise TypeError(
                f"lax.{where}: {name} should be callable, got {fun!r} of type {type(fun)}."
            )
    refs = refs_given(given, {})
    for fun in funs.values():
        admit(fun, where, statics=refs)


def operands(where: str, value: Any) -> tuple[list[Any], Any, Avals]:
    """Return the leaves of a tree of operands, its structure, and their avals.

    Raises
    ------
    TypeError
        A leaf is no array and no number.
    """
    leaves, spec = tree.flatten_spec(value)
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(leaf.aval if type(leaf) is Ref else aval_of(leaf))
        except TypeError as error:
            path = tree.keystr(tree.leaves_with_path(value)[i][0])
            raise TypeError(
                f"lax.{where}: Argument {leaf!r} of type {type(leaf)} is not a valid fnarray "
                f"type, at {path or 'the root'} of the operands. Pass arrays and numbers."
            ) from error
    return leaves, spec, tuple(avals)


# ---- graphs that share operands ------------------------------------------------------------------


def with_common_consts(branches: Sequence[Traced]) -> tuple[list[Any], tuple[ClosedGraph, ...]]:
    """Return what any of the branches captured, and graphs that all take it, in one order."""
    common = list({id(c): c for t in branches for c in t.consts}.values())
    graphs = []
    for t in branches:
        own = {id(c): k for k, c in enumerate(t.consts)}
        rest = range(len(own), len(t.closed.in_avals))
        inputs = (own.get(id(c), c.aval.inner_aval if type(c) is Ref else c.aval) for c in common)
        graphs.append(rearranged(t.closed, (*inputs, *rest)))
    return common, tuple(graphs)


def with_common_writes(
    branches: Sequence[Traced], common: Sequence[Any], graphs: Sequence[ClosedGraph]
) -> tuple[list[int], tuple[ClosedGraph, ...]]:
    """Return which inputs are Refs that any branch writes, and graphs that all give their values.

    ``graphs`` take what is ``common`` first; one that does not write a Ref gives what it took.
    """
    number = {id(c): k for k, c in enumerate(common)}
    found: list[dict[int, int]] = []
    for t in branches:
        n, first = len(t.consts), t.out_spec.num_leaves
        places = [number[id(t.consts[k])] if k < n else k - n + len(common) for k in t.written]
        found.append({k: first + j for j, k in enumerate(places)})
    written = sorted(set().union(*found))
    done = [
        rearranged(
            g,
            tuple(range(len(g.in_avals))),
            (*range(t.out_spec.num_leaves), *(own.get(k, -1 - k) for k in written)),
        )
        for g, t, own in zip(graphs, branches, found, strict=True)
    ]
    return written, tuple(done)


# ---- carries -------------------------------------------------------------------------------------


def parameter_name(fun: Callable[..., Any], number: int, default: str) -> str:
    """Return the name of a function's positional parameter."""
    names = list(parameters_of(fun) or ())
    return names[number] if number < len(names) else default


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether two avals agree but for weak types; those of Refs are one, or differ."""
    if a is b or type(a) is not type(b) or isinstance(a, AbstractRef):
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and a.place is b.place


def strengthen(init: list[Any], ins: Avals, outs: Avals) -> list[Any] | None:
    """Return the initial carry with weak leaves in the dtypes the body gives, None if they are.

    ``0`` and a body that adds floats to it are a float carry.
    """
    new = [
        convert(x, result_type(x, o.dtype)) if a.weak_type and a.dtype != o.dtype else x
        for x, a, o in zip(init, ins, outs, strict=True)
    ]
    return new if any(x is not y for x, y in zip(new, init, strict=True)) else None


def settle(
    where: str,
    fun: Callable[..., Any],
    init: Any,
    trace: Callable[[Avals], Traced],
    *,
    name: str,
    carried: Callable[[Any], Any] = lambda spec: spec,
    shown: Callable[[Any], Any] = lambda spec: spec,
) -> tuple[list[Any], Traced]:
    """Trace a loop's body and make the initial carry fit it.

    Parameters
    ----------
    where : str
        The loop, for messages.
    fun : callable
        The user's body, for messages.
    init : pytree
        The initial carry. Its weakly typed leaves take the dtypes that the body gives them.
    trace : callable
        Avals of the carry's leaves to the traced body.
    name : str
        What the body calls the carry.
    carried : callable
        Structure of the body's result to that of the carry in it, which comes first.
    shown : callable
        Structure of the carry to that of its last part, which is the user's.

    Returns
    -------
    leaves, traced : list, Traced

    Raises
    ------
    TypeError
        The body changes the carry's structure, or the shape or dtype of a leaf.
    """
    leaves, spec, avals = operands(where, init)
    while True:
        t = trace(avals)
        out_spec = carried(t.out_spec)
        check_carry_structure(where, fun, name, shown(spec), shown(out_spec))
        outs = t.out_avals[: len(avals)]
        stronger = strengthen(leaves, avals, outs)
        if stronger is None:
            break
        leaves, avals = stronger, tuple(map(aval_of, stronger))
    mine = shown(spec)
    hidden = spec.num_leaves - mine.num_leaves
    check_carry_types(where, fun, name, mine, avals[hidden:], outs[hidden:])
    return leaves, t


def check_carry_structure(where: str, fun: Callable, name: str, spec: Any, out_spec: Any) -> None:
    """Raise `TypeError` unless a body returns the carry in the structure it took it."""
    if spec == out_spec:
        return
    raise TypeError(
        f"{where} body function carry input and carry output must have the same pytree "
        f"structure, but they differ: {fun_text(fun)} takes\n  {name} as {tree.PyTreeDef(spec)}\n"
        f"and returns it as\n  {tree.PyTreeDef(out_spec)}\n"
        f"{_first_difference(name, spec, out_spec)}"
        "Return the carry in the structure of the initial one."
    )


def _first_difference(name: str, spec: Any, other: Any) -> str:
    """Name the first leaf that one structure has and the other does not."""
    mine, theirs = (
        [tree.keystr(p) for p, _ in tree.leaves_with_path(s.unflatten(range(s.num_leaves)))]
        for s in (spec, other)
    )
    for path in mine:
        if path not in theirs:
            return f"The output has no leaf {name}{path}.\n"
    for path in theirs:
        if path not in mine:
            return f"The input has no leaf {name}{path}.\n"
    return ""


def check_carry_types(
    where: str, fun: Callable, name: str, spec: Any, ins: Avals, outs: Avals
) -> None:
    """Raise `TypeError` naming each leaf whose shape or dtype a body changes."""
    paths = tree.leaves_with_path(spec.unflatten(ins))
    lines = [
        f"  The input carry component {name}{tree.keystr(path)} has type {a.str_short()} but the "
        f"corresponding output carry component has type {o.str_short()}, so {_why(a, o)}."
        for (path, a), o in zip(paths, outs, strict=True)
        if not same_type(a, o)
    ]
    if lines:
        raise TypeError(
            f"{where} body function carry input and carry output must have equal types, but they "
            f"differ in {fun_text(fun)}:\n" + "\n".join(lines) + "\nConvert or reshape them in "
            "the body, or start from an initial carry of the output's types."
        )


def _why(a: ShapedArray, b: ShapedArray) -> str:
    """Say in which respect two types differ."""
    if isinstance(a, AbstractRef) or isinstance(b, AbstractRef):
        return "one is a Ref where the other is an array: hand the Ref itself on"
    if a.vma != b.vma:
        (axes,) = {tuple(sorted(map(str, a.vma ^ b.vma)))}
        return (
            "the manual axis types do not match: one of them varies along the axes "
            f"{axes}. Apply fnarray.lax.pcast(..., {axes}, to='varying') to the other"
        )
    if a.shape == b.shape and a.cuts != b.cuts:
        return "the shardings do not match: use fnarray.reshard"
    if a.shape == b.shape:
        return "the dtypes do not match"
    return "the shapes do not match" + ("" if a.dtype == b.dtype else ", nor do the dtypes")


def check_same_results(
    where: str, funs: Sequence[Callable], names: Sequence[str], ts: Sequence[Traced]
) -> None:
    """Raise `TypeError` unless all branches return one structure and the same types."""
    first = ts[0]
    for fun, name, t in zip(funs[1:], names[1:], ts[1:], strict=True):
        who = f"  {names[0]} is {fun_text(funs[0])}\n  {name} is {fun_text(fun)}\n"
        if t.out_spec != first.out_spec:
            raise TypeError(
                f"{where} branch outputs must have the same pytree structure, but they differ:\n"
                f"{who}{names[0]} returns {first.out_tree}, {name} returns {t.out_tree}.\n"
                f"{_first_difference('result', first.out_spec, t.out_spec)}"
                "Make all branches return one structure."
            )
        paths = tree.leaves_with_path(t.out_spec.unflatten(t.out_avals))
        lines = [
            f"The output of {names[0]}{_at(path)} has type {a.str_short()} but the corresponding "
            f"output of {name} has type {b.str_short()}, so {_why(a, b)}.\n"
            for a, (path, b) in zip(first.out_avals, paths, strict=True)
            if not same_type(a, b)
        ]
        if lines:
            raise TypeError(
                f"{where} branches must have equal output types but they differ:\n{who}"
                f"{''.join(lines)}Convert the results to one type."
            )


def _at(path: Any) -> str:
    """Say at which path, unless it is the root."""
    return f" at path {tree.keystr(path)}" if path else ""
