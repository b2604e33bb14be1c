"""Flax nnx: modules with state, trained by its optimizer under its own jit and grad."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Linear(3, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))


def main():
    x = jax.random.normal(jax.random.key(0), (32, 3))
    y = jnp.sin(x[:, :1])
    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.sgd(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer):
        def loss(net):
            return jnp.mean((net(x) - y) ** 2)

        value, grads = nnx.value_and_grad(loss)(net)
        optimizer.update(net, grads)
        return value

    values = [step(net, optimizer) for _ in range(10)]
    net.eval()
    graph, state = nnx.split(net)
    merged = nnx.merge(graph, state)

    @nnx.split_rngs(splits=3)
    @nnx.vmap(in_axes=0, out_axes=0)
    def many(rngs: nnx.Rngs):
        return nnx.Linear(2, 2, rngs=rngs)

    return {
        "values": jnp.stack(values),
        "predicted": merged(x),
        "kernel": net.first.kernel[...],
        "mean": net.norm.mean[...],
        "many": many(nnx.Rngs(5)).kernel[...],
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
