"""Derivatives and batches of sorting and selection; batches of random bits over keys."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.ops.random_bits import random_bits, random_fold_in, random_split, threefry2x32
from fnarray.ops.random_floats import (
    multiply_add,
    sample_erf_inv,
    sample_log,
    sample_log1p,
)

from .derive import is_array, loops_agree, modes_agree, runs, same_as_jax, smooth
from .opcase import OpCase

#: NaN, zeros of both signs and equal elements: the order among them decides where tangents go.
_TIES = np.array([[2, np.nan, 2, -0.0], [0.0, 1, -0.0, 1], [np.inf, 1, -np.inf, 1]], np.float32)
_KEYS = np.array([[1, 0, 1, 0], [2, 2, 2, 2], [0, 3, 1, 2]], np.int32)
_X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5


def _by_keys(num_keys: int):
    return lambda lax: lambda *xs: lax.sort(xs, dimension=0, num_keys=num_keys)


SORTS = [
    OpCase("sort", dtypes="fiuc", params={"dimension": 0}),
    OpCase("sort:last", lambda lax: lambda x: lax.sort(x), shapes=((2, 3, 4),)),
    OpCase("sort:keys", _by_keys(1), shapes=((3, 4),) * 2, dtypes="f"),
    OpCase("sort:more", _by_keys(2), values=(_KEYS, _X, -_X)),
    OpCase("sort:empty", lambda lax: lambda x: lax.sort(x), shapes=((3, 0),)),
    OpCase("sort_key_val", values=(_KEYS, _X)),
    OpCase("top_k", params={"k": 2}, dtypes="fiu"),
    OpCase("top_k:axis", lambda lax: lambda x: lax.top_k(x, 2, axis=0)),
    OpCase("top_k:none", lambda lax: lambda x: lax.top_k(x, 0)),
    OpCase("approx_max_k", params={"k": 2}),
    OpCase("approx_min_k", params={"k": 2, "reduction_dimension": 0}),
]
TIES = [
    OpCase("sort:ties", lambda lax: lambda x: lax.sort(x, dimension=1), values=(_TIES,)),
    OpCase("top_k:ties", lambda lax: lambda x: lax.top_k(x, 3), values=(_TIES,)),
]


@pytest.mark.parametrize(("case", "signature"), runs((*SORTS, *TIES)))
def test_same_as_jax(jax, case: OpCase, signature: tuple[str, ...]) -> None:
    """Tangents and cotangents are JAX's, also where elements tie."""
    same_as_jax(jax, case, signature)


@pytest.mark.parametrize(("case", "signature"), smooth(SORTS))
def test_modes_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize(
    ("case", "signature"), runs((*SORTS, *TIES), ("float32", "int32", "complex64"), is_array)
)
def test_loops_agree(case: OpCase, signature: tuple[str, ...]) -> None:
    """A map is the stacked loop."""
    loops_agree(case, signature)


# ---- random bits and floats ----------------------------------------------------------------------

_WORDS = np.array([7, 2**31], np.uint32)
_DATA = np.array(5, np.uint32)
KEYED = [
    OpCase("threefry2x32", lambda lax: threefry2x32,
           values=(np.uint32([1]), np.uint32([2]), np.uint32([[3, 4]])[0], np.uint32([5, 6]))),
    OpCase("random_bits", lambda lax: lambda key: random_bits(key, 32, (2, 3)), values=(_WORDS,)),
    OpCase("random_bits:narrow", lambda lax: lambda key: random_bits(key, 8, (5,)),
           values=(_WORDS,)),
    OpCase("random_bits:many", lambda lax: lambda key: random_bits(key, 64, (3,)),
           values=(np.stack([_WORDS, _WORDS + 1]),)),
    OpCase("random_split", lambda lax: lambda key: random_split(key, (3,)), values=(_WORDS,)),
    OpCase("random_fold_in", lambda lax: random_fold_in, values=(_WORDS, _DATA)),
]  # fmt: skip


@pytest.mark.parametrize("partitionable", [True, False])
@pytest.mark.parametrize(("case", "signature"), runs(KEYED, active=is_array))
def test_keys_map(case: OpCase, signature: tuple[str, ...], partitionable: bool) -> None:
    """Bits of a batch of keys are those of each key, in either order of counters."""
    with fnarray.threefry_partitionable(partitionable):
        loops_agree(case, signature)


FLOATS = [
    OpCase("multiply_add", lambda lax: multiply_add, shapes=((3, 4), (), (3, 4))),
    OpCase("sample_log", lambda lax: sample_log, domain=(0.1, 1)),
    OpCase("sample_log1p", lambda lax: sample_log1p, domain=(-0.9, 1)),
    OpCase("sample_erf_inv", lambda lax: sample_erf_inv, domain=(-0.9, 0.9)),
]


@pytest.mark.parametrize(("case", "signature"), smooth(FLOATS))
def test_floats_have_derivatives(case: OpCase, signature: tuple[str, ...]) -> None:
    """Forward mode, reverse mode and differences agree, to second order."""
    modes_agree(case, signature)


@pytest.mark.parametrize("case", FLOATS, ids=lambda case: case.name)
def test_floats_in_single_precision(case: OpCase) -> None:
    """Derivatives of the roundings of XLA are those of the functions that they round."""
    single, double = (case.args((dtype,) * len(case.shapes)) for dtype in ("float32", "float64"))
    face = case.fn(lax)
    for k in range(len(single)):
        ones = [np.full_like(x, i == k) for i, x in enumerate(single)]
        got = fnarray.jvp(face, single, tuple(ones))[1]
        with fnarray.enable_x64(True):
            want = fnarray.jvp(face, double, tuple(np.float64(t) for t in ones))[1]
        np.testing.assert_allclose(got, want, rtol=2e-5)


@pytest.mark.parametrize("name", ["gamma", "loggamma"])
def test_gamma_samples_follow_their_parameter(jax, name: str) -> None:
    """The derivative by ``a`` is JAX's, that of a sample at a fixed place of the distribution."""
    a = np.array([0.01, 0.5, 1, 30], np.float32)
    key = np.array([1, 2], np.uint32)
    got, want = (
        module.jvp(partial(getattr(module.random, name), key), (a,), (np.ones_like(a),))
        for module in (fnarray, jax)
    )
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4)


def test_gamma_samples_of_many_keys() -> None:
    """Samples of a batch of keys are those of each key."""
    keys = np.arange(6, dtype=np.uint32).reshape(3, 2)

    def draw(key):
        return fnarray.random.gamma(key, 2.5, (4,))

    np.testing.assert_array_equal(fnarray.vmap(draw)(keys), [draw(key) for key in keys])
