"""penzai: named arrays, and a network of them trained."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from penzai import pz
from penzai.toolshed import basic_training


def main():
    x = pz.nx.wrap(jnp.arange(12.0).reshape(3, 4)).tag("a", "b")
    model = pz.nn.Sequential(
        [
            pz.nn.Linear.from_config("in", jax.random.key(0), {"f": 4}, {"f": 8}),
            pz.nn.Elementwise(jax.nn.tanh),
            pz.nn.Linear.from_config("out", jax.random.key(0), {"f": 8}, {"f": 2}),
        ]
    )
    inputs = pz.nx.wrap(jax.random.normal(jax.random.key(2), (5, 4))).tag("n", "f")

    def loss(model, rng, state, x):
        value = jnp.mean((model(x).unwrap("n", "f") - 1) ** 2)
        return value, state, {"loss": value}

    trainer = basic_training.StatefulTrainer.build(
        root_rng=jax.random.key(1),
        model=model,
        optimizer_def=optax.sgd(0.05),
        loss_fn=loss,
        initial_loss_fn_state=None,
    )
    return {
        "scaled": (x * 2 + 1).unwrap("a", "b"),
        "mean": pz.nx.nmap(jnp.mean)(x.untag("b")).unwrap("a"),
        "outputs": model(inputs).unwrap("n", "f"),
        "losses": jnp.stack([trainer.step(x=inputs)["loss"] for _ in range(8)]),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
