"""Interpolation of images as ``jax.scipy.ndimage`` names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from operator import and_, mul
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import is_integer
from ..core.eager import replayed

__all__ = ["map_coordinates"]
__dir__ = __all__.copy


def _mirrored(i: Array, n: int) -> Array:
    """Continue an axis by its mirror image around the centres of its ends."""
    if n == 1:
        return jnp.zeros_like(i)
    return jnp.abs((i + (n - 1)) % (2 * (n - 1)) - (n - 1))


def _reflected(i: Array, n: int) -> Array:
    """Continue an axis by its mirror image around its edges."""
    i = i % (2 * n)
    return jnp.minimum(i, 2 * n - 1 - i)


#: Which element stands at an index outside, by mode.
_PLACES: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda i, n: i,
    "mirror": _mirrored,
    "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "reflect": _reflected,
    "wrap": lambda i, n: i % n,
}


def _nearest(at: Array) -> list[tuple[Array, Any]]:
    rounded = at if is_integer(at.dtype) else lax.round(at)
    return [(rounded.astype(np.int32), at.dtype.type(1))]


def _linear(at: Array) -> list[tuple[Array, Any]]:
    low = jnp.floor(at)
    share, i = at - low, low.astype(np.int32)
    return [(i, 1 - share), (i + 1, share)]


@replayed
def map_coordinates(
    input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0
) -> Array:
    """Return an array's values at coordinates between its elements.

    Parameters
    ----------
    input : array
    coordinates : sequence of array
        One for each axis of ``input``, in units of its elements; they broadcast together.
    order : {0, 1}
        The nearest element, or linear interpolation between neighbours.
    mode : {"constant", "nearest", "mirror", "reflect", "wrap"}
        What lies outside: ``cval``, the nearest element, mirror images around the outermost
        elements or around the edges, or the array again.
    cval : scalar

    Returns
    -------
    array
        In the dtype of ``input``; integers are rounded, halves away from zero.

    Raises
    ------
    ValueError
        For another number of coordinates.
    NotImplementedError
        For another order or another mode.
    """
    x = jnp.asarray(input)
    points = [jnp.asarray(c) for c in coordinates]
    if len(points) != x.ndim:
        raise ValueError(
            "ndimage.map_coordinates: coordinates must be a sequence of length input.ndim, but "
            f"{len(points)} != {x.ndim}."
        )
    if order not in (0, 1) or mode not in _PLACES:
        raise NotImplementedError(
            f"ndimage.map_coordinates takes orders 0 and 1 and the modes {', '.join(_PLACES)}; "
            f"got order {order}, mode {mode!r}."
        )
    cval = jnp.asarray(cval, x.dtype)
    total: Any = None
    for corner in product(*map(_linear if order else _nearest, points)):
        places = tuple(_PLACES[mode](i, n) for (i, _), n in zip(corner, x.shape, strict=True))
        value = x[places]
        if mode == "constant":
            inside = ((i >= 0) & (i < n) for i, n in zip(places, x.shape, strict=True))
            value = jnp.where(reduce(and_, inside), value, cval)
        part = reduce(mul, (w for _, w in corner)) * value
        total = part if total is None else total + part
    if is_integer(x.dtype) and not is_integer(total.dtype):
        total = lax.round(total)
    return total.astype(x.dtype)
