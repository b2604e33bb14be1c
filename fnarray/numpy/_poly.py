"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import lax
from ..control.loop import fori_loop
from ..core.apart import another
from ..core.array import Array
from ..core.dtypes import finfo
from ..core.eager import replayed
from ..ops.kit.calls import convert
from ._at import IndexUpdateHelper
from ._creation import asarray, ones_like
from ._indexing import take as take_index
from ._join import stack
from ._lists import trim_zeros
from ._math import abs as absolute
from ._patterns import eye, vander
from ._products import matmul, vdot
from ._promote import broadcast_to as stretch
from ._promote import operands, promote_dtypes, promote_dtypes_inexact
from ._search import where
from ._shape import array_of
from ._sorting import argsort
from ._windows import convolve
from .linalg import eigvals, norm, qr

__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
]

#: Up to this many steps are written out; more become a loop.
_UNROLLED = 32
#: Of Jacobi rotations; they converge quadratically, so that double precision takes about eight.
_SWEEPS = 12


def _vectors(name: str, *args: Any, inexact: bool = True) -> list[Array]:
    promote = promote_dtypes_inexact if inexact else promote_dtypes
    found = promote(*operands(name, *args))
    for x in found:
        if x.ndim > 1:
            raise ValueError(f"numpy.{name}: coefficients must be vectors, got shape {x.shape}.")
    return [x if x.ndim else lax.expand_dims(x, (0,)) for x in found]


@replayed
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """Evaluate a polynomial by Horner's rule.

    Parameters
    ----------
    p : array_like
        Coefficients along axis 0; further axes broadcast with ``x``.
    x : array_like
    unroll : int
        Accepted; short polynomials are written out, long ones are a native loop.
    """
    p, x = promote_dtypes(*operands("polyval", p, x))
    if not p.ndim:
        raise ValueError("numpy.polyval: p must have at least 1 axis, got a scalar.")
    shape = lax.broadcast_shapes(p.shape[1:], x.shape)
    x = stretch("polyval", x, shape)
    total = lax.full(shape, 0, p.dtype)

    def step(k: Any, total: Array) -> Array:
        return total * x + stretch("polyval", take_index(p, k, mode="clip"), shape)

    if p.shape[0] > _UNROLLED:
        return fori_loop(0, p.shape[0], step, total)
    for k in range(p.shape[0]):
        total = step(k, total)
    return total


def _added(name: str, a1: Any, a2: Any, sign: int) -> Array:
    """Add the shorter polynomial to the end of the longer one."""
    a, b = (
        x if x.ndim else lax.expand_dims(x, (0,)) for x in promote_dtypes(*operands(name, a1, a2))
    )
    if sign < 0:
        b = lax.neg(b)
    long, short = (a, b) if a.shape[0] >= b.shape[0] else (b, a)
    more = long.shape[0] - short.shape[0]
    end = lax.slice_in_dim(long, more, None)
    total = lax.add(end, stretch(name, short, end.shape))
    return lax.concatenate([lax.slice_in_dim(long, 0, more), total], 0) if more else total


@replayed
def polyadd(a1: Any, a2: Any) -> Array:
    """Add two polynomials, coefficients along axis 0; further axes of the shorter one broadcast."""
    return _added("polyadd", a1, a2, 1)


@replayed
def polysub(a1: Any, a2: Any) -> Array:
    """Subtract a polynomial from another; see `polyadd`."""
    return _added("polysub", a1, a2, -1)


@replayed
def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply two polynomials.

    Parameters
    ----------
    a1, a2 : array_like
    trim_leading_zeros : bool
        Cut zero coefficients in front first; they must be concrete then.
    """
    factors = _vectors("polymul", a1, a2)
    if trim_leading_zeros:
        factors = [trim_zeros(x, "f") for x in factors]
    zero = lax.full((1,), 0, factors[0].dtype)
    a, b = (x if x.size else zero for x in factors)
    return convolve(a, b, mode="full")


def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide polynomials: return quotient and remainder.

    Parameters
    ----------
    u, v : array_like
    trim_leading_zeros : bool
        Cut zeros in front of the remainder, which must be concrete then; it has ``u``'s length
        otherwise.
    """
    u, v = _vectors("polydiv", u, v)
    steps, n = u.shape[0] - v.shape[0] + 1, v.shape[0]
    q = lax.full((max(steps, 1),), 0, u.dtype)
    scale = 1 / take_index(v, 0)

    def step(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        q, u = state
        d = scale * take_index(u, k, mode="clip")
        part = lax.dynamic_slice_in_dim(u, k, n) - d * v
        return IndexUpdateHelper(q)[k].set(d), lax.dynamic_update_slice_in_dim(u, part, k, 0)

    if steps > _UNROLLED:
        q, u = fori_loop(0, steps, step, (q, u))
    else:
        for k in range(steps):
            q, u = step(k, (q, u))
    return q, trim_zeros(u, "f") if trim_leading_zeros else another(u)


@replayed
def polyder(p: Any, m: int = 1) -> Array:
    """Return the ``m``-th derivative of a polynomial.

    Raises
    ------
    ValueError
        For a negative ``m``.
    """
    (p,) = _vectors("polyder", p)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"numpy.polyder: m must not be negative, got {m}.")
    n = p.shape[0]
    powers = np.arange(n - 1, m - 1, -1, dtype=np.float64)
    factors = np.prod([powers - k for k in range(m)], axis=0) if m else np.ones(n)
    kept = lax.slice_in_dim(p, 0, max(n - m, 0))
    return lax.mul(kept, lax.convert_element_type(factors, p.dtype)) if m else another(p)


