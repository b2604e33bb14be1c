"""A hundred and fifty uses, and the types that checkers give them.

Run by ``pyright`` (strict) and ``mypy``, not by pytest, which imports the file and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, assert_type

import numpy as np

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import Array, lax, nn, random
from fnarray.api.jit import PjitFunction

# ---- arrays: operators ---------------------------------------------------------------------------

x = jnp.ones(3)
n = jnp.arange(3)
assert_type(x, Array)
assert_type(n, Array)
assert_type(x + 1, Array)
assert_type(1 + x, Array)
assert_type(x + x, Array)
assert_type(x - 1.5, Array)
assert_type(2 - x, Array)
assert_type(x * 2, Array)
assert_type(2 * x, Array)
assert_type(x / 3, Array)
assert_type(1 / x, Array)
assert_type(x // 2, Array)
assert_type(x % 2, Array)
assert_type(x**2, Array)
assert_type(2**x, Array)
assert_type(x @ x, Array)
assert_type(n & 1, Array)
assert_type(n | n, Array)
assert_type(n ^ 1, Array)
assert_type(n << 1, Array)
assert_type(n >> 1, Array)
assert_type(divmod(x, 2), tuple[Array, Array])
assert_type(-x, Array)
assert_type(+x, Array)
assert_type(~n, Array)
assert_type(abs(x), Array)
assert_type(round(x, 2), Array)
assert_type(x == 1, Array)
assert_type(x != x, Array)
assert_type(x < 1, Array)
assert_type(x <= x, Array)
assert_type(x > 1, Array)
assert_type(x >= 0.5, Array)
assert_type(x + np.ones(3), Array)
assert_type(x + (1 + 2j), Array)

# ---- arrays: indices, methods, properties --------------------------------------------------------

assert_type(x[0], Array)
assert_type(x[1:], Array)
assert_type(x[..., None], Array)
assert_type(x[x > 0], Array)
assert_type(x.at[0].set(1), Array)
assert_type(x.at[1:].add(x[1:]), Array)
assert_type(x.at[0].get(), Array)
assert_type(x.sum(), Array)
assert_type(x.sum(axis=0, keepdims=True), Array)
assert_type(x.mean(), Array)
assert_type(x.max(0), Array)
assert_type(x.argmin(), Array)
assert_type(x.reshape(3, 1), Array)
assert_type(x.reshape((1, 3)), Array)
assert_type(x.transpose(), Array)
assert_type(x.astype("int32"), Array)
assert_type(x.astype(jnp.int32), Array)
assert_type(x.nonzero(), tuple[Array, ...])
assert_type(x.clip(0, 1), Array)
assert_type(x.dot(x), Array)
assert_type(x.T, Array)
assert_type(x.real, Array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.ndim, int)
assert_type(x.size, int)
assert_type(x.nbytes, int)
assert_type(x.block_until_ready(), Array)
assert_type(x.tobytes(), bytes)
assert_type(len(x), int)
assert_type(float(x[0]), float)
assert_type(int(n[0]), int)
assert_type(bool(x[0] > 0), bool)
assert_type(complex(x[0]), complex)
assert_type([1, 2, 3][n[0]], int)
for row in x:
    assert_type(row, Array)

# ---- functions of arrays -------------------------------------------------------------------------

assert_type(jnp.sum(x), Array)
assert_type(jnp.mean(x, axis=0), Array)
assert_type(jnp.sin(x), Array)
assert_type(jnp.exp(1.0), Array)
assert_type(jnp.add(x, 1), Array)
assert_type(jnp.maximum(x, 0), Array)
assert_type(jnp.divmod(x, 2), tuple[Array, Array])
assert_type(jnp.add.reduce(x), Array)
assert_type(jnp.where(x > 0, x, 0), Array)
assert_type(jnp.sort(x), Array)
assert_type(jnp.concatenate([x, x]), Array)
assert_type(jnp.einsum("i,i->", x, x), Array)
assert_type(jnp.matmul(x, x), Array)
assert_type(jnp.linspace(0, 1, 5), Array)
assert_type(jnp.asarray([1.0, 2.0]), Array)
assert_type(jnp.zeros((2, 3), dtype=jnp.float32), Array)
assert_type(jnp.float32(1), Array)
assert_type(jnp.pi, float)
assert_type(jnp.linalg.norm(x), Array)
assert_type(jnp.linalg.inv(jnp.eye(2)), Array)
assert_type(jnp.fft.fft(x), Array)
assert_type(lax.add(x, x), Array)
assert_type(lax.exp(x), Array)
assert_type(lax.reduce_sum(x, (0,)), Array)
assert_type(nn.relu(x), Array)
assert_type(nn.softmax(x), Array)
assert_type(random.normal(random.key(0), (3,)), Array)
assert_type(random.uniform(random.key(0)), Array)
assert_type(fa.scipy.special.logsumexp(x), Array)
assert_type(fa.scipy.linalg.det(jnp.eye(2)), Array)

# ---- transforms ----------------------------------------------------------------------------------


class Params(NamedTuple):
    """A tree of arrays."""

    w: Array
    b: Array


def loss(p: Params, x: Array, y: Array, scale: float = 1.0) -> Array:
    """A scalar of a tree and of arrays."""
    return scale * jnp.mean((x @ p.w + p.b - y) ** 2)


def with_aux(w: Array, x: Array) -> tuple[Array, dict[str, Array]]:
    """A scalar, and what else was found."""
    return jnp.sum(w * x), {"w": w}


@fa.jit
def doubled(x: Array) -> Array:
    """Compiled, by the decorator alone."""
    return 2 * x


@fa.jit(static_argnames="power")
def raised(x: Array, *, power: int) -> Array:
    """Compiled, by the decorator with options."""
    return x**power


@partial(fa.jit, static_argnums=1)
def repeated(x: Array, times: int) -> Array:
    """Compiled, as programs written for JAX often say it."""
    return jnp.tile(x, times)


class Model:
    """Compiled methods are methods."""

    @fa.jit(static_argnums=0)
    def predict(self, x: Array) -> Array:
        """Return the double."""
        return 2 * x


@fa.custom_vjp
def clipped(x: Array, most: float) -> Array:
    """A function with a derivative of its own."""
    return jnp.clip(x, -most, most)


def _clipped_forward(x: Array, most: float) -> tuple[Array, Array]:
    return clipped(x, most), jnp.abs(x) < most


def _clipped_backward(inside: Array, ct: Array) -> tuple[Array, None]:
    return ct * inside, None


clipped.defvjp(_clipped_forward, _clipped_backward)


@fa.custom_jvp
def smooth(x: Array) -> Array:
    """A function with a derivative of its own."""
    return jnp.log1p(jnp.exp(x))


@smooth.defjvp
def _smooth_rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return smooth(*primals), nn.sigmoid(primals[0]) * tangents[0]


p = Params(jnp.ones(3), jnp.zeros(()))
program: PjitFunction[Array, [Array]] = doubled
assert_type(doubled(x), Array)
assert_type(raised(x, power=2), Array)
assert_type(Model().predict(x), Array)
assert_type(fa.jit(loss)(p, x, x), Array)
assert_type(fa.jit(loss)(p, x, x, scale=2.0), Array)
assert_type(fa.jit(with_aux)(x, x), tuple[Array, dict[str, Array]])
assert_type(fa.grad(loss)(p, x, x), Params)
assert_type(fa.grad(with_aux, has_aux=True)(x, x), tuple[Array, dict[str, Array]])
assert_type(fa.value_and_grad(loss)(p, x, x), tuple[Array, Params])
assert_type(fa.value_and_grad(with_aux, has_aux=True)(x, x)[0][1], dict[str, Array])
assert_type(fa.jit(fa.grad(loss))(p, x, x), Params)
assert_type(fa.vmap(doubled)(x), Array)
assert_type(fa.vmap(with_aux, in_axes=(0, None))(x, x), tuple[Array, dict[str, Array]])
mapped: Callable[[Params, Array, Array], Params] = fa.vmap(fa.grad(loss), (None, 0, 0))
assert_type(mapped(p, jnp.ones((5, 3)), jnp.ones(5)), Params)
assert_type(fa.checkpoint(loss)(p, x, x, 2.0), Array)
assert_type(fa.remat(doubled)(x), Array)
assert_type(clipped(x, 1.0), Array)
assert_type(smooth(x), Array)
assert_type(fa.grad(smooth)(x[0]), Array)
assert_type(fa.jit(fa.vmap(smooth))(x), Array)
repeated(x, 2)

# ---- loops, branches and derivatives of what users write -----------------------------------------


class Momentum(NamedTuple):
    """What an optimizer keeps, as optax's do."""

    trace: Params
    steps: Array


