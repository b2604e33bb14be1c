"""Taylor mode: derivatives of all orders along a curve, in one pass.

A function is run on polynomials in place of numbers: each operation has a rule from the
coefficients of its operands to those of its result (Griewank & Walther, *Evaluating Derivatives*,
ch. 13). What has no rule of its own is differentiated by nested `jvp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, factorial
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..api.tracing import make_jaxpr
from ..core import tree
from ..core.avals import ShapeDtypeStruct
from ..core.graph import ClosedGraph, Literal, Var
from ..core.trace import bind
from ..ops.kit.rules import instantiate
from ..transforms.derivative import jvp

__all__ = ["jet"]
__dir__ = __all__.copy

#: Derivatives of orders 1, 2, ... along the curve; None where all are zero.
Series = list[Any] | None


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Any],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """Return the value of a function and its derivatives along a curve.

    Parameters
    ----------
    fun : callable
    primals : sequence
        The arguments.
    series : sequence of sequences
        For each argument, the derivatives ``h'(0), h''(0), ...`` of the curve that it follows; all
        of one length.
    factorial_scaled : bool
        Whether series are derivatives; otherwise coefficients of polynomials, ``h''(0) / 2``.

    Returns
    -------
    value, series
        ``fun(*primals)``, and the derivatives of ``fun(h(t))`` at 0 in its structure, each leaf a
        list of as many.

    Raises
    ------
    ValueError
        Arguments and series are not as many, or series are of different lengths.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental.jet import jet
    >>> y, (first, second) = jet(jnp.exp, (0.0,), ((1.0, 0.0),))
    >>> float(y), float(first), float(second)
    (1.0, 1.0, 1.0)
    """
    if len(primals) != len(series):
        raise ValueError(
            f"jet: there must be a series for each argument, got {len(series)} for {len(primals)}."
        )
    leaves, structure = tree.flatten(tuple(primals))
    rows: list[list[Any]] = []
    for k, (x, terms) in enumerate(zip(primals, series, strict=True)):
        found = [tree.leaves(t) for t in terms]
        if any(tree.structure(t) != tree.structure(x) for t in terms):
            raise ValueError(f"jet: the series of argument {k} must be like the argument.")
        rows += [list(column) for column in zip(*found, strict=True)] or [
            [] for _ in tree.leaves(x)
        ]
    orders = {len(r) for r in rows}
    if len(orders) > 1:
        raise ValueError(f"jet: series must have one length, got {sorted(orders)}.")
    out: list[Any] = []

    def flat(*args: Any) -> Any:
        results, spec = tree.flatten(fun(*tree.unflatten(structure, args)))
        out[:] = [spec]
        return results

    arrays = list(map(jnp.asarray, leaves))
    shown = [ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    closed = make_jaxpr(flat)(*shown)
    if not factorial_scaled:
        rows = [[t * factorial(k) for k, t in enumerate(row, 1)] for row in rows]
    count = orders.pop() if orders else 0
    operands = [(x, [_like(t, x) for t in r]) for x, r in zip(arrays, rows, strict=True)]
    found = _run(closed, operands, count)
    values = [x for x, _ in found]
    terms = [[_zeros(x) for _ in range(count)] if s is None else s for x, s in found]
    if not factorial_scaled:
        terms = [[t / factorial(k) for k, t in enumerate(row, 1)] for row in terms]
    return tree.unflatten(out[0], values), tree.unflatten(out[0], terms)


def _like(term: Any, x: Any) -> Any:
    return jnp.broadcast_to(jnp.asarray(term, x.dtype), x.shape)


def _zeros(x: Any) -> Any:
    return lax.full_like(x, 0)


def _run(closed: ClosedGraph, args: Sequence[tuple[Any, Series]], count: int) -> list[Any]:
    """Run a graph on values and series."""
    env: dict[Any, tuple[Any, Series]] = {}
    env.update((v, (c, None)) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(closed.jaxpr.invars, args, strict=True))

    def read(atom: Any) -> tuple[Any, Series]:
        return (atom.array(), None) if isinstance(atom, Literal) else env[atom]

    for eqn in closed.jaxpr.eqns:
        operands = [read(a) for a in eqn.invars]
        outs = _apply(eqn.primitive, operands, eqn.params, count)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(a) if isinstance(a, Literal | Var) else a for a in closed.jaxpr.outvars]


def _apply(prim: Any, operands: Sequence[tuple[Any, Series]], params: Any, count: int) -> list[Any]:
    values = [x for x, _ in operands]
    series = [s for _, s in operands]
    if all(s is None for s in series):
        found = bind(prim, *values, **params)
        return [(x, None) for x in (found if prim.multiple_results else (found,))]
    if prim.name in _CALLS:
        return _run(params[_CALLS[prim.name]], operands, count)
    if prim.name in _LINEAR:
        return [(bind(prim, *values, **params), _each(prim, values, series, params, count))]
    rule = _RULES.get(prim.name)
    if rule is not None:
        return [rule(prim, values, series, params, count)]
    return _nested(prim, values, series, params, count)


# ---- any operation -------------------------------------------------------------------------------


def _nested(
    prim: Any, values: Sequence[Any], series: Sequence[Series], params: Any, count: int
) -> list[Any]:
    """Differentiate along the curve once for each order: the cost doubles with each."""
    moving = [k for k, s in enumerate(series) if s is not None]

    def at(t: Any) -> list[Any]:
        xs = list(values)
        for k in moving:
            xs[k] = _polynomial(values[k], series[k], t)
        outs = bind(prim, *xs, **params)
        return list(outs) if prim.multiple_results else [outs]

    def derivative(fun: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
        def along(t: Any) -> list[Any]:
            _, duals = jvp(lambda t: fun(t), [t], [_one(t)], "jet")
            return [instantiate(d) for d in duals]

        return along

    dtype = next(values[k].dtype for k in moving)
    start = lax.full((), 0, dtype)
    fun, rows = at, [at(start)]
    for _ in range(count):
        fun = derivative(fun)
        rows.append(fun(start))
    return [(column[0], list(column[1:])) for column in zip(*rows, strict=True)]


def _one(t: Any) -> Any:
    return lax.full_like(t, 1)


def _polynomial(x: Any, terms: Any, t: Any) -> Any:
    total: Any = _zeros(x)
    for k in range(len(terms), 0, -1):  # by Horner's rule
        total = (total + terms[k - 1] / factorial(k)) * lax.convert_element_type(t, x.dtype)
    return x + total


# ---- rules ---------------------------------------------------------------------------------------

_CALLS = {
    "jit": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
}
#: Operations that are linear in all that may have a series together.
_LINEAR = frozenset(
    [
        "neg",
        "real",
        "imag",
        "add_any",
        "convert_element_type",
        "broadcast_in_dim",
        "reshape",
        "squeeze",
        "transpose",
        "rev",
        "reduce_sum",
        "slice",
        "concatenate",
        "add",
        "sub",
        "copy",
        "complex",
        "conj",
        "expand_dims",
        "cumsum",
    ]
)


def _each(prim: Any, values: Any, series: Any, params: Any, count: int) -> list[Any]:
    """Apply a linear operation to the derivatives of each order."""
    filled = [[_zeros(x)] * count if s is None else s for x, s in zip(values, series, strict=True)]
    return [bind(prim, *(s[k] for s in filled), **params) for k in range(count)]


def _bilinear(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    """Leibniz's rule."""
    (x, y), (s, t) = values, series

    def times(a: Any, b: Any) -> Any:
        return bind(prim, a, b, **params)

    if t is None:
        return times(x, y), [times(a, y) for a in s]
    if s is None:
        return times(x, y), [times(x, b) for b in t]
    left, right = [x, *s], [y, *t]
    terms = [
        sum(comb(n, k) * times(left[k], right[n - k]) for k in range(n + 1))
        for n in range(1, count + 1)
    ]
    return times(x, y), terms