@replayed
def polyint(p: Any, m: int = 1, k: Any = None) -> Array:
    """Return the ``m``-th integral of a polynomial.

    Parameters
    ----------
    p : array_like
    m : int
    k : scalar or vector, optional
        Constants of integration, the first integral's first: one for all, or ``m``; 0 where
        omitted.

    Raises
    ------
    ValueError
        For a negative ``m``, or another number of constants.
    """
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"numpy.polyint: m must not be negative, got {m}.")
    p, k = _vectors("polyint", p, 0 if k is None else k)
    if k.shape[0] not in (1, m):
        raise ValueError(f"numpy.polyint: k must be a scalar or have {m} elements, got {k.shape}.")
    if not m:
        return another(p)
    constants = stretch("polyint", k, (m,))
    powers = np.arange(p.shape[0] + m - 1, -1, -1, dtype=np.float64)
    factors = np.prod([np.maximum(powers - j, 1) for j in range(m)], axis=0)
    whole = lax.concatenate([p, constants], 0)
    return lax.div(whole, lax.convert_element_type(factors, p.dtype))


@replayed
def poly(seq_of_zeros: Any) -> Array:
    """Return the monic polynomial that has the given roots, or the characteristic one of a matrix.

    Raises
    ------
    ValueError
        For what is neither a vector nor a square matrix.
    """
    (roots,) = promote_dtypes_inexact(array_of("poly", seq_of_zeros))
    if roots.ndim > 2 or (roots.ndim == 2 and roots.shape[0] != roots.shape[1]):
        raise ValueError(
            f"numpy.poly: expected a vector of roots or a square matrix, got shape {roots.shape}."
        )
    if roots.ndim == 2:
        roots = eigvals(roots)
    if not roots.ndim:
        roots = lax.expand_dims(roots, (0,))
    if not roots.size:
        return lax.full((), 1, roots.dtype)
    out = lax.full((1,), 1, roots.dtype)
    zero = convert(0, roots.dtype)
    for k in range(roots.shape[0]):
        root = take_index(roots, k)
        out = lax.pad(out, zero, [(0, 1, 0)]) - root * lax.pad(out, zero, [(1, 0, 0)])
    return out


# --- fitting ------------------------------------------------------------------------------------


def _orthogonal_columns(A: Array) -> tuple[Array, Array]:
    """Return ``A @ V`` with orthogonal columns, and the unitary ``V``: one-sided Jacobi rotations.

    Their norms are the singular values of ``A``. The method finds small ones to high relative
    accuracy and is one short loop (J. Demmel and K. Veselic, "Jacobi's method is more accurate than
    QR", 1992).
    """
    m, n = A.shape
    Z = lax.concatenate([A, eye(n, dtype=A.dtype)], 0)
    first, second = (k.astype(np.int32) for k in np.triu_indices(n, 1))
    pairs = len(first)

    def rotate(k: Any, Z: Array) -> Array:
        i, j = (take_index(which, k % pairs, mode="clip") for which in (first, second))
        p, q = Z[:, i], Z[:, j]
        overlap = vdot(p[:m], q[:m])
        size = absolute(overlap)
        none = size == 0
        q = q * where(none, 1, overlap.conj() / where(none, 1, size))
        zeta = (vdot(q[:m], q[:m]).real - vdot(p[:m], p[:m]).real) / (2 * where(none, 1, size))
        t = where(zeta < 0, -1, 1) / (absolute(zeta) + lax.sqrt(1 + zeta * zeta))
        c = where(none, 1, lax.rsqrt(1 + t * t))
        s = where(none, 0, t * c)
        return Z.at[:, i].set(c * p - s * q).at[:, j].set(s * p + c * q)

    if pairs:
        Z = fori_loop(0, _SWEEPS * pairs, rotate, Z)
    return Z[:m], Z[m:]


