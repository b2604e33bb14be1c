"""Mctx: Gumbel MuZero and MuZero searches of a small known game."""

import sys

import jax
import jax.numpy as jnp
import mctx
import numpy as np


def recurrent(params, key, action, state):
    state = (state * 3 + action + 1) % 7
    reward = params[state]
    value = 0.1 * params[(state + 1) % 7]
    prior = jnp.stack([params[state], params[(state + 2) % 7], params[(state + 4) % 7]], -1)
    out = mctx.RecurrentFnOutput(
        reward=reward, discount=0.9 * jnp.ones_like(reward), prior_logits=prior, value=value
    )
    return out, state


def main():
    params = jnp.array([0.1, -0.5, 1.0, 0.3, -0.2, 0.7, 0.0])
    state = jnp.array([0, 3, 5])
    root = mctx.RootFnOutput(
        prior_logits=jnp.array([[0.1, 0.5, -0.3], [0.0, 0.0, 0.0], [1.0, 0.2, 0.1]]),
        value=0.2 * jnp.ones(3),
        embedding=state,
    )
    found = {}
    for name, policy in {
        "gumbel": mctx.gumbel_muzero_policy,
        "muzero": mctx.muzero_policy,
    }.items():
        run = jax.jit(
            lambda params, key, policy=policy: policy(
                params, key, root, recurrent, num_simulations=16, max_depth=5
            )
        )
        out = run(params, jax.random.PRNGKey(1))
        found |= {
            f"{name}_action": out.action,
            f"{name}_weights": out.action_weights,
            f"{name}_visits": out.search_tree.summary().visit_counts,
            f"{name}_value": out.search_tree.summary().value,
        }
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
