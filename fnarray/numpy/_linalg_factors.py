"""Decompositions of matrices as ``jax.numpy.linalg`` names them."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import lax
from ..core.array import Array
from ..core.eager import replayed
from ..errors import ShapeError
from ..lax import linalg as lal
from ..ops.kit.matrix import adjoint
from ..ops.linalg_orthogonal import geqrf
from ._math import abs as absolute
from ._promote import as_operand, promote_dtypes_inexact
from ._search import take_along_axis
from ._shape import flip, matrix_transpose
from ._sorting import argsort

__all__: list[str] = []


class QRResult(NamedTuple):
    """Factors of `qr`."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Factors of `svd`."""

    U: Array
    S: Array
    Vh: Array


class EighResult(NamedTuple):
    """Results of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Results of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


def inexact_matrices(name: str, *args: Any) -> list[Array]:
    """Return matrices in their common inexact dtype."""
    return promote_dtypes_inexact(*(as_operand(f"linalg.{name}", x, i) for i, x in enumerate(args)))


def square(name: str, *args: Any) -> list[Array]:
    """Return matrices in their common inexact dtype; the first must be square.

    Raises
    ------
    ShapeError
        It is not.
    """
    arrays = inexact_matrices(name, *args)
    shape = arrays[0].shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(
            f"numpy.linalg.{name}: the argument must have shape (..., n, n), got {shape}."
        )
    return arrays


@replayed
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Return the triangular factor of Hermitian positive definite matrices.

    Parameters
    ----------
    a : array_like
        Matrices (n, n) along the last two axes.
    upper : bool
        Whether to return ``U`` with ``U^H @ U = a``, or ``L`` with ``L @ L^H = a``.
    symmetrize_input : bool
        Whether to factor ``(a + a^H) / 2``; otherwise only the lower triangle is read.

    Returns
    -------
    array
        NaN in the triangle for matrices that are not positive definite.
    """
    (a,) = square("cholesky", a)
    factor = lal.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@replayed
def qr(a: Any, mode: str = "reduced") -> Any:
    """Factor matrices into orthonormal columns and an upper triangle.

    Parameters
    ----------
    a : array_like
        Matrices (m, n) along the last two axes.
    mode : str
        ``"reduced"``: ``Q`` (m, k) and ``R`` (k, n), ``k = min(m, n)``; ``"complete"`` or
        ``"full"``: (m, m) and (m, n); ``"r"``: ``R`` alone, reduced; ``"raw"``: reflections as
        LAPACK stores them, transposed, and their scales.

    Raises
    ------
    ValueError
        For another mode.
    """
    (a,) = inexact_matrices("qr", a)
    if mode == "raw":
        packed, taus = geqrf(a)
        return QRResult(matrix_transpose(packed), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(
            f"numpy.linalg.qr: unsupported mode {mode!r}: use 'reduced', 'complete', 'r' or 'raw'."
        )
    q, r = lal.qr(a, full_matrices=mode in ("full", "complete"))
    return r if mode == "r" else QRResult(q, r)


@replayed
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Return singular values, descending, and vectors: ``U @ diag(S) @ Vh = a``.

    Parameters
    ----------
    a : array_like
        Matrices (m, n) along the last two axes.
    full_matrices : bool
        Whether ``U`` and ``Vh`` are square, or have ``min(m, n)`` columns and rows.
    compute_uv : bool
        Whether to return ``(U, S, Vh)``, or ``S`` alone.
    hermitian : bool
        Whether the matrices are Hermitian, which eigenvalues then serve.
    subset_by_index : (int, int), optional
        Range of the values wanted, from the largest.
    """
    (a,) = inexact_matrices("svd", a)
    if not hermitian:
        out = lal.svd(
            a,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            subset_by_index=subset_by_index,
        )
        return SVDResult(*out) if compute_uv else out
    v, w = lal.eigh(a)
    s = absolute(w)
    start, stop = (0, s.shape[-1]) if subset_by_index is None else subset_by_index
    if not compute_uv:
        return flip(lax.sort(s), -1)[..., start:stop]
    order = flip(argsort(s, -1), -1)[..., start:stop]
    w, s = (take_along_axis(x, order, -1) for x in (w, s))
    v = take_along_axis(v, order[..., None, :], -1)
    sign = lax.convert_element_type(lax.sign(w), v.dtype)
    # A zero's vectors have the sign they have.
    sign = sign + (sign == 0)
    return SVDResult(v, s, sign[..., None] * adjoint(v))


@replayed
def svdvals(x: Any, /) -> Array:
    """Return singular values, descending; see `svd`."""
    return svd(x, compute_uv=False, hermitian=False)


def _triangle(name: str, uplo: str | None) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"numpy.linalg.{name}: UPLO must be one of None, 'L', or 'U', got {uplo}.")
    return uplo != "U"


@replayed
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Return eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    a : array_like
        Matrices (n, n) along the last two axes.
    UPLO : {None, "L", "U"}
        Which triangle is read where ``symmetrize_input`` is False.
    symmetrize_input : bool
        Whether to decompose ``(a + a^H) / 2``.

    Returns
    -------
    EighResult
        Real values, and vectors in columns.

    Raises
    ------
    ValueError
        For another ``UPLO``, or matrices that are not square.
    """
    lower = _triangle("eigh", UPLO)
    (a,) = square("eigh", a)
    v, w = lal.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


@replayed
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Return the eigenvalues of Hermitian matrices, ascending; see `eigh`."""
    lower = _triangle("eigvalsh", UPLO)
    (a,) = square("eigvalsh", a)
    return lal.eigh(a, lower=lower, symmetrize_input=symmetrize_input)[1]


@replayed
def eig(a: Any) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices, all complex.

    Their order is LAPACK's. Vectors, in columns, have length 1 and an arbitrary phase: they have
    no derivatives (see `fnarray.lax.linalg.eig`); values have.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    (a,) = square("eig", a)
    w, v = lal.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


@replayed
def eigvals(a: Any) -> Array:
    """Return the eigenvalues of square matrices, complex; see `eig`."""
    (a,) = square("eigvals", a)
    return lal.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
