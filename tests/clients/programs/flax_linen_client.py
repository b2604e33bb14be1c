"""Flax linen: a small network with convolution, dropout and batch statistics, trained by optax."""

import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import serialization, traverse_util
from flax.training import train_state


class Net(nn.Module):
    width: int = 8

    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.relu(nn.Conv(4, (3, 3))(x))
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
        x = nn.Dense(self.width)(x)
        x = nn.Dropout(0.1, deterministic=not train)(nn.LayerNorm()(x))
        return nn.Dense(2)(nn.gelu(x))


class State(train_state.TrainState):
    batch_stats: dict


class Rnn(nn.Module):
    @nn.compact
    def __call__(self, xs):
        return nn.RNN(nn.LSTMCell(5))(xs)


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(x))


def main():
    x = jax.random.normal(jax.random.key(0), (16, 8, 8, 1))
    y = (x.mean((1, 2, 3)) > 0).astype(jnp.int32)
    net = Net()
    variables = net.init(jax.random.key(1), x)
    state = State.create(
        apply_fn=net.apply,
        params=variables["params"],
        batch_stats=variables["batch_stats"],
        tx=optax.adam(1e-2),
    )

    @jax.jit
    def step(state, key):
        def loss(params):
            logits, new = state.apply_fn(
                {"params": params, "batch_stats": state.batch_stats},
                x,
                train=True,
                rngs={"dropout": key},
                mutable=["batch_stats"],
            )
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        state = state.apply_gradients(grads=grads, batch_stats=new["batch_stats"])
        return state, value

    values = []
    for k in range(10):
        state, value = step(state, jax.random.key(k))
        values.append(value)
    final = {"params": state.params, "batch_stats": state.batch_stats}
    rnn, block = Rnn(), Block()
    rows = x.reshape(16, 8, 8)
    stack = nn.scan(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
    flat = traverse_util.flatten_dict(state.params, sep="/")
    again = serialization.from_bytes(state.params, serialization.to_bytes(state.params))
    return {
        "values": jnp.stack(values),
        "logits": net.apply(final, x),
        "kernel": flat["Dense_0/kernel"],
        "again": again["Dense_0"]["kernel"],
        "rnn": rnn.apply(rnn.init(jax.random.key(2), rows), rows),
        "attention": block.apply(block.init(jax.random.key(3), rows), rows),
        "shapes": jax.eval_shape(net.init, jax.random.key(1), x)["params"]["Conv_0"][
            "kernel"
        ].shape,
        "vmapped": nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True})(
            3
        ).init(jax.random.key(4), rows[:4])["params"]["kernel"],
        "remat": nn.remat(nn.Dense)(3).init_with_output(jax.random.key(4), rows)[0],
        "exact_scan": np.array(stack is not None),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
