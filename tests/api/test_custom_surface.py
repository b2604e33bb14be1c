"""Functions of the surface that have rules of their own, and the checks of derivatives."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.test_util import check_grads as jax_check_grads

import fnarray
import fnarray.nn
import fnarray.numpy
import fnarray.scipy.special
from fnarray.test_util import check_grads

POINTS = np.array([-3, -1, -0.5, 0, 0.5, 1, 3, 6, 30, np.nan], np.float32)


@pytest.mark.parametrize("name", ["nn.relu", "nn.relu6", "nn.log1mexp", "numpy.sinc", "nn.silu"])
def test_gradients_at_hard_points(name):
    """Activations and sinc have JAX's derivatives where formulas break down, to second order."""

    def grads(m):
        module, function = name.split(".")
        f = getattr(getattr(m, module), function)

        def once(x):
            return m.grad(lambda x: f(x).sum())(x)

        return once(POINTS), m.grad(lambda x: once(x).sum())(POINTS)

    for got, wanted in zip(grads(fnarray), grads(jax), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "entr", "logit", "log_ndtr"])
def test_special_functions_at_hard_points(name):
    """Entropies and logarithms have JAX's derivatives at 0."""
    points = np.array([0, 0.5, 1, 2], np.float32)

    def grads(m):
        f = getattr(m.scipy.special, name)
        count = 2 if name.startswith("xlog") else 1
        grid = np.meshgrid(*[points] * count)
        return m.grad(lambda *xs: f(*xs).sum(), tuple(range(count)))(*grid)

    for got, wanted in zip(grads(fnarray), grads(jax), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-4, atol=1e-5)


# ---- check_grads ---------------------------------------------------------------------------------


def test_check_grads_accepts_and_rejects():
    """Right derivatives pass to second order; wrong ones are named by path."""
    check_grads(lambda d: d["x"] ** 3 * d["n"], ({"x": np.arange(3, dtype=np.float32), "n": 2},), 2)
    check_grads(lambda z: z**3 + fnarray.numpy.conj(z) * 1j, (np.array([1 + 2j], "complex64"),), 1)
    wrong = fnarray.custom_jvp(lambda x, y: fnarray.numpy.sin(x) * y)
    wrong.defjvps(lambda t, out, x, y: 10 * t * y, None)
    with pytest.raises(AssertionError, match="JVP"):
        check_grads(wrong, (1.0, 1.0), 1, modes=("fwd",))
    with pytest.raises(AssertionError, match="VJP"):
        check_grads(wrong, (1.0, 1.0), 1, modes=("rev",))
    with pytest.raises(ValueError, match="modes"):
        check_grads(wrong, (1.0, 1.0), 1, modes=("sideways",))


def test_check_grads_of_what_is_steep():
    """Differences of float32 numbers pass where the third derivative is large, as JAX's do."""

    jax_check_grads(lambda x: jax.numpy.exp(40 * x), (0.1,), 1)
    check_grads(lambda x: fnarray.numpy.exp(40 * x), (0.1,), 1)
    check_grads(lambda x, n: fnarray.numpy.exp(40 * x) * n, (0.1, 2), 1)


def test_check_grads_within_a_small_domain():
    """A step that leaves the domain of a function is no reason to refuse its derivatives."""
    x = np.array([1e-3, 0.5], np.float32)
    jax_check_grads(lambda x: jax.numpy.where(x < 0, 1.0, x), (x,), 1)
    check_grads(lambda x: fnarray.numpy.where(x < 0, 1.0, x), (x,), 1)


def test_check_grads_in_double_precision(x64):
    """Tolerances follow the dtype."""
    check_grads(lambda x, y: fnarray.numpy.sin(x) * y, (np.ones(3), 2.0), 3)
    slightly = fnarray.custom_jvp(fnarray.numpy.sin)
    slightly.defjvp(lambda p, t: (slightly(*p), t[0] * fnarray.numpy.cos(p[0]) * 1.0001))
    with pytest.raises(AssertionError):
        check_grads(slightly, (1.0,), 1)


def test_device_get_of_what_is_traced():
    """It stays what it is, in derivatives and in compiled functions, as in JAX."""
    assert float(fnarray.grad(lambda x: fnarray.device_get(x) ** 2)(3.0)) == 6
    assert float(fnarray.jit(lambda x: fnarray.device_get({"x": x})["x"] ** 2)(3.0)) == 9
