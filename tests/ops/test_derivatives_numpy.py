"""Derivatives and batches of indexing and of moving elements, as users of ``numpy`` write them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp
from fnarray import lax

from .derive import is_array, loops_agree, modes_agree, runs, same_as_jax
from .opcase import OpCase

_X = np.random.default_rng(4).normal(size=(4, 5)).astype(np.float32)
_OPERANDS = {
    "x": _X,
    "v": _X[::-1, 2] + 1,
    "i": np.array([1, 3, 1], np.int32),
    "m": np.float32(0.3) < _X,
}

#: Expressions of a matrix, a vector as long as its columns, repeated indices and a mask.
TEXTS = """
x[i]
x[i[0]]
x[-1, ::-2]
x[1:3, ::2]
x[:, i]
x[i, i]
x[i, 1:3]
x[i[0], i]
x[None, i, ..., None]
x[v.argmax()]
v[i - 3]
v.at[i + 2].get(mode='fill', fill_value=0)
v.at[i + 2].get(mode='clip')
jnp.where(m, x, 0.0)
jnp.where(m, x**2, v[:, None])
jnp.where(m, jnp.log(jnp.where(m, x, 1.0)), -x)
jnp.select([x > 1, m], [x, x**2], -x)
jnp.choose(i, [v[:3], x[0, :3]], mode='wrap')
x.at[i].set(1.0)
x.at[i].set(x[:3] ** 2)
x.at[i[0]].set(v[0])
x.at[:, i].set(v[:, None])
x.at[::2, ::-1].set(x[::2] ** 2)
x.at[i].add(x[:3] ** 2)
x.at[i, i].subtract(v[:3] ** 2)
x.at[::2].multiply(v[0])
x.at[i[0]].divide(v[1])
x.at[i[0]].power(2)
x.at[i].max(x[:3])
x.at[1:].min(x[:3])
v.at[i + 2].add(x[0, :3])
v.at[i + 2].set(x[0, :3], mode='clip')
jnp.take(x, i, axis=1)
jnp.take(x, i * 3, mode='wrap')
jnp.take_along_axis(x, jnp.argsort(x, axis=1), 1)
jnp.put_along_axis(x, i[:1, None], v[0], 1, inplace=False)
jnp.fill_diagonal(x, v[0], inplace=False)
jnp.roll(x, (1, -2), (0, 1))
jnp.roll(x, i[0], 1)
jnp.pad(x, ((1, 0), (0, 2)), constant_values=2.0)
jnp.pad(x, 2, mode='edge')
jnp.pad(x, 5, mode='reflect')
jnp.pad(x, 2, mode='reflect', reflect_type='odd')
jnp.pad(x, 3, mode='symmetric')
jnp.pad(x, 6, mode='wrap')
jnp.pad(x, 2, mode='linear_ramp', end_values=1.0)
jnp.pad(x, 2, mode='mean', stat_length=2)
jnp.pad(x, 2, mode='maximum')
jnp.concatenate([x, x**2, jnp.ones((4, 1))], 1)
jnp.stack([x, x**2], 1)
jnp.block([[x, x], [x**2, -x]])
jnp.split(x, [1, 3], 1)
jnp.unstack(x, axis=1)
jnp.append(x, v)
jnp.flip(x)
jnp.rot90(x)
jnp.tril(x)
jnp.triu(x, 1)
jnp.diag(v, 1)
jnp.diagonal(x, 1)
jnp.repeat(x, 3, axis=1)
jnp.repeat(v, i[0] * jnp.ones(4, int), total_repeat_length=7)
jnp.tile(x, (2, 1))
jnp.broadcast_to(x[:, :1], (2, 4, 5))
jnp.reshape(x, (5, 4), order='F')
jnp.moveaxis(x[None], 0, 2)
jnp.insert(x, 1, x[0] ** 2, axis=0)
jnp.delete(x, 1, axis=0)
jnp.sort(x, axis=0)
jnp.sort(x, axis=None, descending=True)
x[jnp.arange(4), jnp.argmax(x, axis=1)]
jnp.unique(v, size=3)
jnp.median(x, axis=1)
jnp.quantile(x, 0.3, axis=0)
jnp.diff(x, n=2)
jnp.bincount(i, weights=v[:3], length=4)
jnp.resize(x, (3, 3))
""".strip().splitlines()

#: Where elements tie, what JAX makes of it is the convention.
TIES = """
x.at[i].max(x[i])
x.at[1:].min(x[1:])
x.at[0].max(0.0)
jnp.sort(jnp.round(x), axis=1)
jnp.max(jnp.round(x) * x, axis=0)
jnp.clip(x, x[0], 2.0)
jnp.median(jnp.round(x) + 0 * x, axis=1)
""".strip().splitlines()


def _row(text: str) -> OpCase:
    used = [name for name in _OPERANDS if re.search(rf"\b{name}\b", text)]

    def fn(module: Any) -> Callable[..., Any]:
        if module is lax:
            jnp = fnp
        else:
            import jax.numpy as jnp
        given = eval(f"lambda {', '.join(used)}: {text}", {"jnp": jnp})
        return lambda *xs: given(*map(jnp.asarray, xs))

    return OpCase(text, fn, values=tuple(_OPERANDS[name] for name in used))


@pytest.mark.parametrize(("case", "signature"), runs(map(_row, TEXTS)))
def test_modes_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree."""
    modes_agree(case, signature, order=1)


@pytest.mark.parametrize(("case", "signature"), runs(map(_row, TEXTS), active=is_array))
def test_loops_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """A map is the stacked loop, whether values, indices or both differ between lanes."""
    loops_agree(case, signature)


@pytest.mark.parametrize(("case", "signature"), runs(map(_row, TIES)))
def test_ties(jax, case: OpCase, signature: tuple[str, ...]) -> None:
    """Tangents and cotangents are JAX's where elements tie."""
    same_as_jax(jax, case, signature)


@pytest.mark.parametrize(
    ("text", "slopes"),
    [
        ("v[v > 0]", [0, 1, 0, 0, 1, 1]),
        ("v[jnp.nonzero(v)]", [0, 1, 1, 0, 1, 1]),
        ("jnp.trim_zeros(v) * 2", [0, 2, 2, 2, 2, 2]),
        ("jnp.unique(v)", [1, 1, 1, 0, 1, 0]),
        ("jnp.setdiff1d(v, jnp.array([3.0]))", [1, 1, 1, 0, 0, 0]),
    ],
)
def test_shapes_that_depend_on_values(text: str, slopes: list[float]) -> None:
    """Outside ``jit`` values are known: sets of them have shapes, and derivatives of their own."""
    v = np.array([0, 1.5, -2, 0, 3, 1.5], np.float32)
    total = eval(f"lambda v: jnp.sum({text})", {"jnp": fnp})
    np.testing.assert_array_equal(fnarray.grad(total)(v), slopes)
