"""Exponentials of matrices, and their derivatives, by products and a solve of CuPy's.

By Pade's approximants after scaling (Higham 2005): of order 7 in single precision, 13 in double.
"""

from __future__ import annotations

from math import comb, factorial
from typing import Any, Final

import numpy as np

from ..ir import Node
from .device import Gpu

#: By the size of a real number: the order, and the norm up to which no scaling is needed.
_ORDERS: Final = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _coefficients(order: int) -> list[float]:
    """Return the coefficients of the numerator of ``exp``'s diagonal approximant, from the last."""
    return [factorial(2 * order - k) * comb(order, k) / factorial(order) for k in range(order + 1)]


def expm(cp: Any, node: Node, where: Gpu, a: Any) -> Any:
    """Exponentials; NaN where more squarings would be needed than allowed."""
    return _exponential(cp, a, node.eqn.params["max_squarings"])


def expm_frechet(cp: Any, node: Node, where: Gpu, a: Any, e: Any) -> Any:
    """Derivatives at ``a`` in the direction ``e``: what ``exp([[a, e], [0, a]])`` has above."""
    n = a.shape[-1]
    # The direction is brought to the matrix's size, which its own scaling then serves.
    size = cp.maximum(abs(e).max((-2, -1), keepdims=True), np.finfo(e.dtype).tiny)
    block = cp.zeros((*a.shape[:-2], 2 * n, 2 * n), a.dtype)
    block[..., :n, :n] = block[..., n:, n:] = a
    block[..., :n, n:] = e / size
    out = _exponential(cp, block, node.eqn.params["max_squarings"] + 1)[..., :n, n:] * size
    few = _squarings(cp, a) <= node.eqn.params["max_squarings"]
    fit = few & cp.isfinite(e).all((-2, -1), keepdims=True)
    return cp.where(fit, out, np.nan)


def _squarings(cp: Any, a: Any) -> Any:
    """Return how often each matrix of a stack is halved, as floats; NaN stays."""
    limit = _ORDERS[a.real.dtype.itemsize][1]
    norm = abs(a).sum(-2, keepdims=True).max(-1, keepdims=True)
    return cp.ceil(cp.log2(cp.maximum(norm / limit, 1)))


def _exponential(cp: Any, a: Any, most: int) -> Any:
    count = _squarings(cp, a)
    fit = count <= most  # NaN is not
    count = cp.where(fit, count, 0)
    x = cp.where(fit, a, 0) * cp.exp2(-count).astype(a.real.dtype)
    order = _ORDERS[a.real.dtype.itemsize][0]
    c = _coefficients(order)
    eye = cp.eye(a.shape[-1], dtype=a.dtype)
    square = cp.matmul(x, x)
    power, even, odd = eye, c[0] * eye, c[1] * eye
    for k in range(2, order, 2):
        power = cp.matmul(power, square) if k > 2 else square
        even, odd = even + c[k] * power, odd + c[k + 1] * power
    odd = cp.matmul(x, odd)
    out = cp.linalg.solve(even - odd, even + odd)
    for k in range(int(count.max())):  # a number comes to the host, no matrix does
        out = cp.where(k < count, cp.matmul(out, out), out)
    return cp.where(fit, out, np.nan)
