"""Iterative solvers as ``jax.scipy.sparse.linalg`` names them.

They see an operator by its products alone, and are differentiated as solutions, not as loops.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...core import tree
from ...core.array import Array
from ...core.dtypes import is_complex, to_inexact
from ...flatten_util import ravel_pytree

__all__ = ["bicgstab", "cg", "gmres"]
__dir__ = __all__.copy

Flat = Callable[[Array], Array]


# ---- the equation, on vectors --------------------------------------------------------------------


def _dot(x: Array, y: Array) -> Array:
    return jnp.vdot(x, y)


def _squared(x: Array) -> Array:
    return jnp.real(_dot(x, x))


def _operator(name: str, A: Any) -> Callable[[Any], Any]:
    """Return a linear operator as a function."""
    if callable(A):
        return A
    if isinstance(A, Array | np.ndarray):
        if A.ndim != 2 or A.shape[0] != A.shape[1]:
            raise ValueError(f"{name}: linear operator must be a square matrix, got {A.shape}.")
        return lambda x: jnp.matmul(A, x)
    raise TypeError(f"{name}: linear operator must be a function or an array, got {A!r}.")


def _as_float(x: Any) -> Array:
    return lax.convert_element_type(x, to_inexact(jnp.asarray(x).dtype))


def _shapes(x: Any) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in tree.leaves(x)]


def _solve(
    name: str,
    method: Callable[..., Array],
    A: Any,
    b: Any,
    x0: Any,
    M: Any,
    *,
    tol: Any,
    atol: Any,
    symmetric: bool = False,
) -> Any:
    """Solve on vectors: ``method(matvec, precondition, x0, atol, b)``, all trees flattened."""
    A = _operator(name, A)
    precondition = (lambda x: x) if M is None else _operator(name, M)
    x0 = tree.map(jnp.zeros_like, b) if x0 is None else x0
    if tree.structure(x0) != tree.structure(b):
        raise ValueError(
            f"{name}: x0 and b must have matching tree structure: {tree.structure(x0)} vs "
            f"{tree.structure(b)}."
        )
    if _shapes(x0) != _shapes(b):
        raise ValueError(
            f"{name}: arrays in x0 and b must have matching shapes: {_shapes(x0)} vs {_shapes(b)}."
        )
    floats = partial(tree.map, _as_float)
    right, unravel = ravel_pytree(floats(b))
    dtype = right.dtype
    flat = lambda f: lambda v: lax.convert_element_type(ravel_pytree(f(unravel(v)))[0], dtype)  # noqa: E731
    image = tree.structure(A(unravel(right)))
    if image != tree.structure(b):
        raise ValueError(
            f"{name}: A(x) and b must have matching tree structure: {image} vs {tree.structure(b)}."
        )
    start = lax.convert_element_type(ravel_pytree(x0)[0], dtype)

    def solve(matvec: Flat, right: Array) -> Array:
        bound = jnp.maximum(tol * jnp.sqrt(_squared(right)), atol)
        return method(matvec, flat(precondition), start, bound, right)

    solution = lax.custom_linear_solve(
        flat(A), right, solve, solve, symmetric=symmetric and not is_complex(dtype)
    )
    return unravel(solution)


# ---- conjugate gradients -------------------------------------------------------------------------


class _Descent(NamedTuple):
    x: Array
    residual: Array
    direction: Array
    gamma: Array
    k: Array


def _descend(
    matvec: Flat, precondition: Flat, x0: Array, bound: Array, b: Array, *, maxiter: int
) -> Array:
    def going(s: _Descent) -> Array:
        return (_squared(s.residual) > bound**2) & (s.k < maxiter)

    def step(s: _Descent) -> _Descent:
        image = matvec(s.direction)
        alpha = s.gamma / _dot(s.direction, image)
        residual = s.residual - alpha * image
        better = precondition(residual)
        gamma = _dot(residual, better)
        direction = better + gamma / s.gamma * s.direction
        return _Descent(s.x + alpha * s.direction, residual, direction, gamma, s.k + 1)

    residual = b - matvec(x0)
    better = precondition(residual)
    first = _Descent(x0, residual, better, _dot(residual, better), jnp.asarray(0))
    return lax.while_loop(going, step, first).x


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solve ``A(x) = b`` for a Hermitian positive definite operator, by conjugate gradients.

    Parameters
    ----------
    A : callable or square matrix
        Linear; takes and returns trees of arrays like ``b``.
    b : tree of arrays
    x0 : tree of arrays, optional
        Where to start; zeros where omitted.
    tol, atol : float
        The residual's norm is to be at most ``max(tol * norm(b), atol)``.
    maxiter : int, optional
        At most as many steps; ten times the number of unknowns where omitted.
    M : callable or square matrix, optional
        Preconditioner: an approximation of the inverse of ``A``.

    Returns
    -------
    x : tree of arrays
    info : None

    Raises
    ------
    ValueError
        Trees or shapes do not match, or the matrix is not square.
    TypeError
        ``A`` or ``M`` is neither a function nor an array.

    Notes
    -----
    Hestenes and Stiefel (1952). The derivative is that of the solution (implicit), and costs a
    solution of the transposed equation.
    """
    method = partial(_descend, maxiter=_limit(b, maxiter))
    return _solve("cg", method, A, b, x0, M, tol=tol, atol=atol, symmetric=True), None


