"""Derivatives of functions: ``jvp``, ``vjp``, ``linearize``, and ``grad`` upon them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from ..control.admission import admit
from ..control.call import argument_paths, fun_name, fun_text
from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import float0
from ..core.tangents import Undefined, Zero, differentiable, tangent_aval
from ..core.trace import trace_graph
from ..ops._canonical import as_array
from ..ops._derive import full, instantiate
from ..transforms.derivative import Linear
from ..transforms.derivative import jvp as jvp_flat
from ..transforms.derivative import linearize as linearize_flat
from ..transforms.transpose import backward

# ---- flat functions ------------------------------------------------------------------------------


class Flat:
    """A function of trees as one of leaves.

    Attributes
    ----------
    out_spec : optree.PyTreeSpec
        Structure of the result, once called.
    aux : pytree
        The second result of a function with auxiliary data, once called.
    """

    def __init__(self, fun: Callable[..., Any], spec: Any, what: str, has_aux: bool = False):
        self.fun = fun
        self.spec = spec
        self.what = what
        self.has_aux = has_aux
        self.out_spec: Any = None
        self.aux: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Call the function; return the leaves of its result."""
        args, kwargs = self.spec.unflatten(leaves)
        with admit(self.fun, self.what):
            out = self.fun(*args, **kwargs)
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"{self.what}: expected {fun_text(self.fun)}, with has_aux=True, to return a "
                    f"two-element tuple (result, aux), but got type {type(out)} with value {out}."
                )
            out, self.aux = out
        outs, self.out_spec = tree.flatten_spec(out)
        for k, leaf in enumerate(outs):
            _check_array(leaf, lambda k=k: f"returned by {fun_text(self.fun)}{_path(out, k)}")
        return outs


def _path(value: Any, k: int) -> str:
    """Return the path of a tree's leaf, as a clause."""
    path = tree.keystr(tree.leaves_with_path(value)[k][0])
    return f" at result{path}" if path else ""


def _check_array(x: Any, where: Callable[[], str]) -> None:
    if isinstance(x, Array):
        return
    try:
        aval_of(x)
    except TypeError as error:
        raise TypeError(
            f"{x!r} of type {type(x)} is not a valid fnarray type: it is {where()}. "
            "Use arrays, numbers, and containers of them."
        ) from error


def _inputs(what: str, fun: Callable[..., Any], args: tuple, kwargs: dict) -> tuple[list, Any]:
    """Return the leaves of arguments as arrays, and their structure."""
    leaves, spec = tree.flatten_spec((args, kwargs))
    arrays = []
    for k, x in enumerate(leaves):
        _check_array(
            x, lambda k=k: f"the argument {argument_paths(fun, args, kwargs)[k]} of {what}"
        )
        arrays.append(as_array(x))
    return arrays, spec


def _check_callable(what: str, fun: Any) -> None:
    if not callable(fun):
        raise TypeError(f"{what}: Expected a callable value, got {fun!r} of type {type(fun)}.")


def _tangents(t: Any) -> Any:
    """Return a tangent or cotangent that a user may hold: an array, of ``float0`` for integers."""
    return instantiate(t)


def _given(what: str, k: int, x: Any, t: Any, name: str = "tangent") -> Any:
    """Return a tangent of ``x`` given by the user; raise the errors of one that does not fit."""
    wanted = tangent_aval(x.aval)
    dtype = getattr(t, "dtype", None)
    if dtype is not None and np.dtype(dtype) == float0:
        got = ShapedArray(np.shape(t), float0)
    else:
        _check_array(t, lambda: f"{name} {k} of {what}")
        got = aval_of(t)
    if got.dtype != wanted.dtype:
        raise TypeError(
            f"primal and tangent arguments to {what} do not match: dtypes must be equal, and of "
            f"int or bool primals float0. Argument {k} has dtype {x.dtype} and so expects "
            f"{name} dtype {_dtype(wanted)}, but got {_dtype(got)}."
        )
    if got.shape != wanted.shape:
        raise ValueError(
            f"{what} called with different primal and {name} shapes: argument {k} has shape "
            f"{wanted.shape} and its {name} {got.shape}."
        )
    return Zero(wanted) if wanted.dtype == float0 else as_array(t)


def _dtype(aval: ShapedArray) -> str:
    return "float0" if aval.dtype == float0 else aval.dtype.name


