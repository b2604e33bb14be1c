"""Distrax: draws, densities, divergences and bijectors, and a mixture fitted by gradients."""

import sys

import distrax
import jax
import jax.numpy as jnp
import numpy as np


def main():
    key = jax.random.PRNGKey(0)
    normal = distrax.Normal(jnp.array([0.0, 1.0]), jnp.array([1.0, 2.0]))
    flow = distrax.Transformed(
        distrax.Normal(jnp.zeros(3), jnp.ones(3)),
        distrax.Block(distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(0.5, 2.0)]), 0),
    )
    data = jnp.concatenate(
        [jax.random.normal(key, (40,)) - 2, 0.5 * jax.random.normal(key, (40,)) + 2]
    )

    def loss(p):
        mixture = distrax.MixtureSameFamily(
            distrax.Categorical(logits=p["logits"]),
            distrax.Normal(p["loc"], jnp.exp(p["scale"])),
        )
        return -mixture.log_prob(data).mean()

    @jax.jit
    def step(p):
        value, grads = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, g: a - 0.2 * g, p, grads), value

    p = {"logits": jnp.zeros(2), "loc": jnp.array([-1.0, 1.0]), "scale": jnp.zeros(2)}
    values = []
    for _ in range(20):
        p, value = step(p)
        values.append(value)
    draw = flow.sample(seed=key, sample_shape=(4,))
    categorical = distrax.Categorical(logits=jnp.array([0.1, 0.4, -0.3]))
    full = distrax.MultivariateNormalFullCovariance(
        jnp.zeros(2), jnp.array([[1.0, 0.2], [0.2, 0.5]])
    )
    return {
        "normal": normal.sample(seed=key, sample_shape=(3,)),
        "normal_log_prob": normal.log_prob(jnp.array([0.3, 0.2])),
        "kl": normal.kl_divergence(distrax.Normal(0.5, 1.5)),
        "entropy": normal.entropy(),
        "flow": draw,
        "flow_log_prob": flow.log_prob(0.5 * draw),
        "categorical": categorical.sample(seed=key, sample_shape=(10,)),
        "categorical_entropy": categorical.entropy(),
        "mvn": full.sample(seed=key, sample_shape=(3,)),
        "mvn_log_prob": full.log_prob(jnp.ones(2)),
        "gamma": distrax.Gamma(2.0, 3.0).sample(seed=key, sample_shape=(3,)),
        "loss": jnp.stack(values),
        "loc": p["loc"],
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
