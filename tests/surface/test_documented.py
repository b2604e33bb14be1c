"""Uses that JAX's docstrings show, and that go beyond NumPy's or its own types: against JAX."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray
import fnarray.custom_batching
from fnarray import export
from fnarray import numpy as jnp

LINES = """
np_.power(2.0, 2**40)
np_.float32(0.5) ** (-(2**35))
np_.arange(3) ** (2**40)
np_.array([True, False]) ** (2**40)
np_.r_["r", [1, 2, 3], [4, 5, 6]]
np_.r_["c", [1, 2, 3], [4, 5, 6]]
np_.c_["r", [1, 2, 3], [4, 5, 6]]
np_.c_["c", [1, 2, 3]]
np_.fromfunction(lambda x: (x + 1) * np_.arange(3), shape=(2,))
np_.fromfunction(lambda x, y: (x + y, x * y), shape=(3, 5))
np_.fromfunction(np_.multiply, shape=(3, 6), dtype=int)
np_.piecewise(np_.arange(9), np_.array([False, True]), [lambda x: x * 0, lambda x: x * 10])
np_.polyadd(np_.array([[2, 3, 1]]), np_.array([[5, 7, 3], [8, 2, 6]]))
np_.polysub(np_.array([[5, 7, 9], [8, 6, 4]]), np_.array([2]))
np_.polysub(np_.array([2]), np_.array([5, 7, 9]))
np_.poly(np_.array([[2, 1, 5], [3, 4, 7], [1, 3, 5]]))
np_.poly(np_.array([2, 1 + 2j, 1 - 2j]))
lax.broadcast_in_dim(np_.arange(6).reshape(3, 2), (2, 3, 4), (1, 0))
"""


@pytest.mark.parametrize("line", [x for x in LINES.splitlines() if x])
def test_documented(line):
    """Values, dtypes and shapes are JAX's."""
    want = eval(line, {"np_": jax.numpy, "lax": jax.lax})
    got = eval(line, {"np_": jnp, "lax": fnarray.lax})
    for a, b in zip(fnarray.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)


def test_axes_are_exchanged_with_derivatives():
    """A broadcast out of order is a transpose as well, of cotangents too."""
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    weight = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)

    def total(np_, lax):
        return lambda x: (lax.broadcast_in_dim(x, (2, 3, 4), (1, 0)) * weight).sum()

    got = fnarray.grad(total(jnp, fnarray.lax))(x)
    np.testing.assert_allclose(got, weight.sum(2).T, rtol=1e-6)


def test_a_rule_for_each_of_two_transforms():
    """A custom_vjp around a custom_vmap is given the rules of both."""

    @fnarray.custom_vjp
    @fnarray.custom_batching.custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    @f.def_vmap
    def _mapped(axis_size, in_batched, xs, ys):
        return jnp.cos(xs) * ys, True

    f.defvjp(
        lambda x, y: (f(x, y), (jnp.cos(x), jnp.sin(x), y)),
        lambda kept, g: (kept[0] * g * kept[2], kept[1] * g),
    )
    np.testing.assert_array_equal(fnarray.vmap(f)(jnp.zeros(3), jnp.ones(3)), np.ones(3))
    assert fnarray.grad(f)(0.0, 1.0) == 1.0
    with pytest.raises(AttributeError, match="has no attribute 'defother'"):
        _ = f.defother


def test_functions_of_the_package_are_exported_as_they_are():
    """A function of `fnarray.numpy` needs no jit, as JAX's are compiled already."""
    x = np.array([0.1, 0.2], np.float32)
    program = export.deserialize(export.export(jnp.sin)(x).serialize())
    np.testing.assert_allclose(program.call(x), np.sin(x), rtol=1e-6)


def test_in_asks_for_an_element():
    """``x in array`` compares with every element."""
    x = jnp.arange(6).reshape(2, 3)
    assert 5 in x
    assert 6 not in x
