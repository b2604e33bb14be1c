"""Derivatives and batches of reductions, running reductions and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import enable_x64

from .cases_reduce import _WINDOWS as GEOMETRIES
from .cases_reduce import GENERAL, REDUCTIONS, RUNNING, WINDOWS
from .derive import is_array, loops_agree, modes_agree, runs, same_as_jax, smooth
from .opcase import OpCase

_zeros = np.array([[2, 0, 3, 4], [0, 5, 0, 2], [1, 2, 3, 4]], np.float32)
_ties = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [0, 1, 2, 2]], np.float32)
_none = np.zeros((3, 0), np.float32)


def _at(name: str, x: np.ndarray, *args: Any) -> OpCase:
    return OpCase(f"{name}:hard", lambda lax: lambda x: getattr(lax, name)(x, *args), values=(x,))


def _window(name: str, start: float, x: np.ndarray) -> OpCase:
    def fn(lax: Any) -> Any:
        return lambda x: lax.reduce_window(x, start, getattr(lax, name), (2, 3), (1, 2), "SAME")

    return OpCase(f"reduce_window:{name} hard", fn, values=(x,))


def _maxima(label: str) -> OpCase:
    """Return windowed maxima that are finite where a window is all padding."""

    geometry = GEOMETRIES[label]

    def fn(lax: Any) -> Any:
        def maxima(x):
            out = lax.reduce_window(x, -np.inf, lax.max, *geometry)
            return lax.max(out, lax.full_like(out, -9))

        return maxima

    return OpCase(f"reduce_window:max {label} finite", fn, shapes=((4, 6),), dtypes=("float64",))


HARD = [
    *(_at("reduce_prod", x, axes) for x in (_zeros, _none) for axes in ((1,), (0, 1), (0,), ())),
    *(_at(f"reduce_{m}", x, (1,)) for m in ("max", "min") for x in (_ties, _ties.T, _zeros)),
    *(_at(f"cum{m}", _zeros, 1, r) for m in ("max", "min") for r in (False, True)),
    *(_at("cumprod", x, 1, r) for x in (_zeros, _none) for r in (False, True)),
    _at("cumlogsumexp", _none, 1),
    *(
        _window(name, start, x)
        for name, start in (("max", -np.inf), ("min", np.inf), ("add", 0.0))
        for x in (_ties[:2], _zeros)
    ),
]
ROWS = (*REDUCTIONS, *RUNNING, *WINDOWS, *GENERAL, *HARD)
#: JAX has no reverse mode for windows of any function, nor for maxima in windows that are dilated
#: or cut; its derivative of a general reduction forgets the initial value.
BEYOND_JAX = {
    "reduce:lambda add",
    "reduce:named from 2",
    "reduce:two operands",
    "reduce_window:mul same",
    "reduce_window:pair",
}
NOT_FINITE = {"reduce_window:max cut", "reduce_window:max holes"}
#: Its derivative is that of another order of combinations.
NOT_ASSOCIATIVE = "reduce:not associative"


@pytest.mark.parametrize(
    ("case", "signature"),
    runs(
        [r for r in ROWS if r.name not in {*BEYOND_JAX, *NOT_FINITE, NOT_ASSOCIATIVE}],
        ("float32",),
    )
    + runs([*REDUCTIONS, *(r for r in RUNNING if "cumsum" in r.name)], ("complex64",)),
)
def test_same_as_jax(jax, case: OpCase, signature: tuple[str, ...]) -> None:
    """Tangents and cotangents are JAX's."""
    same_as_jax(jax, case, signature)


@pytest.mark.parametrize(
    ("case", "signature"),
    smooth([*ROWS, *map(_maxima, GEOMETRIES)])
    + runs([r for r in ROWS if r.name in BEYOND_JAX or r.name == "cumlogsumexp:complex"]),
)
def test_modes_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(
    ("case", "signature"), runs(ROWS, ("float32", "int32", "bool", "complex64"), is_array)
)
def test_loops_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """A map is the stacked loop."""
    loops_agree(case, signature)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("batched", [(0, None), (None, 0), (0, 0)])
