"""Derivatives and batches of contractions."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import lax

from .cases_reduce import _CONTRACTIONS, CONTRACTIONS
from .derive import is_array, loops_agree, modes_agree, runs, same_as_jax, smooth
from .opcase import OpCase


@pytest.mark.parametrize(("case", "signature"), runs(CONTRACTIONS, ("float32", "complex64")))
def test_same_as_jax(jax, case: OpCase, signature: tuple[str, ...]) -> None:
    """Tangents and cotangents are JAX's."""
    same_as_jax(jax, case, signature, ulp=2.0**15 if "float16" in case.name else 0)


@pytest.mark.parametrize(
    ("case", "signature"),
    smooth(CONTRACTIONS) + runs([r for r in CONTRACTIONS if r.name.startswith("dot_general")]),
)
def test_modes_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(
    ("case", "signature"), runs(CONTRACTIONS, ("float32", "int32", "complex64"), is_array)
)
def test_loops_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """A map is the stacked loop."""
    loops_agree(case, signature, ulp=32)


_DIMS = (((3, 1), (0, 2)), ((0,), (3,)))


@pytest.mark.parametrize("axes", [(0, None), (None, 0)])
def test_one_side_is_not_spread(axes: tuple) -> None:
    """An operand without the mapped axis is contracted as it is: nothing of it is repeated."""
    shapes = ((2, 3, 4, 5), (5, 6, 3, 2))
    x, y = (
        np.ones((7, *s) if a == 0 else s, np.float32) for s, a in zip(shapes, axes, strict=True)
    )
    f = fnarray.vmap(lambda x, y: lax.dot_general(x, y, _DIMS), in_axes=axes)
    names = [e.primitive.name for e in fnarray.make_jaxpr(f)(x, y).eqns]
    assert names.count("dot_general") == 1
    assert set(names) <= {"dot_general", "transpose"}


@pytest.mark.parametrize("label", ["nn", "tt", "batch inside", "two axes"])
def test_gradient_as_jax_records_it(jax, label: str) -> None:
    """The gradient's graph is JAX's: a product for each operand, and no transpose too many."""
    a, b, dims = _CONTRACTIONS[label]
    args = np.ones(a, np.float32), np.ones(b, np.float32)

    def loss(lax):
        def f(x, y):
            out = lax.dot_general(x, y, dims)
            return lax.reduce_sum(out, tuple(range(out.ndim)))

        return f

    ours = fnarray.make_jaxpr(fnarray.grad(loss(lax), argnums=(0, 1)))(*args)
    assert str(ours) == str(jax.make_jaxpr(jax.grad(loss(jax.lax), argnums=(0, 1)))(*args))
