"""BlackJAX: a posterior sampled by HMC, NUTS with window adaptation, MALA, and tempered SMC."""

import sys

import blackjax
import jax
import jax.numpy as jnp
import numpy as np


def log_density(x):
    return -0.5 * jnp.sum((x["a"] - 1.0) ** 2) - 0.5 * jnp.sum((x["b"] / 0.5) ** 2)


def chain(kernel, state, key, length):
    def step(state, key):
        state, info = kernel.step(key, state)
        return state, (state.position, info.acceptance_rate)

    return jax.lax.scan(step, state, jax.random.split(key, length))[1]


def main():
    start = {"a": jnp.zeros(2), "b": jnp.ones(1)}
    found = {}
    scale = jnp.ones(3)
    kernels = {
        "hmc": blackjax.hmc(log_density, 0.2, scale, 5),
        "nuts": blackjax.nuts(log_density, 0.2, scale),
        "mala": blackjax.mala(log_density, 0.1),
    }
    for name, kernel in kernels.items():
        run = jax.jit(lambda key, k=kernel: chain(k, k.init(start), key, 8))
        positions, rates = run(jax.random.key(1))
        found |= {f"{name}_a": positions["a"], f"{name}_b": positions["b"], f"{name}_rate": rates}
    rmh = (
        blackjax.rmh(log_density, blackjax.mcmc.random_walk.normal(0.3 * jnp.ones(3)))
        if False
        else blackjax.additive_step_random_walk(
            log_density, blackjax.mcmc.random_walk.normal(0.3 * jnp.eye(3))
        )
    )
    positions, _ = chain(rmh, rmh.init(start), jax.random.key(2), 8)
    found["walk"] = positions["a"]
    adapt = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = adapt.run(jax.random.key(3), start, num_steps=20)
    found["step_size"] = parameters["step_size"]
    found["adapted"] = state.position["a"]
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
