"""Zeros, infinities and NaN, as the array API standard's tables of special cases have them."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import fnarray
from fnarray import numpy as jnp

REAL = [0.0, -0.0, 0.5, -0.5, 2.0, -3.0, 7.25, 3e4, np.inf, -np.inf, np.nan]
PARTS = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]
_EACH = (
    "sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh exp expm1 log log1p "
    "sqrt"
)
COMPLEX = (*_EACH.split(),)


def same_zeros(got, want):
    np.testing.assert_array_equal(got, want)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got)[zero], np.signbit(want)[zero])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_signs_of_quotients_and_remainders(dtype, x64):
    """A zero among quotients has the quotient's sign, a zero among remainders the divisor's."""
    x, y = (np.asarray(a, dtype) for a in np.meshgrid(REAL, REAL))
    with np.errstate(all="ignore"):
        # By 0 a quotient is infinite, as NumPy has it too.
        want = np.floor_divide(x, y), np.remainder(x, y)
    for f in (jnp.divmod, fnarray.jit(jnp.divmod)):
        for got, right in zip(f(x, y), want, strict=True):
            same_zeros(np.asarray(got), right)
    a, b = jnp.asarray(x), jnp.asarray(y)
    for sign, right in zip((operator.floordiv, operator.mod), want, strict=True):
        same_zeros(np.asarray(sign(a, b)), right)


def test_slopes_of_remainders():
    """What signs a zero leaves the slopes alone: 1, and minus the whole quotient."""
    slopes = fnarray.vmap(fnarray.grad(jnp.remainder, (0, 1)))
    x, y = jnp.asarray([4.0, -4.0, 5.0, -5.0, 0.0]), jnp.asarray([2.0, 2.0, 3.0, 3.0, -2.0])
    dx, dy = slopes(x, y)
    np.testing.assert_array_equal(dx, np.ones(5))
    np.testing.assert_array_equal(dy, -np.floor(np.asarray(x) / np.asarray(y)) + 0.0)


def _sized(x):
    """Parts of complex numbers without the signs that C leaves open."""
    return np.abs(np.stack([np.real(x), np.imag(x)]))


def test_complex_functions_at_the_edges(x64):
    """Compiled and eager functions give NumPy's zeros, infinities and NaN, and its corners."""
    z = np.array([complex(x, y) for x in PARTS for y in PARTS])

    def all_of(z):
        return [getattr(jnp, name)(z) for name in COMPLEX]

    for values in (all_of(jnp.asarray(z)), fnarray.jit(all_of)(z)):
        for name, got in zip(COMPLEX, values, strict=True):
            with np.errstate(all="ignore"):
                want = getattr(np, name)(z)
                if name == "expm1":  # NumPy's is NaN at infinities
                    want = np.where(np.isinf(z.real), np.exp(z) - 1, want)
                    want.imag = np.where(z.imag == 0, 0, want.imag)
            np.testing.assert_allclose(
                _sized(got), _sized(want), rtol=1e-12, atol=1e-15, err_msg=name
            )


def test_reshape_takes_copy():
    """Arrays are immutable: what asks for no copy gets the elements, as in JAX."""
    x = jnp.arange(6)
    for copy in (None, True, False):
        assert jnp.reshape(x, (2, 3), copy=copy).shape == (2, 3)


def test_arrays_of_no_axes_are_sizes():
    """A concrete integer is a shape of one axis, an array that holds it too."""
    assert jnp.zeros(jnp.asarray(3)).shape == jnp.ones(np.array(3)).shape == (3,)
    with pytest.raises(TypeError, match=r"concrete integers, got 2\.5\. Shapes must be 1D seq"):
        jnp.zeros(2.5)


def test_dtypes_that_do_not_widen(x64):
    """Bools become integers of 32 bits; quantiles are of the data's dtype, be `q` wider."""
    b = jnp.asarray([True, False])
    for f in (jnp.floor_divide, jnp.remainder, jnp.power):
        assert f(b, b).dtype == np.int32
    assert jnp.power(b, 2).dtype == jnp.square(b).dtype == np.int32
    x, q = jnp.asarray([1.0, 2.0, 4.0], "float32"), jnp.asarray([0.1, 0.9])
    for f in (jnp.quantile, jnp.nanquantile):
        assert f(x, q).dtype == np.float32
        np.testing.assert_allclose(f(x, q), np.quantile(np.asarray(x), np.asarray(q)), rtol=1e-6)
    assert jnp.median(b).dtype == np.float32


def test_integers_have_no_negative_powers():
    """Known as numbers they are refused; NumPy and JAX refuse them too."""
    for exponent in (-1, jnp.asarray(-1), np.int32(-1)):
        with pytest.raises(TypeError, match=r"negative|no integer power"):
            jnp.power(jnp.asarray([2, 3]), exponent)
