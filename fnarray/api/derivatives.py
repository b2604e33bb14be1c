"""Derivatives of functions: ``jvp``, ``vjp`` and ``linearize``, and transposes of linear ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, TypeVarTuple, cast, overload

import numpy as np

from ..control.admission import admit
from ..control.refs import refs_given
from ..control.signature import Statics, argument_paths, fun_name, fun_text
from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.ref import Ref
from ..core.source import JVP, TRANSPOSE, boundary, scoped, under
from ..core.tangents import Undefined, Zero, differentiable, tangent_aval
from ..ops.kit.canonical import as_array
from ..ops.kit.rules import instantiate
from ..transforms.derivative import jvp as jvp_flat
from ..transforms.derivative import linear_graph
from ..transforms.derivative import linearize as linearize_flat
from ..transforms.transpose import backward
from .linear_maps import Derivative, Pull, Push, check_array, given_tangent, tangent_ref

R = TypeVar("R")
A = TypeVar("A")
Ts = TypeVarTuple("Ts")

# ---- flat functions ------------------------------------------------------------------------------


class Flat:
    """A function of trees as one of leaves; it is admitted whenever it runs.

    Attributes
    ----------
    out_spec : optree.PyTreeSpec
        Structure of the result, once called.
    aux : pytree
        The second result of a function with auxiliary data, once called.
    refs : dict
        Refs, by the number of the leaf in whose place they are handed to the function.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        spec: Any,
        what: str,
        has_aux: bool = False,
        statics: Statics = (),
        refs: Mapping[int, Any] | None = None,
    ):
        self.fun = fun
        self.statics = statics
        self.refs = refs or {}
        self.spec = spec
        self.what = what
        self.has_aux = has_aux
        self.out_spec: Any = None
        self.aux: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Call the function; return the leaves of its result."""
        args, kwargs = self.spec.unflatten(
            [self.refs.get(k, x) for k, x in enumerate(leaves)] if self.refs else leaves
        )
        statics = refs_given(args, kwargs) if self.refs else self.statics
        with admit(self.fun, self.what, statics=statics):
            out = self.fun(*args, **kwargs)
        if self.has_aux:
            if not isinstance(out, tuple | list) or len(out) != 2:
                raise TypeError(
                    f"{self.what}: expected {fun_text(self.fun)}, with has_aux=True, to return a "
                    f"two-element tuple (result, aux), but got type {type(out)} with value {out}."
                )
            out, self.aux = out
        outs, self.out_spec = tree.flatten_spec(out)
        for k, leaf in enumerate(outs):
            check_array(leaf, lambda k=k: f"returned by {fun_text(self.fun)}{_path(out, k)}")
        return outs


def _path(value: Any, k: int) -> str:
    """Return the path of a tree's leaf, as a clause."""
    path = tree.keystr(tree.leaves_with_path(value)[k][0])
    return f" at result{path}" if path else ""


def without_refs(primals: tuple) -> tuple[tuple, dict[int, Any]]:
    """Return arguments with a number that has no tangent in the place of each Ref, and the Refs.

    They are by the number of their leaf. Which have tangents is known once the function ran.
    """
    given, spec = tree.flatten_spec(primals)
    refs = {k: x for k, x in enumerate(given) if type(x) is Ref}
    if not refs:
        return primals, refs
    numbers = [np.zeros((), bool) if k in refs else x for k, x in enumerate(given)]
    return cast("tuple[Any, ...]", spec.unflatten(numbers)), refs


