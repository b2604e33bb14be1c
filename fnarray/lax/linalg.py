"""Decompositions and solvers of matrices, as ``jax.lax.linalg`` names them.

Strict about dtypes: single and double precision, real and complex. Functions of
``fnarray.numpy.linalg`` promote.
"""

from __future__ import annotations

from math import cbrt, sqrt
from operator import index
from typing import Any

from ..core.array import Array
from ..core.dtypes import finfo, int32
from ..core.eager import replayed
from ..ops.contract import exact_matmul as matmul
from ..ops.fill import full
from ..ops.kit import calls
from ..ops.kit.calls import convert_like, reduce_max, reduce_sum
from ..ops.kit.canonical import as_array
from ..ops.kit.matrix import adjoint, check_matrix, cut, eye, hermitian_part, join
from ..ops.linalg_factor import (
    cholesky,
    cholesky_p,
    cholesky_update,
    cholesky_update_p,
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
    symmetric_product,
    symmetric_product_p,
)
from ..ops.linalg_orthogonal import (
    SvdAlgorithm,
    householder_product,
    householder_product_p,
    ormqr,
    ormqr_p,
    qr,
    qr_p,
    svd,
    svd_p,
)
from ..ops.linalg_solve import (
    triangular_solve,
    triangular_solve_p,
    tridiagonal_solve,
    tridiagonal_solve_p,
)
from ..ops.linalg_spectral import (
    EighImplementation,
    EigImplementation,
    eig,
    eig_p,
    eigh,
    eigh_p,
    hessenberg,
    hessenberg_p,
    schur,
    schur_p,
    tridiagonal,
    tridiagonal_p,
)

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]
__dir__ = __all__.copy


# ---- polar decomposition -------------------------------------------------------------------------


def _weights(smallest: float, tolerance: float) -> list[tuple[float, float, float]]:
    """Weights of each step until singular values from ``smallest`` on have come to 1.

    They depend on that bound alone, so that all steps are known before any data is.
    """
    steps, low = [], smallest
    while abs(low - 1) > tolerance:
        square = low * low
        d = cbrt(4 * (1 / square - 1) / square)
        a = sqrt(1 + d) + sqrt(8 - 4 * d + 8 * (2 - square) / (square * sqrt(1 + d))) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        steps.append((a, b, c))
        low = min(1.0, low * (a + b * square) / (1 + c * square))
    return steps


def _halley_step(u: Array, a: float, b: float, c: float) -> Array:
    """One step; through QR while the weights are large, through Cholesky after."""
    m, n = u.shape
    if c > 100:
        q, _ = qr(join([sqrt(c) * u, eye(n, u)], -2), full_matrices=False)
        inner = matmul(cut(q, 0, 0, m), adjoint(cut(q, 0, m, m + n)))
        return (b / c) * u + (a - b / c) / sqrt(c) * inner
    factor = cholesky(c * matmul(adjoint(u), u) + eye(n, u))
    # u (1 + c u^H u)^-1, as the adjoint of two triangular solutions
    flags = {"left_side": True, "lower": True}
    z = triangular_solve(factor, adjoint(u), **flags)
    z = triangular_solve(factor, z, transpose_a=True, conjugate_a=True, **flags)
    return (b / c) * u + (a - b / c) * adjoint(z)


@replayed(program=True)
def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: None = None,
) -> tuple[Array, Array, Array, Array]:
    """Return the polar decomposition ``x = u @ h`` by QDWH iteration.

    Weighted Halley iteration of Nakatsukasa, Bai & Gygi (2010): it maps singular values to 1 in
    some six steps of products and factorisations.

    Parameters
    ----------
    x : array
        A matrix (m, n) with m >= n.
    is_hermitian : bool
        Accepted for compatibility; ``h`` is Hermitian in any case.
    max_iterations : int, optional
        Bound on the steps, of which 10 are never needed.
    eps : float, optional
        Precision aimed at; that of the dtype by default.
    dynamic_shape : None
        Accepted for compatibility.

    Returns
    -------
    u : array
        Orthonormal columns (m, n).
    h : array
        Hermitian positive semi-definite (n, n).
    num_iters : int32 array
    is_converged : bool array

    Raises
    ------
    ValueError
        For more columns than rows, stacks of matrices, or a ``dynamic_shape``.
    """
    x = as_array(x)
    batch, m, n = check_matrix("qdwh", x.aval)
    if m < n or batch:
        raise ValueError(
            "lax.linalg.qdwh takes one matrix with at least as many rows as columns, got shape "
            f"{x.shape}."
        )
    if dynamic_shape is not None:
        raise ValueError(f"lax.linalg.qdwh: dynamic_shape must be None, got {dynamic_shape}.")
    unit = float(finfo(x.dtype).eps) if eps is None else float(eps)
    steps = _weights(unit, 10 * unit)[: None if max_iterations is None else index(max_iterations)]
    size = calls.abs(x)
    # The geometric mean of two norms bounds the largest singular value.
    one = reduce_max(reduce_sum(size, (0,)), (0,))
    infinity = reduce_max(reduce_sum(size, (1,)), (0,))
    one, infinity = (norm + convert_like(norm == 0, norm) for norm in (one, infinity))
    u = before = x * convert_like((one * infinity) ** -0.5, x)
    for a, b, c in steps:
        before, u = u, _halley_step(u, a, b, c)
    u = 1.5 * u - 0.5 * matmul(u, matmul(adjoint(u), u))
    h = hermitian_part(matmul(adjoint(u), x))
    change = calls.abs(u - before)
    distance = reduce_sum(change * change, (0, 1)) ** 0.5
    return u, h, full((), len(steps), int32), distance <= cbrt(10 * unit)
