"""evosax: evolution strategies and a genetic algorithm on a quadratic, in a scan."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from evosax.algorithms import CMA_ES, PSO, DifferentialEvolution, Open_ES, SimpleES


def fitness(x):
    return jnp.sum((x - jnp.arange(3.0)) ** 2, -1)


def evolved(strategy, state, params, key):
    def step(state, key):
        ask, tell = jax.random.split(key)
        population, state = strategy.ask(ask, state, params)
        state, _ = strategy.tell(tell, population, fitness(population), state, params)
        return state, population

    return jax.lax.scan(step, state, jax.random.split(key, 4))


def main():
    found = {}
    key = jax.random.key(0)
    solution = jnp.zeros(3)
    for kind in (SimpleES, Open_ES, CMA_ES):
        strategy = kind(population_size=8, solution=solution)
        params = strategy.default_params
        state = strategy.init(key, solution, params)
        state, populations = jax.jit(
            lambda s, k, strategy=strategy, params=params: evolved(strategy, s, params, k)
        )(state, jax.random.key(1))
        found[kind.__name__] = populations
        found[f"{kind.__name__}_mean"] = state.mean
    start = jax.random.normal(key, (8, 3))
    for kind in (PSO, DifferentialEvolution):
        strategy = kind(population_size=8, solution=solution)
        params = strategy.default_params
        state = strategy.init(key, start, fitness(start), params)
        _, populations = evolved(strategy, state, params, jax.random.key(1))
        found[kind.__name__] = populations
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
