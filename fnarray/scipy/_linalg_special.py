"""Matrices of known structure under their names in `scipy.linalg`."""

from __future__ import annotations

from operator import index
from typing import Any, cast

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import as_dtype, canonicalize_dtype, is_inexact, to_complex
from ..core.eager import replayed
from ..numpy._promote import as_operand, promote_dtypes, promote_dtypes_inexact
from ._linalg_systems import _choice

__all__: list[str] = []


def _vectors(name: str, *args: Any) -> list[Array]:
    """Return arrays of at least one axis, in their common dtype."""
    arrays = (as_operand(f"linalg.{name}", x, i) for i, x in enumerate(args))
    return promote_dtypes(*(jnp.atleast_1d(x) for x in arrays))


def _picked(values: Array, places: np.ndarray) -> Array:
    """Return elements of the last axis at static places, in their arrangement."""
    return lax.convert_element_type(jnp.take(values, places, axis=-1), values.dtype)


def _joined(*parts: Array) -> Array:
    batch = np.broadcast_shapes(*(p.shape[:-1] for p in parts))
    return jnp.concatenate([jnp.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], -1)


@replayed
def toeplitz(c: Any, r: Any = None) -> Array:
    """Return the matrix constant along its diagonals.

    Parameters
    ----------
    c : array_like
        First columns, along the last axis.
    r : array_like, optional
        First rows, whose first elements are not read; the conjugate of ``c`` where omitted.
    """
    (c,) = _vectors("toeplitz", c)
    c, r = (c, jnp.conj(c)) if r is None else _vectors("toeplitz", c, r)
    m, n = c.shape[-1], r.shape[-1]
    values = _joined(r[..., :0:-1], c)
    return _picked(values, np.arange(m)[:, None] - np.arange(n) + max(n - 1, 0))


@replayed
def hankel(c: Any, r: Any = None) -> Array:
    """Return the matrix constant along its antidiagonals.

    Parameters
    ----------
    c : array_like
        First columns, along the last axis.
    r : array_like, optional
        Last rows, whose first elements are not read; zeros where omitted.
    """
    (c,) = _vectors("hankel", c)
    c, r = (c, jnp.zeros_like(c)) if r is None else _vectors("hankel", c, r)
    m, n = c.shape[-1], r.shape[-1]
    return _picked(_joined(c, r[..., 1:]), np.arange(m)[:, None] + np.arange(n))


@replayed
def circulant(c: Any) -> Array:
    """Return the matrix whose columns are ``c``, each turned one place further."""
    (c,) = _vectors("circulant", c)
    n = c.shape[-1]
    return _picked(c, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1))


@replayed
def companion(a: Any) -> Array:
    """Return the matrix whose characteristic polynomial has coefficients ``a``.

    Parameters
    ----------
    a : array_like
        At least two coefficients along the last axis, the highest power's first.

    Raises
    ------
    ValueError
        For fewer.
    """
    (a,) = promote_dtypes_inexact(*_vectors("companion", a))
    n = a.shape[-1]
    if n < 2:
        raise ValueError(f"scipy.linalg.companion takes two coefficients or more, got {a.shape}.")
    top = -a[..., 1:] / a[..., :1]
    rest = jnp.broadcast_to(jnp.eye(n - 2, n - 1, dtype=a.dtype), (*a.shape[:-1], n - 2, n - 1))
    return jnp.concatenate([top[..., None, :], rest], -2)


