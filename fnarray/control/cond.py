"""Branches: one of several functions, chosen by a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple, overload

import numpy as np

from ..config import config
from ..core import hooks
from ..core.array import Array, aval_of
from ..core.forms import Branch
from ..core.graph import ClosedGraph
from ..core.ref import check_distinct
from ..core.source import boundary
from ..core.trace import Tracer, bind
from ..ops.bitwise import ne
from ..ops.kit.calls import convert
from ..ops.kit.checks import kind
from ..ops.select import clamp
from . import cond_rules
from ._bodies import holding
from .admission import admit
from .flow import (
    check_functions,
    check_same_results,
    operands,
    with_common_consts,
    with_common_writes,
)
from .in_place import runs_in_place
from .refs import give_back, values_of
from .signature import Signature, spec_of_call
from .tracing import traced

__all__ = ["cond", "platform_dependent", "switch"]

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_MISSING = object()
_INT32 = np.dtype(np.int32)


def _cond_eval(index: Any, *xs: Any, branches: tuple[ClosedGraph, ...]) -> tuple[Any, ...]:
    chosen = branches[min(max(int(index), 0), len(branches) - 1)]
    return tuple(hooks.compiled_call(chosen, xs))


cond_p = holding(
    "cond",
    cond_rules.FAMILY,
    eval=_cond_eval,
    form=lambda ins, outs, *, branches: Branch(branches),
    linearize=cond_rules.LINEARIZE,
    batch=cond_rules.BATCH,
)


# A branch that returns a number: the result is an array, whatever the other one returns.
@overload
def cond(
    pred: Any,
    true_fun: Callable[[*Ts], complex],
    false_fun: Callable[[*Ts], complex | Array],
    *operands: *Ts,
    linear: Any = None,
) -> Array: ...


@overload
def cond(
    pred: Any,
    true_fun: Callable[[*Ts], Array],
    false_fun: Callable[[*Ts], complex],
    *operands: *Ts,
    linear: Any = None,
) -> Array: ...


@overload
def cond(
    pred: Any,
    true_fun: Callable[[*Ts], R],
    false_fun: Callable[[*Ts], R],
    *operands: *Ts,
    linear: Any = None,
) -> R: ...


@overload
def cond(
    pred: Any,
    true_fun: Callable[[Any], Any],
    false_fun: Callable[[Any], Any],
    *,
    operand: Any,
    linear: Any = None,
) -> Any: ...


@overload
def cond(
    pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = ..., linear: Any = None
) -> Any: ...


@boundary
def cond(
    pred: Any,
    true_fun: Any,
    false_fun: Any,
    *operands: Any,
    operand: Any = _MISSING,
    linear: Any = None,
) -> Any:
    """``true_fun(*operands)`` if ``pred`` else ``false_fun(*operands)``; only one of them runs.

    Both are traced. ``cond(pred, x, true_fun, y, false_fun)``, with an operand for each, is
    understood too.

    Parameters
    ----------
    pred : scalar
        A boolean, or a number, which counts as true where it is not 0.
    true_fun, false_fun : callable
        Return the same structure, shapes and dtypes.
    *operands : pytrees
    operand : pytree, optional
        A single operand, by keyword.
    linear : None
        Accepted for compatibility.

    Raises
    ------
    TypeError
        ``pred`` is no scalar or no number; a branch is not callable; their results differ.
    """
    if operand is not _MISSING:
        if operands:
            raise TypeError("lax.cond: give operands by position or by operand=, not both.")
        operands = (operand,)
    elif (
        len(operands) == 2
        and not callable(true_fun)  # operands may be callable, as layers are
        and callable(false_fun)
        and callable(operands[1])
    ):
        x, on_true, y, on_false = true_fun, false_fun, *operands
        return cond(pred, _taking(0, on_true), _taking(1, on_false), x, y)
    check_functions("cond", true_fun=true_fun, false_fun=false_fun, given=operands)
    kind_of = _check_scalar("cond", "pred", pred)
    if kind_of not in "biuf":
        raise TypeError(f"lax.cond: pred must be a boolean or a real number, got {pred!r}.")
    if config.disable_jit and not isinstance(pred, Tracer):
        chosen = true_fun if pred else false_fun
        with admit(chosen, "cond"):
            return chosen(*operands)
    if kind_of != "b":
        pred = ne(pred, np.zeros((), aval_of(pred).dtype)[()])
    funs, names = (true_fun, false_fun), ("true_fun", "false_fun")
    return _choose("cond", convert(pred, _INT32), funs, names, operands, order=(1, 0))


def _taking(place: int, branch: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a branch as a function of all operands."""
    return wraps(branch)(lambda *operands: branch(operands[place]))


