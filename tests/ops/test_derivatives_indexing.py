"""Derivatives and batches of slices at run time, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.errors import MissingRuleError

from .derive import frozen, is_array, loops_agree, modes_agree, runs, same_as_jax
from .opcase import OpCase
from .test_index import _draw as draw_windows

rng = np.random.default_rng(3)


# ---- rows ----------------------------------------------------------------------------------------


def _dynamic(name: str, fn: Callable[[Any], Callable[..., Any]], *shapes: tuple[int, ...]):
    """Rows of one operation at starts inside and outside, which lanes do not share."""
    floats = tuple(rng.normal(size=s).astype(np.float32) for s in shapes)
    return [
        OpCase(f"{name}:{k}", fn, values=(*floats, np.array(starts, np.int32)))
        for k, starts in enumerate(((0, 1), (-1, 2), (9, -9)))
    ]


DYNAMIC = [
    *_dynamic(
        "dynamic_slice", lambda lax: lambda x, i: lax.dynamic_slice(x, i, (2, 3)), (3, 4)
    ),
    *_dynamic(
        "dynamic_slice:whole", lambda lax: lambda x, i: lax.dynamic_slice(x, i, (3, 2)), (3, 4)
    ),
    *_dynamic(
        "dynamic_slice:still", lambda lax: lambda x, i: lax.dynamic_slice(x, i, (3, 4)), (3, 4)
    ),
    *_dynamic(
        "dynamic_update_slice",
        lambda lax: lambda x, u, i: lax.dynamic_update_slice(x, u, i),
        (3, 4),
        (2, 3),
    ),
    *_dynamic(
        "dynamic_update_slice:row",
        lambda lax: lambda x, u, i: lax.dynamic_update_slice(x, u, i),
        (3, 4),
        (1, 4),
    ),
    *_dynamic(
        "dynamic_update_slice:still",
        lambda lax: lambda x, u, i: lax.dynamic_update_slice(x, u, i),
        (3, 4),
        (3, 4),
    ),
    OpCase("dynamic_slice:scalar", lambda lax: lambda x: lax.dynamic_slice(x, (), ()),
           values=(np.array(2, np.float32),)),
]  # fmt: skip


def _windows(seed: int) -> list[OpCase]:
    """A gather and a scatter by random dimension numbers, repeated and outside places included."""
    x, indices, numbers, sizes, _, _ = draw_windows(seed)
    mode = ("fill", "clip")[seed % 2]
    x = rng.normal(size=np.shape(x)).astype(np.float32)

    def gather(lax: Any) -> Callable[..., Any]:
        dims = lax.GatherDimensionNumbers(*numbers)
        return lambda x, i: lax.gather(x, i, dims, sizes, mode=mode, fill_value=2)

    name = ("scatter", "scatter_add", "scatter_sub")[seed // 3 % 3]

    def scatter(lax: Any) -> Callable[..., Any]:
        dims = lax.ScatterDimensionNumbers(*numbers)
        return lambda x, i, u: getattr(lax, name)(x, i, u, dims, mode=mode)

    updates = rng.normal(size=gather(lax)(x, indices).shape).astype(np.float32)
    return [
        OpCase(f"gather:{seed}", gather, values=(x, indices)),
        OpCase(f"{name}:{seed}", scatter, values=(x, indices, updates)),
    ]


WINDOWS = [case for seed in range(18) for case in _windows(seed)]


def _line(name: str, **params: Any) -> Callable[[Any], Callable[..., Any]]:
    def fn(lax: Any) -> Callable[..., Any]:
        dims = lax.ScatterDimensionNumbers((), (0,), (0,))
        scatter = partial(getattr(lax, name), dimension_numbers=dims, **params)
        return lambda x, i, u: scatter(x, i, u)

    return fn


def _f(*xs: float) -> np.ndarray:
    return np.array(xs, np.float32)


_AT = np.array([[0], [0], [2], [3], [3], [3]], np.int32)
_APART = np.array([[3], [0], [2]], np.int32)
#: Ties between updates, and of updates with the operand.
TIES = [
    OpCase(name, _line(name), values=(_f(1, 2, 3, 4, np.nan), _AT, _f(1, 1, 5, 0, 0, 9)))
    for name in ("scatter_max", "scatter_min")
]
EXTREMES = [
    OpCase(name, _line(name), values=(_f(1, 2, 3, 4), _AT, _f(1.5, 0.5, 5, 0, -1, 9)))
    for name in ("scatter_max", "scatter_min")
]
PRODUCTS = [
    OpCase("scatter_mul", _line("scatter_mul", unique_indices=True),
           values=(_f(1, 2, 0, 4), _APART, _f(0.5, 0, 3))),
]  # fmt: skip
ROWS = (*DYNAMIC, *WINDOWS, *EXTREMES, *PRODUCTS)


# ---- tests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "signature"), runs((*ROWS, *TIES)))
def test_same_as_jax(jax, case: OpCase, signature: tuple[str, ...]) -> None:
    """Tangents and cotangents are JAX's."""
    same_as_jax(jax, case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS))
