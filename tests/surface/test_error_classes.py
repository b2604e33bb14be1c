"""Errors of arguments that do not fit are of the classes of JAX's, and say more."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray

V = np.arange(6.0, dtype=np.float32)

CALLS = {
    "out of sum": lambda lib: lib.numpy.sum(V, out=V),
    "out of mean": lambda lib: lib.numpy.mean(V, out=V),
    "out of cumsum": lambda lib: lib.numpy.cumsum(V, out=V),
    "out of take": lambda lib: lib.numpy.take(V, np.array([0]), out=V),
    "out of stack": lambda lib: lib.numpy.stack([V], out=V),
    "out of trace": lambda lib: lib.numpy.trace(V.reshape(2, 3), out=V),
    "out of einsum": lambda lib: lib.numpy.einsum("i->", V, out=V),
    "out of median": lambda lib: lib.numpy.median(V, out=V),
    "out of add": lambda lib: lib.numpy.add(V, V, out=V),
    "out of round": lambda lib: lib.numpy.round(V, out=V),
    "out of outer": lambda lib: lib.numpy.outer(V, V, out=V),
    "mode of pad": lambda lib: lib.numpy.pad(V, 1, mode="bad"),
    "option of pad": lambda lib: lib.numpy.pad(V, 1, mode="constant", bad=1),
    "order A": lambda lib: lib.numpy.reshape(lib.numpy.asarray(V), (2, 3), order="A"),
    "order A of a method": lambda lib: lib.numpy.asarray(V).reshape(2, 3, order="A"),
    "order K": lambda lib: lib.numpy.reshape(lib.numpy.asarray(V), (2, 3), order="K"),
    "order F of array": lambda lib: lib.numpy.array(V, order="F"),
    "no x": lambda lib: lib.numpy.where(V, None, V),
    "no y": lambda lib: lib.numpy.where(V, V, None),
    "x alone": lambda lib: lib.numpy.where(V, V),
    "negative repeat": lambda lib: lib.numpy.repeat(V, -1),
    "no device": lambda lib: lib.device_put(V, "bad"),
    "no device of a tree": lambda lib: lib.device_put({"a": V}, {"a": 3}),
}


@pytest.mark.parametrize("name", CALLS)
def test_class_is_jaxs(name):
    """Programs that catch JAX's error catch this one."""
    with pytest.raises(Exception) as wanted:
        CALLS[name](jax)
    with pytest.raises(wanted.type):
        CALLS[name](fnarray)


def _described(x):
    return x.dtype.name, x.weak_type, np.asarray(x).tolist()


SCALARS = [
    np.int8(2), np.uint8(3), np.int32(2), 3, 2.0, 1j, np.float16(1.5), np.bool_(True), True,
]  # fmt: skip


@pytest.mark.parametrize("exponent", [np.uint8(3), np.int8(2), np.int32(3), 2, True])
def test_one_known_integer_exponent_leaves_the_dtype(exponent):
    """Of whatever dtype it is, the result has the base's, weak as the base is; traced, it has not.

    JAX on that, and for the exponent that is an array of no axes.
    """
    for base in [*SCALARS, np.arange(3, dtype=np.int8), np.arange(3, dtype=np.uint32)]:
        for wrap in ("asarray", None):
            got, want = (
                lib.numpy.power(base, getattr(lib.numpy, wrap)(exponent) if wrap else exponent)
                for lib in (fnarray, jax)
            )
            assert got.dtype == want.dtype, (base, exponent, wrap)
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)
        got, want = (lib.jit(lambda x, y: x**y)(base, exponent) for lib in (fnarray, jax))
        assert got.dtype == want.dtype, (base, exponent)


def test_angle_is_that_of_a_complex_number():
    """Of one half 32 bits, as the narrowest complex numbers have; of arrays their dtype."""
    for x in [*SCALARS, fnarray.numpy.bfloat16(-1), np.ones(2, np.float16)]:
        x = np.asarray(x) if isinstance(x, fnarray.Array) else x
        assert _described(fnarray.numpy.angle(x)) == _described(jax.numpy.angle(x))


@pytest.mark.filterwarnings("ignore:.*lpmn")
def test_legendre_functions_have_derivatives():
    """Values and slopes are JAX's, those at the ends included, where slopes may be infinite."""
    z = np.array([-1.0, -0.7, 0.0, 0.25, 0.999, 1.0], np.float32)
    got, want = (lib.scipy.special.lpmn(4, 4, lib.numpy.asarray(z)) for lib in (fnarray, jax))
    np.testing.assert_allclose(got[0], want[0], rtol=2e-5, atol=1e-5)
    # JAX's formula is 0/0 at the ends for some orders.
    known = np.isfinite(np.asarray(want[1])) & (np.abs(z) < 0.99)
    np.testing.assert_allclose(np.asarray(got[1])[known], np.asarray(want[1])[known], rtol=2e-4)
    inner = z[1:4].astype(np.float64)
    slope = fnarray.jacfwd(lambda z: fnarray.scipy.special.lpmn_values(4, 4, z, False).sum(-1))
    for k, x in enumerate(inner):
        np.testing.assert_allclose(
            slope(np.float32([x]))[..., 0], np.asarray(got[1])[..., k + 1], rtol=2e-4, atol=1e-4
        )
    assert np.asarray(got[1])[0, 3, -1] == 6
    assert np.isinf(np.asarray(got[1])[1, 1, [0, -1]]).all()
