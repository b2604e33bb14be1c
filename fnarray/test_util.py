"""Checks of derivatives against central differences, named as in ``jax.test_util``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .api.derivatives import jvp, vjp
from .core import tree
from .core.array import Array
from .core.dtypes import float0
from .core.tangents import differentiable
from .numpy import asarray

__all__ = ["check_grads", "check_jvp", "check_vjp"]
__dir__ = __all__.copy

# Checks run outside of traces, where draws are what they seem.
Rng = np.random.RandomState  # noqa: TID251

#: Agreement asked for, by the least exact dtype of what is compared.
_TOLERANCE = {
    "bfloat16": 1e-1,
    "float16": 1e-2,
    "float32": 2e-3,
    "complex64": 1e-3,
    "float64": 1e-5,
    "complex128": 1e-5,
}


def _wide(x: Any) -> np.ndarray:
    """Return an array in double precision, in which comparisons are made."""
    x = np.asarray(x)
    if x.dtype == float0 or x.dtype.kind in "biu":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _like(rng: Rng, x: Any) -> Any:
    """Return a random tangent of a value."""
    x = asarray(x)
    if not differentiable(x.dtype):
        return np.zeros(x.shape, float0)
    values = rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(x.shape)
    return asarray(np.asarray(values).astype(x.dtype))


def _moved(x: Any, t: Any, eps: float) -> Any:
    x = asarray(x)
    return x if not differentiable(x.dtype) else x + asarray(eps, x.dtype.name) * t


def _differences(f: Callable[..., Any], args: Sequence[Any], tangents: Any, eps: float) -> Any:
    """Return slopes by central differences of two widths, whose errors in their square cancel."""

    def slope(eps: float) -> Any:
        ahead, behind = (
            f(*tree.map(partial(_step, h), args, tangents)) for h in (eps / 2, -eps / 2)
        )
        return tree.map(lambda a, b: _quotient(a, b, eps), ahead, behind)

    return tree.map(_extrapolated, slope(eps), slope(eps / 2))


def _extrapolated(wide: Any, narrow: Any) -> Any:
    return narrow if np.asarray(narrow).dtype == float0 else narrow + (narrow - wide) / 3


def _step(eps: float, x: Any, t: Any) -> Any:
    return _moved(x, t, eps)


def _quotient(a: Any, b: Any, eps: float) -> Any:
    if not differentiable(asarray(a).dtype):
        return np.zeros(np.shape(a), float0)
    return (_wide(a) - _wide(b)) / eps


def _inner(xs: Any, ys: Any) -> Any:
    """Return the real inner product of two trees."""
    pairs = zip(tree.leaves(xs), tree.leaves(ys), strict=True)
    return sum(
        (np.vdot(_wide(x), _wide(y)).real for x, y in pairs if np.asarray(x).dtype != float0), 0.0
    )


def _agree(got: Any, wanted: Any, atol: Any, rtol: Any, like: Any, what: str, err_msg: str) -> None:
    """Raise `AssertionError` unless two trees agree, within tolerances by default by dtype."""
    names = {str(asarray(x).dtype) for x in tree.leaves(like)}
    default = max((_TOLERANCE.get(n, 0.0) for n in names), default=0.0)
    atol, rtol = (_of(t, names, default) for t in (atol, rtol))
    (paths, structure), other = tree.flatten_with_path(got), tree.structure(wanted)
    if structure != other:
        raise AssertionError(f"{what}: structures differ, {structure} and {other}. {err_msg}")
    for (path, x), y in zip(paths, tree.leaves(wanted), strict=True):
        if np.asarray(x).dtype != float0:
            where = f"{what}{tree.keystr(path)} {err_msg}"
            np.testing.assert_allclose(_wide(x), _wide(y), rtol, atol, err_msg=where)


def _of(tolerance: Any, names: set[str], default: float) -> float:
    if isinstance(tolerance, dict):
        by_name = {np.dtype(k).name: v for k, v in tolerance.items()}
        return max((by_name.get(n, default) for n in names), default=default)
    return default if tolerance is None else tolerance


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a forward derivative against central differences in a random direction.

    Parameters
    ----------
    f : callable
    f_jvp : callable
        ``f_jvp(args, tangents) -> (value, tangent)``.
    args : sequence
    atol, rtol : float or dict of dtype to float, optional
    eps : float
        Width of the difference.
    err_msg : str

    Raises
    ------
    AssertionError
        Values or tangents differ.
    """
    rng = Rng(0)
    tangents = tree.map(partial(_like, rng), tuple(args))
    value, tangent = f_jvp(tuple(args), tangents)
    wanted = f(*args)
    _agree(value, wanted, atol, rtol, wanted, "value", err_msg)
    slope = _differences(f, tuple(args), tangents, eps)
    _agree(tangent, slope, atol, rtol, wanted, "tangent", err_msg)


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Any = None,
    rtol: Any = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Check a reverse derivative: it meets central differences in an inner product.

    Parameters
    ----------
    f : callable
    f_vjp : callable
        ``f_vjp(*args) -> (value, vjp)``.
    args : sequence
    atol, rtol, eps, err_msg
        As in `check_jvp`.

    Raises
    ------
    AssertionError
        Values or inner products differ.
    """
    rng = Rng(0)
    value, back = f_vjp(*args)
    wanted = f(*args)
    _agree(value, wanted, atol, rtol, wanted, "value", err_msg)
    tangents = tree.map(partial(_like, rng), tuple(args))
    slope = _differences(f, tuple(args), tangents, eps)
    ct = tree.map(partial(_like, rng), value)
    # By JAX's convention cotangents are not conjugated: <t, conj(ct_in)> = <dy, conj(ct)>.
    found = _inner(tree.map(_conj, tangents), back(ct))
    expected = _inner(tree.map(_conj, slope), ct)
    _agree(found, expected, atol, rtol, wanted, "inner product with cotangents", err_msg)


def _conj(x: Any) -> Any:
    x = np.asarray(x)
    return np.conj(x) if x.dtype.kind == "c" else x


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Any = None,
    rtol: Any = None,
    eps: float | None = None,
) -> None:
    """Check derivatives against central differences, to an order, by all paths of the modes.

    Parameters
    ----------
    f : callable
    args : sequence
    order : int
        1 for first derivatives, 2 for these differentiated again, and so on.
    modes : sequence of {"fwd", "rev"}
    atol, rtol : float or dict of dtype to float, optional
    eps : float, optional
        Width of the difference; by default of the order of the cube root of the precision, which
        balances its two errors, and where that finds a difference, JAX's 1e-4: a wide step leaves
        a small domain, or crosses a kink.

    Raises
    ------
    AssertionError
        They differ; the message tells the path: ``JVP of VJP``.
    ValueError
        A mode is unknown.
    """
    args = tuple(args)
    for mode in modes:
        if mode not in ("fwd", "rev"):
            raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {mode!r}.")
    steps = _steps(args) if eps is None else (eps,)
    for step in steps:
        try:
            return _check(f, args, order, tuple(modes), (atol, rtol, step), "", Rng(1))
        except AssertionError:
            if step == steps[-1]:
                raise
    return None


def _steps(args: tuple[Any, ...]) -> tuple[float, ...]:
    """Return the widths of differences to try by the precision of arguments."""
    kinds = [asarray(x).dtype for x in tree.leaves(args)]
    wide = max((_EPS.get(d.name, 1e-2) for d in kinds if differentiable(d)), default=1e-4)
    return (wide, 1e-4) if wide > 1e-4 else (wide,)


_EPS = {"float64": 1e-5, "complex128": 1e-5, "float32": 1e-2, "complex64": 1e-2, "float16": 1e-1}


def _check(
    f: Callable[..., Any],
    args: tuple,
    order: int,
    modes: tuple[str, ...],
    limits: tuple,
    path: str,
    rng: Rng,
) -> None:
    atol, rtol, eps = limits
    if "fwd" in modes:
        name = f"JVP{' of ' + path if path else ''}"
        check_jvp(f, partial(jvp, f), args, atol, rtol, eps, name)
        if order > 1:
            tangents = tree.map(partial(_like, rng), args)

            def forward(*primals: Any) -> Any:
                return _floats(jvp(f, primals, tangents))

            _check(forward, args, order - 1, modes, limits, name, rng)
    if "rev" in modes:
        name = f"VJP{' of ' + path if path else ''}"
        check_vjp(f, partial(vjp, f), args, atol, rtol, eps, name)
        if order > 1:
            ct = tree.map(partial(_like, rng), f(*args))

            def reverse(*primals: Any) -> Any:
                value, back = vjp(f, *primals)
                return _floats((value, back(ct)))

            _check(reverse, args, order - 1, modes, limits, name, rng)


def _floats(value: Any) -> list[Any]:
    """Return the leaves that have derivatives: what integers give is of no interest."""
    leaves = tree.leaves(value)
    return [x for x in leaves if isinstance(x, Array) and differentiable(x.dtype)]