def _check_active(xs: Sequence[Any], what: str) -> None:
    for name, x in zip(("primals", "tangents"), xs, strict=True):
        if not isinstance(x, tuple | list):
            raise TypeError(
                f"primal and tangent arguments to {what} must be tuples or lists; {name} is a "
                f"{type(x).__name__}."
            )


# ---- jvp, linearize, vjp -------------------------------------------------------------------------


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
    _check_callable("jvp", fun)
    _check_active((primals, tangents), "jvp")
    leaves, spec = _inputs("jvp", fun, tuple(primals), {})
    given, t_spec = tree.flatten_spec((tuple(tangents), {}))
    if t_spec != spec:
        raise TypeError(
            "primal and tangent arguments to jvp must have the same tree structure; primals have "
            f"tree structure {tree.structure(tuple(primals))} whereas tangents have tree "
            f"structure {tree.structure(tuple(tangents))}."
        )
    given = [_given("jvp", k, x, t) for k, (x, t) in enumerate(zip(leaves, given, strict=True))]
    flat = Flat(fun, spec, "jvp", has_aux)
    with admit(fun, "jvp"):
        outs, duals = jvp_flat(flat, leaves, given, f"jvp({fun_name(fun)})")
    out = flat.out_spec.unflatten([as_array(x) for x in outs])
    tangent = flat.out_spec.unflatten([_tangents(t) for t in duals])
    return (out, tangent, _without_tracers(flat.aux)) if has_aux else (out, tangent)


def _without_tracers(aux: Any) -> Any:
    """Return auxiliary data with values in place of the tracers of a derivative that is done."""

    def value(x: Any) -> Any:
        while hasattr(x, "primal") and not x.trace.alive:
            x = x.primal
        return x

    return tree.map(value, aux)


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
    fun_jvp : callable
        Tangents of the arguments to that of the result; what does not depend on the tangents has
        been computed. And ``aux``, where it has it.
    """
    _check_callable("linearize", fun)
    leaves, spec = _inputs("linearize", fun, primals, {})
    flat = Flat(fun, spec, "linearize", has_aux)
    with admit(fun, "linearize"):
        outs, linear = linearize_flat(flat, leaves, f"linearize({fun_name(fun)})")

    def fun_jvp(*tangents: Any) -> Any:
        given, t_spec = tree.flatten_spec((tangents, {}))
        if t_spec != spec:
            raise TypeError(
                f"linearize: the linear function of {fun_text(fun)} takes tangents of structure "
                f"{tree.structure(primals)}, got {tree.structure(tangents)}."
            )
        given = [
            _given("linearize's function", k, x, t)
            for k, (x, t) in enumerate(zip(leaves, given, strict=True))
        ]
        duals = linear([t for t, a in zip(given, linear.active_in, strict=True) if a])
        return flat.out_spec.unflatten([_tangents(t) for t in duals])

    out = flat.out_spec.unflatten([as_array(x) for x in outs])
    return (out, fun_jvp, _without_tracers(flat.aux)) if has_aux else (out, fun_jvp)


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
    fun_vjp : callable
        A cotangent, of the structure, shapes and dtypes of ``out``, to the tuple of cotangents of
        the arguments; those of integers are of dtype ``float0``. And ``aux``, where it has it.
    """
    _check_callable("vjp", fun)
    leaves, spec = _inputs("vjp", fun, primals, {})
    flat = Flat(fun, spec, "vjp", has_aux)
    with admit(fun, "vjp"):
        outs, linear = linearize_flat(flat, leaves, f"vjp({fun_name(fun)})")
    outs = [as_array(x) for x in outs]
    out = flat.out_spec.unflatten(outs)

    def fun_vjp(ct: Any) -> Any:
        cts, ct_spec = tree.flatten_spec(ct)
        if ct_spec != flat.out_spec:
            raise ValueError(
                "unexpected tree structure: the argument to the function that vjp returned for "
                f"{fun_text(fun)} must have the structure of its result, "
                f"{tree.PyTreeDef(flat.out_spec)}, but got {tree.PyTreeDef(ct_spec)}."
            )
        cts = [_cotangent(fun, k, x, c) for k, (x, c) in enumerate(zip(outs, cts, strict=True))]
        found = backward_of(linear, cts)
        return spec.unflatten([_tangents(c) for c in _spread(found, leaves, linear)])[0]

    return (out, fun_vjp, _without_tracers(flat.aux)) if has_aux else (out, fun_vjp)