def _limit(b: Any, maxiter: int | None) -> int:
    return 10 * sum(map(np.size, tree.leaves(b))) if maxiter is None else maxiter


# ---- stabilised biconjugate gradients ------------------------------------------------------------


class _Pair(NamedTuple):
    x: Array
    residual: Array
    direction: Array
    image: Array
    alpha: Array
    omega: Array
    rho: Array
    k: Array


def _descend_in_pairs(
    matvec: Flat, precondition: Flat, x0: Array, bound: Array, b: Array, *, maxiter: int
) -> Array:
    shadow = b - matvec(x0)

    def going(s: _Pair) -> Array:
        return (_squared(s.residual) > bound**2) & (s.k < maxiter) & (s.k >= 0)

    def step(s: _Pair) -> _Pair:
        rho = _dot(shadow, s.residual)
        beta = rho / s.rho * s.alpha / s.omega
        direction = s.residual + beta * (s.direction - s.omega * s.image)
        better = precondition(direction)
        image = matvec(better)
        alpha = rho / _dot(shadow, image)
        half = s.residual - alpha * image
        done = _squared(half) < bound**2
        half_better = precondition(half)
        t = matvec(half_better)
        omega = jnp.where(done, jnp.zeros((), t.dtype), _dot(t, half) / _dot(t, t))
        x = s.x + alpha * better + jnp.where(done, jnp.zeros_like(half), omega * half_better)
        residual = jnp.where(done, half, half - omega * t)
        # Without this the recurrence cannot go on: -10 and -11 are SciPy's words for why.
        stuck = jnp.where((omega == 0) & ~done | (alpha == 0), -11, s.k + 1)
        k = jnp.where(rho == 0, -10, stuck)
        return _Pair(x, residual, direction, image, alpha, omega, rho, k)

    one = jnp.ones((), b.dtype)
    first = _Pair(x0, shadow, shadow * 0, shadow * 0, one, one, one, jnp.asarray(0))
    return lax.while_loop(going, step, first).x


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solve ``A(x) = b`` by stabilised biconjugate gradients (van der Vorst 1992).

    Parameters, results and errors are as of `cg`, but that ``A`` need not be Hermitian.
    """
    method = partial(_descend_in_pairs, maxiter=_limit(b, maxiter))
    return _solve("bicgstab", method, A, b, x0, M, tol=tol, atol=atol), None


# ---- generalised minimal residuals ---------------------------------------------------------------


class _Krylov(NamedTuple):
    basis: Array  # rows; those not reached yet are zero
    images: Array  # row k: coefficients of the operator's image of row k of the basis
    k: Array


def _reached(operator: Flat, unit: Array, restart: int, size: Array) -> Array:
    """Return the correction in a Krylov space that makes the residual least (Arnoldi)."""
    n, dtype = unit.size, unit.dtype
    eps = np.finfo(dtype).eps

    def step(k: Array, s: _Krylov) -> _Krylov:
        image = operator(lax.dynamic_index_in_dim(s.basis, k, keepdims=False))
        whole = jnp.sqrt(_squared(image))
        # Twice: rounding leaves the first result not orthogonal enough (Giraud and others 2005).
        first = jnp.matmul(jnp.conj(s.basis), image)
        image = image - jnp.matmul(first, s.basis)
        second = jnp.matmul(jnp.conj(s.basis), image)
        image = image - jnp.matmul(second, s.basis)
        left = jnp.sqrt(_squared(image))
        new = left > eps * whole
        unit = jnp.where(new, image / jnp.where(new, left, 1), 0)
        row = (first + second).at[k + 1].set(jnp.where(new, left, 0).astype(dtype))
        return _Krylov(s.basis.at[k + 1].set(unit), s.images.at[k].set(row), s.k + 1)

    basis = jnp.zeros((restart + 1, n), dtype).at[0].set(unit)
    empty = _Krylov(basis, jnp.zeros((restart, restart + 1), dtype), jnp.asarray(0))
    space = lax.fori_loop(0, restart, step, empty)
    target = jnp.zeros(restart + 1, dtype).at[0].set(size.astype(dtype))
    weights = jnp.linalg.lstsq(space.images.T, target)[0]
    return jnp.matmul(weights, space.basis[:-1])


def _restarted(
    matvec: Flat,
    precondition: Flat,
    x0: Array,
    bound: Array,
    b: Array,
    *,
    maxiter: int,
    restart: int,
) -> Array:
    def residual(x: Array) -> tuple[Array, Array]:
        r = precondition(b - matvec(x))
        size = jnp.sqrt(_squared(r))
        return jnp.where(size > 0, r / jnp.where(size > 0, size, 1), 0), size

    def going(s: tuple[Any, ...]) -> Array:
        return (s[3] < maxiter) & (s[2] > bound)

    def step(s: tuple[Any, ...]) -> tuple[Any, ...]:
        x, unit, size, k = s
        x = x + _reached(lambda v: precondition(matvec(v)), unit, restart, size)
        return (x, *residual(x), k + 1)

    return lax.while_loop(going, step, (x0, *residual(x0), jnp.asarray(0)))[0]


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """Solve ``A(x) = b`` by generalised minimal residuals, restarted.

    Parameters
    ----------
    A, b, x0, tol, atol, M
        As of `cg`, but that ``A`` need not be Hermitian. The residual that is measured is the
        preconditioned one.
    restart : int
        Size of the Krylov space, which takes as many vectors of memory.
    maxiter : int, optional
        At most as many spaces.
    solve_method : {"batched", "incremental"}
        Accepted for compatibility: a whole space is built before its equation is solved.

    Returns
    -------
    x : tree of arrays
    info : integer array
        0, or -1 if the solution is not a number.

    Raises
    ------
    ValueError, TypeError
        As of `cg`; or another ``solve_method``.

    Notes
    -----
    Saad and Schultz (1986). Derivatives are as of `cg`.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'"
        )
    size = sum(map(np.size, tree.leaves(b)))
    method = partial(_restarted, maxiter=_limit(b, maxiter), restart=min(restart, size))
    x = _solve("gmres", method, A, b, x0, M, tol=tol, atol=atol)
    failed = jnp.isnan(jnp.sqrt(_squared(ravel_pytree(x)[0])))
    return x, jnp.where(failed, -1, 0)
