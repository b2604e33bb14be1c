"""Associated Legendre functions of all orders and degrees at once."""

from __future__ import annotations

from math import pi, sqrt
from operator import index
from typing import Any

import numpy as np

from .. import numpy as jnp
from ..core.array import Array
from ..nn._args import inexact_operands


def lpmn(m: int, n: int, z: Any) -> tuple[Array, Array]:
    r"""Associated Legendre functions of the first kind, and their derivatives.

    Parameters
    ----------
    m, n : int
        The largest order and the largest degree, one number.
    z : array of shape (k,)

    Returns
    -------
    values, derivatives : Arrays of shape (n + 1, n + 1, k)
        By order and degree, as `lpmn_values` has them. Derivatives of order 1 are infinite at 1 and
        -1.

    Raises
    ------
    NotImplementedError
        `m` is not `n`.
    ValueError
        One of them is negative, or `z` is no vector.

    Notes
    -----
    Order :math:`m` is :math:`(-1)^m (1 - z^2)^{m/2}` times the derivative of that order of a
    polynomial, whose own derivative is the next one.
    """
    top, z = _checked("lpmn", m, n, z)
    values = _values(top, z, False)
    factors = jnp.asarray(np.abs(_highest(top + 1, False)), z.dtype)
    slopes = _table(top, z, jnp.broadcast_to(factors, (top + 2, z.size)), False)
    orders = np.arange(top + 1.0)[:, None, None]
    order = jnp.asarray(orders, z.dtype)
    sign = jnp.where(orders % 2, -1, 1).astype(z.dtype)
    sine = jnp.sqrt(1 - z * z)
    of_sine = jnp.where(orders > 0, order * z * sine ** (order - 2) * slopes[:-1], 0)
    return values, sign * (sine**order * slopes[1:] - of_sine)


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Array:
    r"""Associated Legendre functions of the first kind, of all orders and degrees.

    Parameters
    ----------
    m, n : int
        The largest order and the largest degree, one number.
    z : array of shape (k,)
        Where; cosines of the colatitude for spherical harmonics.
    is_normalized : bool
        Whether each is multiplied by
        :math:`\sqrt{(2l + 1) (l - m)! / (4 \pi (l + m)!)}`, so that it is the spherical harmonic of
        degree l and order m at azimuth 0. Those of high degree overflow otherwise.

    Returns
    -------
    Array of shape (n + 1, n + 1, k)
        By order and degree; 0 where the order is the greater. With the phase :math:`(-1)^m`.

    Raises
    ------
    NotImplementedError
        `m` is not `n`.
    ValueError
        One of them is negative, or `z` is no vector.

    Notes
    -----
    Degrees follow from the two before (DLMF 14.10.3), from those whose order is their degree
    (DLMF 14.7.15); normalized ones by the same recurrence times the ratios of their factors.
    """
    return _values(*_checked("lpmn_values", m, n, z), is_normalized)


def _checked(name: str, m: int, n: int, z: Any) -> tuple[int, Array]:
    """Return the largest degree, and where to compute."""
    top = index(n)
    if index(m) != top or top < 0:
        kind = ValueError if index(m) == top else NotImplementedError
        raise kind(
            f"{name}: m and n must be one number that is not negative, got {m} and {n}. "
            "Ask for the larger of both and take what you need of the result."
        )
    (z,) = inexact_operands(name, z)
    if z.ndim != 1:
        raise ValueError(f"{name}: z must have one axis, got shape {z.shape}.")
    return top, z


def _values(top: int, z: Any, is_normalized: bool) -> Array:
    orders = np.arange(top + 1.0)[:, None]
    highest = _highest(top, is_normalized) * jnp.sqrt(1 - z * z) ** orders.astype(z.dtype)
    return _table(top, z, highest, is_normalized)


def _table(top: int, z: Array, highest: Any, normalized: bool) -> Array:
    """Return functions by order and degree, of those whose order is their degree."""
    orders = np.arange(float(highest.shape[0]))[:, None]
    before = here = jnp.zeros(highest.shape, z.dtype)
    rows: list[Array] = []
    for degree in range(top + 1):
        ratio, last = _ratios(degree, orders, normalized)
        new = ratio.astype(z.dtype) * (z * here - last.astype(z.dtype) * before)
        before, here = here, jnp.where(orders == degree, highest, new)
        rows.append(here)
    return jnp.stack(rows, 1)


def _highest(top: int, normalized: bool) -> np.ndarray:
    """Return what the functions whose order is their degree are, but for the sine's power."""
    factors = [1 / sqrt(4 * pi) if normalized else 1.0]
    for m in range(1, top + 1):
        factors.append(-factors[-1] * (sqrt((2 * m + 1) / (2 * m)) if normalized else 2 * m - 1))
    return np.array(factors)[:, None]


def _ratios(degree: int, m: np.ndarray, normalized: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return what a degree's recurrence multiplies by, zeros for orders that are no less."""
    less, n = m < degree, float(degree)
    with np.errstate(divide="ignore", invalid="ignore"):
        if normalized:
            ratio = np.sqrt((4 * n * n - 1) / (n * n - m * m))
            last = np.sqrt(((n - 1) ** 2 - m * m) / (4 * (n - 1) ** 2 - 1))
        else:
            ratio, last = (2 * n - 1) / (n - m), (n + m - 1) / (2 * n - 1)
    return np.where(less, ratio, 0.0), np.where(m < degree - 1, last, 0.0)
