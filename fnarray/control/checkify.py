"""Checks in functional programs: what would raise is a value, given beside the result.

A function runs in a `CheckTrace`, which records operations as they are and asks what may have gone
wrong with each. What went wrong first is kept in Refs of outside (decision 0023), so that it is
carried through loops, branches and calls like all that they write.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from ..core import tree
from ..core.array import Array, ArrayImpl, asarray, aval_of
from ..core.forms import HOST
from ..core.frozen import frozen
from ..core.graph import ClosedGraph, eval_graph
from ..core.primitive import Primitive
from ..core.ref import Ref
from ..core.source import Source, user_source
from ..core.trace import CustomCall, Trace, bind, state, trace_graph, tracing, within
from ..errors import CheckError
from ..ops.bitwise import bitwise_not
from ..ops.kit.calls import (
    argmax,
    bitwise_and,
    broadcast,
    eq,
    ne,
    reduce_or,
    reshape,
    rev,
    select,
    sub,
)
from ..ops.kit.canonical import as_array
from ..ops.kit.registry import register
from ..transforms.derivative import lift
from . import check_rules
from .admission import admit
from .host import NOT_LINEAR
from .signature import fun_name

__all__: list[str] = []

# ---- errors --------------------------------------------------------------------------------------


class FailedCheckError(CheckError):
    """A `check` of the user's failed."""


class DivisionByZeroError(CheckError):
    """A divisor is zero."""


class NaNError(CheckError):
    """An operation gave a NaN."""


class OOBError(CheckError):
    """An index lies outside of the array."""


Errors = frozenset[type[CheckError]]

#: Checks that programs write: `check`.
user_checks: Errors = frozenset({FailedCheckError})
#: No operation makes a NaN.
nan_checks: Errors = frozenset({NaNError})
#: Indices lie inside their arrays.
index_checks: Errors = frozenset({OOBError})
#: No division by zero.
div_checks: Errors = frozenset({DivisionByZeroError})
#: `nan_checks` and `div_checks`.
float_checks: Errors = nan_checks | div_checks
#: Those that need no call in the program: `float_checks` and `index_checks`.
automatic_checks: Errors = float_checks | index_checks
#: `automatic_checks` and `user_checks`.
all_checks: Errors = automatic_checks | user_checks
KINDS = {"nan": NaNError, "index": OOBError, "div": DivisionByZeroError}


@frozen
class Site:
    """A place of a program where something may go wrong.

    Attributes
    ----------
    kind : type
        Of the error.
    message : str
        With fields for the values that belong to it.
    source : Source
    spec : object
        Structure of these values: ``(args, kwargs)``.
    """

    kind: type[CheckError]
    message: str
    source: Source
    spec: Any

    def text(self, values: Sequence[Any]) -> str:
        """Return the message: JAX's, and a line that tells where."""
        args, kwargs = self.spec.unflatten(values)
        message = self.message.format(*args, **kwargs)
        if self.kind is FailedCheckError:
            message += " (`check` failed)"
        line = self.source.text()
        return f"{message}\n  at {self.source}" + (f": {line}" if line else "")


