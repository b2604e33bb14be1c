"""Minima of functions as ``jax.scipy.optimize`` names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..api.gradients import value_and_grad
from ..core.array import Array

__all__ = ["OptimizeResults", "minimize"]
__dir__ = __all__.copy


class OptimizeResults(NamedTuple):
    """Results of `minimize`.

    Attributes
    ----------
    x : array
        The minimum.
    success : bool array
        Whether the gradient is as small as it was to be.
    status : integer array
        0 of success, 1 of too many steps, 2 or more of a line search that found no lower place.
    fun, jac : array
        Value and gradient there.
    hess_inv : array
        Estimate of the inverse of the Hessian.
    nfev, njev, nit : integer array
        Evaluations of the function and its gradient, and steps.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


# ---- line search ---------------------------------------------------------------------------------

#: Wolfe's conditions: how much of the slope the value must fall by, and the slope must fall to.
_DECREASE, _CURVATURE = 1e-4, 0.9


class _Point(NamedTuple):
    """A place along a line: distance, value, slope, gradient."""

    at: Array
    value: Array
    slope: Array
    gradient: Array


class _Search(NamedTuple):
    low: _Point  # the best so far that falls enough
    high: _Point  # the other end, once there is one
    trial: Array
    bracketed: Array
    found: Array
    k: Array


def _pick(which: Array, yes: _Point, no: _Point) -> _Point:
    return _Point(*(jnp.where(which, a, b) for a, b in zip(yes, no, strict=True)))


def _between(low: _Point, high: _Point) -> Array:
    """Return the minimum of the cubic through two points with their slopes, or their middle."""
    span = high.at - low.at
    d = low.slope + high.slope - 3 * (high.value - low.value) / span
    root = jnp.sqrt(d * d - low.slope * high.slope)
    root = jnp.where(span < 0, -root, root)
    share = 1 - (high.slope + root - d) / (high.slope - low.slope + 2 * root)
    # Not too near an end, or the bracket hardly shrinks; NaN fails the comparison too.
    return low.at + span * jnp.where((share > 0.1) & (share < 0.9), share, 0.5)


def _search(
    along: Callable[[Array], _Point], start: _Point, trial: Array, maxiter: int
) -> tuple[_Point, Array, Array]:
    """Find a place where Wolfe's strong conditions hold: bracket it, then shrink the bracket.

    Nocedal and Wright, "Numerical Optimization" (2006), algorithms 3.5 and 3.6, as one loop.
    """

    def step(s: _Search) -> _Search:
        p = along(s.trial)
        enough = start.value + _DECREASE * p.at * start.slope
        bad = ~(p.value <= enough) | ((p.value >= s.low.value) & (s.low.at > 0))
        found = ~bad & (jnp.abs(p.slope) <= -_CURVATURE * start.slope)
        # Before there is a bracket, further on is where the slope leads.
        ahead = jnp.where(s.bracketed, s.high.at - s.low.at, 1)
        turned = p.slope * ahead >= 0
        high = _pick(bad, p, _pick(turned, s.low, s.high))
        low = _pick(bad, s.low, p)
        bracketed = s.bracketed | bad | turned
        trial = jnp.where(bracketed, _between(low, high), 2 * p.at)
        return _Search(low, high, trial, bracketed, found, s.k + 1)

    no = jnp.asarray(False)
    first = _Search(start, start, trial, no, no, jnp.asarray(0))
    last = lax.while_loop(lambda s: ~s.found & (s.k < maxiter), step, first)
    return last.low, last.found | (last.low.at > 0), last.k


# ---- BFGS ----------------------------------------------------------------------------------------


class _State(NamedTuple):
    x: Array
    value: Array
    gradient: Array
    inverse: Array
    before: Array
    converged: Array
    failed: Array
    evaluations: Array
    k: Array


def _updated(inverse: Array, s: Array, y: Array) -> Array:
    """Return the inverse Hessian that explains a step ``s`` that changed the gradient by ``y``."""
    rho = 1 / jnp.dot(y, s)
    left = jnp.eye(s.size, dtype=s.dtype) - rho * jnp.outer(s, y)
    found = left @ inverse @ left.T + rho * jnp.outer(s, s)
    return jnp.where(jnp.isfinite(rho), found, inverse)


