"""Quantiles of weighted elements, beside JAX's."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import fnarray.numpy as jnp

RNG = np.random.default_rng(0)
A = RNG.integers(0, 9, (3, 4, 5)).astype(np.float32)
A[0, 1, 2] = np.nan
AXES = [
    (2, (5,)), (1, (4,)), (0, (3,)), (-1, (5,)), ((0, 1), (3, 4)), ((1, 2), (4, 5)),
    ((0, 2), (3, 5)), (1, (3, 4, 5)), ((0, 2), (3, 4, 5)), (None, (3, 4, 5)),
]  # fmt: skip


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize(("axis", "shape"), AXES)
def test_weights_are_of_all_or_of_the_axes(name, axis, shape):
    """Weights of every element, or of those along the axes alone."""
    weights = RNG.integers(1, 4, shape).astype(np.float32)
    options = {"axis": axis, "weights": weights, "method": "inverted_cdf"}
    got = getattr(jnp, name)(A, np.float32([0.2, 0.5, 0.9]), **options)
    want = getattr(jax.numpy, name)(A, jax.numpy.array([0.2, 0.5, 0.9]), **options)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("axis", "shape"), [(1, (5,)), (None, (60,)), ((0, 1), (4, 3)), ((1, 2), (5, 4)), (1, (4, 1))]
)
def test_other_weights_are_refused(axis, shape):
    """Weights of another shape are no weights, though they be as many."""
    options = {"axis": axis, "weights": np.ones(shape, np.float32), "method": "inverted_cdf"}
    for library in (jax.numpy, jnp):
        with pytest.raises(ValueError, match=r"(?i)weights"):
            library.nanquantile(A, 0.5, **options)
