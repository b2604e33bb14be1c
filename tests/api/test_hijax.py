"""Operations on arrays by ``experimental.hijax``, with rules of their own, against JAX's."""

from __future__ import annotations

import importlib

import jax
import numpy as np
import pytest

import fnarray
from fnarray.errors import MissingRuleError


def _wave(lib):
    base = importlib.import_module(f"{lib.__name__}.experimental.hijax").VJPHiPrimitive
    jnp = lib.numpy

    class Wave(base):
        def __init__(self, x, y):
            self.in_avals, self.out_aval, self.params = (x, y), {"out": x}, {"factor": 2.0}
            super().__init__()

        def expand(self, x, y):
            return {"out": self.factor * jnp.sin(x) * y}

        def batch_dim_rule(self, axis_data, dims):
            return {"out": dims[0]}

    class Backward(Wave):  # seven times the derivative, that it is seen which rule is run
        def vjp_fwd(self, nonzero, x, y):
            return self(x, y), (x, y, 7.0 if nonzero[0] else 0.0)

        def vjp_bwd_retval(self, residuals, ct):
            x, y, seven = residuals
            return seven * self.factor * jnp.cos(x) * y * ct["out"], None

    class Forward(Wave):
        def jvp(self, primals, tangents):
            (x, y), (s, t) = primals, tangents
            change = 5.0 * self.factor * (jnp.cos(x) * y * s + jnp.sin(x) * t)
            return self(x, y), {"out": change}

    def of(kind):
        return lambda x, y: kind(lib.typeof(x), lib.typeof(y))(x, y)["out"]

    return of(Wave), of(Backward), of(Forward)


def _values(lib):
    wave, backward, forward = _wave(lib)
    x, xs = lib.numpy.float32(0.7), lib.numpy.arange(3, dtype="float32")
    return [
        wave(x, x),
        lib.jit(wave)(x, x),
        lib.vmap(backward)(xs, xs),
        lib.grad(backward)(x, x),
        lib.jit(lib.grad(backward))(x, x),
        lib.vmap(lib.grad(backward))(xs, xs + 1),
        *lib.jvp(forward, (x, x), (x, x)),
        *lib.jit(lambda x: lib.jvp(forward, (x, x), (x, x)))(x),
    ]


def test_operations_have_their_own_derivatives():
    """Values, and what the rules say of derivatives, are JAX's under every transform."""
    for got, want in zip(_values(fnarray), _values(jax), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_is_missing_is_named():
    """A class without a rule, or operands of another structure, are named."""
    wave, _, _ = _wave(fnarray)
    with pytest.raises(MissingRuleError, match=r"Wave.*no method vjp_fwd"):
        fnarray.grad(wave)(1.0, 2.0)
    with pytest.raises(AttributeError, match=r"set `self.in_avals`"):
        fnarray.experimental.hijax.VJPHiPrimitive()
    aval = fnarray.typeof(fnarray.numpy.ones(2))

    class Same(fnarray.experimental.hijax.VJPHiPrimitive):
        def __init__(self):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

    with pytest.raises(TypeError, match="structure of its in_avals"):
        Same()(1.0, 2.0)
