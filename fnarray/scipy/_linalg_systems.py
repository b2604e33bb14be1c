"""Linear systems and triangular factors under their names in `scipy.linalg`.

All promote to a common inexact dtype. Settings that only spare copies or checks are accepted.
"""

from __future__ import annotations

from typing import Any

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.eager import replayed
from ..errors import ShapeError
from ..lax import linalg as lal
from ..numpy._linalg_factors import inexact_matrices
from ..ops.contract import exact_matmul as matmul
from ..ops.kit.matrix import adjoint, eye, tril, triu

__all__: list[str] = []


def arrays_or_lists(name: str, *args: Any) -> list[Array]:
    """Return matrices, which may be nested lists as SciPy's may, in their common inexact dtype."""
    return inexact_matrices(
        name, *(jnp.asarray(x) if isinstance(x, (list, tuple)) else x for x in args)
    )


def _square(name: str, *args: Any) -> list[Array]:
    """Return arrays in their common inexact dtype; the first must hold square matrices."""
    arrays = arrays_or_lists(name, *args)
    shape = arrays[0].shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"scipy.linalg.{name} takes square matrices (..., n, n), got {shape}.")
    return arrays


def _choice(name: str, setting: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        words = ", ".join(map(repr, choices))
        raise ValueError(f"scipy.linalg.{name}: {setting} must be one of {words}, got {value!r}.")
    return value


def _stacked(name: str, a: Array, b: Array) -> tuple[Array, Array, bool]:
    """Broadcast a stack of matrices with right-hand sides; whether those are plain vectors."""
    vector = b.ndim == 1
    b = b[:, None] if vector else b
    if not b.ndim or b.shape[-2] != a.shape[-2]:
        raise ValueError(
            f"scipy.linalg.{name}: inconsistent sizes, got a matrix of shape {a.shape} and a "
            f"right-hand side of shape {b.shape[:-1] if vector else b.shape}."
        )
    batch = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    return a, jnp.broadcast_to(b, (*batch, *b.shape[-2:])), vector


# ---- Cholesky ------------------------------------------------------------------------------------


@replayed
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Return the triangular factor of Hermitian positive definite matrices.

    Parameters
    ----------
    a : array_like
        Matrices (n, n) along the last two axes, of which one triangle is read.
    lower : bool
        Whether that is the lower one and the result ``L`` with ``L @ L^H = a``, or ``U`` with
        ``U^H @ U = a``.

    Returns
    -------
    array
        NaN in the triangle for matrices that are not positive definite.
    """
    (a,) = _square("cholesky", a)
    factor = lal.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Return the factor of `cholesky` and ``lower``, as `cho_solve` takes them."""
    return cholesky(a, lower=lower), lower


@replayed
def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """Solve ``a @ x = b`` given the factor of ``a`` by `cho_factor`.

    Parameters
    ----------
    c_and_lower : (array_like, bool)
    b : array_like
        A vector (n,), or matrices (..., n, k).

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    c, lower = c_and_lower
    c, b = _square("cho_solve", c, b)
    c, b, vector = _stacked("cho_solve", c, b)
    for transposed in (not lower, lower):
        b = lal.triangular_solve(
            c,
            b,
            left_side=True,
            lower=lower,
            transpose_a=transposed,
            conjugate_a=transposed,
        )
    return b[..., 0] if vector else b


# ---- LU ------------------------------------------------------------------------------------------


@replayed
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Return the LU factors of matrices in one array, and the rows' exchanges."""
    (a,) = arrays_or_lists("lu_factor", a)
    factors, pivots, _ = lal.lu(a)
    return factors, pivots


@replayed
def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve ``op(a) @ x = b`` given the factors of ``a`` by `lu_factor`.

    Parameters
    ----------
    lu_and_piv : (array_like, array_like)
    b : array_like
        A vector (n,), or matrices (..., n, k).
    trans : {0, 1, 2}
        Whether ``op`` is nothing, the transpose, or the conjugate transpose.

    Raises
    ------
    ValueError
        For another ``trans``, or shapes that do not fit.
    """
    _choice("lu_solve", "trans", trans, (0, 1, 2))
    factors, pivots = lu_and_piv
    factors, b = _square("lu_solve", factors, b)
    factors, b, vector = _stacked("lu_solve", factors, b)
    n = factors.shape[-1]
    order = lal.lu_pivots_to_permutation(pivots, n)
    order = jnp.broadcast_to(order, factors.shape[:-1])
    flags = {"left_side": True, "transpose_a": trans > 0, "conjugate_a": trans == 2}
    if trans:
        x = lal.triangular_solve(factors, b, lower=False, **flags)
        x = lal.triangular_solve(factors, x, lower=True, unit_diagonal=True, **flags)
        x = jnp.take_along_axis(x, jnp.argsort(order, -1)[..., None], -2)
    else:
        x = jnp.take_along_axis(b, order[..., None], -2)
        x = lal.triangular_solve(factors, x, lower=True, unit_diagonal=True, **flags)
        x = lal.triangular_solve(factors, x, lower=False, **flags)
    return x[..., 0] if vector else x


@replayed
def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """Factor matrices: ``p @ l @ u = a``.

    Parameters
    ----------
    a : array_like
        Matrices (m, n) along the last two axes.
    permute_l : bool
        Whether to return ``(p @ l, u)``, or ``(p, l, u)``.

    Returns
    -------
    tuple of array
        With ``k = min(m, n)``, ``l`` is (m, k) and ``u`` (k, n).
    """
    (a,) = arrays_or_lists("lu", a)
    factors, _, order = lal.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    low = tril(factors, -1)[..., :k]
    low = low + eye(max(m, k), low)[:, :k]
    high = triu(factors)[..., :k, :]
    places = lax.broadcasted_iota(order.dtype, (*order.shape[:-1], m, m), order.ndim - 1)
    p = lax.convert_element_type(places == order[..., None, :], low.real.dtype)
    if permute_l:
        return matmul(p.astype(low.dtype), low), high
    return p, low, high


# ---- systems -------------------------------------------------------------------------------------


@replayed
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve ``a @ x = b``.

    Parameters
    ----------
    a : array_like
        Square matrices (..., n, n).
    b : array_like
        A vector (n,), or matrices (..., n, k).
    lower : bool
        Which triangle of positive definite matrices is read.
    assume_a : {"gen", "sym", "her", "pos"}
        ``"pos"`` for Hermitian positive definite matrices takes half the work.

    Raises
    ------
    ValueError
        For another assumption, or shapes that do not fit.
    """
    _choice("solve", "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    if assume_a == "pos":
        a, b = _square("solve", a, b)
        return cho_solve(cho_factor(a, lower=lower), b)
    return jnp.linalg.solve(a, b)


@replayed
def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solve ``op(a) @ x = b`` for triangular ``a``.

    Parameters
    ----------
    a : array_like
        Square matrices (..., n, n), of which one triangle is read.
    b : array_like
        A vector (n,), or matrices (..., n, k).
    trans : {0, "N", 1, "T", 2, "C"}
        Whether ``op`` is nothing, the transpose, or the conjugate transpose.
    lower : bool
        Which triangle is read.
    unit_diagonal : bool
        Whether the diagonal is taken as ones, unread.

    Raises
    ------
    ValueError
        For another ``trans``, or shapes that do not fit.
    """
    _choice("solve_triangular", "trans", trans, (0, "N", 1, "T", 2, "C"))
    a, b = _square("solve_triangular", a, b)
    a, b, vector = _stacked("solve_triangular", a, b)
    x = lal.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans not in (0, "N"),
        conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal,
    )
    return x[..., 0] if vector else x


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of square matrices; see `fnarray.numpy.linalg.det`."""
    return jnp.linalg.det(a)


@replayed
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of square matrices; see `fnarray.numpy.linalg.inv`."""
    return jnp.linalg.inv(a)
