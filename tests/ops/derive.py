"""Checks of operations' derivative and batching rules, row by row of the tables of `OpCase`.

`same_as_jax` compares with the oracle, `modes_agree` forward with reverse mode and both with
differences, to second order, `halves_agree` the modes in half types, `loops_agree` a mapped
operation with the stacked loop. What a check expects is in its docstring; a family's test file
gives them its rows::

    @pytest.mark.parametrize(("case", "signature"), smooth(CASES))
    def test_modes_agree(case, signature):
        modes_agree(case, signature)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import enable_x64
from fnarray.core.dtypes import float0
from fnarray.core.tangents import differentiable

from .opcase import OpCase, is_wide

#: Operands beyond this many are batched all or singly, not in every combination.
_MOST = 3
_WIDE = {"f": np.float64, "c": np.complex128}


def leaves(x: Any) -> list[Any]:
    """Return the arrays of a tree of tuples and lists."""
    return [leaf for item in x for leaf in leaves(item)] if isinstance(x, tuple | list) else [x]


def is_array(x: Any) -> bool:
    """Whether an operand is traced; the rest of a row's operands are static."""
    return isinstance(x, np.ndarray)


def is_inexact(x: Any) -> bool:
    """Whether an operand or a result has tangents."""
    return hasattr(x, "dtype") and differentiable(x.dtype)


# ---- rows ----------------------------------------------------------------------------------------


def runs(
    cases: Iterable[OpCase],
    dtypes: Sequence[str] = ("float32", "float64", "complex64", "complex128"),
    active: Callable[[Any], bool] = is_inexact,
) -> list[Any]:
    """Return the parameters of a test: each case on each of its dtypes that is among ``dtypes``.

    Only runs with an operand that is ``active`` count, by default one that has tangents. Rows of
    one operation are told apart by numbers. Zeros, infinities and NaN are left out: rows of
    ``values`` bring the hard points.
    """
    found = []
    for number, case in enumerate(cases):
        plain = replace(case, special=False)
        for signature in case.signatures():
            mixed = len(set(signature)) > 1
            wanted = mixed or not signature or set(signature) <= set(dtypes)
            if wanted and any(map(active, _args(plain, signature))):
                name = "-".join((case.name, *signature[:1], str(number)))
                found.append(pytest.param(plain, signature, id=name))
    return found


def smooth(cases: Iterable[OpCase]) -> list[Any]:
    """Return runs in the precision of differences, of rows whose operands are drawn at random."""
    drawn = [case for case in cases if case.values is None]
    return runs(drawn, ("float64", "complex128"))


def _args(case: OpCase, signature: tuple[str, ...], seed: int = 0) -> tuple[Any, ...]:
    args = case.args(signature, seed)
    if case.values is None or not seed:
        return args
    return tuple(np.roll(x, seed) if is_array(x) else x for x in args)


def _like(rng: np.random.Generator, x: Any) -> np.ndarray:
    """Draw a tangent or cotangent of a value."""
    t = rng.uniform(-1, 1, x.shape)
    if np.dtype(x.dtype).kind == "c":
        t = t + 1j * rng.uniform(-1, 1, x.shape)
    return np.asarray(t, x.dtype)


