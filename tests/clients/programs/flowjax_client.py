"""FlowJAX: a coupling flow and an autoregressive one, fitted to samples."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import paramax
from flowjax import bijections, distributions, flows
from flowjax.train import fit_to_data


def main():
    key = jax.random.key(0)
    x = jax.random.normal(key, (64, 2))
    x = x.at[:, 1].add(x[:, 0] ** 2)
    base = distributions.Normal(jnp.zeros(2))
    coupling = flows.coupling_flow(
        key,
        base_dist=base,
        transformer=bijections.RationalQuadraticSpline(knots=4, interval=3),
        nn_width=8,
        flow_layers=2,
    )
    masked = flows.masked_autoregressive_flow(key, base_dist=base, nn_width=8, flow_layers=2)

    @eqx.filter_value_and_grad
    def loss(params, static):
        flow = paramax.unwrap(eqx.combine(params, static))
        return -flow.log_prob(x).mean()

    params, static = eqx.partition(
        masked, eqx.is_inexact_array, is_leaf=lambda leaf: isinstance(leaf, paramax.NonTrainable)
    )
    optimizer = optax.sgd(1e-2)
    state = optimizer.init(params)
    values = []
    step = eqx.filter_jit(loss)
    for _ in range(5):
        value, grads = step(params, static)
        updates, state = optimizer.update(grads, state)
        params = eqx.apply_updates(params, updates)
        values.append(value)
    fitted, losses = fit_to_data(
        key, coupling, x, max_epochs=2, batch_size=16, learning_rate=1e-3, show_progress=False
    )
    return {
        "coupling": coupling.log_prob(x),
        "masked": masked.log_prob(x),
        "values": jnp.stack(values),
        "sample": masked.sample(key, (5,)),
        "losses": np.array(losses["train"]),
        "fitted": fitted.log_prob(x[:8]),
        "affine": bijections.Affine(jnp.ones(2), 2 * jnp.ones(2)).transform(x[0]),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
