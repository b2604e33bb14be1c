"""Types of 8 bits and fewer: stored as ml_dtypes has them, computed with by its functions."""

from __future__ import annotations

import jax.numpy
import ml_dtypes
import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.core import dtypes
from fnarray.core.small import SMALL
from fnarray.errors import TypePromotionError

NAMES = [d.name for d in SMALL]
X = np.array([1.25, -2.0, 0.5], np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_every_type_is_converted_and_back(name):
    """Values go to a small type as ml_dtypes rounds them, and come back, compiled or not."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    most = jnp.iinfo(name).max if dtypes.is_integer(dtype) else 2
    x = np.array([most / 2 if most > 1 else 0, most], np.float32)
    for convert in (lambda x: x.astype(name), fnarray.jit(lambda x: x.astype(name))):
        small = convert(jnp.asarray(x))
        assert small.dtype == dtype == getattr(jnp, name).dtype
        np.testing.assert_array_equal(np.asarray(small), x.astype(dtype))
        np.testing.assert_array_equal(small.astype("float32"), x.astype(dtype).astype("float32"))
    assert jnp.zeros(3, name).itemsize == dtype.itemsize


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2"])
def test_promotion_is_jaxs(name):
    """Small floats take in integers and Python numbers; nothing joins them to other types."""
    for other in ("float32", "bfloat16", "int32", "int8", "bool", name):
        try:
            wanted = jax.numpy.promote_types(name, other)
        except jax.dtypes.TypePromotionError:
            with pytest.raises(TypePromotionError, match="no implicit promotion"):
                jnp.promote_types(name, other)
        else:
            assert jnp.promote_types(name, other) == wanted


def test_families_and_limits():
    """Small types belong to the families of numbers, and have limits."""
    assert jnp.issubdtype(jnp.float8_e5m2, jnp.floating)
    assert jnp.issubdtype(jnp.int4, jnp.signedinteger)
    assert not jnp.issubdtype(jnp.uint4, jnp.signedinteger)
    assert (float(jnp.finfo("float8_e4m3fn").max), jnp.iinfo("int4").max) == (448, 7)
    assert [fnarray.dtypes.itemsize_bits(n) for n in ("int4", "float8_e5m2")] == [4, 8]


def _work(x):
    """Arithmetic, a reduction, moves and a loop on a small type."""
    y = lax.fori_loop(0, 2, lambda i, c: c + x, x)
    return (y * 2)[::-1], x.max(), jnp.where(x > 0, x, -x), jnp.exp(x).astype("float32")


def test_programs_are_compiled_with_steps_on_the_host():
    """Compiled programs do what they do operation by operation."""
    x = jnp.asarray(X).astype("float8_e5m2")
    for got, want in zip(fnarray.jit(_work)(x), _work(x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    through = fnarray.grad(lambda x: (x.astype("float8_e4m3fn").astype("float32") ** 2).sum())
    np.testing.assert_array_equal(fnarray.jit(through)(X), 2 * X)


def test_products_of_small_types_add_up_in_wider_ones():
    """Quantized products: of 8-bit floats to float32, of 4-bit integers to int32."""
    numbers = (((1,), (0,)), ((), ()))
    for name, out in (("float8_e4m3fn", "float32"), ("int4", "int32")):
        a, b = jnp.ones((2, 30), name), jnp.ones((30, 2), name)

        def product(a, b, out=out):
            return lax.dot_general(a, b, numbers, preferred_element_type=out)

        for got in (product(a, b), fnarray.jit(product)(a, b)):
            assert got.dtype == out
            np.testing.assert_array_equal(got, np.full((2, 2), 30))