def update(gradient: Params, kept: Momentum) -> tuple[Params, Momentum]:
    """One step of gradient descent with momentum."""
    trace: Params = fa.tree.map(lambda g, t: g + 0.9 * t, gradient, kept.trace)
    return fa.tree.map(lambda t: -0.1 * t, trace), Momentum(trace, kept.steps + 1)


def train(carry: tuple[Params, Momentum], batch: Array) -> tuple[tuple[Params, Momentum], Array]:
    """One turn of training."""
    params, kept = carry
    value, gradient = fa.value_and_grad(loss)(params, batch, batch)
    assert_type(value, Array)
    assert_type(gradient, Params)
    step, kept = update(gradient, kept)
    assert_type(step, Params)
    assert_type(kept, Momentum)
    moved: Params = fa.tree.map(jnp.add, params, step)
    return (moved, kept), value


@fa.tree_util.register_dataclass
@dataclass
class Linear:
    """A module of parameters, as Equinox's are: it is called, differentiated, mapped."""

    w: Array
    b: Array

    def __call__(self, x: Array) -> Array:
        """Apply the layer."""
        return self.w @ x + self.b


def module_loss(model: Linear, x: Array) -> Array:
    """A loss of a module."""
    return jnp.sum(model(x))


def counted(carry: Array, _: None) -> tuple[Array, Array]:
    """A turn of a scan over nothing."""
    return carry + 1, carry


