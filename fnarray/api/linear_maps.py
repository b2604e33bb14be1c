"""Derivatives of functions at a point: linear functions of tangents, or of cotangents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..control.signature import fun_name, fun_text
from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import float0
from ..core.graph import ClosedGraph, structure
from ..core.ref import AbstractRef, Ref
from ..core.source import TRANSPOSE, scoped
from ..core.tangents import Undefined, Zero, chosen, tangent_aval, with_zeros
from ..ops.kit.canonical import as_array
from ..ops.kit.rules import instantiate
from ..transforms.derivative import Linear
from ..transforms.transpose import backward
from .pullback import VJP


def check_array(x: Any, where: Callable[[], str]) -> None:
    """Raise `TypeError` unless a value is an array or a number; ``where`` says what it is.

    Raises
    ------
    ValueError
        For a Ref, of which others than who calls may take the derivative.
    """
    if isinstance(x, Array):
        return
    if isinstance(x, Ref):
        raise ValueError(
            f"{x!r} is a Ref, which has no derivative here: it is {where()}. Pass its value, "
            "ref[...], or use grad, vjp or jvp, which take Refs."
        )
    try:
        aval_of(x)
    except TypeError as error:
        raise TypeError(
            f"{x!r} of type {type(x)} is not a valid fnarray type: it is {where()}. "
            "Use arrays, numbers, and containers of them."
        ) from error


def given_tangent(
    what: str, k: int, primal: ShapedArray, t: Any, misfit: type[Exception] = TypeError
) -> Any:
    """Return a tangent given by the user; raise the errors of one that does not fit."""
    wanted = tangent_aval(primal)
    dtype = getattr(t, "dtype", None)
    if dtype is not None and np.dtype(dtype) == float0:
        got = ShapedArray(np.shape(t), float0)
    else:
        check_array(t, lambda: f"tangent {k} of {what}")
        got = aval_of(t)
    if got.dtype != wanted.dtype:
        raise misfit(
            f"primal and tangent arguments to {what} do not match: dtypes must be equal, and of "
            f"int or bool primals float0. Argument {k} has dtype {primal.dtype} and so expects "
            f"tangent dtype {_dtype(wanted)}, but got {_dtype(got)}."
        )
    if got.shape != wanted.shape:
        raise ValueError(
            f"{what} called with different primal and tangent shapes: argument {k} has shape "
            f"{wanted.shape} and its tangent {got.shape}."
        )
    return Zero(wanted) if wanted.dtype == float0 else as_array(t)


def tangent_ref(what: str, k: int, primal: ShapedArray, t: Any) -> Ref:
    """Return the Ref given for the tangent of a Ref; raise `ValueError` for what is none."""
    wanted = primal.update(weak_type=False)
    if type(t) is not Ref or (t.shape, t.dtype) != (wanted.shape, wanted.dtype):
        raise ValueError(
            f"{what}: argument {k} is a {AbstractRef(wanted)}, whose tangent must be one, too, got "
            f"{t!r}. Make it: fnarray.new_ref(tangent)."
        )
    return t


def _dtype(aval: ShapedArray) -> str:
    return "float0" if aval.dtype == float0 else aval.dtype.name


class Derivative:
    """A function's derivative at a point, without the residuals that belong to the point.

    Bound to residuals by a `Partial` it is what users get: a function, and a pytree whose leaves
    are the residuals, so that it can be returned from compiled functions and passed to them. It
    equals those that compute the same.
    """

    what: str
    __call__: Callable[..., Any]

    def __init__(
        self, fun: Callable[..., Any], in_spec: Any, out_spec: Any, leaves: Any, linear: Linear
    ):
        refs = linear.refs
        self.fun = fun
        self.in_spec = in_spec
        self.out_spec = out_spec
        self.in_avals = tuple(refs.get(k, x.aval) for k, x in enumerate(leaves))
        self.linear = replace(linear, closed=ClosedGraph(linear.closed.jaxpr))

    def bound(self, linear: Linear, primals: Sequence[Any]) -> tree.Partial:
        """Return the function with its residuals."""
        return tree.Partial(self, linear.closed.consts)

    def at(self, residuals: Sequence[Any]) -> Linear:
        """Return the linear function of residuals."""
        closed = ClosedGraph(self.linear.closed.jaxpr, tuple(residuals))
        return replace(self.linear, closed=closed)

    @functools.cached_property
    def _key(self) -> Any:
        linear = self.linear
        try:
            program = structure(linear.closed.jaxpr)
            hash(program)
        except TypeError:  # a param has no hash
            program = id(linear)
        actives = linear.active_in, linear.active_out
        return type(self), program, *actives, self.in_avals, self.in_spec, self.out_spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derivative) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<{type(self).what} of {fun_name(self.fun)}>"


class Push(Derivative):
    """What `linearize` returns, without the residuals: tangents in, tangents out."""

    what = "linear function"

    def __call__(self, residuals: Sequence[Any], *tangents: Any) -> Any:
        """Return the tangents of the results."""
        given, spec = tree.flatten_spec((tangents, {}))
        if spec != self.in_spec:
            raise TypeError(
                f"linearize: the linear function of {fun_text(self.fun)} takes tangents of "
                f"structure {tree.PyTreeDef(self.in_spec.child(0))}, got "
                f"{tree.structure(tangents)}."
            )
        linear, what = self.at(residuals), "linearize's function"
        refs = [tangent_ref(what, k, aval, given[k]) for k, aval in linear.refs.items()]
        given = [
            t[...] if k in linear.refs else given_tangent(what, k, a, t, ValueError)
            for k, (a, t) in enumerate(zip(self.in_avals, given, strict=True))
        ]
        duals = [instantiate(t) for t in linear(chosen(linear.active_in, given))]
        n = len(duals) - len(refs)
        for ref, t in zip(refs, duals[n:], strict=True):
            ref[...] = t
        return self.out_spec.unflatten(duals[:n])


class Pull(Derivative):
    """What `vjp` returns, without the residuals: cotangents in, cotangents out."""

    what = "vjp function"

    def bound(self, linear: Linear, primals: Sequence[Any]) -> VJP:
        """Return the function with its residuals, some of which are the primals."""
        return VJP.of(self, linear.closed.consts, primals)

    def __call__(
        self,
        residuals: Sequence[Any],
        *given: Any,
        wanted: Sequence[bool] | None = None,
        left: Sequence[Any] | None = None,
    ) -> Any:
        """Take a cotangent back, and ``left``, those of what the function left in Refs."""
        if self.linear.refs and left is None:
            raise ValueError(
                f"vjp of {fun_text(self.fun)} with respect to a Ref: its gradient must be "
                "accumulated into a Ref. Bind one, and then call: fun_vjp.with_refs(ref, ...)(ct), "
                "with ad.GradValue() in the place of arguments that are arrays."
            )
        if len(given) != 1:
            raise TypeError(
                f"vjp: the function that vjp returned for {fun_text(self.fun)} takes one "
                f"cotangent, of the structure of its result, but got {len(given)} arguments."
            )
        cts, spec = tree.flatten_spec(given[0])
        if spec != self.out_spec:
            raise ValueError(
                "unexpected tree structure: the argument to the function that vjp returned for "
                f"{fun_text(self.fun)} must have the structure of its result, "
                f"{tree.PyTreeDef(self.out_spec)}, but got {tree.PyTreeDef(spec)}."
            )
        linear = self.at(residuals)
        cts = [
            _cotangent(self.fun, k, a, c)
            for k, (a, c) in enumerate(zip(linear.out_avals, [*cts, *(left or ())], strict=True))
        ]
        found = cotangents(backward_of(linear, cts, wanted), self.in_avals, linear)
        return self.in_spec.unflatten(found)[0]


def _cotangent(fun: Callable[..., Any], k: int, out: ShapedArray, ct: Any) -> Any:
    wanted = tangent_aval(out)
    if wanted.dtype == float0:
        return Zero(wanted)
    check_array(ct, lambda: f"cotangent {k} of {fun_text(fun)}")
    got = aval_of(ct)
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        raise ValueError(
            "unexpected fnarray type (shape or dtype) for the argument of the function that vjp "
            f"returned for {fun_text(fun)}: got {got.str_short().lstrip('~')}, but expected "
            f"{wanted.str_short().lstrip('~')}, as the corresponding output is."
        )
    return as_array(ct)


def backward_of(
    linear: Linear, cts: Sequence[Any], wanted: Sequence[bool] | None = None
) -> list[Any]:
    """Return the cotangents of a linear function's active inputs for those of all results.

    Those of inputs that are not ``wanted`` are zeros.
    """
    graph = linear.closed.jaxpr
    operands = [Undefined(a) for a in graph.in_avals]
    asked = None if wanted is None else chosen(linear.active_in, wanted)
    given = chosen(linear.active_out, cts)
    with scoped(TRANSPOSE):
        return backward(graph, linear.closed.consts, operands, given, asked)


def cotangents(found: Sequence[Any], in_avals: Sequence[ShapedArray], linear: Linear) -> list[Any]:
    """Return a cotangent for every input, zeros for the inactive."""
    of_inputs = [a.of_cotangents() if isinstance(a, ShapedArray) else a for a in in_avals]
    return [instantiate(ct) for ct in with_zeros(linear.active_in, found, of_inputs)]