def test_modes_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(ROWS, active=is_array))
def test_loops_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """A map is the stacked loop."""
    loops_agree(case, signature)


def test_slices_with_one_start_stay_slices():
    """A mapped slice whose start lanes share is a slice; only starts of their own make gathers."""
    x, u, i = np.ones((3, 5, 4), np.float32), np.ones((3, 2, 4), np.float32), np.int32(1)

    def both(x, u, i):
        return lax.dynamic_slice(x, (i, 0), (2, 4)), lax.dynamic_update_slice(x, u, (i, 0))

    def used(in_axes, i):
        mapped = fnarray.vmap(both, in_axes=in_axes)
        return {eqn.primitive.name for eqn in fnarray.make_jaxpr(mapped)(x, u, i).eqns}

    shared = used((0, 0, None), i)
    assert {"dynamic_slice", "dynamic_update_slice"} <= shared
    assert not {"gather", "scatter"} & shared
    assert {"gather", "scatter"} <= used((0, 0, 0), np.arange(3, dtype=np.int32))


def test_what_has_no_rule_says_so():
    """Factors that multiply each other, and functions applied again, have no derivative rule."""
    x, at, u = frozen((_f(1, 2, 3), np.array([[0], [0]], np.int32), _f(4, 5)))
    dims = lax.ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(MissingRuleError, match="unique_indices=True"):
        fnarray.jvp(lambda u: lax.scatter_mul(x, at, u, dims), (u,), (u,))
    with pytest.raises(MissingRuleError, match="Gather the elements"):
        fnarray.jvp(
            lambda x: lax.scatter_apply(x, at, lax.sin, dims, update_shape=(2,)), (x,), (x,)
        )
    # One window cannot meet another: no promise is needed.
    one = fnarray.jvp(lambda u: lax.scatter_mul(x, at[0], u, dims), (u[0],), (u[0],))[1]
    np.testing.assert_array_equal(one, [4, 0, 0])


def test_compiled_as_evaluated():
    """Batched derivatives of gather, scatter, slices and sorts, compiled, agree with eager mode."""
    x = rng.normal(size=(3, 6)).astype(np.float32)
    i = np.array([[1, 4, 1], [0, -1, 9], [5, 5, 5]], np.int32)

    def loss(x, i):
        picked = fnarray.numpy.sort(x.at[i].add(x[i] ** 2).at[i].set(x[:3] ** 2).at[i].max(x[i]))
        cut = lax.dynamic_slice(picked, (i[0],), (4,)) * lax.top_k(x, 4)[0]
        return fnarray.numpy.sum(lax.dynamic_update_slice(picked, cut, (i[2],)) ** 2)

    slopes = fnarray.vmap(fnarray.grad(loss))
    np.testing.assert_allclose(fnarray.jit(slopes)(x, i), slopes(x, i), rtol=1e-5)
