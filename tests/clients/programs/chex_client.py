"""Chex: dataclasses of arrays, moved in a loop and fitted, and assertions on shapes and trees."""

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


@chex.dataclass
class Oscillator:
    stiffness: chex.Array
    damping: chex.Array
    start: State


@chex.chexify
@jax.jit
@chex.assert_max_traces(n=1)
def improved(model: Oscillator, momentum: Oscillator, seen: chex.Array):
    """Descend once, with momentum, and have finite gradients asserted while it runs."""

    def loss(model):
        def step(state, _):
            pull = model.stiffness * state.position + model.damping * state.speed
            state = state.replace(
                position=state.position + 0.1 * state.speed, speed=state.speed - 0.1 * pull
            )
            return state, state.position

        path = jax.lax.scan(step, model.start, length=len(seen))[1]
        chex.assert_equal_shape([path, seen])
        return jnp.mean((path - seen) ** 2)

    value, grads = jax.value_and_grad(loss, allow_int=True)(model)
    chex.assert_trees_all_equal_structs(grads, model)
    chex.assert_tree_all_finite((grads.stiffness, grads.damping))
    grads = grads.replace(start=grads.start.replace(step=jnp.int32(0)))
    momentum = jax.tree.map(lambda m, g: (0.9 * m + g).astype(m.dtype), momentum, grads)
    model = jax.tree.map(lambda p, m: p - (0.02 * m).astype(p.dtype), model, momentum)
    return model, momentum, value


def trained():
    """Fit how stiff and damped an oscillator is, and how it starts, to its path."""
    times = 0.1 * jnp.arange(40.0)
    noise = 0.01 * jax.random.normal(jax.random.key(0), (40, 2))
    seen = jnp.exp(-0.1 * times)[:, None] * jnp.stack([jnp.cos(times), jnp.sin(times)], 1) + noise
    start = State(position=jnp.zeros(2), speed=jnp.zeros(2), step=jnp.int32(0))
    model = Oscillator(stiffness=jnp.float32(2.0), damping=jnp.float32(0.0), start=start)
    momentum = jax.tree.map(jnp.zeros_like, model)
    losses = []
    for _ in range(80):
        model, momentum, value = improved(model, momentum, seen)
        losses.append(value)
    improved.wait_checks()
    return {
        "stiffness": model.stiffness,
        "damping": model.damping,
        "start": model.start.position,
        "losses": jnp.stack(losses),
    }


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
        **trained(),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