def inputs(what: str, fun: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[list, Any]:
    """Return the leaves of arguments as arrays, and their structure."""
    leaves, spec = tree.flatten_spec((args, kwargs))
    arrays = []
    for k, x in enumerate(leaves):
        if type(x) is Ref:
            raise ValueError(
                f"{what} of {fun_text(fun)}: differentiated with respect to the argument "
                f"{argument_paths(fun, args, kwargs)[k]}, a {x.aval}, whose gradient must lie in a "
                "Ref, too: use vjp(...)[1].with_refs(gradient), or pass the value, ref[...]."
            )
        check_array(x, lambda k=k: f"the argument {argument_paths(fun, args, kwargs)[k]} of {what}")
        arrays.append(as_array(x))
    return arrays, spec


def check_callable(what: str, fun: Any) -> None:
    """Raise `TypeError` for what should be a function and is none."""
    if not callable(fun):
        raise TypeError(f"{what}: Expected a callable value, got {fun!r} of type {type(fun)}.")


def _check_active(xs: Sequence[Any], what: str) -> None:
    for name, x in zip(("primals", "tangents"), xs, strict=True):
        if not isinstance(x, tuple | list):
            raise TypeError(
                f"primal and tangent arguments to {what} must be tuples or lists; {name} is a "
                f"{type(x).__name__}."
            )


# ---- jvp, linearize, vjp -------------------------------------------------------------------------


@overload
def jvp(
    fun: Callable[[Array], R],
    primals: tuple[complex],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...


@overload
def jvp(
    fun: Callable[[*Ts], R],
    primals: tuple[*Ts],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...


@overload
def jvp(
    fun: Callable[[*Ts], tuple[R, A]],
    primals: tuple[*Ts],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...


@overload
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]: ...


@boundary
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Value of a function and its derivative in a direction: forward mode.

    Parameters
    ----------
    fun : callable
    primals, tangents : tuples or lists
        Arguments, and their tangents, of the same structure, shapes and dtypes; those of integers
        are of dtype ``float0``.
    has_aux : bool
        Whether ``fun`` returns ``(result, aux)``, of which ``aux`` is not differentiated.

    Returns
    -------
    out, tangent : pytrees
        And ``aux``, where it has it.

    Raises
    ------
    TypeError
        Structures or dtypes of primals and tangents differ.
    ValueError
        Shapes differ.
    """
    check_callable("jvp", fun)
    _check_active((primals, tangents), "jvp")
    numbers, refs = without_refs(tuple(primals))
    leaves, spec = inputs("jvp", fun, numbers, {})
    given, t_spec = tree.flatten_spec((tuple(tangents), {}))
    if t_spec != spec or isinstance(primals, tuple) != isinstance(tangents, tuple):
        raise TypeError(
            "primal and tangent arguments to jvp must have the same tree structure; primals have "
            f"tree structure {tree.structure(primals)} whereas tangents have tree "
            f"structure {tree.structure(tangents)}."
        )
    moved = [(ref, tangent_ref("jvp", k, ref.aval.inner_aval, given[k])) for k, ref in refs.items()]
    given = [
        Zero(tangent_aval(x.aval)) if k in refs else given_tangent("jvp", k, x.aval, t)
        for k, (x, t) in enumerate(zip(leaves, given, strict=True))
    ]
    flat = Flat(fun, spec, "jvp", has_aux, refs=refs)
    outs, duals = jvp_flat(under(JVP, flat), leaves, given, f"jvp({fun_name(fun)})", moved)
    out = flat.out_spec.unflatten([as_array(x) for x in outs])
    tangent = flat.out_spec.unflatten([instantiate(t) for t in duals])
    return (out, tangent, without_tracers(flat.aux)) if has_aux else (out, tangent)


def without_tracers(aux: Any) -> Any:
    """Return auxiliary data with values in place of the tracers of a derivative that is done."""

    def value(x: Any) -> Any:
        while hasattr(x, "primal") and not x.frame.alive:
            x = x.primal
        return x

    return tree.map(value, aux)


@overload
def linearize(
    fun: Callable[[Array], R], primal: complex, /, *, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], R]]: ...


@overload
def linearize(
    fun: Callable[[*Ts], R], *primals: *Ts, has_aux: Literal[False] = False
) -> tuple[R, Callable[[*Ts], R]]: ...


@overload
def linearize(
    fun: Callable[[*Ts], tuple[R, A]], *primals: *Ts, has_aux: Literal[True]
) -> tuple[R, Callable[[*Ts], R], A]: ...


@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]: ...


@boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Value of a function and its derivative there, as a linear function.

    Parameters
    ----------
    fun : callable
    *primals : pytrees
    has_aux : bool
        As in `jvp`.

    Returns
    -------
    out : pytree
    fun_jvp : Partial
        Tangents of the arguments to that of the result; what does not depend on the tangents has
        been computed, and is the leaves of ``fun_jvp``, a pytree. And ``aux``, where it has it.
    """
    return _linearized("linearize", fun, primals, has_aux, Push)


@overload
def vjp(
    fun: Callable[[Array], R],
    primal: complex,
    /,
    *,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, Callable[[Any], tuple[Array]]]: ...


@overload
def vjp(
    fun: Callable[[*Ts], R],
    *primals: *Ts,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, Callable[[Any], tuple[*Ts]]]: ...


@overload
def vjp(
    fun: Callable[[*Ts], tuple[R, A]],
    *primals: *Ts,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
) -> tuple[R, Callable[[Any], tuple[*Ts]], A]: ...


@overload
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]: ...


@boundary
def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """Value of a function, and the function that takes cotangents of it back: reverse mode.

    Parameters
    ----------
    fun : callable
    *primals : pytrees
    has_aux : bool
        As in `jvp`.
    reduce_axes : ()
        Accepted for compatibility.

    Returns
    -------
    out : pytree
    fun_vjp : VJP
        A cotangent, of the structure, shapes and dtypes of ``out``, to the tuple of cotangents of
        the arguments; those of integers, and of Refs, which the function may hand to others with
        derivatives of their own, are of dtype ``float0``. A pytree, whose leaves are the residuals;
        ``fun_vjp.with_refs`` adds cotangents to Refs. And ``aux``, where it has it.
    """
    return _linearized("vjp", fun, primals, has_aux, Pull)


def _linearized(
    what: str, fun: Callable[..., Any], primals: tuple, has_aux: bool, kind: type[Derivative]
) -> tuple[Any, ...]:
    """Return a function's value, its derivative as the function wanted, and auxiliary data."""
    check_callable(what, fun)
    numbers, refs = without_refs(primals)
    leaves, spec = inputs(what, fun, numbers, {})
    flat = Flat(fun, spec, what, has_aux, refs=refs)
    name = f"{what}({fun_name(fun)})"
    outs, linear = linearize_flat(under(JVP, flat), leaves, name, refs=refs)
    out = flat.out_spec.unflatten([as_array(x) for x in outs])
    derivative = kind(fun, spec, flat.out_spec, leaves, linear).bound(linear, leaves)
    return (out, derivative, without_tracers(flat.aux)) if has_aux else (out, derivative)


@boundary
def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()
) -> Callable[..., Any]:
    """Transpose of a function that is linear.

    Parameters
    ----------
    fun : callable
        Linear; that is the caller's promise.
    *primals : pytrees
        Arrays, or stand-ins with their shapes and dtypes: their values are not used.
    reduce_axes : ()
        Accepted for compatibility.

    Returns
    -------
    callable
        A cotangent of the result to the tuple of cotangents of the arguments.

    Raises
    ------
    TypeError
        Arguments or results are not of float or complex dtypes, or ``fun`` is not linear.
    """
    check_callable("linear_transpose", fun)
    leaves, spec = tree.flatten_spec((primals, {}))
    avals = [ShapedArray(x.shape, x.dtype) if hasattr(x, "dtype") else aval_of(x) for x in leaves]
    flat = Flat(fun, spec, "linear_transpose")
    closed = linear_graph(flat, avals, fun_name(fun))
    for aval in (*avals, *closed.out_avals):
        if not differentiable(aval.dtype):
            raise TypeError(
                "linear_transpose only supports arguments and results of float or complex dtypes, "
                f"got {aval.str_short()} in {fun_text(fun)}."
            )

    def transposed(ct: Any) -> Any:
        cts, ct_spec = tree.flatten_spec(ct)
        if ct_spec != flat.out_spec:
            raise TypeError(
                f"linear_transpose: cotangent tree does not match function output, expected "
                f"{tree.PyTreeDef(flat.out_spec)} but got {tree.PyTreeDef(ct_spec)}."
            )
        for aval, c in zip(closed.out_avals, cts, strict=True):
            got = aval_of(c)
            if (got.shape, got.dtype) != (aval.shape, aval.dtype):
                raise TypeError(
                    "linear_transpose: cotangent type does not match function output, expected "
                    f"{aval.str_short()} but got {got.str_short()}."
                )
        operands = [Undefined(a) for a in avals]
        with scoped(TRANSPOSE):
            found = backward(closed.jaxpr, closed.consts, operands, [as_array(c) for c in cts])
        return spec.unflatten([instantiate(c) for c in found])[0]

    return transposed