# Of f(x), derivatives of order n follow from those of lower orders and f' = g(x, f) x', by
# Leibniz's rule for the product.


def _chain(slope: Callable[[list[Any], list[Any], int], Any]) -> Callable[..., Any]:
    """Return the rule of ``f`` for which ``slope(x, f, n)`` is the n-th derivative of ``f'(x)``."""

    def rule(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
        (x,), (s,) = values, series
        xs, out, slopes = [x, *s], [bind(prim, x, **params)], []
        for n in range(1, count + 1):
            slopes.append(slope(xs, out, n - 1))
            out.append(sum(comb(n - 1, k) * slopes[k] * xs[n - k] for k in range(n)))
        return out[0], out[1:]

    return rule


def _product(a: Sequence[Any], b: Sequence[Any], n: int) -> Any:
    """Return the n-th derivative of a product."""
    return sum(comb(n, k) * a[k] * b[n - k] for k in range(n + 1))


def _quotient(a: Sequence[Any], b: Sequence[Any], count: int) -> list[Any]:
    """Return the derivatives of a quotient, from order 0: those of ``q b = a``."""
    out: list[Any] = []
    for n in range(count + 1):
        known = sum((comb(n, k) * out[k] * b[n - k] for k in range(n)), _zeros(a[0]))
        out.append((a[n] - known) / b[0])
    return out


def _div(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    x, y = values
    s, t = ([_zeros(v)] * count if s is None else s for v, s in zip(values, series, strict=True))
    out = _quotient([x, *s], [y, *t], count)
    return out[0], out[1:]


def _log(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    (x,), (s,) = values, series
    shifted = x + 1 if prim.name == "log1p" else x
    # f' = x' / x, of which orders are one lower.
    slopes = _quotient(s, [shifted, *s], count - 1) if count else []
    return bind(prim, x, **params), slopes


def _power(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    """Of ``f = x ** p``: ``x f' = p f x'``."""
    if prim.name == "pow":
        if series[1] is not None:
            return _nested(prim, values, series, params, count)[0]
        x, p = values
        base = bind(prim, x, p, **params)
    else:
        (x,) = values
        p = {"sqrt": 0.5, "rsqrt": -0.5, "square": 2, "cbrt": 1 / 3}.get(prim.name)
        p = params["y"] if p is None else p
        base = bind(prim, x, **params)
    if prim.name in ("integer_pow", "square") and int(p) > 0:  # zero must not be divided by
        found = _repeated([x, *series[0]], int(p), count)
        return found[0], found[1:]
    xs, out = [x, *series[0]], [base]
    for n in range(1, count + 1):
        # x f^(n) + sum_{0<k<n} C(n-1, k) x^(k) f^(n-k) = p sum C(n-1, k) f^(k) x^(n-k)
        right = p * sum(comb(n - 1, k) * out[k] * xs[n - k] for k in range(n))
        left = sum((comb(n - 1, k) * xs[k] * out[n - k] for k in range(1, n)), _zeros(x))
        out.append((right - left) / x)
    return out[0], out[1:]


def _repeated(xs: list[Any], p: int, count: int) -> list[Any]:
    """Return the derivatives of a power from products."""
    if p == 1:
        return xs
    half = _repeated(xs, p // 2, count)
    out = [_product(half, half, n) for n in range(count + 1)]
    return [_product(out, xs, n) for n in range(count + 1)] if p % 2 else out


def _circular(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    """Sine and cosine, or the hyperbolic ones: each is the other's derivative."""
    (x,), (s,) = values, series
    hyperbolic = prim.name in ("sinh", "cosh")
    sin, cos = (lax.sinh, lax.cosh) if hyperbolic else (lax.sin, lax.cos)
    sign = 1 if hyperbolic else -1
    a: list[Any] = [sin(x)]
    b: list[Any] = [cos(x)]
    xs = [x, *s]
    for n in range(1, count + 1):
        a.append(sum(comb(n - 1, k) * b[k] * xs[n - k] for k in range(n)))
        b.append(sign * sum(comb(n - 1, k) * a[k] * xs[n - k] for k in range(n)))
    out = a if prim.name in ("sin", "sinh") else b
    return out[0], out[1:]


def _unmoved(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    """Of a step function: no derivative at all."""
    return bind(prim, *values, **params), None


def _select(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    which, *cases = values
    filled = [
        [_zeros(x)] * count if s is None else s for x, s in zip(cases, series[1:], strict=True)
    ]
    terms = [bind(prim, which, *(s[k] for s in filled), **params) for k in range(count)]
    return bind(prim, *values, **params), terms


def _extreme(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    x, y = values
    out = bind(prim, x, y, **params)
    s, t = ([_zeros(v)] * count if s is None else s for v, s in zip(values, series, strict=True))
    first, second = lax.eq(x, out), lax.eq(y, out)
    # Where both win, half of either, as of first derivatives.
    one, two = (lax.convert_element_type(f, out.dtype) for f in (first, second))
    share = one / (one + two)
    return out, [a * share + b * (1 - share) for a, b in zip(s, t, strict=True)]


def _abs(prim: Any, values: Any, series: Any, params: Any, count: int) -> Any:
    sign = lax.sign(values[0])
    return bind(prim, *values, **params), [sign * t for t in series[0]]


_RULES: dict[str, Callable[..., Any]] = {
    "mul": _bilinear,
    "dot_general": _bilinear,
    "conv_general_dilated": _bilinear,
    "div": _div,
    "exp": _chain(lambda x, f, n: f[n]),
    "expm1": _chain(lambda x, f, n: f[n] + 1 if n == 0 else f[n]),
    "log": _log,
    "log1p": _log,
    "tanh": _chain(lambda x, f, n: (1 if n == 0 else 0) - _product(f, f, n)),
    "tan": _chain(lambda x, f, n: (1 if n == 0 else 0) + _product(f, f, n)),
    "logistic": _chain(lambda x, f, n: f[n] - _product(f, f, n)),
    "sin": _circular,
    "cos": _circular,
    "sinh": _circular,
    "cosh": _circular,
    "pow": _power,
    "integer_pow": _power,
    "sqrt": _power,
    "rsqrt": _power,
    "square": _power,
    "cbrt": _power,
    "select_n": _select,
    "max": _extreme,
    "min": _extreme,
    "abs": _abs,
    **dict.fromkeys(
        [
            "floor",
            "ceil",
            "round",
            "sign",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "is_finite",
            "stop_gradient",
        ],
        _unmoved,
    ),
}