class Error:
    """What went wrong first in a checked function, if anything did: a value, of arrays.

    Errors of a kind, whose messages show values of the same shapes, share a place: of these the
    first is kept. Arrays have an axis for each ``vmap`` and ``pmap`` around.

    Attributes
    ----------
    failed : tuple of Array
        Of each kind whether there is one.
    codes : tuple of Array
        The number of its site, from 1; 0 for none.
    payload : tuple of tuple of Array
        The values that its message shows.
    sites : tuple of (int, Site)
        Each with the position of its kind.
    """

    __slots__ = ("codes", "failed", "payload", "sites")

    def __init__(
        self,
        failed: tuple[Any, ...] = (),
        codes: tuple[Any, ...] = (),
        payload: tuple[Any, ...] = (),
        sites: tuple[tuple[int, Site], ...] = (),
    ):
        self.failed = failed
        self.codes = codes
        self.payload = payload
        self.sites = sites

    def _found(self) -> list[tuple[tuple[int, ...], CheckError]]:
        """Return the errors, each with the index of the example that it is of."""
        shape = np.broadcast_shapes(*(np.shape(c) for c in self.codes))
        found = []
        for at in np.ndindex(shape):
            # A kind that was checked outside of a map is of all of its examples.
            numbers = [int(np.asarray(c)[at[: np.ndim(c)]]) for c in self.codes]
            if first := min(filter(None, numbers), default=0):
                k, site = self.sites[first - 1]
                here = at[: np.ndim(self.codes[k])]
                shown = [asarray(np.asarray(v)[here]) for v in self.payload[k]]
                found.append((at, site.kind(site.text(shown))))
        return found

    def get(self) -> str | None:
        """Return the message of the error, or None; under ``vmap``, those of all examples."""
        lines = [
            f"at mapped index {', '.join(map(str, at))}: {error}" if at else str(error)
            for at, error in self._found()
        ]
        return "\n".join(lines) or None

    def get_exception(self) -> CheckError | None:
        """Return the error as an exception, or None; under ``vmap``, the first example's."""
        found = self._found()
        return found[0][1] if found else None

    def throw(self) -> None:
        """Raise the error, if there is one."""
        if error := self.get_exception():
            raise error

    def is_known(self) -> bool:
        """Say whether nothing of it is traced."""
        return all(isinstance(c, ArrayImpl | np.ndarray | np.generic) for c in self.codes)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    def __repr__(self) -> str:
        return str(self) if self.is_known() else f"Error({', '.join(map(repr, self.codes))})"


tree.register_pytree_node(
    Error,
    lambda error: ((error.failed, error.codes, error.payload), error.sites),
    lambda sites, children: Error(*children, sites=sites),
)

init_error = Error()

# ---- the operation of a check of the user's ------------------------------------------------------


def _evaluate(ok: Any, *values: Any, message: str, spec: Any, debug: bool) -> tuple[()]:
    if not debug and not np.all(ok):
        site = Site(FailedCheckError, message, user_source(), spec)
        raise FailedCheckError(site.text([asarray(v) for v in values]))
    return ()


def _form(ins: Any, outs: Any, *, message: str, debug: bool, **params: Any) -> Any:
    if not debug:
        raise ValueError(
            f"Cannot abstractly evaluate a checkify.check which was not functionalized: "
            f"check(..., {message!r}). A program that is compiled cannot raise: apply "
            "checkify.checkify to the function around, inside of jit or outside."
        )
    return HOST


