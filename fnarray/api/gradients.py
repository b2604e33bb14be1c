"""``grad``: gradients of functions of one real result, and the checks that Jacobians share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from ..control.refs import refs_given
from ..control.signature import fun_name, fun_text
from ..core.callables import named_as
from ..core.source import JVP, under
from ..core.tangents import differentiable
from ..ops.kit.calls import full
from ..ops.kit.canonical import as_array
from ..transforms.derivative import linearize as linearize_flat
from .derivatives import Flat, check_callable, inputs, vjp, without_tracers
from .jit import jit
from .linear_maps import backward_of, cotangents

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
#: Of the argument, and so of its gradient: that of a tree is such a tree, of arrays. The bound lets
#: a lambda, whose argument has no type, do with it what it likes.
X = TypeVar("X", bound=Any)


@overload
def value_and_grad(
    fun: Callable[Concatenate[X, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[X, P], tuple[R, X]]: ...


@overload
def value_and_grad(
    fun: Callable[Concatenate[X, P], tuple[R, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[X, P], tuple[tuple[R, A], X]]: ...


@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]: ...


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., tuple[Any, Any]]:
    """Return the function of ``fun``'s value and gradient.

    Parameters
    ----------
    fun : callable
        Returns a scalar, or ``(scalar, aux)`` with ``has_aux``.
    argnums : int or sequence of int
        Arguments to differentiate with respect to.
    has_aux : bool
    holomorphic : bool
        Whether ``fun`` is complex-differentiable; then arguments and result must be complex.
    allow_int : bool
        Whether integer arguments are accepted: their gradients are of dtype ``float0``.
    reduce_axes : ()
        Accepted for compatibility.

    Returns
    -------
    callable
        Takes what ``fun`` takes; returns ``(value, gradient)``, or ``((value, aux), gradient)``.
        The gradient has the structure of the argument, a tuple of them for several ``argnums``.

    Raises
    ------
    TypeError
        When called: the result is no scalar of a real dtype, an argument of an integer dtype, or
        there are fewer arguments.
    ValueError
        When called: ``argnums`` is empty, or less than minus the number of arguments.
    """
    check_callable("value_and_grad", fun)
    argnums = checked_argnums("value_and_grad", argnums)

    @named_as(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        return _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int, args, kwargs)

    return value_and_gradient


@overload
def grad(
    fun: Callable[Concatenate[X, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[X, P], X]: ...


@overload
def grad(
    fun: Callable[Concatenate[X, P], tuple[Any, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[Concatenate[X, P], tuple[X, A]]: ...


@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """Return the gradient of ``fun``, a function of what it takes.

    Parameters are those of `value_and_grad`; with ``has_aux`` it returns ``(gradient, aux)``.
    Outside ``jit``, ``fun`` may branch on values of its arguments.
    """
    check_callable("grad", fun)
    argnums = checked_argnums("grad", argnums)

    @named_as(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = _value_and_grad(
            "grad", fun, argnums, has_aux, holomorphic, allow_int, args, kwargs
        )
        return (g, value[1]) if has_aux else g

    return gradient


def checked_argnums(what: str, argnums: Any) -> int | tuple[int, ...]:
    """Return ``argnums`` as an int or a tuple of them; raise `TypeError` for anything else."""
    try:
        return index(argnums)
    except TypeError:
        pass
    try:
        return tuple(index(i) for i in argnums)
    except TypeError:
        raise TypeError(
            f"{what}: argnums must be an int or a sequence of ints, got {argnums!r}."
        ) from None


def selected(
    what: str, fun: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple
) -> tuple[tuple[int, ...], tuple]:
    """Return the positions meant, not negative, and the arguments there.

    Raises
    ------
    TypeError
        A position is given twice.
    ValueError
        There is no such argument, or none is asked for.
    """
    n = len(args)
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for i in numbers:
        if not -n <= i < n:
            raise ValueError(
                f"{what} of {fun_text(fun)}: argnums={i} must be at least {-n} and less than {n}, "
                f"for a call with {n} positional arguments."
            )
    if not numbers:
        raise ValueError(f"{what} of {fun_text(fun)}: argnums is empty; name an argument.")
    places = tuple(i % n for i in numbers)
    if len(set(places)) != len(places):
        raise TypeError(
            f"{what} of {fun_text(fun)}: argnums={argnums} gives an argument twice, for a call "
            f"with {n} positional arguments."
        )
    return places, tuple(args[i] for i in places)


def partial_in(
    fun: Callable[..., Any], places: tuple[int, ...], args: tuple, kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """Return ``fun`` as a function of the arguments at some places, the others as given."""
    if places == (0,) and len(args) == 1 and not kwargs:
        return fun

    @named_as(fun)
    def chosen(*some: Any) -> Any:
        full = list(args)
        for i, x in zip(places, some, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    return chosen


def _value_and_grad(
    what: str,
    fun: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    args: tuple,
    kwargs: dict[str, Any],
) -> tuple[Any, Any]:
    most = argnums if isinstance(argnums, int) else max(argnums, default=0)
    if most >= len(args):
        raise TypeError(
            f"{what} of {fun_text(fun)}: differentiating with respect to argnums={argnums} "
            f"requires at least {most + 1} positional arguments to be passed by the caller, but "
            f"got only {len(args)} positional arguments."
        )
    places, some = selected(what, fun, argnums, args)
    leaves, spec = inputs(what, fun, some, {})
    for x in leaves:
        check_input(what, fun, x.dtype, holomorphic, allow_int)
    flat = Flat(
        partial_in(fun, places, args, kwargs), spec, what, has_aux, refs_given(args, kwargs)
    )
    outs, linear = linearize_flat(under(JVP, flat), leaves, f"{what}({fun_name(fun)})")
    if len(outs) != 1 or not flat.out_spec.is_leaf():
        raise TypeError(
            "Gradient only defined for scalar-output functions. Output of "
            f"{fun_text(fun)} was {flat.out_spec.unflatten(outs)}."
        )
    out = as_array(outs[0])
    if out.shape:
        raise TypeError(
            "Gradient only defined for scalar-output functions. Output of "
            f"{fun_text(fun)} had shape: {out.shape}. Sum it, or use jacrev or vjp."
        )
    check_output(what, fun, out.dtype, holomorphic)
    found = backward_of(linear, [full(out.aval, 1)])
    gradient = spec.unflatten(cotangents(found, [x.aval for x in leaves], linear))[0]
    if isinstance(argnums, int):
        (gradient,) = gradient
    return ((out, without_tracers(flat.aux)) if has_aux else out), gradient


def check_input(
    what: str, fun: Callable[..., Any], dtype: np.dtype, holomorphic: bool, allow_int: bool
) -> None:
    """Raise `TypeError` for an argument of a dtype without gradients."""
    if holomorphic:
        if dtype.kind != "c":
            raise TypeError(
                f"{what} with holomorphic=True requires inputs with complex dtype, but got "
                f"{dtype.name} for {fun_text(fun)}."
            )
    elif not differentiable(dtype) and not allow_int:
        raise TypeError(
            f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype.name} for {fun_text(fun)}. If you want to use Boolean- "
            "or integer-valued inputs, use vjp or set allow_int to True."
        )


def check_output(what: str, fun: Callable[..., Any], dtype: np.dtype, holomorphic: bool) -> None:
    """Raise `TypeError` for a result of a dtype without gradients."""
    if holomorphic:
        if dtype.kind != "c":
            raise TypeError(
                f"{what} with holomorphic=True requires outputs with complex dtype, but got "
                f"{dtype.name} from {fun_text(fun)}."
            )
    elif not differentiable(dtype) or dtype.kind == "c":
        advice = (
            "For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            "non-holomorphic functions involving complex outputs, use vjp directly."
            if dtype.kind == "c"
            else "For differentiation of functions with integer outputs, use vjp directly."
        )
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {dtype.name} from {fun_text(fun)}. {advice}"
        )


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions for the two passes of reverse mode, each compiled once.

    Parameters
    ----------
    fun : callable
    argnums : int or sequence of int
        Of the positional arguments to differentiate with respect to.
    has_aux : bool
        As in `vjp`.
    jitted : bool
        Whether to compile the two.

    Returns
    -------
    fwd : callable
        ``fwd(*args)`` returns ``out, residuals``, and ``aux`` where there is one.
    bwd : callable
        ``bwd(residuals, cotangent)`` returns the cotangents of the arguments chosen: a tuple,
        unless ``argnums`` is one int.
    """
    check_callable("fwd_and_bwd", fun)
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fun)
    def fwd(*args: Any) -> Any:
        chosen_places = [i % len(args) for i in places]

        def of(*some: Any) -> Any:
            given = list(args)
            for i, x in zip(chosen_places, some, strict=True):
                given[i] = x
            return fun(*given)

        return vjp(of, *(args[i] for i in chosen_places), has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        found = residuals(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (jit(fwd, effects="off"), jit(bwd, effects="off")) if jitted else (fwd, bwd)
