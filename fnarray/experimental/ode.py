"""Ordinary differential equations by the Runge-Kutta pair of Dormand and Prince, with adjoints.

Dormand & Prince, *A family of embedded Runge-Kutta formulae* (1980); Hairer, Norsett & Wanner,
*Solving Ordinary Differential Equations I*, II.4 (steps) and II.6 (dense output). Gradients solve
the adjoint equation backwards in time from each time that was asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..api.batching import vmap
from ..api.derivatives import vjp
from ..control.closures import closure_convert
from ..control.custom import custom_vjp
from ..core import tree
from ..core.trace import Tracer
from ..flatten_util import ravel_pytree

__all__ = ["odeint"]
__dir__ = __all__.copy

#: Nodes, weights of the stages, of the result, and of the difference to the fourth-order result.
_NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# What is taken from the result is another formula of fourth order than the authors' own: it is the
# one JAX's steps follow, so that loose tolerances give the same numbers too.
_ERROR = (
    35 / 384 - 1951 / 21600,
    0,
    500 / 1113 - 22642 / 50085,
    125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400,
    11 / 84 - 649 / 6300,
    -1 / 60,
)
#: Weights of the middle of a step, from which the dense output is read (Shampine, 1986).
_MIDDLE = (
    6025192743 / 30085553152 / 2,
    0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solve ``dy/dt = func(y, t, *args)`` from ``y(t[0]) = y0``.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)``, of the structure, shapes and dtypes of ``y``.
    y0 : pytree
    t : array
        Times, ascending, of which the first is that of ``y0``. Solve backwards in ``-t``.
    *args : pytrees
        Handed on; gradients with respect to them are found, as to ``y0`` and ``t``.
    rtol, atol : float
        Tolerances of a step's error, relative and absolute.
    mxstep : int
        How many steps to try at most between two times.
    hmax : float
        The longest step.

    Returns
    -------
    pytree
        Like ``y0``, each leaf with an axis of the times in front.

    Raises
    ------
    TypeError
        An argument of ``func`` is no array.
    ValueError
        The times descend, where they are known; where they are traced, the results are nan.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental.ode import odeint
    >>> y = odeint(lambda y, t: -y, jnp.float32(1), jnp.linspace(0.0, 1.0, 3), rtol=1e-5, atol=1e-6)
    >>> [round(float(v), 4) for v in y]
    [1.0, 0.6065, 0.3679]
    """
    for x in tree.leaves(args):
        if not hasattr(x, "dtype") and not isinstance(x, int | float | complex):
            raise TypeError(
                f"odeint: arguments of func must be arrays or numbers, got {x!r} of type "
                f"{type(x)}. Close over others: lambda y, t: func(y, t, ...)."
            )
    t = jnp.asarray(t)
    t = t if t.dtype.kind == "f" else t.astype(jnp.result_type(float))
    # By NumPy: where a function is traced, operations on known times are traced too.
    if not isinstance(t, Tracer) and np.any(np.asarray(t)[1:] < np.asarray(t)[:-1]):
        raise ValueError(
            f"odeint: times must ascend, got t = {t}. Solve backwards by a change of variables: "
            "odeint(lambda y, s: -func(y, -s), y0, -t)."
        )
    converted, consts = closure_convert(func, y0, t[0], *args)
    start, unravel = ravel_pytree(y0)
    fixed = _Method(converted, unravel, rtol, atol, mxstep, hmax)
    out = _solve(fixed, start, t, (*args, *consts))
    return vmap(unravel)(out)


class _Method:
    """What a solution depends on beside numbers: the equation, on vectors, and how to solve it."""

    def __init__(
        self, func: Any, unravel: Any, rtol: float, atol: float, mxstep: float, hmax: float
    ):
        self.func, self.unravel = func, unravel
        self.rtol, self.atol, self.mxstep, self.hmax = rtol, atol, mxstep, hmax

    def slope(self, y: Any, t: Any, args: Any) -> Any:
        """Return the derivative of a vector."""
        return ravel_pytree(self.func(self.unravel(y), t, *args))[0].astype(y.dtype)


def _size(x: Any) -> Any:
    """Return the root of the mean square."""
    return jnp.sqrt(jnp.mean(jnp.real(x * jnp.conj(x))))


def _first_step(slope: Any, y: Any, t: Any, f: Any, rtol: float, atol: float) -> Any:
    """Return a step to begin with (Hairer et al., II.4)."""
    scale = atol + jnp.abs(y) * rtol
    d0, d1 = jnp.linalg.norm(y / scale), jnp.linalg.norm(f / scale)
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1).astype(t.dtype)
    f1 = slope(y + h0 * f, t + h0)
    d2 = jnp.linalg.norm((f1 - f) / scale) / h0
    most = jnp.maximum(d1, d2)
    h1 = jnp.where(most <= 1e-15, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / most) ** 0.2)
    return jnp.minimum(100 * h0, h1).astype(t.dtype)


def _weighted(weights: Any, slopes: Any) -> Any:
    return sum(w * k for w, k in zip(weights, slopes, strict=True) if w)