def _batch(size: int, operands: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
    ok, *values = operands
    if batched[0]:
        # Of examples that fail, JAX reports the last.
        last = sub(np.int32(size - 1), argmax(rev(bitwise_not(ok), (0,)), 0))
        values = [v[last] if b else v for v, b in zip(values, batched[1:], strict=True)]
        ok = bitwise_not(reduce_or(bitwise_not(ok), (0,)))
    else:
        values = [v[0] if b else v for v, b in zip(values, batched[1:], strict=True)]
    return bind(check_p, ok, *values, **params), ()


check_p = register(
    Primitive(
        "check",
        quiet=False,
        aval=lambda *avals, **params: (),
        eval=_evaluate,
        form=_form,
        jvp=lambda primals, tangents, **params: (bind(check_p, *primals, **params), []),
        transpose=NOT_LINEAR,
        batch=_batch,
        effects=("check",),
        multiple_results=True,
    )
)


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check that a value holds.

    Outside of `checkify`, it raises at once; a program that is compiled must be checkified.

    Parameters
    ----------
    pred : bool scalar
    msg : str
        As for `str.format`.
    debug : bool
        Whether to do nothing in functions that are not checkified.
    *fmt_args, **fmt_kwargs : pytrees of arrays
        For ``msg``.

    Raises
    ------
    TypeError
        ``pred`` is no boolean scalar, ``msg`` no string, or a value no array.
    FailedCheckError
        ``pred`` is False.
    """
    aval = aval_of(pred) if isinstance(pred, Array | bool | np.ndarray | np.generic) else None
    if aval is None or aval.shape or aval.dtype != np.bool_:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}")
    if not isinstance(msg, str):
        raise TypeError(f"check: msg must be a string, got {msg!r} of type {type(msg)}.")
    leaves, spec = tree.flatten_spec((fmt_args, fmt_kwargs))
    for leaf in leaves:
        try:
            aval_of(leaf)
        except TypeError as error:
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{leaf!r} of type {type(leaf)}."
            ) from error
    bind(check_p, pred, *leaves, message=msg, spec=spec, debug=bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check that a value holds, in functions that are checkified; elsewhere do nothing."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise an error, or hand it on to the `checkify` around.

    Raises
    ------
    TypeError
        It is no `Error`.
    CheckError
        It is one, and nothing is checkified here.
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error: expected a checkify.Error, got {error!r}.")
    record = _record_around()
    if record is not None:
        record.take(error)
    elif error.is_known():
        error.throw()
    else:
        for failed in error.failed:
            good = bitwise_not(reduce_or(failed, tuple(range(failed.ndim))))
            check(good, "an error of an inner checkify: see check_error")


# ---- the trace -----------------------------------------------------------------------------------


class Record:
    """What went wrong first, as a program runs.

    Parameters
    ----------
    errors : frozenset of type
        Which kinds are asked for.
    """

    def __init__(self, errors: Errors):
        self.errors = errors
        self.home = state.trace
        self.sites: list[tuple[int, Site]] = []
        # As in JAX, the first error of each kind is kept; the program's first site decides.
        self.kinds: dict[Any, list[Ref]] = {}

    def _cell(self, shape: tuple[int, ...], dtype: Any) -> Ref:
        value = asarray(np.zeros(shape, dtype))
        return Ref(self.home, value, "made by checkify", shared=True)

    def fail(self, site: Site, failed: Array, values: Sequence[Any]) -> None:
        """Keep an error, unless there was one of its kind before.

        ``failed`` and ``values`` may have axes in front, of the devices that a program runs on.
        """
        arrays = list(map(as_array, values))
        kind = site.kind, failed.shape, *((x.shape, x.dtype) for x in arrays)
        if kind not in self.kinds:
            cells = (self._cell(x.shape, x.dtype) for x in arrays)
            self.kinds[kind] = [self._cell(failed.shape, np.int32), *cells]
        code, *held = self.kinds[kind]
        known = code[...]
        first = bitwise_and(failed, eq(known, np.int32(0)))
        self.sites.append((list(self.kinds).index(kind), site))
        code[...] = select(first, np.int32(len(self.sites)), known)
        for cell, value in zip(held, arrays, strict=True):
            where, old = first, cell[...]
            if missing := old.ndim - first.ndim:
                where = reshape(first, (*first.shape, *(1,) * missing))
                where = broadcast(where, old.shape)
            cell[...] = select(where, value, old)

    def take(self, error: Error) -> None:
        """Keep what went wrong in a part of the program that was checked by itself."""
        for number, (k, site) in enumerate(error.sites, 1):
            self.fail(site, eq(error.codes[k], np.int32(number)), error.payload[k])

    def user(self, operands: Sequence[Any], *, message: str, spec: Any, debug: bool) -> list[Any]:
        """Keep what a check of the user's found."""
        if FailedCheckError in self.errors:
            ok, *values = operands
            site = Site(FailedCheckError, message, user_source(), spec)
            self.fail(site, bitwise_not(ok), values)
        return []

    def observe(self, prim: Primitive, operands: Sequence[Any], outs: Any, params: Any) -> None:
        """Ask what may have gone wrong with an operation."""
        if not prim.multiple_results:
            outs = (outs,)
        for found in check_rules.of(prim, operands, outs, params):
            kind = KINDS[found.kind]
            if kind in self.errors:
                spec = tree.flatten_spec((tuple(found.values), {}))[1]
                self.fail(
                    Site(kind, found.message, user_source(), spec), found.failed(), found.values
                )

    def error(self) -> Error:
        """Return what is kept."""
        read = [[cell[...] for cell in cells] for cells in self.kinds.values()]
        codes = tuple(code for code, *_ in read)
        failed = tuple(ne(code, np.int32(0)) for code in codes)
        return Error(failed, codes, tuple(tuple(rest) for _, *rest in read), tuple(self.sites))


class CheckTrace(Trace):
    """Applies operations as they are, and records what goes wrong."""

    def __init__(self, record: Record):
        super().__init__("checkify")
        self.record = record

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation; one that holds graphs, with what is in them checked."""
        with within(self.parent):
            args = list(map(lift, args))
            if prim is check_p:
                return self.record.user(args, **params)
            again = holders.get(prim.name)
            if again is not None:
                outs = again(self.record, args, params)
                if outs is not None:
                    return outs
            outs = bind(prim, *args, **params)
            self.record.observe(prim, args, outs, params)
            return outs

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Call a function with a derivative of its own: as it is, unless a check is in it."""
        avals = [as_array(x).aval for x in args]
        with within(self.parent):
            if "check" not in trace_graph(call.run, avals, call.name).effects:
                return call.run(*args) if state.trace is None else state.trace.custom(call, args)
        return call.run(*args)


def _record_around() -> Record | None:
    trace = state.trace
    while trace is not None and not isinstance(trace, CheckTrace):
        trace = trace.parent
    return None if trace is None else trace.record


#: How operations that hold graphs are applied, with what is in the graphs checked:
#: ``holders[name](record, args, params)`` gives the results, or None to apply it as it is.
holders: dict[str, Callable[[Record, list[Any], dict[str, Any]], Any]] = {}


def checkify(fun: Callable[..., Any], errors: Iterable[Any] = user_checks) -> Callable[..., Any]:
    """Return a function that gives what went wrong first, and the result.

    Parameters
    ----------
    fun : callable
    errors : set of error types
        What to look for: `user_checks`, `nan_checks`, `div_checks`, `index_checks`, or a union of
        these, `float_checks`, `automatic_checks`, `all_checks`.

    Returns
    -------
    callable
        Takes what ``fun`` takes, and returns ``(error, result)``. It may be staged and transformed
        like any other; ``error.throw()`` raises, and ``error.get()`` is the message.

    Raises
    ------
    TypeError
        ``fun`` is not callable, or ``errors`` no set of error types.
    """
    if not callable(fun):
        raise TypeError(f"checkify: Expected a callable value, got {fun!r} of type {type(fun)}.")
    try:
        wanted: Errors = frozenset(errors)
    except TypeError:
        wanted = frozenset({cast("Any", errors)})
    if bad := [e for e in wanted if not (isinstance(e, type) and issubclass(e, CheckError))]:
        raise TypeError(
            f"checkify: errors must be a set of error types, such as checkify.all_checks, got "
            f"{bad[0]!r}."
        )

    @functools.wraps(fun)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        record = Record(wanted)
        with tracing(CheckTrace(record)), admit(fun, "checkify"):
            out = fun(*args, **kwargs)
        return record.error(), out

    checked.__name__ = f"checkify({fun_name(fun)})"
    return checked


def checked_graph(record: Record, closed: ClosedGraph) -> Callable[..., list[Any]]:
    """Return a graph as a flat function that is checked as it runs."""

    def run(*args: Any) -> list[Any]:
        with tracing(CheckTrace(record)):
            return eval_graph(closed.jaxpr, closed.consts, args, bind)

    return run
