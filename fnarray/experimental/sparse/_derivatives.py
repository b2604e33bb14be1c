"""Derivatives of functions of sparse arrays, with respect to the elements stored."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...api.gradients import value_and_grad as dense_value_and_grad
from ...api.jacobians import jacfwd as dense_jacfwd
from ...api.jacobians import jacrev as dense_jacrev
from ...core import tree
from ._sparsify import is_sparse

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]

Argnums = int | Sequence[int]


def _by_data(
    transform: Callable[..., Any], fun: Callable[..., Any], argnums: Argnums, **options: Any
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a transform of a function of data, and what makes sparse arrays of results."""
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def split(args: Sequence[Any]) -> tuple[Any, Callable[[Any], Any]]:
        chosen = [args[i] for i in places]
        leaves, structure = tree.flatten(chosen, is_sparse)
        data = [x.data if is_sparse(x) else x for x in leaves]

        def rebuilt(data: Any) -> list[Any]:
            filled = [x._with(d) if is_sparse(x) else d for x, d in zip(leaves, data, strict=True)]
            return tree.unflatten(structure, filled)

        return data, rebuilt

    def derivative(*args: Any, **kwargs: Any) -> tuple[Any, Callable[[Any], Any]]:
        data, rebuilt = split(args)

        def of_data(data: Any) -> Any:
            filled = list(args)
            for i, x in zip(places, rebuilt(data), strict=True):
                filled[i] = x
            return fun(*filled, **kwargs)

        def shown(found: Any) -> Any:
            out = rebuilt(found)
            return out[0] if isinstance(argnums, int) else tuple(out)

        return transform(of_data, **options)(data), shown

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


def _jacobian(transform: Callable[..., Any]) -> Callable[..., Any]:
    def jacobian(fun: Callable[..., Any], argnums: Argnums = 0, **options: Any) -> Any:
        """As that of `fnarray`, of functions that also take sparse arrays; by dense arguments."""
        derivative, named = _by_data(transform, fun, argnums, **options)

        def of(*args: Any, **kwargs: Any) -> Any:
            places = (argnums,) if isinstance(argnums, int) else argnums
            if any(is_sparse(x) for i in places for x in tree.leaves(args[i], is_leaf=is_sparse)):
                raise NotImplementedError(
                    "jacobians with respect to sparse arrays have axes in front that their indices "
                    "do not. Take the jacobian with respect to M.data."
                )
            found, shown = derivative(*args, **kwargs)
            return shown(found)

        return named(of)

    return jacobian


jacfwd = _jacobian(dense_jacfwd)
jacrev = jacobian = _jacobian(dense_jacrev)
