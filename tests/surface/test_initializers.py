"""``nn.initializers`` beside JAX's: the same numbers of the same keys."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray.config import enable_x64
from fnarray.nn import initializers as ours

SCALED = [f"{who}_{how}" for who in ("glorot", "lecun", "he") for how in ("normal", "uniform")]
CASES = [
    ("zeros", None, (2, 3), "float32"),
    ("ones", None, (2, 3), "float16"),
    ("constant", (-7,), (2, 3), None),
    ("constant", (np.arange(3),), (2, 3), None),
    ("uniform", (), (5, 7), None),
    ("uniform", (0.3,), (5, 7), "float16"),
    ("normal", (), (5, 7), None),
    ("normal", (2.0,), (5, 7), "bfloat16"),
    ("normal", (2.0,), (5, 7), "complex64"),
    ("truncated_normal", (0.5,), (5, 7), None),
    ("truncated_normal", (0.5, None, -1.0, 3.0), (5, 7), None),
    *((name, (), (6, 8), None) for name in SCALED),
    *((name, (), (3, 6, 8), "bfloat16") for name in SCALED),
    *((name, ((0, 1), 2, ()), (3, 6, 8), None) for name in SCALED),
    ("he_normal", (1, 2, 0), (3, 6, 8), None),
    ("variance_scaling", (2.0, "fan_out", "normal"), (6, 8), None),
    ("variance_scaling", (2.0, "fan_geo_avg", "truncated_normal"), (6, 8), None),
    ("delta_orthogonal", (), (3, 4, 4), None),
    ("delta_orthogonal", (2.0,), (3, 2, 4, 6), None),
    ("delta_orthogonal", (), (3, 3, 2, 2, 3), None),
    ("orthogonal", (), (4, 4), None),
    ("orthogonal", (2.0, 0), (3, 5, 2), None),
    ("orthogonal", (), (7, 2), "complex64"),
    ("orthogonal", (), (0, 2), None),
    ("variance_scaling", (1.0, "fan_in", "uniform"), (6, 8), "complex64"),
    ("variance_scaling", (1.0, "fan_in", "truncated_normal"), (6, 8), "complex64"),
    ("variance_scaling", (1.0, "fan_in", "normal"), (6, 8), "complex64"),
]
#: Error allowed in units in the last place of 1. JAX's own numbers depend on the processor wherever
#: several roundings enter (see test_random); factors of matrices vary more.
UNITS = {"zeros": 0, "ones": 0, "constant": 0, "orthogonal": 100, "delta_orthogonal": 100}


def made(module, name, settings):
    """Return the initializer: the function itself where it takes no settings."""
    return getattr(module, name) if settings is None else getattr(module, name)(*settings)


@pytest.mark.parametrize(("name", "settings", "shape", "dtype"), CASES)
def test_numbers_are_those_of_jax(jax, name, settings, shape, dtype):
    """The same key gives the same weights."""
    more = () if dtype is None else (dtype,)
    want = made(jax.nn.initializers, name, settings)(jax.random.key(3), shape, *more)
    got = made(ours, name, settings)(fnarray.random.key(3), shape, *more)
    assert (got.shape, got.dtype, got.weak_type) == (want.shape, want.dtype, False)
    units = UNITS.get(name, 2 if got.dtype.itemsize == 2 else 16)
    limit = units * float(jax.numpy.finfo(got.dtype).eps) if units else 0
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = (np.asarray(x).astype(wide) for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=limit, atol=limit * np.abs(want).max(initial=0))


def test_double_precision(jax):
    """With 64-bit defaults, weights are float64 and JAX's."""
    with enable_x64(True), jax.enable_x64(True):
        want = jax.nn.initializers.he_uniform()(jax.random.key(0), (4, 5))
        got = ours.he_uniform()(fnarray.random.key(0), (4, 5))
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_compiled_and_mapped():
    """Initializers may be compiled, and mapped over keys."""
    init = ours.lecun_normal()
    keys = fnarray.random.split(fnarray.random.key(1), 3)
    mapped = fnarray.vmap(lambda k: init(k, (4, 2)))(keys)
    compiled = fnarray.jit(lambda k: init(k, (4, 2)))(keys[1])
    np.testing.assert_allclose(mapped[1], init(keys[1], (4, 2)), rtol=1e-6)
    np.testing.assert_allclose(compiled, init(keys[1], (4, 2)), rtol=1e-6)


@pytest.mark.parametrize(
    ("init", "shape", "text"),
    [
        (ours.he_normal(), (3,), "in_axis"),
        (ours.variance_scaling(1.0, "fan", "normal"), (2, 2), "invalid mode"),
        (ours.variance_scaling(1.0, "fan_in", "cauchy"), (2, 2), "invalid distribution"),
        (ours.orthogonal(), (3,), "at least a 2D shape"),
        (ours.delta_orthogonal(), (3, 3), "3D, 4D or 5D"),
        (ours.delta_orthogonal(), (1, 3, 2), "less or equal"),
    ],
)
def test_errors(init, shape, text):
    """What cannot be made is refused when it is asked for."""
    with pytest.raises(ValueError, match=text):
        init(fnarray.random.key(0), shape)


def test_names(jax):
    """Every public name of JAX's module is here."""
    assert set(ours.__all__) == {n for n in dir(jax.nn.initializers) if n[0] != "_"}
