"""tinygp: a Gaussian process conditioned on data, its likelihood maximised; quasiseparable too."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import tinygp
from tinygp import GaussianProcess, kernels


def main():
    x = jnp.sort(jax.random.uniform(jax.random.key(0), (25,), maxval=5.0))
    y = jnp.sin(2 * x) + 0.1 * jax.random.normal(jax.random.key(1), (25,))
    test = jnp.linspace(0, 5, 11)

    def build(p):
        kernel = jnp.exp(p["amplitude"]) * kernels.Matern32(jnp.exp(p["scale"]))
        return GaussianProcess(kernel, x, diag=0.05)

    @jax.jit
    def loss(p):
        return -build(p).log_probability(y)

    p = {"amplitude": jnp.array(0.0), "scale": jnp.array(0.0)}
    values = []
    for _ in range(15):
        value, grads = jax.value_and_grad(loss)(p)
        p = jax.tree.map(lambda a, g: a - 0.01 * g, p, grads)
        values.append(value)
    conditioned = build(p).condition(y, test)
    sum_of = 1.5 * kernels.ExpSquared(2.0) * kernels.ExpSineSquared(1.0, gamma=0.5)
    quasi = GaussianProcess(kernels.quasisep.Matern32(1.0), x, diag=0.1)
    return {
        "values": jnp.stack(values),
        "mean": conditioned.gp.loc,
        "variance": conditioned.gp.variance,
        "log_probability": conditioned.log_probability,
        "kernel": sum_of(x[:5], x[:5]),
        "draw": GaussianProcess(sum_of, x, diag=0.1).sample(jax.random.key(2)),
        "quasi": quasi.log_probability(y),
        "quasi_mean": quasi.condition(y, test).gp.loc,
        "exact_version": np.array(bool(tinygp.__version__)),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