def frozen(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return operands that cannot change: a function that captures them is pure."""
    args = tuple(np.array(x) if isinstance(x, np.ndarray) else x for x in args)
    for x in args:
        if isinstance(x, np.ndarray):
            x.flags.writeable = False
    return args


def _function(case: OpCase, module: Any, args: Sequence[Any], keep: Callable[[Any], bool]) -> Any:
    """Return the operation as a function of the operands to ``keep``, and the list of those."""
    args = frozen(args)
    places = tuple(k for k, x in enumerate(args) if keep(x))
    face = case.face(module)

    def f(*kept: Any) -> list[Any]:
        full = list(args)
        for k, x in zip(places, kept, strict=True):
            full[k] = x
        return leaves(face(*full))

    return f, [args[k] for k in places]


def _inexact_only(f: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    return lambda *xs: [y for y in f(*xs) if is_inexact(y)]


def epsilon(dtype: np.dtype) -> float:
    """Return the distance from 1 to the next number of a dtype or its parts."""
    if dtype.itemsize == 2:
        return 2.0**-10 if dtype == np.float16 else 2.0**-7
    return float(np.finfo(dtype).eps)


def close(got: Any, want: Any, ulp: float, where: str) -> None:
    """Assert equal shapes and dtypes, and values within ``ulp`` steps of the largest finite one."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, want.dtype), where
    if not differentiable(want.dtype):
        if want.dtype != float0:
            np.testing.assert_array_equal(got, want, err_msg=where)
        return
    eps = epsilon(want.dtype)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    size = np.abs(b)[np.isfinite(b)]
    atol = ulp * eps * max(1.0, size.max()) if size.size else 0.0
    np.testing.assert_allclose(a, b, rtol=ulp * eps, atol=atol, err_msg=where)


# ---- derivatives ---------------------------------------------------------------------------------


def same_as_jax(jax: Any, case: OpCase, signature: tuple[str, ...], ulp: float = 0) -> None:
    """Values, tangents and cotangents are those of `jax.jvp` and `jax.vjp`, dtypes included.

    ``ulp`` is the error allowed; where omitted, 64 and 8 times that of the value's row.
    """
    wide, rng = is_wide(signature), np.random.default_rng(1)
    args = _args(case, signature)
    limit = ulp or 64 + 8 * case.ulp
    with jax.enable_x64(wide), enable_x64(wide):
        theirs, xs = _function(case, jax.lax, args, is_inexact)
        ours, _ = _function(case, lax, args, is_inexact)
        ts = [_like(rng, x) for x in xs]
        cts = [_like(rng, y) for y in _inexact_only(ours)(*xs)]
        # One compilation of the oracle for both modes.
        modes = jax.jit(
            lambda xs, ts, cts: (jax.jvp(theirs, xs, ts), _pulled(jax, theirs, xs, cts))
        )
        (want_outs, want_tangents), want = modes(tuple(xs), tuple(ts), cts)
        outs, tangents = fnarray.jvp(ours, tuple(xs), tuple(ts))
        got = _pulled(fnarray, ours, xs, cts)
    for what, mine, wanted in (
        ("result {} under jvp", outs, want_outs),
        ("tangent of result {}", tangents, want_tangents),
        ("cotangent of operand {}", got, want),
    ):
        for k, pair in enumerate(zip(mine, wanted, strict=True)):
            close(*pair, limit, what.format(k))


def _pulled(module: Any, f: Callable[..., list[Any]], xs: Sequence[Any], cts: list[Any]) -> Any:
    """Return the cotangents of operands for those of results, if any results have some."""
    return module.vjp(_inexact_only(f), *xs)[1](cts) if cts else ()


def pairing(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Pair tangents with cotangents: the real part of the sum of products, nothing conjugated."""
    total = 0.0
    for x, y in zip(xs, ys, strict=True):
        total += np.sum(np.asarray(x).astype(complex) * np.asarray(y).astype(complex)).real
    return float(total)


def _meets(f: Callable[..., list[Any]], xs: list[Any], rng: Any, rtol: float, where: str) -> None:
    ts = [_like(rng, x) for x in xs]
    outs, tangents = fnarray.jvp(f, tuple(xs), tuple(ts))
    cts = [_like(rng, y) for y in outs]
    forward = pairing(cts, tangents)
    back = fnarray.vjp(f, *xs)[1](cts)
    for x, g in zip(xs, back, strict=True):
        assert (g.shape, g.dtype) == (x.shape, x.dtype), where
    reverse = pairing(back, ts)
    scale = sum(np.abs(np.asarray(t)).sum() for t in tangents) + 1.0
    limit = max([1e-11, *(64 * epsilon(y.dtype) for y in (*outs, *xs))]) * scale
    assert abs(forward - reverse) <= limit, f"{where}: modes: {forward} and {reverse}"
    if any(y.dtype not in _WIDE.values() for y in outs):
        return
    up, down = (
        f(*(x + np.asarray(s * t).astype(x.dtype) for x, t in zip(xs, ts, strict=True)))
        for s in (1e-5, -1e-5)
    )
    for k, (t, hi, lo) in enumerate(zip(tangents, up, down, strict=True)):
        slope = (np.asarray(hi) - np.asarray(lo)) / 2e-5
        np.testing.assert_allclose(
            np.asarray(t), slope, rtol=rtol, atol=rtol * (1 + np.abs(slope).max(initial=0)),
            err_msg=f"{where}: tangent of result {k} and central difference",
        )  # fmt: skip


def modes_agree(
    case: OpCase, signature: tuple[str, ...], order: int = 2, rtol: float = 1e-6
) -> None:
    """Forward and reverse mode are each other's transposes, and agree with central differences.

    To second order: what holds of the operation holds of its derivative along a fixed direction.
    """
    rng = np.random.default_rng(2)
    args = [np.asarray(x, _WIDE[x.dtype.kind]) if is_array(x) and x.dtype.kind in "fc" else x
            for x in _args(case, signature)]  # fmt: skip
    with enable_x64(True):
        f, xs = _function(case, lax, args, is_inexact)
        f = _inexact_only(f)
        for k in range(order):
            _meets(f, xs, rng, rtol * 10**k, f"order {k + 1}")
            f = _along(f, [_like(rng, x) for x in xs])


def halves_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """In half types too the modes are each other's transposes, and dtypes are the operands'."""
    f, xs = _function(case, lax, _args(case, signature), is_inexact)
    _meets(_inexact_only(f), xs, np.random.default_rng(3), 0, "in half types")


def _along(f: Callable[..., list[Any]], ts: list[Any]) -> Callable[..., list[Any]]:
    ts = frozen(ts)
    return lambda *xs: fnarray.jvp(f, xs, ts)[1]


# ---- batching ------------------------------------------------------------------------------------


def _combinations(count: int) -> list[tuple[bool, ...]]:
    """Ways to batch some of the operands, at least one."""
    if count <= _MOST:
        return [flags for flags in product((True, False), repeat=count) if any(flags)]
    single = [tuple(i == k for i in range(count)) for k in range(count)]
    return [(True,) * count, *single]


def loops_agree(case: OpCase, signature: tuple[str, ...], ulp: float = 8) -> None:
    """`vmap` gives the stacked results of a loop, whichever operands are batched, along any axis.

    For maps of no, one and several elements; dtypes and weak types are the loop's.
    """
    with enable_x64(is_wide(signature)):
        draws = [_args(case, signature, seed) for seed in range(3)]
        f, xs = _function(case, lax, draws[0], is_array)
        lanes = [[x for x in draw if is_array(x)] for draw in draws]
        for flags in _combinations(len(xs)):
            rows = [f(*(lane[i] if b else xs[i] for i, b in enumerate(flags))) for lane in lanes]
            for size, axis in ((3, 0), (1, 0), (0, 0), (3, -1)):
                _one_map(f, xs, lanes, flags, rows, size, axis, ulp)


def _one_map(f, xs, lanes, flags, rows, size, axis, ulp) -> None:
    def stack(i):
        if not size:
            return np.zeros((0, *xs[i].shape), xs[i].dtype)
        return np.stack([lane[i] for lane in lanes[:size]], axis)

    where = f"batched {flags}, size {size}, axis {axis}"
    stacked = [stack(i) if b else x for i, (x, b) in enumerate(zip(xs, flags, strict=True))]
    in_axes = tuple(axis if b else None for b in flags)
    outs = fnarray.vmap(f, in_axes=in_axes)(*stacked)
    for k, (got, first) in enumerate(zip(outs, rows[0], strict=True)):
        if size:
            want = np.stack([np.asarray(row[k]) for row in rows[:size]])
        else:
            want = np.zeros((0, *first.shape), first.dtype)
        close(got, want, ulp, f"result {k}, {where}")
        assert got.weak_type == first.weak_type, f"weak type of result {k}, {where}"
