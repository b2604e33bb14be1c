"""Every optimizer, schedule and layer of the example libraries, beside JAX's."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.example_libraries import optimizers as jax_optimizers
from jax.example_libraries import stax as jax_stax

import fnarray
from fnarray.example_libraries import optimizers, stax

RULES = {
    "sgd": lambda o: o.sgd(0.1),
    "momentum": lambda o: o.momentum(o.polynomial_decay(0.1, 4, 0.01), 0.8),
    "nesterov": lambda o: o.nesterov(0.1, 0.9),
    "adagrad": lambda o: o.adagrad(o.piecewise_constant([2, 4], [0.1, 0.2, 0.3])),
    "rmsprop": lambda o: o.rmsprop(o.constant(0.1)),
    "rmsprop-momentum": lambda o: o.rmsprop_momentum(0.1),
    "adam": lambda o: o.adam(o.inverse_time_decay(0.1, 2, 0.5)),
    "adam-stairs": lambda o: o.adam(o.inverse_time_decay(0.1, 2, 0.5, staircase=True)),
    "adamax": lambda o: o.adamax(o.exponential_decay(0.1, 2, 0.5)),
    "sm3": lambda o: o.sm3(0.3, 0.5),
}


def _trained(lib, library, rule):
    jnp = lib.numpy
    init, update, read = rule(library)
    state = init([jnp.ones((2, 3, 4)), {"s": jnp.float32(1), "b": jnp.ones(5)}])
    for k in range(4):
        grads = [jnp.arange(24.0).reshape(2, 3, 4) - 7 * k, {"s": jnp.float32(k - 1)}]
        grads[1]["b"] = jnp.arange(5.0) - k
        state = update(k, grads, state)
    return read(state)


@pytest.mark.parametrize("name", RULES)
def test_optimizers_take_jaxs_steps(name):
    """Parameters of any rank, numbers too, after some steps."""
    got = _trained(fnarray, optimizers, RULES[name])
    want = _trained(jax, jax_optimizers, RULES[name])
    assert str(fnarray.tree.structure(got)) == str(jax.tree.structure(want))
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-5, atol=1e-6)


NETS = {
    "dense": (lambda s: s.serial(s.Dense(8), s.Relu, s.Dense(4), s.LogSoftmax), (-1, 5)),
    "image": (
        lambda s: s.serial(
            s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.MaxPool((2, 2)), s.Flatten,
            s.Dense(3, W_init=s.randn(0.1)), s.Softmax,
        ),
        (-1, 8, 8, 3),
    ),
    "transposed": (lambda s: s.serial(s.ConvTranspose(3, (3, 3), (2, 2)), s.Tanh), (-1, 4, 4, 2)),
    "axis": (lambda s: s.GeneralConv(("NCH", "HIO", "NHC"), 4, (3,), padding="SAME"), (-1, 3, 9)),
    "axis-transposed": (lambda s: s.Conv1DTranspose(4, (3,)), (-1, 9, 3)),
    "pools": (
        lambda s: s.serial(s.AvgPool((2, 2), (2, 2), "SAME"), s.SumPool((2, 2))), (-1, 7, 7, 2),
    ),
    "fan": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(4), s.Identity), s.FanInConcat(-1)),
        (-1, 4),
    ),
    "sum": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(4), s.Identity), s.FanInSum), (-1, 4),
    ),
    "dropout": (lambda s: s.serial(s.Dropout(0.7), s.Dense(3)), (-1, 4)),
    "shape": (lambda s: s.shape_dependent(lambda shape: s.Dense(shape[-1] * 2)), (-1, 4)),
    "functions": (
        lambda s: s.serial(s.Exp, s.Sigmoid, s.Elu, s.LeakyRelu, s.Selu, s.Gelu, s.Softplus),
        (-1, 4),
    ),
    "normal": (lambda s: s.Dense(3, W_init=s.glorot()), (-1, 4)),
}  # fmt: skip


def _net(lib, library, make, shape):
    init, apply = make(library)
    out_shape, params = init(lib.random.key(0), shape)
    x = lib.random.normal(lib.random.key(5), tuple(2 if n == -1 else n for n in shape))
    run = lib.jit(lambda params: apply(params, x, rng=lib.random.key(3)))
    grads = lib.grad(lambda params: (run(params) ** 2).sum())(params)
    return np.array(out_shape), params, run(params), grads


@pytest.mark.parametrize("name", NETS)
def test_layers_are_jaxs(name):
    """Shapes, initial parameters, results and gradients."""
    got = jax.tree.leaves(_net(fnarray, stax, *NETS[name]))
    want = jax.tree.leaves(_net(jax, jax_stax, *NETS[name]))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-4, atol=2e-5)
