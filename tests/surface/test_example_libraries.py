"""Layers draw JAX's parameters and compute its outputs; optimizers take its steps."""

from __future__ import annotations

import jax
import jax.example_libraries.optimizers
import jax.example_libraries.stax
import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.example_libraries import optimizers, stax

from ..oracle import in_one

NETS = {
    "dense": (lambda s: s.serial(s.Dense(8), s.Relu, s.Dense(4), s.LogSoftmax), (2, 5)),
    "images": (
        lambda s: s.serial(
            s.Conv(4, (3, 3), padding="SAME"), s.BatchNorm(), s.Relu, s.MaxPool((2, 2), (2, 2)),
            s.Conv(3, (2, 2), (2, 2)), s.Tanh, s.AvgPool((2, 2), padding="SAME"),
            s.SumPool((2, 2)), s.Flatten, s.Dense(3), s.Softmax,
        ),
        (2, 12, 12, 3),
    ),
    "fans": (
        lambda s: s.serial(
            s.FanOut(2), s.parallel(s.Dense(3), s.serial(s.Dense(5), s.Gelu, s.Dense(3))),
            s.FanInSum, s.FanOut(3), s.parallel(s.Identity, s.Elu, s.Selu), s.FanInConcat(-1),
        ),
        (2, 5),
    ),
    "dropout": (lambda s: s.serial(s.Dense(20), s.Dropout(0.5), s.Dense(3)), (2, 5)),
    "shape": (lambda s: s.shape_dependent(lambda shape: s.Dense(shape[-1] + 1)), (2, 5)),
    "transposed": (
        lambda s: s.serial(s.ConvTranspose(4, (3, 3), (2, 2), padding="SAME"), s.Softplus),
        (1, 5, 5, 2),
    ),
    "line": (
        lambda s: s.serial(s.Conv1DTranspose(4, (3,), (2,)), s.Sigmoid, s.LeakyRelu, s.Exp),
        (1, 5, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_layers_are_jaxs(name):
    """Parameters of a key, shapes and outputs are those of JAX's layers."""
    make, shape = NETS[name]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def run(m, library):
        init, apply = make(library)
        out, params = init(m.random.PRNGKey(1), shape)
        return (
            m.tree.leaves(params),
            apply(params, m.numpy.asarray(x), rng=m.random.PRNGKey(2)),
            out,
        )

    params, y, out = run(fnarray, stax)
    wanted, z, _ = in_one(lambda: run(jax, jax.example_libraries.stax))
    assert tuple(out) == y.shape
    for got, want in zip(params, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(y, z, atol=2e-5)


def test_dropout_needs_a_key_and_rests_when_applied():
    """Without a key it says so; other modes than training keep all."""
    init, apply = stax.Dropout(0.5, mode="test")
    _, params = init(fnarray.random.key(0), (3,))
    np.testing.assert_array_equal(apply(params, jnp.ones(3), rng=fnarray.random.key(0)), np.ones(3))
    with pytest.raises(ValueError, match="rng=key"):
        apply(params, jnp.ones(3))


OPTIMIZERS = {
    "sgd": lambda o: o.sgd(0.1),
    "momentum": lambda o: o.momentum(0.1, 0.9),
    "nesterov": lambda o: o.nesterov(0.1, 0.9),
    "adagrad": lambda o: o.adagrad(0.1),
    "rmsprop": lambda o: o.rmsprop(0.1),
    "rmsprop_momentum": lambda o: o.rmsprop_momentum(0.1),
    "adam": lambda o: o.adam(0.1),
    "adamax": lambda o: o.adamax(0.1),
    "exponential": lambda o: o.sgd(o.exponential_decay(0.1, 3, 0.5)),
    "inverse": lambda o: o.sgd(o.inverse_time_decay(0.1, 3, 0.5, True)),
    "polynomial": lambda o: o.sgd(o.polynomial_decay(0.1, 5, 0.01)),
    "piecewise": lambda o: o.sgd(o.piecewise_constant([3, 6], [0.1, 0.05, 0.01])),
}
PARAMS = {"w": np.random.default_rng(0).normal(size=(3, 4)).astype("f"), "b": np.ones(4, "f")}


def _fit(m, library, make):
    """Take eight steps; pack and unpack the state at the end."""
    init, update, get = make(library)
    state = init(m.tree.map(m.numpy.asarray, PARAMS))

    def step(i, state):
        loss = m.grad(lambda p: ((m.numpy.ones(3) @ p["w"] + p["b"]) ** 2).sum())
        return update(i, library.clip_grads(loss(get(state)), 5.0), state)

    step = m.jit(step) if make is not _sm3 else step
    for i in range(8):
        state = step(i, state)
    state = library.pack_optimizer_state(library.unpack_optimizer_state(state))
    return m.tree.leaves(get(state))


def _sm3(library):
    return library.sm3(0.1)


@pytest.mark.parametrize("make", [*OPTIMIZERS.values(), _sm3], ids=[*OPTIMIZERS, "sm3"])
def test_optimizers_take_jaxs_steps(make):
    """After eight steps of clipped gradients parameters are those of JAX's optimizers."""
    theirs = _fit(jax, jax.example_libraries.optimizers, make)
    for got, want in zip(_fit(fnarray, optimizers, make), theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_gradients_must_be_like_parameters():
    """An update with gradients of another structure is refused."""
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="tree structure"):
        update(0, [jnp.ones(2)], init({"w": jnp.ones(2)}))
    with pytest.raises(TypeError, match="step size"):
        optimizers.make_schedule(jnp.ones(2))
