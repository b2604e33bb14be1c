"""Matrices of derivatives, a column or a row for each basis vector, computed as one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from ..core import tree
from ..core.callables import named_as
from ..core.dtypes import float0
from ..ops.kit.calls import convert, full, moveaxis, reshape
from ..ops.kit.canonical import as_array
from .batching import vmap
from .derivatives import check_callable, jvp, vjp
from .gradients import check_input, check_output, checked_argnums, partial_in, selected
from .linear_maps import check_array

P = ParamSpec("P")
#: As in `gradients`: the bound lets a lambda, whose argument has no type, do with it what it likes.
X = TypeVar("X", bound=Any)


@overload
def jacfwd(
    fun: Callable[Concatenate[X, P], Any],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[X, P], Any]: ...


@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return the Jacobian of ``fun``, column by column: forward mode.

    Parameters
    ----------
    fun : callable
    argnums : int or sequence of int
        Arguments to differentiate with respect to.
    has_aux : bool
        Whether ``fun`` returns ``(result, aux)``; so does then the Jacobian.
    holomorphic : bool
        Whether ``fun`` is complex-differentiable.

    Returns
    -------
    callable
        Of what ``fun`` takes. For each array in the result a tree of the argument's structure,
        whose leaves have the result's axes and then the argument's.
    """
    check_callable("jacfwd", fun)
    argnums = checked_argnums("jacfwd", argnums)

    @named_as(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        places, some = selected("jacfwd", fun, argnums, args)
        chosen = partial_in(fun, places, args, kwargs)
        leaves, arg_spec = _arrays("jacfwd", some)
        for x in leaves:
            _check_forward_input(fun, x.dtype, holomorphic)
        some = arg_spec.unflatten(leaves)

        def push(*tangents: Any) -> Any:
            return jvp(chosen, some, arg_spec.unflatten(tangents), has_aux)

        out, tangents, *aux = vmap(push, out_axes=(None, 0, *([None] * has_aux)))(*_basis(leaves))
        outs, out_spec = tree.flatten_spec(out)
        if holomorphic:
            for o in outs:
                check_output("jacfwd", fun, o.dtype, holomorphic)
        pairs = zip(tree.leaves(tangents), outs, strict=True)
        columns = out_spec.unflatten(
            [_unstacked(t, o, leaves, arg_spec, argnums) for t, o in pairs]
        )
        return (columns, *aux) if has_aux else columns

    return jacobian


@overload
def jacrev(
    fun: Callable[Concatenate[X, P], Any],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[X, P], Any]: ...


@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Return the Jacobian of ``fun``, row by row: reverse mode.

    Parameters and result are those of `jacfwd`; ``allow_int`` is that of `grad`.
    """
    check_callable("jacrev", fun)
    argnums = checked_argnums("jacrev", argnums)

    @named_as(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        places, some = selected("jacrev", fun, argnums, args)
        leaves, arg_spec = _arrays("jacrev", some)
        for x in leaves:
            check_input("jacrev", fun, x.dtype, holomorphic, allow_int)
        out, pull, *aux = vjp(partial_in(fun, places, args, kwargs), *some, has_aux=has_aux)
        outs, out_spec = tree.flatten_spec(out)
        for o in outs:
            check_output("jacrev", fun, o.dtype, holomorphic)
        rows = vmap(lambda *cts: pull(out_spec.unflatten(cts)))(*_basis(outs))
        # Each row is a tree of arguments; the result is a tree of results of them.
        flat = [_split(r, outs) for r in tree.leaves(rows)]
        trees = [
            arg_spec.unflatten(
                [
                    _typed(reshape(row[k], (*o.shape, *x.shape)), x)
                    for row, x in zip(flat, leaves, strict=True)
                ]
            )
            for k, o in enumerate(outs)
        ]
        found = out_spec.unflatten([t[0] if isinstance(argnums, int) else t for t in trees])
        return (found, *aux) if has_aux else found

    return jacobian


jacobian = jacrev


@overload
def hessian(
    fun: Callable[Concatenate[X, P], Any],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[Concatenate[X, P], Any]: ...


@overload
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]: ...


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return the matrix of second derivatives of ``fun``: forward over reverse mode.

    Parameters are those of `jacfwd`; leaves have the argument's axes twice.
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def _arrays(what: str, some: tuple) -> tuple[list[Any], Any]:
    leaves, spec = tree.flatten_spec(some)
    for k, x in enumerate(leaves):
        check_array(x, lambda k=k: f"leaf {k} of the arguments of {what}")
    return [as_array(x) for x in leaves], spec


def _check_forward_input(fun: Callable[..., Any], dtype: np.dtype, holomorphic: bool) -> None:
    if holomorphic or dtype.kind not in "biuc":
        check_input("jacfwd", fun, dtype, holomorphic, False)
        return
    raise TypeError(
        "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but "
        f"got {dtype.name}. For holomorphic differentiation, pass holomorphic=True. For "
        "differentiation of non-holomorphic functions involving complex inputs or integer inputs, "
        "use jvp directly."
    )


def _basis(arrays: Sequence[Any]) -> list[Any]:
    """Return, for each array, a batch of its parts of the basis vectors of them all."""
    total = sum(x.size for x in arrays)
    out, start = [], 0
    for x in arrays:
        rows = np.zeros((total, x.size), x.dtype)
        rows[np.arange(start, start + x.size), np.arange(x.size)] = 1
        out.append(_typed(as_array(rows.reshape(total, *x.shape)), x))
        start += x.size
    return out


def _typed(x: Any, like: Any) -> Any:
    """Return derivatives in the dtype, and as weak, as what they are of or with respect to."""
    if x.dtype == float0:
        return full(like.aval.update(shape=x.shape), 0)
    return convert(x, like.dtype, like.aval.weak_type)


def _split(batch: Any, arrays: Sequence[Any]) -> list[Any]:
    """Split a batch into those of each array's basis vectors."""
    out, start = [], 0
    for x in arrays:
        out.append(batch[start : start + x.size])
        start += x.size
    return out


def _unstacked(batch: Any, out: Any, arrays: Sequence[Any], spec: Any, argnums: Any) -> Any:
    """Return a batch of a result's tangents as a tree of arguments, the batch's axis last."""
    pieces = [
        _typed(reshape(moveaxis(part, 0, part.ndim - 1), (*part.shape[1:], *x.shape)), out)
        for part, x in zip(_split(batch, arrays), arrays, strict=True)
    ]
    found = spec.unflatten(pieces)
    return found[0] if isinstance(argnums, int) else found