def _step(slope: Any, y: Any, f: Any, t: Any, h: Any) -> tuple[Any, Any, Any, Any]:
    """Return the next value and slope, the error, and the value in the middle."""
    slopes, at = [f], y
    for node, weights in zip(_NODES, _STAGES, strict=True):
        at = y + (h * _weighted(weights, slopes)).astype(y.dtype)
        slopes.append(slope(at, t + float(node) * h))
    error = h * _weighted(_ERROR, slopes)
    middle = y + (h * _weighted(_MIDDLE, slopes)).astype(y.dtype)
    return at, slopes[-1], error, middle


def _between(y0: Any, y1: Any, middle: Any, f0: Any, f1: Any, h: Any, x: Any) -> Any:
    """Read the polynomial of degree 4 through values and slopes, at a part ``x`` of the step."""
    a = 2 * h * (f1 - f0) - 8 * (y1 + y0) + 16 * middle
    b = h * (5 * f0 - 3 * f1) + 18 * y0 + 14 * y1 - 32 * middle
    c = h * (f1 - 4 * f0) - 11 * y0 - 5 * y1 + 16 * middle
    return (((a * x + b) * x + c) * x + h * f0) * x + y0


def _forward(method: _Method, y0: Any, ts: Any, args: Any) -> Any:
    """Return the solution at all times."""
    rtol, atol = method.rtol, method.atol

    def slope(y: Any, t: Any) -> Any:
        return method.slope(y, t, args)

    def to(carry: Any, target: Any) -> Any:
        def more(state: Any) -> Any:
            count, (_, _, t, h, *_rest) = state
            return (t < target) & (count < method.mxstep) & (h > 0)

        def turn(state: Any) -> Any:
            count, (y, f, t, h, old) = state
            new, g, error, middle = _step(slope, y, f, t, h)
            scale = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))
            ratio = _size(error / scale).astype(t.dtype)
            # What is not a number is an error beyond any.
            ratio = jnp.where(ratio == ratio, ratio, jnp.inf)
            good = ratio <= 1
            least = jnp.where(ratio < 1, 1.0, _SHRINK).astype(t.dtype)
            factor = jnp.clip(_SAFETY * ratio ** (-1 / 5), least, _GROW)
            longer = jnp.where(ratio == 0, h * _GROW, h * factor)
            longer = jnp.clip(longer, 0, method.hmax).astype(t.dtype)
            taken = (new, g, t + h, longer, (y, new, middle, f, g, t, h))
            stayed = (y, f, t, longer, old)
            kept = tree.map(lambda a, b: jnp.where(good, a, b), taken, stayed)
            return count + 1, kept

        _, carry = lax.while_loop(more, turn, (jnp.zeros((), int), carry))
        *_, (a, b, middle, f, g, t, h) = carry
        # Before the first step there is only its beginning: times that descend have no solution.
        part = jnp.where(h == 0, jnp.where(target == t, 0, jnp.nan), (target - t) / h)
        part = part.astype(y0.dtype)
        return carry, _between(a, b, middle, f, g, h.astype(y0.dtype), part)

    f0 = slope(y0, ts[0])
    h = jnp.clip(_first_step(slope, y0, ts[0], f0, rtol, atol), 0, method.hmax).astype(ts.dtype)
    still = (y0, y0, y0, f0, f0, ts[0], jnp.zeros((), ts.dtype))
    _, rows = lax.scan(to, (y0, f0, ts[0], h, still), ts[1:])
    return jnp.concatenate([y0[None], rows])


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def _solve(method: _Method, y0: Any, ts: Any, args: Any) -> Any:
    return _forward(method, y0, ts, args)


def _solve_forward(method: _Method, y0: Any, ts: Any, args: Any) -> Any:
    ys = _solve(method, y0, ts, args)  # with its rule, for whoever derives this again
    return ys, (ys, ts, args)


def _solve_backward(method: _Method, residuals: Any, cts: Any) -> Any:
    """Solve the adjoint equation backwards: for ``y``, its cotangent, and those of the rest."""
    ys, ts, args = residuals

    def backwards(state: Any, minus_t: Any, args: Any) -> Any:
        y, ct, *_ = state
        f, pull = vjp(lambda y, t, args: method.slope(y, t, args), y, -minus_t, args)
        of_y, of_t, of_args = pull(ct)
        return -f, of_y, of_t, of_args

    def interval(carry: Any, k: Any) -> Any:
        ct, of_t0, of_args = carry
        f = method.slope(ys[k], ts[k], args)
        # How the result moves with the time it is read at.
        of_t = jnp.real(jnp.vdot(jnp.conj(f), cts[k])).astype(ts.dtype)
        start = (ys[k], ct, of_t0 - of_t, of_args)
        pair = jnp.stack([-ts[k], -ts[k - 1]])
        rows = odeint(
            backwards, start, pair, args, rtol=method.rtol, atol=method.atol,
            mxstep=method.mxstep, hmax=method.hmax,
        )  # fmt: skip
        _, ct, of_t0, of_args = tree.map(lambda x: x[1], rows)
        return (ct + cts[k - 1], of_t0, of_args), of_t

    zeros = tree.map(jnp.zeros_like, args)
    start = (cts[-1], jnp.zeros((), ts.dtype), zeros)
    (ct, of_t0, of_args), of_ts = lax.scan(interval, start, jnp.arange(len(ts) - 1, 0, -1))
    return ct, jnp.concatenate([of_t0[None], of_ts[::-1]]), of_args


_solve.defvjp(_solve_forward, _solve_backward)
