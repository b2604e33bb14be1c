"""Chex: a dataclass of arrays carried through a loop, and assertions on shapes and trees."""

import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np


@chex.dataclass(frozen=True)
class State:
    position: chex.Array
    speed: chex.Array
    step: int


@jax.jit
@chex.assert_max_traces(n=2)
def moved(state: State) -> State:
    chex.assert_rank(state.position, 1)
    chex.assert_equal_shape([state.position, state.speed])
    return state.replace(
        position=state.position + 0.1 * state.speed,
        speed=0.99 * state.speed - 0.1 * state.position,
        step=state.step + 1,
    )


def refused(call):
    try:
        call()
    except AssertionError:
        return True
    return False


def main():
    state = State(position=jnp.arange(3.0), speed=jnp.ones(3), step=jnp.int32(0))
    for _ in range(5):
        state = moved(state)
    looped = jax.lax.fori_loop(0, 20, lambda _, s: moved(s), state)
    chex.assert_tree_all_finite(looped)
    chex.assert_trees_all_close(looped, looped)
    chex.assert_tree_shape_prefix({"a": jnp.ones((2, 3))}, (2,))
    rows = jax.vmap(moved)(jax.tree.map(lambda x: jnp.stack([x, 2 * x]), state))
    return {
        "position": looped.position,
        "speed": looped.speed,
        "step": looped.step,
        "rows": rows.position,
        "exact_refused": np.array(
            [
                refused(lambda: chex.assert_shape(jnp.ones(3), (4,))),
                refused(lambda: chex.assert_type(jnp.ones(3), int)),
                refused(lambda: chex.assert_trees_all_close({"a": 1.0}, {"a": 2.0})),
                refused(lambda: chex.assert_tree_all_finite(jnp.array([jnp.nan]))),
                refused(lambda: chex.assert_equal_shape([jnp.ones(3), jnp.ones(2)])),
            ]
        ),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