def summed(carry: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
    """A turn that gives no rows."""
    return carry + row[0] * row[1], None


def small(carry: tuple[Array, Array]) -> Array:
    """Whether to go on."""
    return carry[0] < 3


def grown(carry: tuple[Array, Array]) -> tuple[Array, Array]:
    """A turn of a while."""
    return carry[0] + 1, carry[1] * 2


def nth(i: Array, carry: Linear) -> Linear:
    """A turn of a fori."""
    return Linear(carry.w * i, carry.b)


kept = Momentum(p, n[0])
model = Linear(jnp.eye(3), x)
(trained, _), values = lax.scan(train, (p, kept), jnp.ones((2, 3)))
assert_type(trained, Params)
assert_type(values, Array)
assert_type(lax.scan(counted, x, None, length=3), tuple[Array, Array])
assert_type(lax.scan(counted, x, length=3), tuple[Array, Array])
assert_type(lax.scan(summed, 0.0, (x, x)), tuple[Array, None])
assert_type(lax.scan(summed, x[0], (x, x), reverse=True, unroll=2)[0], Array)
assert_type(lax.while_loop(small, grown, (x[0], x)), tuple[Array, Array])
assert_type(lax.fori_loop(0, 3, nth, model), Linear)
assert_type(lax.map(doubled, x), Array)
assert_type(lax.map(model, jnp.eye(3), batch_size=2), Array)
assert_type(lax.associative_scan(jnp.add, x), Array)
assert_type(lax.cond(x[0] > 0, doubled, jnp.negative, x), Array)
assert_type(lax.cond(x[0] > 0, grown, grown, (x, x)), tuple[Array, Array])
assert_type(lax.switch(n[0], [doubled, doubled], x), Array)
assert_type(fa.grad(module_loss)(model, x), Linear)
assert_type(fa.value_and_grad(module_loss)(model, x), tuple[Array, Linear])
assert_type(fa.vmap(model)(jnp.eye(3)), Array)
assert_type(fa.jit(module_loss)(model, x), Array)
value, pullback = fa.vjp(module_loss, model, x)
assert_type(value, Array)
assert_type(pullback(1.0), tuple[Linear, Array])
assert_type(fa.vjp(doubled, 2.0)[1](1.0), tuple[Array])
assert_type(fa.vjp(with_aux, x, x, has_aux=True)[2], dict[str, Array])
assert_type(fa.vjp(fa.jit(module_loss), model, x)[0], Array)
assert_type(fa.jvp(module_loss, (model, x), (model, x)), tuple[Array, Array])
assert_type(fa.jvp(with_aux, (x, x), (x, x), has_aux=True)[2], dict[str, Array])
value, pushed = fa.linearize(module_loss, model, x)
assert_type(pushed(model, x), Array)
assert_type(fa.linearize(with_aux, x, x, has_aux=True)[2], dict[str, Array])
jacobian: Callable[[Linear, Array], object] = fa.jacfwd(module_loss, 1)
