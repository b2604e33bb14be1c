"""A model with a training step, as a project would have one."""

from __future__ import annotations

import fnarray as fa
import fnarray.numpy as jnp


def loss(w, x, y):
    """Mean squared error of a layer of tanh."""
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


@fa.jit
def train_step(w, x, y):
    """Return the weights after a step of gradient descent."""
    return w - 0.1 * fa.grad(loss)(w, x, y)


def batch(n=1000):
    """Return weights and data to step on."""
    key = fa.random.key(0)
    x = fa.random.normal(key, (n, 16))
    return jnp.zeros((16, 8)), x, jnp.sin(x[:, :8])
