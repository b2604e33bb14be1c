"""Equinox: a module trained by filtered transforms, with dropout, state, and errors in programs."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


class Net(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm
    drop: eqx.nn.Dropout
    scale: jax.Array
    name: str = eqx.field(static=True)

    def __init__(self, key):
        k1, k2 = jax.random.split(key)
        self.layers = [eqx.nn.Linear(2, 16, key=k1), eqx.nn.Linear(16, 1, key=k2)]
        self.norm = eqx.nn.LayerNorm(16)
        self.drop = eqx.nn.Dropout(0.1)
        self.scale = jnp.array(1.0)
        self.name = "net"

    def __call__(self, x, key=None):
        x = jax.nn.relu(self.norm(self.layers[0](x)))
        return self.scale * self.layers[1](self.drop(x, key=key, inference=key is None))


@eqx.filter_value_and_grad
def loss(model, x, y, keys):
    return jnp.mean((jax.vmap(model)(x, keys) - y) ** 2)


@eqx.filter_jit
def step(model, x, y, keys):
    value, grads = loss(model, x, y, keys)
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, grads)), value


@eqx.filter_jit
def checked(x):
    return eqx.error_if(jnp.sqrt(x), x < 0, "negative")


def main():
    key = jax.random.key(1)
    model = Net(key)
    x = jax.random.normal(jax.random.key(2), (32, 2))
    y = jnp.sin(x[:, :1] + x[:, 1:])
    values = []
    for k in range(20):
        model, value = step(model, x, y, jax.random.split(jax.random.key(k), 32))
        values.append(value)
    arrays, static = eqx.partition(model, eqx.is_array)
    again = eqx.combine(arrays, static)
    mlp = eqx.nn.MLP(2, 3, 8, 2, key=key)
    conv = eqx.nn.Conv2d(1, 2, 3, key=key)
    rnn = eqx.nn.GRUCell(2, 4, key=key)
    attention = eqx.nn.MultiheadAttention(2, 4, key=key)
    batch_norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(2, axis_name="batch", mode="ema")
    normed, state = jax.vmap(batch_norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
        x, state
    )
    try:
        checked(jnp.array([1.0, -1.0])).block_until_ready()
        message = "none"
    except Exception as error:
        message = "negative" if "negative" in str(error) else repr(error)
    return {
        "values": jnp.stack(values),
        "weights": model.layers[0].weight,
        "predicted": jax.vmap(again)(x),
        "mlp": jax.vmap(mlp)(x),
        "mlp_jac": eqx.filter_jacrev(mlp)(x[0]),
        "conv": conv(x.reshape(1, 8, 8)),
        "rnn": jax.lax.scan(lambda h, r: (rnn(r, h),) * 2, jnp.zeros(4), x)[1],
        "attention": attention(x.repeat(2, 1)[:8], x.repeat(2, 1), x.repeat(2, 1)),
        "normed": normed,
        "checked": checked(jnp.array([1.0, 4.0])),
        "exact_message": np.array(message),
        "ensemble": eqx.filter_vmap(Net)(jax.random.split(key, 3)).layers[0].weight,
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
