"""Orthogonal factors and eigenvalues under their names in `scipy.linalg`.

All promote to a common inexact dtype. Settings that only spare copies or checks are accepted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import is_complex, to_complex
from ..core.eager import replayed
from ..lax import linalg as lal
from ..ops.contract import exact_matmul as matmul
from ..ops.kit.calls import conj
from ..ops.kit.matrix import adjoint, eye, scale_columns, tril, triu
from ._linalg_systems import _choice, _square, arrays_or_lists

__all__: list[str] = []


# ---- orthogonal factors --------------------------------------------------------------------------


@replayed
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Factor matrices into orthonormal columns and an upper triangle.

    Parameters
    ----------
    a : array_like
        Matrices (m, n) along the last two axes.
    mode : {"full", "r", "economic"}
        Whether the factors are (m, m) and (m, n), ``r`` alone of these, or (m, k) and (k, n).
    pivoting : bool
        Whether to order the columns by what they add, and return their order last.

    Raises
    ------
    ValueError
        For another mode.
    """
    _choice("qr", "mode", mode, ("full", "r", "economic"))
    (a,) = arrays_or_lists("qr", a)
    q, *rest = lal.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


@replayed
def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Return the product of ``c`` with the reduced ``Q`` of ``a``, and ``R``.

    Parameters
    ----------
    a : array_like
        Matrices (m, n).
    c : array_like
        A vector or matrices.
    mode : {"right", "left"}
        Whether the product is ``c @ Q`` or ``Q @ c``.
    pivoting : bool
        Whether to order the columns, and return their order last.
    conjugate : bool
        Whether ``Q`` is conjugated.

    Raises
    ------
    ValueError
        For another mode.
    """
    _choice("qr_multiply", "mode", mode, ("right", "left"))
    a, c = arrays_or_lists("qr_multiply", a, c)
    q, *rest = lal.qr(a, pivoting=pivoting, full_matrices=False)
    q = conj(q) if conjugate else q
    return (jnp.matmul(q, c) if mode == "left" else jnp.matmul(c, q), *rest)


@replayed
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Return ``(u, s, vh)``, or ``s`` alone; see `fnarray.numpy.linalg.svd`."""
    (a,) = arrays_or_lists("svd", a)
    out = jnp.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(out) if compute_uv else out