def test_starts_of_lanes(n: int, batched: tuple) -> None:
    """Initial values of general folds may differ from lane to lane."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 2, (3, n, 2) if batched[0] == 0 else (n, 2)).astype(np.float32)
    start = rng.uniform(1, 2, (3,) if batched[1] == 0 else ()).astype(np.float32)

    def total(x, start):
        return lax.reduce(x, start, lambda a, b: lax.add(b, a), (0,))

    def windows(x, start):
        return lax.reduce_window(x, start, lambda a, b: lax.mul(b, a), (2, 1), (1, 1), "SAME")

    for f in (total, windows):
        rows = [
            np.asarray(f(x[i] if batched[0] == 0 else x, start[i] if batched[1] == 0 else start))
            for i in range(3)
        ]
        got = fnarray.vmap(f, in_axes=batched)(x, start)
        np.testing.assert_allclose(np.asarray(got), np.stack(rows), rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence_meets_its_transpose(reverse: bool) -> None:
    """Where tangents of running products obey a recurrence, cotangents obey the one backwards."""
    x, units = np.linspace(-1.5, 1.5, 7), np.eye(7)

    def f(v):
        return lax.cumprod(v, 0, reverse)

    with enable_x64(True):
        columns = np.stack([fnarray.jvp(f, (x,), (e,))[1] for e in units])
        rows = np.stack([fnarray.vjp(f, x)[1](e)[0] for e in units])
    np.testing.assert_allclose(rows, columns.T)


@pytest.mark.parametrize("name", ["cumprod", "cummax", "cumlogsumexp"])
@pytest.mark.parametrize(("axis", "reverse"), [(0, False), (1, True), (2, False)])
def test_compiled_recurrences(name: str, axis: int, reverse: bool) -> None:
    """Compiled, derivatives of running operations are those of the evaluator."""
    rng = np.random.default_rng(0)
    x, ct = (rng.normal(size=(3, 4, 5)).astype(np.float32) for _ in range(2))

    def back(x, ct):
        return fnarray.vjp(lambda v: getattr(lax, name)(v, axis, reverse), x)[1](ct)[0]

    compiled = fnarray.jit(back)(x, ct)
    np.testing.assert_allclose(np.asarray(compiled), np.asarray(back(x, ct)), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["max", "min"])
def test_running_extremes_share_as_reductions(name: str) -> None:
    """Equals share the derivative of a running extreme evenly: it is that of the prefix's.

    JAX's shares depend on how its scan pairs elements: they are even for two equals.
    """
    x = np.array([1, 1, 1, 0, 2, 2, 0, 2, 2, 0, 0, 0], np.float32)
    running, whole = getattr(lax, f"cum{name}"), getattr(lax, f"reduce_{name}")
    rows = fnarray.jacrev(lambda v: running(v, 0))(x)
    for k in range(len(x)):
        prefix = fnarray.grad(lambda v: whole(v, (0,)))(x[: k + 1])
        np.testing.assert_allclose(np.asarray(rows[k])[: k + 1], np.asarray(prefix), rtol=1e-6)
        assert not np.asarray(rows[k])[k + 1 :].any()


def test_computation_beyond_elementwise() -> None:
    """A fold whose function is no elementwise one says so when differentiated."""
    x = np.ones((3, 2), np.float32)

    def f(x):
        return lax.reduce(x, 0.0, lambda a, b: lax.reduce_max(lax.concatenate(
            [lax.reshape(a, (1,)), lax.reshape(b, (1,))], 0), (0,)), (0,))  # fmt: skip

    with pytest.raises(NotImplementedError, match="elementwise"):
        fnarray.jvp(f, (x,), (x,))


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_nothing_have_slopes(reverse):
    """Where the first elements are the logarithm of zero, sums are what comes after: no NaN."""
    x = np.float32([-np.inf, -np.inf, 3, -np.inf])
    found = fnarray.jacrev(lambda x: lax.cumlogsumexp(x, reverse=reverse))(x)
    forward = fnarray.jacfwd(lambda x: lax.cumlogsumexp(x, reverse=reverse))(x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(forward))
    large = [2, 3] if not reverse else [0, 1, 2]
    np.testing.assert_array_equal(np.asarray(found)[large], np.float32([[0, 0, 1, 0]] * len(large)))