def _bfgs(
    fun: Callable[[Array], Array],
    x0: Array,
    *,
    maxiter: int | None = None,
    norm: Any = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:
    differentiated = value_and_grad(fun)
    maxiter = x0.size * 200 if maxiter is None else maxiter
    size = partial(jnp.linalg.norm, ord=norm)

    def step(s: _State) -> _State:
        direction = -jnp.dot(s.inverse, s.gradient)

        def along(at: Array) -> _Point:
            value, gradient = differentiated(s.x + at * direction)
            return _Point(at, value, jnp.dot(gradient, direction), gradient)

        slope = jnp.dot(s.gradient, direction)
        start = _Point(jnp.zeros_like(s.value), s.value, slope, s.gradient)
        # As far as the last step fell, were the function quadratic; 1 is Newton's own step.
        guess = 2.02 * (s.value - s.before) / slope
        trial = jnp.where((guess > 0) & (guess < 1), guess, 1)
        end, fell, k = _search(along, start, trial.astype(s.value.dtype), line_search_maxiter)
        change = end.at * direction
        # Where values differ by rounding alone, steps go on as long as they flatten the slope.
        gained = (end.value < s.value) | (size(end.gradient) < size(s.gradient))
        return _State(
            s.x + change,
            end.value,
            end.gradient,
            _updated(s.inverse, change, end.gradient - s.gradient),
            s.value,
            size(end.gradient) < gtol,
            ~(fell & gained),
            s.evaluations + k,
            s.k + 1,
        )

    value, gradient = differentiated(x0)
    first = _State(
        x0,
        value,
        gradient,
        jnp.eye(x0.size, dtype=x0.dtype),
        value + jnp.linalg.norm(gradient) / 2,
        size(gradient) < gtol,
        jnp.asarray(False),
        jnp.asarray(1),
        jnp.asarray(0),
    )
    going = lambda s: ~s.converged & ~s.failed & (s.k < maxiter)  # noqa: E731
    s = lax.while_loop(going, step, first)
    status = jnp.where(s.converged, 0, jnp.where(s.failed, 3, 1))
    return OptimizeResults(
        s.x, s.converged, status, s.value, s.gradient, s.inverse, s.evaluations, s.evaluations, s.k
    )


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Find a local minimum of a function of a vector, without constraints.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)``: a real scalar, differentiable.
    x0 : array (n,)
        Where to start.
    args : tuple
        Further arguments.
    method : {"BFGS"}
        In any case of letters.
    tol : float, optional
        Short for the option ``gtol``.
    options : mapping, optional
        ``maxiter`` (200 n), ``norm`` (infinity) and ``gtol`` (1e-5): how many steps, and which norm
        of the gradient is to be below what; ``line_search_maxiter`` (10).

    Returns
    -------
    OptimizeResults

    Raises
    ------
    TypeError
        ``args`` is no tuple; or an option has another name.
    ValueError
        For another method, or an ``x0`` that is no vector.

    Notes
    -----
    Broyden, Fletcher, Goldfarb and Shanno (1970); a line search under Wolfe's strong conditions.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"optimize.minimize: args must be a tuple, got {args!r}.")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized: optimize.minimize has 'BFGS'.")
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise ValueError(
            f"optimize.minimize: x0 must be a vector, got shape {x0.shape}. "
            "fnarray.flatten_util.ravel_pytree makes one of any tree."
        )
    if not jnp.issubdtype(x0.dtype, jnp.floating):
        x0 = x0.astype(float)
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    known = {"maxiter", "norm", "gtol", "line_search_maxiter"}
    if unknown := set(given) - known:
        raise TypeError(
            f"optimize.minimize: unknown options {sorted(unknown)}. Use {', '.join(sorted(known))}."
        )
    return _bfgs(lambda x: fun(x, *args), x0, **given)
