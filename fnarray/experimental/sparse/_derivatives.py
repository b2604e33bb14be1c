"""Derivatives of functions of sparse arrays, with respect to the elements stored."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import numpy as jnp
from ...api.gradients import value_and_grad as dense_value_and_grad
from ...api.jacobians import jacfwd as dense_jacfwd
from ...api.jacobians import jacrev as dense_jacrev
from ...core import tree
from ._bcoo import BCOO
from ._sparsify import is_sparse

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]

Argnums = int | Sequence[int]


def _by_data(
    transform: Callable[..., Any],
    fun: Callable[..., Any],
    argnums: Argnums,
    wrap: Callable[[list[Any]], Any] = list,
    **options: Any,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a transform of a function of data, and what makes sparse arrays of results."""
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def split(args: Sequence[Any]) -> tuple[Any, Callable[[Any], Any]]:
        chosen = [args[i] for i in places]
        leaves, structure = tree.flatten(chosen, is_sparse)
        data = [x.data if is_sparse(x) else x for x in leaves]

        def rebuilt(data: Any) -> list[Any]:
            pairs = zip(leaves, data, strict=True)
            filled = [_filled(x, d) if is_sparse(x) else d for x, d in pairs]
            return tree.unflatten(structure, filled)

        return data, rebuilt

    def derivative(*args: Any, **kwargs: Any) -> tuple[Any, Callable[[Any], Any]]:
        data, rebuilt = split(args)

        def of_data(data: Any) -> Any:
            filled = list(args)
            for i, x in zip(places, rebuilt(list(*data) if wrap is _Found else data), strict=True):
                filled[i] = x
            out = fun(*filled, **kwargs)
            if wrap is _Found and any(map(is_sparse, tree.leaves(out, is_leaf=is_sparse))):
                raise TypeError(
                    "jacobians are those of dense results, and the function returned a sparse "
                    "array. Return M.data, or M.todense()."
                )
            return out

        def shown(found: Any) -> Any:
            out = rebuilt(found)
            return out[0] if isinstance(argnums, int) else tuple(out)

        return transform(of_data, **options)(wrap(data)), shown

    return derivative, functools.wraps(fun)


def value_and_grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: Any
) -> Callable[..., Any]:
    """As `fnarray.value_and_grad`; gradients of sparse arrays are sparse, at the same indices."""
    derivative, named = _by_data(dense_value_and_grad, fun, argnums, has_aux=has_aux, **options)

    def value_and_grad(*args: Any, **kwargs: Any) -> Any:
        (value, found), shown = derivative(*args, **kwargs)
        return value, shown(found)

    return named(value_and_grad)


def grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: Any
) -> Callable[..., Any]:
    """As `fnarray.grad`; gradients of sparse arrays are sparse, at the same indices."""
    both = value_and_grad(fun, argnums, has_aux, **options)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return functools.wraps(fun)(gradient)


class _Found(NamedTuple):
    """Jacobians of one result, by the data of each argument."""

    leaves: list[Any]


def _jacobian(transform: Callable[..., Any]) -> Callable[..., Any]:
    def jacobian(
        fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **options: Any
    ) -> Any:
        """As that of `fnarray`, of functions that also take sparse arrays.

        By a `BCOO`, the jacobian is one too: the result's axes are batches in front.
        """
        of_data, named = _by_data(transform, fun, argnums, wrap=_Found, has_aux=has_aux, **options)

        def of(*args: Any, **kwargs: Any) -> Any:
            found, shown = of_data(*args, **kwargs)
            found, *aux = found if has_aux else (found,)
            out = tree.map(
                lambda x: shown(x.leaves), found, is_leaf=lambda x: isinstance(x, _Found)
            )
            return (out, *aux) if has_aux else out

        return named(of)

    return jacobian


def _filled(mat: Any, data: Any) -> Any:
    """Return a sparse array of other data, which may have axes in front that the array has not."""
    more = data.shape[: data.ndim - mat.data.ndim]
    if not more:
        return mat._with(data)
    if not isinstance(mat, BCOO):
        raise TypeError(
            f"jacobians by a {type(mat).__name__} have axes in front that its indices do not. Take "
            "the jacobian with respect to M.data, or to a BCOO."
        )
    indices = jnp.broadcast_to(mat.indices, (*more, *mat.indices.shape))
    return BCOO(
        (data, indices), shape=(*more, *mat.shape), indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )  # fmt: skip


jacfwd = _jacobian(dense_jacfwd)
jacrev = jacobian = _jacobian(dense_jacrev)
