"""Equations and eigenvalues of sparse matrices, as ``jax.experimental.sparse.linalg`` has them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...control.callback import pure_callback
from ...core.array import Array
from ...core.avals import ShapeDtypeStruct
from ._matrices import CSR

__all__ = ["lobpcg_standard", "spsolve"]
__dir__ = __all__.copy


def spsolve(
    data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1
) -> Array:
    """Solve ``A @ x = b`` for a sparse square matrix by SciPy's LU factors.

    It is differentiated by ``data`` and ``b``, in both modes, and mapped a system at a time.

    Parameters
    ----------
    data, indices, indptr : Array
        The compressed rows of ``A``.
    b : Array
        A vector.
    tol : float
        Accepted; what LU factors solve has no tolerance.
    reorder : int
        0 leaves the order of the columns, others let SciPy choose one with fewer elements.

    Returns
    -------
    Array
        ``nan`` where ``A`` is singular.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental import sparse
    >>> A = sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> sparse.linalg.spsolve(A.data, A.indices, A.indptr, jnp.array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    shapes = {"data": data.shape, "indices": indices.shape, "indptr": indptr.shape, "b": b.shape}
    if any(len(s) != 1 for s in shapes.values()):
        raise ValueError(f"spsolve: all operands must have one axis, got shapes {shapes}.")
    if indptr.size != b.size + 1 or data.shape != indices.shape:
        raise ValueError(
            "spsolve: data and indices must be of one length, and indptr one longer than b, got "
            f"shapes {shapes}."
        )
    if data.dtype != b.dtype:
        raise ValueError(f"spsolve: data and b must have one dtype, got {data.dtype}, {b.dtype}.")
    mat = CSR((data, indices, indptr), shape=(b.size, b.size))

    def solve(transposed: bool, rhs: Any) -> Any:
        like = ShapeDtypeStruct(rhs.shape, rhs.dtype)
        run = _solver(transposed, bool(reorder))
        return pure_callback(run, like, data, indices, indptr, rhs, vmap_method="sequential")

    return lax.custom_linear_solve(
        lambda x: mat @ x,
        b,
        lambda _, rhs: solve(False, rhs),
        lambda _, rhs: solve(True, rhs),
    )


@functools.cache  # callbacks are known by identity: programs that hold one are found again
def _solver(transposed: bool, reorder: bool) -> Callable[..., np.ndarray]:
    return functools.partial(_factor_and_solve, transposed=transposed, reorder=reorder)


def _factor_and_solve(
    data: Any, indices: Any, indptr: Any, b: Any, *, transposed: bool, reorder: bool
) -> np.ndarray:
    """Solve with NumPy's arrays."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import MatrixRankWarning
    from scipy.sparse.linalg import spsolve as solve

    data, indices, indptr, b = map(np.asarray, (data, indices, indptr, b))
    kind = np.result_type(data.dtype, np.float32)
    # Compressed columns of the transpose are what compressed rows are of the matrix.
    mat = csc_array((data.astype(kind), indices, indptr), shape=(b.size, b.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatrixRankWarning)  # the result says so: nan
        order = "COLAMD" if reorder else "NATURAL"
        x = solve(mat if transposed else mat.T.tocsc(), b.astype(kind), permc_spec=order)
    return np.asarray(x, b.dtype)


def lobpcg_standard(
    A: Any, X: Any, m: int = 100, tol: float | None = None
) -> tuple[Array, Array, Array]:
    """Find the largest eigenvalues of a symmetric matrix from products with it.

    Each step takes the best vectors of the span of the last ones, their residuals and the last
    directions [1]_.

    Parameters
    ----------
    A : Array, sparse array or callable
        The matrix, of n rows, or what it makes of an array of shape ``(n, k)``.
    X : Array
        Guesses of shape ``(n, k)``, ``5 * k < n``.
    m : int
        Most steps.
    tol : float, optional
        A vector has converged once the norm of ``A v - theta v`` is at most
        ``10 * n * tol * (abs(theta) + norm(A v))``; the dtype's epsilon by default.

    Returns
    -------
    theta : Array
        The k largest eigenvalues, from the largest on.
    U : Array
        Their eigenvectors.
    i : Array
        How many steps were taken.

    References
    ----------
    .. [1] A. V. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput.
       23 (2001), 517-541.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental import sparse
    >>> A = jnp.diag(jnp.arange(1.0, 21.0))
    >>> theta, U, i = sparse.linalg.lobpcg_standard(A, jnp.eye(20, 2) + 0.1)
    >>> theta.round(3).tolist()
    [20.0, 19.0]
    """
    X = jnp.asarray(X)
    if X.ndim != 2 or X.dtype.kind != "f":
        raise ValueError(
            f"lobpcg_standard: X must be a real matrix, got {X.dtype} of shape {X.shape}."
        )
    n, k = X.shape
    if not 0 < 5 * k < n:
        raise ValueError(
            f"lobpcg_standard: X of shape {X.shape} must have columns, and more than five times "
            "as many rows. For more eigenvalues take numpy.linalg.eigh."
        )
    apply: Callable[[Any], Any] = A if callable(A) else lambda x: A @ x
    if jnp.shape(image := apply(X)) != X.shape:
        raise ValueError(
            f"lobpcg_standard: A must make of X another of shape {X.shape}, got {image.shape}."
        )
    eps = float(jnp.finfo(X.dtype).eps) if tol is None else tol

    def ritz(basis: Any) -> tuple[Any, ...]:
        """Return the best vectors of a basis: values, coordinates, vectors, residuals, errors."""
        image = apply(basis)
        small = basis.T @ image
        values, coordinates = jnp.linalg.eigh((small + small.T) / 2)
        values, coordinates = values[::-1][:k], coordinates[:, ::-1][:, :k]
        vectors, images = basis @ coordinates, image @ coordinates
        residuals = images - vectors * values
        norms = jnp.linalg.norm(residuals, axis=0)
        room = 10 * n * eps * (jnp.abs(values) + jnp.linalg.norm(images, axis=0))
        return values, coordinates, vectors, residuals, jnp.all(norms <= room)

    def step(state: Any) -> Any:
        i, _, X, P, R, _ = state
        # Householder's factor is orthonormal even where directions depend on each other.
        basis = jnp.linalg.qr(jnp.concatenate([X, _unit(R), _unit(P)], axis=1))[0]
        values, coordinates, vectors, residuals, done = ritz(basis)
        return i + 1, values, vectors, basis[:, k:] @ coordinates[k:], residuals, done

    values, _, X, R, done = ritz(jnp.linalg.qr(X)[0])
    state = (jnp.asarray(0), values, X, jnp.zeros_like(X), R, done)
    i, values, X, *_ = lax.while_loop(lambda s: (s[0] < m) & ~s[-1], step, state)
    return values, X, i


def _unit(vectors: Any) -> Any:
    """Return columns of length 1; those of zeros stay."""
    norms = jnp.linalg.norm(vectors, axis=0)
    return vectors / jnp.where(norms > 0, norms, 1)