@replayed(program=True)
def polar(
    a: Any,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Return a matrix as a unitary one times a Hermitian positive semi-definite one.

    Parameters
    ----------
    a : array_like
        A matrix (m, n).
    side : {"right", "left"}
        Whether ``u @ p = a``, or ``p @ u = a``.
    method : {"qdwh", "svd"}
        The former iterates (see `fnarray.lax.linalg.qdwh`), and takes the matrix or its adjoint,
        whichever has no more columns than rows; the side then is that of the columns.
    eps, max_iterations : optional
        Of the iteration.

    Raises
    ------
    ValueError
        For another side or method.
    """
    (a,) = arrays_or_lists("polar", a)
    _choice("polar", "side", side, ("right", "left"))
    _choice("polar", "method", method, ("qdwh", "svd"))
    m, n = a.shape
    if method == "qdwh" and (m >= n if side == "right" else m <= n):
        x = a if side == "right" else adjoint(a)
        u, p, _, _ = lal.qdwh(x, eps=eps, max_iterations=max_iterations)
        return (u, p) if side == "right" else (adjoint(u), p)
    u, s, vh = lal.svd(a, full_matrices=False)
    base = adjoint(vh) if side == "right" else u
    return matmul(u, vh), matmul(scale_columns(base, s), adjoint(base))


# ---- eigenvalues ---------------------------------------------------------------------------------


@replayed
def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Return eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    a : array_like
        Matrices (n, n) along the last two axes.
    b : array_like, optional
        Hermitian positive definite matrices of the generalised problem.
    lower : bool
        Which triangle is read.
    eigvals_only : bool
        Whether to return the values alone.
    eigvals : None
        Selecting values is refused; slice the result.
    type : {1, 2, 3}
        Of the problem: ``a v = w b v``, ``a b v = w v`` or ``b a v = w v``.

    Raises
    ------
    ValueError
        For another type, a request to select, or matrices that are not square.
    """
    if eigvals is not None:
        raise ValueError(
            f"scipy.linalg.eigh: eigvals must be None, got {eigvals}. Slice the result."
        )
    _choice("eigh", "type", type, (1, 2, 3))
    if b is None:
        (a,) = _square("eigh", a)
        v, w = lal.eigh(_mirrored(a, lower), symmetrize_input=False)
        return w if eigvals_only else (w, v)
    a, b = _square("eigh", a, b)
    a, b = _mirrored(a, lower), _mirrored(b, lower)
    # With b = L L^H the problem is an ordinary one in y.
    factor = lal.cholesky(b, symmetrize_input=False)
    if type == 1:
        inner = lal.triangular_solve(factor, a, left_side=True, lower=True)
        inner = lal.triangular_solve(factor, inner, lower=True, transpose_a=True, conjugate_a=True)
    else:
        inner = matmul(adjoint(factor), matmul(a, factor))
    y, w = lal.eigh(inner)
    if eigvals_only:
        return w
    if type == 3:
        return w, matmul(factor, y)
    return w, lal.triangular_solve(
        factor, y, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


def _mirrored(a: Array, lower: bool) -> Array:
    """Return the Hermitian matrices of which one triangle is given."""
    half = tril(a, -1) if lower else triu(a, 1)
    middle = tril(triu(a))
    if is_complex(a.dtype):
        middle = middle.real.astype(a.dtype)
    return half + middle + adjoint(half)


@replayed
def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Return eigenvalues, ascending, and eigenvectors of a Hermitian tridiagonal matrix.

    Parameters
    ----------
    d, e : array_like
        The diagonal (n,), real, and the one beside it (n - 1,).
    eigvals_only : bool
        Whether to return the values alone.
    select : {"a", "i"}
        All values, or those from the first to the last index of ``select_range``.
    select_range : (int, int), optional
    tol, key : optional
        Accepted; the result is as exact as the dtype allows.

    Raises
    ------
    ValueError
        For another selection, or shapes that do not fit.
    """
    d, e = arrays_or_lists("eigh_tridiagonal", d, e)
    _choice("eigh_tridiagonal", "select", select, ("a", "i"))
    n = d.shape[-1] if d.ndim == 1 else -1
    if e.shape != (n - 1,):
        raise ValueError(
            "scipy.linalg.eigh_tridiagonal takes vectors of n and n - 1 elements, got shapes "
            f"{d.shape} and {e.shape}."
        )
    subset = None
    if select == "i":
        if select_range is None:
            raise ValueError("scipy.linalg.eigh_tridiagonal: select='i' needs select_range.")
        first, last = map(int, select_range)
        subset = first, last + 1
    low = jnp.diag(e, -1)
    matrix = low + jnp.diag(d.real).astype(low.dtype) + adjoint(low)
    v, w = lal.eigh(matrix, symmetrize_input=False, subset_by_index=subset)
    return w if eigvals_only else (w, v)


@replayed
def schur(a: Any, output: str = "real") -> list[Array]:
    """Return the Schur form and vectors: ``z @ t @ z^H = a``.

    Parameters
    ----------
    a : array_like
        Square matrices along the last two axes.
    output : {"real", "complex"}
        Whether real matrices may keep blocks of size 2 on the diagonal of ``t``.

    Raises
    ------
    ValueError
        For another output, or matrices that are not square.
    """
    _choice("schur", "output", output, ("real", "complex"))
    (a,) = _square("schur", a)
    if output == "complex":
        a = a.astype(to_complex(a.dtype))
    return lal.schur(a)


@replayed
def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the complex Schur form of the same matrix as a real one.

    Each block of size 2 is made triangular by a rotation.

    Parameters
    ----------
    T, Z : array_like
        The real form and its vectors, matrices (n, n).

    Raises
    ------
    ValueError
        For matrices that are not square, or of different sizes.
    """
    T, Z = arrays_or_lists("rsf2csf", T, Z)
    for name, x in (("T", T), ("Z", Z)):
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise ValueError(f"scipy.linalg.rsf2csf: {name} must be square, got shape {x.shape}.")
    if T.shape != Z.shape:
        raise ValueError(
            f"scipy.linalg.rsf2csf: the matrices must have one shape, got {T.shape} and {Z.shape}."
        )
    dtype, n = to_complex(T.dtype), T.shape[0]
    T, Z = T.astype(dtype), Z.astype(dtype)
    zero = np.zeros((), dtype)
    for m in range(n - 1, 0, -1):
        below = T[m, m - 1]
        pair = T[m - 1 : m + 1, m - 1 : m + 1]
        # An eigenvalue of the block, less its last entry; the block is real or triangular.
        half = (pair[0, 0] - pair[1, 1]) / 2
        mu = half + jnp.sqrt(half * half + pair[0, 1] * below)
        size = jnp.hypot(jnp.abs(mu), jnp.abs(below))
        exact = below == zero
        size = jnp.where(exact, 1, size)
        c = jnp.where(exact, 1, mu / size)
        s = jnp.where(exact, zero, below / size)
        turn = jnp.stack([jnp.stack([c.conj(), s]), jnp.stack([-s, c])])
        T = T.at[m - 1 : m + 1, :].set(matmul(turn, T[m - 1 : m + 1, :]))
        T = T.at[:, m - 1 : m + 1].set(matmul(T[:, m - 1 : m + 1], adjoint(turn)))
        T = T.at[m, m - 1].set(zero)
        Z = Z.at[:, m - 1 : m + 1].set(matmul(Z[:, m - 1 : m + 1], adjoint(turn)))
    return T, Z


@replayed
def hessenberg(
    a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Return the upper Hessenberg form of square matrices: ``q @ h @ q^H = a``.

    Parameters
    ----------
    a : array_like
        Matrices (n, n) along the last two axes.
    calc_q : bool
        Whether to return ``(h, q)``, or ``h`` alone.
    """
    (a,) = _square("hessenberg", a)
    n = a.shape[-1]
    if n < 2:
        h = a
        return (h, jnp.broadcast_to(eye(n, a), a.shape)) if calc_q else h
    packed, taus = lal.hessenberg(a)
    h = triu(packed, -1)
    if not calc_q:
        return h
    inner = lal.householder_product(packed[..., 1:, :-1], taus)
    corner = jnp.broadcast_to(eye(n, a), a.shape)
    return h, corner.at[..., 1:, 1:].set(inner)