@overload
def switch(index: Any, branches: Sequence[Callable[[*Ts], R]], *operands: *Ts) -> R: ...


@overload
def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = ...
) -> Any: ...


@boundary
def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _MISSING,
) -> Any:
    """``branches[index](*operands)``, with ``index`` brought into range; only one of them runs.

    Parameters
    ----------
    index : integer scalar
    branches : sequence of callables
        Return the same structure, shapes and dtypes.
    *operands : pytrees
    operand : pytree, optional
        A single operand, by keyword.

    Raises
    ------
    TypeError
        ``index`` is no integer scalar; a branch is not callable; their results differ.
    ValueError
        There are no branches.
    """
    if operand is not _MISSING:
        if operands:
            raise TypeError("lax.switch: give operands by position or by operand=, not both.")
        operands = (operand,)
    branches = tuple(branches)
    if not branches:
        raise ValueError("lax.switch: branches is empty. Give at least one.")
    names = tuple(f"branches[{i}]" for i in range(len(branches)))
    check_functions("switch", given=operands, **dict(zip(names, branches, strict=True)))
    if _check_scalar("switch", "index", index) not in "iu":
        raise TypeError(
            f"lax.switch: index must be an integer, got {index!r} as {aval_of(index).dtype}."
        )
    last = len(branches) - 1
    known = config.disable_jit and not isinstance(index, Tracer)
    if known or last == 0:
        chosen = branches[min(max(int(index), 0), last) if known else 0]
        with admit(chosen, "switch"):
            return chosen(*operands)
    index = clamp(_INT32.type(0), convert(index, _INT32), _INT32.type(last))
    return _choose("switch", index, branches, names, operands, order=range(last + 1))


def _check_scalar(where: str, name: str, value: Any) -> str:
    """Return the kind of a value's dtype; raise `TypeError` unless it is a number of rank 0."""
    try:
        aval = aval_of(value)
    except TypeError as error:
        raise TypeError(
            f"lax.{where}: {name} must be a scalar, got {value!r} of type {type(value)}."
        ) from error
    if aval.shape:
        raise TypeError(
            f"lax.{where}: {name} must be a scalar, got {value} of shape {aval.shape}. "
            "Use fnarray.numpy.where to choose element by element."
        )
    return kind(aval.dtype)


def _choose(
    where: str,
    index: Any,
    funs: Sequence[Callable[..., Any]],
    names: Sequence[str],
    args: tuple[Any, ...],
    order: Sequence[int],
) -> Any:
    """Trace the functions and bind the primitive, its branches in the given order."""
    leaves, _, avals = operands(where, args)
    signature = Signature(spec_of_call(*args), avals)
    ts = [traced(fun, signature, user=where) for fun in funs]
    check_same_results(where, funs, names, ts)
    if runs_in_place(*ts) and not isinstance(index, Tracer):
        chosen = funs[order[int(index)]]
        with admit(chosen, where):
            return chosen(*args)
    consts, graphs = with_common_consts(ts)
    given = [*consts, *leaves]
    check_distinct(ts[0].name, where, given, len(consts))
    written, graphs = with_common_writes(ts, consts, graphs)
    branches = tuple(graphs[i] for i in order)
    outs = bind(cond_p, index, *values_of(given), branches=branches)
    return ts[0].out_spec.unflatten(give_back(given, written, outs))


@boundary
def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Call the function given for the platform in use, ``cpu``, or ``default``.

    Raises
    ------
    ValueError
        Neither is given.
    """
    fun = per_platform.get("cpu", default)
    if fun is None:
        raise ValueError(
            f"lax.platform_dependent: no function for platform 'cpu' and no default, only for "
            f"{sorted(per_platform)}."
        )
    with admit(fun, "platform_dependent"):
        return fun(*args)
