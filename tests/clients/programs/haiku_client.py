"""Haiku: a transformed network with state and random keys, trained by optax; a recurrent one."""

import sys

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax


def forward(x, train):
    x = hk.Conv2D(4, 3)(x)
    x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, train))
    x = hk.Flatten()(hk.max_pool(x, 2, 2, "SAME"))
    if train:
        x = hk.dropout(hk.next_rng_key(), 0.1, x)
    return hk.nets.MLP([8, 2])(x)


def recurrent(xs):
    core = hk.LSTM(4)
    outs, _ = hk.dynamic_unroll(core, xs, core.initial_state(xs.shape[1]))
    return hk.LayerNorm(-1, True, True)(outs)


def main():
    x = jax.random.normal(jax.random.key(0), (16, 8, 8, 1))
    y = (x.mean((1, 2, 3)) > 0).astype(jnp.int32)
    net = hk.transform_with_state(forward)
    params, state = net.init(jax.random.PRNGKey(1), x, True)
    optimizer = optax.sgd(1e-2)
    opt = optimizer.init(params)

    @jax.jit
    def step(params, state, opt, key):
        def loss(params):
            logits, new = net.apply(params, state, key, x, True)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, opt = optimizer.update(grads, opt)
        return optax.apply_updates(params, updates), new, opt, value

    values = []
    for k in range(8):
        params, state, opt, value = step(params, state, opt, jax.random.PRNGKey(k))
        values.append(value)
    rnn = hk.without_apply_rng(hk.transform(recurrent))
    xs = x.reshape(16, 8, 8)
    attention = hk.without_apply_rng(
        hk.transform(lambda q: hk.MultiHeadAttention(2, 4, w_init_scale=1.0)(q, q, q))
    )
    return {
        "values": jnp.stack(values),
        "logits": net.apply(params, state, None, x, False)[0],
        "weights": params["mlp/~/linear_0"]["w"],
        "rnn": rnn.apply(rnn.init(jax.random.PRNGKey(2), xs), xs),
        "attention": attention.apply(attention.init(jax.random.PRNGKey(3), xs), xs),
        "size": hk.data_structures.tree_size(params),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