@replayed
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Array:
    """Return the matrix whose product with ``v`` is ``numpy.convolve(a, v, mode)``.

    Parameters
    ----------
    a : array_like
        Along the last axis.
    n : int
        Number of columns, elements of ``v``.
    mode : {"full", "valid", "same"}

    Raises
    ------
    ValueError
        For another mode, or no columns or coefficients.
    """
    _choice("convolution_matrix", "mode", mode, ("full", "valid", "same"))
    (a,) = _vectors("convolution_matrix", a)
    n, k = index(n), a.shape[-1]
    if n < 1 or not k:
        raise ValueError(
            "scipy.linalg.convolution_matrix: n and len(a) must be positive, got "
            f"n={n} and shape {a.shape}."
        )
    start, rows = {
        "full": (0, n + k - 1),
        "valid": (min(n, k) - 1, max(n, k) - min(n, k) + 1),
        "same": ((min(n, k) - 1) // 2, max(n, k)),
    }[mode]
    places = np.arange(start, start + rows)[:, None] - np.arange(n)
    inside = (places >= 0) & (places < k)
    return jnp.where(inside, _picked(a, np.clip(places, 0, k - 1)), jnp.zeros((), a.dtype))


@replayed
def fiedler(a: Any) -> Array:
    """Return the matrix of the distances between the elements of ``a``."""
    (a,) = _vectors("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@replayed
def fiedler_companion(a: Any) -> Array:
    """Return the pentadiagonal matrix whose characteristic polynomial has coefficients ``a``.

    Parameters
    ----------
    a : array_like
        Coefficients along the last axis, the highest power's first.
    """
    (a,) = promote_dtypes_inexact(*_vectors("fiedler_companion", a))
    n = a.shape[-1] - 1
    if n < 1:
        return jnp.zeros((*a.shape[:-1], 0, 0), a.dtype)
    terms = -a[..., 1:] / a[..., :1]
    # Coefficients and ones by Fiedler (2003): even rows hold two of the former.
    which, ones = np.full((n, n), -1), np.zeros((n, n))
    for i in range(n):
        if i % 2:
            ones[i, max(i - 2, 0)] = 1
            continue
        which[i, max(i - 1, 0)] = i
        which[i, i + 1 : i + 2] = i + 1
        ones[i, i + 2 : i + 3] = 1
    return jnp.where(
        which >= 0, _picked(terms, np.maximum(which, 0)), jnp.asarray(ones.astype(terms.dtype))
    )


@replayed
def leslie(f: Any, s: Any) -> Array:
    """Return the matrix of a population's step: fecundities, and survivals below the diagonal.

    Parameters
    ----------
    f : array_like
        Fecundities (..., n).
    s : array_like
        Survivals (..., n - 1).

    Raises
    ------
    ValueError
        For sizes that do not fit.
    """
    f, s = promote_dtypes_inexact(*_vectors("leslie", f, s))
    n = f.shape[-1]
    if s.shape[-1] != n - 1 or n < 2:
        raise ValueError(
            "scipy.linalg.leslie: there must be one survival fewer than fecundities, got shapes "
            f"{f.shape} and {s.shape}."
        )
    below = s[..., :, None] * jnp.eye(n - 1, n, dtype=s.dtype)
    batch = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    top = jnp.broadcast_to(f[..., None, :], (*batch, 1, n))
    return jnp.concatenate([top, jnp.broadcast_to(below, (*batch, n - 1, n))], -2)


@replayed
def block_diag(*arrs: Any) -> Array:
    """Return a matrix with the given ones along its diagonal, and zeros elsewhere.

    Vectors are rows; numbers are matrices of one element.

    Raises
    ------
    ValueError
        For arrays of more than two axes.
    """
    if not arrs:
        return jnp.zeros((1, 0))
    blocks = promote_dtypes(*(as_operand("linalg.block_diag", x, i) for i, x in enumerate(arrs)))
    for i, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(
                "scipy.linalg.block_diag: arrays must have at most two axes, got shape "
                f"{x.shape} at position {i}."
            )
    blocks = [cast("Array", jnp.atleast_2d(x)) for x in blocks]
    width, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(jnp.pad(x, ((0, 0), (before, width - before - x.shape[1]))))
        before += x.shape[1]
    return jnp.concatenate(rows, 0)


# ---- matrices of a size --------------------------------------------------------------------------


def _size(name: str, n: Any) -> int:
    n = index(n)
    if n < 0:
        raise ValueError(f"scipy.linalg.{name}: n must not be negative, got {n}.")
    return n


def _float(x: Any) -> Array:
    return jnp.asarray(np.asarray(x, canonicalize_dtype(float)))


@replayed
def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """Return the matrix of the discrete Fourier transform.

    Parameters
    ----------
    n : int
    scale : {None, "sqrtn", "n"}
        What to divide by: nothing, the root of ``n``, or ``n``.
    dtype : dtype-like, optional
        Complex.

    Raises
    ------
    ValueError
        For another scale.
    """
    _choice("dft", "scale", scale, (None, "sqrtn", "n"))
    n = _size("dft", n)
    dtype = canonicalize_dtype(complex if dtype is None else as_dtype(dtype))
    powers = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    matrix = np.exp(-2j * np.pi * powers / max(n, 1))
    matrix /= {None: 1, "sqrtn": np.sqrt(n), "n": n}[scale]
    return jnp.asarray(matrix.astype(to_complex(dtype) if is_inexact(dtype) else dtype))


@replayed
def hadamard(n: int, dtype: Any = int) -> Array:
    """Return Sylvester's matrix of orthogonal rows of 1 and -1.

    Raises
    ------
    ValueError
        Where ``n`` is no power of 2.
    """
    n = index(n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"scipy.linalg.hadamard: n must be a positive power of 2, got {n}.")
    matrix = np.ones((1, 1), np.int64)
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return jnp.asarray(matrix.astype(canonicalize_dtype(dtype)))


@replayed
def helmert(n: int, full: bool = False) -> Array:
    """Return Helmert's orthogonal matrix, less its constant first row unless ``full``."""
    from scipy import linalg

    return _float(linalg.helmert(_size("helmert", n), full))


@replayed
def hilbert(n: int) -> Array:
    """Return the matrix of ``1 / (i + j + 1)``."""
    i = np.arange(_size("hilbert", n))
    return _float(1 / (i[:, None] + i + 1.0))


@replayed
def invhilbert(n: int) -> Array:
    """Return the inverse of `hilbert`, of whole numbers rounded to floats."""
    from scipy import linalg

    return _float(linalg.invhilbert(_size("invhilbert", n), exact=False))


def _pascal_kind(name: str, kind: str | None) -> str:
    return _choice(name, "kind", kind or "symmetric", ("symmetric", "lower", "upper"))


@replayed
def pascal(n: int, kind: str | None = None) -> Array:
    """Return the matrix of binomial coefficients.

    Parameters
    ----------
    n : int
    kind : {"symmetric", "lower", "upper"}, optional
        The first is the product of the others.

    Raises
    ------
    ValueError
        For another kind.
    """
    from scipy import linalg

    return _float(linalg.pascal(_size("pascal", n), _pascal_kind("pascal", kind), exact=False))


@replayed
def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of `pascal`."""
    from scipy import linalg

    kind = _pascal_kind("invpascal", kind)
    return _float(linalg.invpascal(_size("invpascal", n), kind, exact=False))
