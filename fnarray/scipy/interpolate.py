"""Interpolation on grids as ``jax.scipy.interpolate`` names it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from .. import numpy as jnp
from ..core import tree
from ..core.array import Array

__all__ = ["RegularGridInterpolator"]
__dir__ = __all__.copy

_METHODS = ("linear", "nearest")


def _check_method(method: str) -> str:
    if method not in _METHODS:
        raise ValueError(f"method {method!r} is not defined. Use one of {', '.join(_METHODS)}.")
    return method


@tree.register_pytree_node_class
class RegularGridInterpolator:
    """Interpolation of values that are given on a rectilinear grid; distances may be uneven.

    Parameters
    ----------
    points : sequence of array
        Coordinates (m_k,) of the grid along each axis, ascending.
    values : array
        Shape (m_1, ..., m_n, \\*rest).
    method : {"linear", "nearest"}
    bounds_error : False
        Points outside cannot raise an error: compiled functions do not know them.
    fill_value : scalar or None
        Value of points outside, NaN by default; None extrapolates.

    Raises
    ------
    ValueError
        For another method, ``bounds_error``, or points that do not fit the values.
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: Any = np.nan,
    ):
        if bounds_error:
            raise ValueError(
                "RegularGridInterpolator: bounds_error must be False: compiled functions cannot "
                "raise for values. Use fill_value."
            )
        self.method = _check_method(method)
        self.bounds_error = False
        self.grid = tuple(jnp.asarray(p) for p in points)
        self.values = jnp.asarray(values)
        self.fill_value = fill_value
        if len(self.grid) > self.values.ndim:
            raise ValueError(
                f"there are {len(self.grid)} point arrays, but values has {self.values.ndim} "
                "dimensions"
            )
        for k, p in enumerate(self.grid):
            if p.shape != self.values.shape[k : k + 1]:
                raise ValueError(
                    f"there are {p.shape} points and {self.values.shape[k]} values on dimension "
                    f"{k}; points must be vectors of as many"
                )

    def tree_flatten(self) -> tuple[Any, Any]:
        """Return what is arrays, and what is not."""
        return (self.grid, self.values, self.fill_value), self.method

    @classmethod
    def tree_unflatten(cls, method: str, children: Any) -> RegularGridInterpolator:
        """Make an interpolator of its parts, unchecked: transforms put other things there."""
        made = object.__new__(cls)
        made.grid, made.values, made.fill_value = children
        made.method, made.bounds_error = method, False
        return made

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Return interpolated values.

        Parameters
        ----------
        xi : array (..., n), or tuple of n arrays that broadcast together
            Points.
        method : {"linear", "nearest"}, optional
            By default that of the interpolator.

        Returns
        -------
        array
            Shape (..., \\*rest).
        """
        method = self.method if method is None else _check_method(method)
        rank = len(self.grid)
        if isinstance(xi, tuple):
            xi = jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, xi)), -1)
        xi = jnp.asarray(xi)
        if xi.ndim == 1 and rank == 1 and xi.shape != (1,):
            xi = xi[:, None]
        if xi.shape[-1:] != (rank,):
            raise ValueError(
                f"the requested sample points xi have dimension {xi.shape[-1:]}, but this "
                f"RegularGridInterpolator has dimension {rank}"
            )
        at = xi.reshape(-1, rank).T
        low, shares = zip(*map(_cell, at, self.grid), strict=True)
        if method == "nearest":
            places = tuple(jnp.where(t <= 0.5, i, i + 1) for i, t in zip(low, shares, strict=True))
            result = self.values[places]
        else:
            result = self._linear(low, shares)
        if self.fill_value is not None:
            outside = jnp.zeros(at.shape[1], bool)
            for x, grid in zip(at, self.grid, strict=True):
                outside |= (x < grid[0]) | (x > grid[-1])
            outside = outside.reshape(-1, *(1,) * (result.ndim - 1))
            result = jnp.where(outside, self.fill_value, result)
        return result.reshape(*xi.shape[:-1], *self.values.shape[rank:])

    def _linear(self, low: tuple[Array, ...], shares: tuple[Array, ...]) -> Array:
        rest = (1,) * (self.values.ndim - len(low))
        total: Any = 0
        for corner in product((0, 1), repeat=len(low)):
            places = tuple(i + step for i, step in zip(low, corner, strict=True))
            weight: Any = 1
            for step, share in zip(corner, shares, strict=True):
                weight = weight * (share if step else 1 - share)
            total = total + self.values[places] * weight.reshape(-1, *rest)
        return total


def _cell(x: Array, grid: Array) -> tuple[Array, Array]:
    """Return the cell of a grid that points are in, and how far into it they are."""
    i = jnp.clip(jnp.searchsorted(grid, x) - 1, 0, grid.size - 2)
    return i, (x - grid[i]) / (grid[i + 1] - grid[i])
