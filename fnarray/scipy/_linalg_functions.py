"""Functions of matrices under their names in `scipy.linalg`."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import finfo
from ..core.eager import replayed
from ..ops import linalg_functions as functions
from ..ops.contract import exact_matmul as matmul
from ..ops.kit.matrix import adjoint, diagonal, differences, inverse_off_diagonal, triu
from ._linalg_factors import schur
from ._linalg_systems import _choice, _square, arrays_or_lists

__all__: list[str] = []


@replayed
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Return the exponentials of square matrices.

    By scaling, Pade approximation and squaring (Al-Mohy & Higham 2009). Derivatives are Frechet's.

    Parameters
    ----------
    A : array_like
        Matrices (n, n) along the last two axes.
    upper_triangular : bool
        Whether they are, whatever is below their diagonals.
    max_squarings : int
        Results that would need more are NaN.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    (A,) = _square("expm", A)
    A = triu(A) if upper_triangular else A
    return functions.expm(A, index(max_squarings))


@replayed
def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """Return the derivative of the exponential at ``A`` in the direction ``E``.

    Parameters
    ----------
    A, E : array_like
        Matrices of one shape.
    method : {None, "SPS", "blockEnlarge"}
        Accepted for compatibility.
    compute_expm : bool
        Whether to return the exponential too, first.

    Raises
    ------
    ValueError
        For another method, or shapes that do not fit.
    """
    _choice("expm_frechet", "method", method, (None, "SPS", "blockEnlarge"))
    A, E = _square("expm_frechet", A, E)
    if A.shape != E.shape:
        raise ValueError(
            f"scipy.linalg.expm_frechet: matrices must have one shape, got {A.shape} and {E.shape}."
        )
    change = functions.expm_frechet(A, E)
    return (expm(A), change) if compute_expm else change


@replayed
def sqrtm(A: Any, blocksize: int = 1) -> Array:
    """Return the principal square roots of square matrices, complex.

    Parameters
    ----------
    A : array_like
        Matrices (n, n) along the last two axes.
    blocksize : int
        Accepted for compatibility.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    (A,) = _square("sqrtm", A)
    return functions.sqrtm(A)


def funm(A: Any, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """Return a function of a square matrix, by Parlett's recurrence on its Schur form.

    The recurrence divides by differences of eigenvalues: it serves for distinct ones.

    Parameters
    ----------
    A : array_like
        A matrix (n, n).
    func : callable
        The function, of arrays of numbers.
    disp : bool
        Whether to return the result alone, or with an estimate of its relative error.

    Raises
    ------
    ValueError
        For matrices that are not square.
    """
    (A,) = _square("funm", A)
    t, z = schur(A, output="complex")
    d = diagonal(t)
    f = jnp.diag(func(d).astype(t.dtype))
    upper = triu(t, 1)
    inverse = inverse_off_diagonal(differences(d))
    # The equation F T = T F, solved diagonal by diagonal.
    for k in range(1, t.shape[-1]):
        known = upper * differences(diagonal(f))
        strict = triu(f, 1)
        sums = known + matmul(upper, strict) - matmul(strict, upper)
        f = f + jnp.diag(jnp.diagonal(sums * inverse, k), k)
    out = matmul(matmul(z, f), adjoint(z))
    if disp:
        return out
    gaps = jnp.abs(differences(d)) + jnp.where(jnp.eye(len(d), dtype=bool), np.inf, 0)
    eps = float(finfo(t.dtype).eps)
    smallest = jnp.maximum(jnp.min(gaps), eps * jnp.max(jnp.abs(t)))
    error = jnp.clip(eps / smallest * jnp.linalg.norm(triu(t, 1), 1), eps, None)
    return out, jnp.where(jnp.all(jnp.isfinite(out)), error, np.inf)


@replayed
def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """Solve ``A @ X + X @ B = C``.

    Parameters
    ----------
    A, B, C : array_like
        Matrices (m, m), (n, n) and (m, n).
    method : {"schur", "eigen"}
        Accepted for compatibility; the former runs.
    tol : float
        Of the latter.

    Raises
    ------
    ValueError
        For another method, or shapes that do not fit.
    """
    _choice("solve_sylvester", "method", method, ("schur", "eigen"))
    return functions.solve_sylvester(*arrays_or_lists("solve_sylvester", A, B, C))