def _powers(x: Array, n: int) -> Array:
    """Return the matrix whose columns are powers, the highest first: as products, where few.

    A power takes 20 ns; of 5,000 points 20,000 of them took more than all that comes after.
    """
    if not 0 < n <= _UNROLLED:
        return vander(x, n)
    columns = [ones_like(x)]
    while len(columns) < n:
        columns.append(columns[-1] * x)
    return stack(columns[::-1], 1)


def _triangle(A: Array) -> tuple[Array | None, Array]:
    """Return orthonormal columns (None is the identity), and the few rows that they make ``A`` of.

    What rotations find in the rows they find in ``A``: the triangle's error is small beside each
    column, as theirs is. They go over the rows some 12 times for each pair of columns.
    """
    m, n = A.shape
    return qr(A) if m > n else (None, A)


def _least_squares(A: Array, b: Array, rcond: Any) -> tuple[Array, Array, Array, Array]:
    """Return the least solution of least squares, residuals, rank, and singular values."""
    Q, R = _triangle(A)
    W, V = _orthogonal_columns(R)
    sizes = norm(W, axis=0)
    order = argsort(sizes, descending=True)
    sizes, W, V = sizes[order], W[:, order], V[:, order]
    kept = sizes > rcond * sizes[0]
    weights = where(kept, 1 / where(kept, sizes, 1) ** 2, 0)
    part = b if Q is None else matmul(Q.T.conj(), b)
    x = matmul(V, weights[:, None] * matmul(W.T.conj(), part))
    rest = absolute(b - matmul(A, x)) ** 2
    return x, rest.sum(0), kept.sum(), sizes


@replayed(program=True)
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Any:
    """Fit a polynomial to points by least squares.

    Parameters
    ----------
    x : array_like
        A vector.
    y : array_like
        A vector, or a matrix with a column for each fit.
    deg : int
    rcond : float, optional
        Singular values below this fraction of the largest count as 0; the number of points times
        the machine epsilon where omitted.
    full : bool
        Return residuals, rank, singular values and ``rcond`` too.
    w : array_like, optional
        Weights of the points' deviations.
    cov : bool or "unscaled"
        Return the covariance of the coefficients too; unscaled for weights that are inverse
        deviations.

    Raises
    ------
    ValueError
        For a negative degree, or too few points for a covariance.
    TypeError
        For points that are no vectors of one size.
    """
    deg = operator.index(deg)
    if deg < 0:
        raise ValueError(f"numpy.polyfit: deg must not be negative, got {deg}.")
    x, y = promote_dtypes_inexact(*operands("polyfit", x, y))
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.size:
        raise TypeError(
            "numpy.polyfit: x must be a vector, not empty, and y a vector or matrix as long, got "
            f"shapes {x.shape} and {y.shape}."
        )
    rcond = x.size * float(finfo(x.dtype).eps) if rcond is None else rcond
    A, b = _powers(x, deg + 1), y if y.ndim == 2 else y[:, None]
    if w is not None:
        (w,) = promote_dtypes_inexact(*operands("polyfit", w))
        if w.shape != x.shape:
            raise TypeError(f"numpy.polyfit: w must have shape {x.shape}, got {w.shape}.")
        A, b = A * w[:, None], b * w[:, None]
    # Columns of one size, so that singular values tell dependence and not scale.
    scale = norm(A, axis=0)
    scale = where(scale == 0, 1, scale)
    c, rest, rank, sizes = _least_squares(A / scale, b, rcond)
    c = c / scale[:, None]
    if y.ndim == 1:
        c = c[:, 0]
    if full:
        return c, rest, rank, sizes, asarray(rcond)
    if not cov:
        return c
    W, V = _orthogonal_columns(_triangle(A / scale)[1])
    base = matmul(V / norm(W, axis=0) ** 2, V.T.conj()) / (scale[:, None] * scale)
    if cov == "unscaled":
        return c, base
    if x.size <= deg + 1:
        raise ValueError(
            f"numpy.polyfit: {x.size} points are too few to scale the covariance of {deg + 1} "
            "coefficients: pass cov='unscaled'."
        )
    factor = rest / (x.size - deg - 1)
    return (c, base * factor[0]) if y.ndim == 1 else (c, base[:, :, None] * factor)