def _cotangent(fun: Callable[..., Any], k: int, out: Any, ct: Any) -> Any:
    wanted = tangent_aval(out.aval)
    if wanted.dtype == float0:
        return Zero(wanted)
    _check_array(ct, lambda: f"cotangent {k} of {fun_text(fun)}")
    got = aval_of(ct)
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        raise ValueError(
            "unexpected fnarray type (shape or dtype) for the argument of the function that vjp "
            f"returned for {fun_text(fun)}: got {got.str_short().lstrip('~')}, but expected "
            f"{wanted.str_short().lstrip('~')}, as the corresponding output is."
        )
    return as_array(ct)


def backward_of(linear: Linear, cts: Sequence[Any]) -> list[Any]:
    """Return the cotangents of a linear function's active inputs for those of all results."""
    graph = linear.closed.jaxpr
    wanted = [c for c, a in zip(cts, linear.active_out, strict=True) if a]
    return backward(graph, linear.closed.consts, [Undefined(a) for a in graph.in_avals], wanted)


def _spread(found: Sequence[Any], leaves: Sequence[Any], linear: Linear) -> list[Any]:
    """Return a cotangent for every input, zeros for the inactive."""
    given = iter(found)
    return [
        next(given) if a else Zero(tangent_aval(x.aval))
        for x, a in zip(leaves, linear.active_in, strict=True)
    ]


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
    _check_callable("linear_transpose", fun)
    leaves, spec = tree.flatten_spec((primals, {}))
    avals = [ShapedArray(x.shape, x.dtype) if hasattr(x, "dtype") else aval_of(x) for x in leaves]
    flat = Flat(fun, spec, "linear_transpose")
    with admit(fun, "linear_transpose"):
        closed = trace_graph(flat, avals, fun_name(fun))
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
        found = backward(
            closed.jaxpr, closed.consts, [Undefined(a) for a in avals], [as_array(c) for c in cts]
        )
        return spec.unflatten([_tangents(c) for c in found])[0]

    return transposed


# ---- grad ----------------------------------------------------------------------------------------


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
        there is no such argument.
    """
    _check_callable("value_and_grad", fun)
    argnums = _argnums("value_and_grad", argnums)

    @functools.wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        return _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int, args, kwargs)

    return value_and_gradient


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
    _check_callable("grad", fun)
    argnums = _argnums("grad", argnums)

    @functools.wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = _value_and_grad(
            "grad", fun, argnums, has_aux, holomorphic, allow_int, args, kwargs
        )
        return (g, value[1]) if has_aux else g

    return gradient


def _argnums(what: str, argnums: Any) -> int | tuple[int, ...]:
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


def _selected(
    what: str, fun: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple
) -> tuple[tuple[int, ...], tuple]:
    """Return the positions meant, not negative, and the arguments there."""
    n = len(args)
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for i in numbers:
        if not -n <= i < n:
            needed = i + 1 if i >= 0 else -i
            raise TypeError(
                f"{what} of {fun_text(fun)}: differentiating with respect to argnums={i} requires "
                f"at least {needed} positional arguments to be passed by the caller, but got only "
                f"{n} positional arguments."
            )
    places = tuple(i % n for i in numbers)
    return places, tuple(args[i] for i in places)


def partial_in(
    fun: Callable[..., Any], places: tuple[int, ...], args: tuple, kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """Return ``fun`` as a function of the arguments at some places, the others as given."""
    if places == (0,) and len(args) == 1 and not kwargs:
        return fun

    @functools.wraps(fun)
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
    places, some = _selected(what, fun, argnums, args)
    leaves, spec = _inputs(what, fun, some, {})
    for x in leaves:
        _check_input(what, fun, x.dtype, holomorphic, allow_int)
    flat = Flat(partial_in(fun, places, args, kwargs), spec, what, has_aux)
    with admit(fun, what):
        outs, linear = linearize_flat(flat, leaves, f"{what}({fun_name(fun)})")
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
    _check_output(what, fun, out.dtype, holomorphic)
    found = _spread(backward_of(linear, [full(out.aval, 1)]), leaves, linear)
    gradient = spec.unflatten([_tangents(c) for c in found])[0]
    if isinstance(argnums, int):
        (gradient,) = gradient
    return ((out, _without_tracers(flat.aux)) if has_aux else out), gradient


def _check_input(
    what: str, fun: Callable[..., Any], dtype: np.dtype, holomorphic: bool, allow_int: bool
) -> None:
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


def _check_output(what: str, fun: Callable[..., Any], dtype: np.dtype, holomorphic: bool) -> None:
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
