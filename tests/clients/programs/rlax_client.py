"""RLax: temporal differences, returns, losses and an agent on a chain of states."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import rlax


def main():
    key = jax.random.PRNGKey(0)
    k1, k2, k3 = jax.random.split(key, 3)
    rewards = jax.random.normal(k1, (8,))
    values = jax.random.normal(k2, (8,))
    discounts = 0.9 * jnp.ones(8)
    q = jnp.zeros((5, 2))

    def learn(carry, key):
        q, s = carry
        explore, _ = jax.random.split(key)
        a = rlax.epsilon_greedy(0.3).sample(explore, q[s])
        s1 = jnp.clip(s + 2 * a - 1, 0, 4)
        r = (s1 == 4).astype(jnp.float32)
        error = rlax.q_learning(q[s], a, r, 0.9, q[s1])
        return (q.at[s, a].add(0.5 * error), jnp.where(s1 == 4, 0, s1)), a

    (q, _), actions = jax.jit(lambda q: jax.lax.scan(learn, (q, 0), jax.random.split(k3, 200)))(q)
    logits = jax.random.normal(k1, (8, 3))
    chosen = jnp.array([0, 1, 2, 0, 1, 2, 0, 1])
    return {
        "q": q,
        "actions": actions,
        "lambda": rlax.lambda_returns(rewards, discounts, values, 0.8),
        "n_step": rlax.n_step_bootstrapped_returns(rewards, discounts, values, 3),
        "td": rlax.td_lambda(values, rewards, discounts, values, jnp.array(0.7)),
        "vtrace": rlax.vtrace(values, values, rewards, discounts, jnp.ones(8)),
        "gae": rlax.truncated_generalized_advantage_estimation(
            rewards, discounts, 0.95, jnp.append(values, 0.0)
        ),
        "policy_gradient": jax.grad(
            lambda x: rlax.policy_gradient_loss(x, chosen, rewards, jnp.ones(8))
        )(logits),
        "entropy": rlax.entropy_loss(logits, jnp.ones(8)),
        "huber": rlax.huber_loss(rewards, 0.5),
        "two_hot": rlax.transform_to_2hot(jnp.array([0.3, 1.7]), -2.0, 2.0, 9),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
