"""Optax: a regression trained by several optimisers and a schedule, step by step and in a scan."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return optax.l2_loss(hidden @ params["w2"], y).mean()


def data():
    key = jax.random.key(0)
    kx, k1, k2, kn = jax.random.split(key, 4)
    x = jax.random.normal(kx, (64, 3))
    y = jnp.sin(x[:, :1]) + 0.1 * jax.random.normal(kn, (64, 1))
    params = {
        "w1": 0.5 * jax.random.normal(k1, (3, 16)),
        "b1": jnp.zeros(16),
        "w2": 0.5 * jax.random.normal(k2, (16, 1)),
    }
    return x, y, params


def trained(optimizer, steps=30):
    x, y, params = data()
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    values = []
    for _ in range(steps):
        params, state, value = step(params, state)
        values.append(value)
    return jnp.stack(values), params


def scanned(optimizer, steps=50):
    x, y, params = data()

    @jax.jit
    def run(params):
        def step(carry, _):
            params, state = carry
            value, grads = jax.value_and_grad(loss)(params, x, y)
            updates, state = optimizer.update(grads, state, params)
            return (optax.apply_updates(params, updates), state), value

        (params, _), values = jax.lax.scan(step, (params, optimizer.init(params)), length=steps)
        return params, values

    return run(params)


def main():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 5, 30)
    optimizers = {
        "adam": optax.adam(1e-2),
        "sgd": optax.sgd(schedule, momentum=0.9, nesterov=True),
        "adamw": optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2)),
        "rmsprop": optax.rmsprop(1e-2, eps=1e-3),
        "lion": optax.lion(1e-3),
        "adafactor": optax.adafactor(1e-2),
    }
    found = {}
    for name, optimizer in optimizers.items():
        values, params = trained(optimizer)
        found[name] = values
        found[name + "_w"] = params["w1"]
    params, values = scanned(optax.adam(1e-2))
    found |= {"scan": values, "scan_w": params["w1"]}
    logits = jnp.array([[1.0, 2.0, 0.5], [0.1, -1.0, 0.3]])
    found["cross_entropy"] = optax.softmax_cross_entropy_with_integer_labels(
        logits, jnp.array([1, 2])
    )
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
