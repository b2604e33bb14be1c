"""First-order optimizers as three functions: of the first state, the next one, and its parameters.

``init_fun(params)`` makes a state, ``update_fun(step, gradients, state)`` the next one, and
``get_params(state)`` reads the parameters from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import numpy as jnp
from ..core import tree
from ..core.frozen import frozen
from ..tree_util import register_pytree_node

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]
__dir__ = __all__.copy

Schedule = Callable[[Any], Any]


@frozen(eq=False)
class OptimizerState:
    """The states of all leaves of parameters, flat, with the structures of both."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any

    def __iter__(self) -> Iterator[Any]:
        yield from (self.packed_state, self.tree_def, self.subtree_defs)


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(*children, *aux),
)


class Optimizer(NamedTuple):
    """The three functions of an optimizer."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Make an optimizer of trees of parameters of one of single arrays."""

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0: Any) -> OptimizerState:
            leaves, structure = tree.flatten(x0)
            states = [tree.flatten(init(x)) for x in leaves]
            packed = tuple(tuple(s) for s, _ in states)
            return OptimizerState(packed, structure, tuple(d for _, d in states))

        def tree_update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            packed, structure, parts = state
            leaves, of_grads = tree.flatten(grads)
            if of_grads != structure:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    f"parameter tree structure with which it was initialized: {of_grads} and "
                    f"{structure}."
                )
            states = [tree.unflatten(d, s) for d, s in zip(parts, packed, strict=True)]
            found = [tree.flatten(update(i, g, s)) for g, s in zip(leaves, states, strict=True)]
            for (_, new), old in zip(found, parts, strict=True):
                if new != old:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match "
                        f"its input structure: {new} and {old}."
                    )
            return OptimizerState(tuple(tuple(s) for s, _ in found), structure, parts)

        def tree_params(state: OptimizerState) -> Any:
            packed, structure, parts = state
            states = [tree.unflatten(d, s) for d, s in zip(parts, packed, strict=True)]
            return tree.unflatten(structure, [get_params(s) for s in states])

        return Optimizer(tree_init, tree_update, tree_params)

    return tree_opt_maker


# ---- optimizers ----------------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent."""
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


def _first(state: Any) -> Any:
    return state[0]


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent with a velocity."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Gradient descent with a velocity and a look ahead."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Adagrad (Duchi, Hazan & Singer, 2011): steps by the size of all gradients so far."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        root = jnp.where(squares > 0, 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0.0)
        mean = (1 - momentum) * (g * root) + momentum * mean
        return x - size(i) * mean, squares, mean

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp: steps by a running mean of squared gradients."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1 - gamma)
        return x - size(i) * g / jnp.sqrt(mean + eps), mean

    return lambda x: (x, jnp.zeros_like(x)), update, _first


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """RMSProp with a velocity."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, velocity = state
        mean = mean * gamma + jnp.square(g) * (1 - gamma)
        velocity = momentum * velocity + size(i) * g / jnp.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam (Kingma & Ba, 2015)."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mhat = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        vhat = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - size(i) * mhat / (jnp.sqrt(vhat) + eps), m, v

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam by the largest gradient in place of their squares (Kingma & Ba, 2015)."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        step = size(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        return x - step * m / (u + eps), m, u

    return lambda x: (x, jnp.zeros_like(x), jnp.zeros_like(x)), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3 (Anil et al., 2019): squares of gradients are kept by rows and columns alone."""
    size = make_schedule(step_size)

    def along(x: Any, axis: int) -> tuple[int, ...]:
        return tuple(n if k == axis else 1 for k, n in enumerate(x.shape))

    def init(x: Any) -> Any:
        sums = [jnp.zeros(n, x.dtype) for n in x.shape] or [jnp.zeros((), x.dtype)]
        return x, jnp.zeros_like(x), sums

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, sums = state
        spread = (s.reshape(along(x, k)) for k, s in enumerate(sums))
        total = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        root = jnp.where(total > 0, 1 / jnp.sqrt(jnp.where(total > 0, total, 1)), 0.0)
        mean = (1 - momentum) * (g * root) + momentum * mean
        sums = [total.max(tuple(j for j in range(x.ndim) if j != k)) for k in range(len(sums))]
        return x - size(i) * mean, mean, sums

    return init, update, _first


# ---- schedules -----------------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """Return a step size that stays."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Return a step size that shrinks by ``decay_rate`` in ``decay_steps``."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Return a step size that shrinks as the inverse of time."""

    def schedule(i: Any) -> Any:
        turns = jnp.floor(i / decay_steps) if staircase else i / decay_steps
        return step_size / (1 + decay_rate * turns)

    return schedule


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """Return a step size that goes to another one as a power of the time left."""

    def schedule(step_num: Any) -> Any:
        left = 1 - jnp.minimum(step_num, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Return a step size that changes at boundaries."""
    boundaries, values = jnp.asarray(boundaries), jnp.asarray(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return a schedule, or one of a constant number."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"a step size must be a number or a function of the step, got {type(scalar_or_schedule)}."
    )


# ---- gradients and states ------------------------------------------------------------------------


def l2_norm(tree_: Any) -> Any:
    """Return the length of a tree of arrays as one vector."""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree.leaves(tree_)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Return gradients shortened to a length, where they are longer."""
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Marks, in a tree of states, where the state of a parameter begins."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return a state as a tree like the parameters, with a `JoinPoint` at each leaf."""
    packed, structure, parts = opt_state
    subtrees = [JoinPoint(tree.unflatten(d, s)) for d, s in zip(parts, packed, strict=True)]
    return tree.unflatten(structure, subtrees)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the state that `unpack_optimizer_state` made a tree of."""
    marks, structure = tree.flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in marks):
        raise TypeError("pack_optimizer_state: every leaf must be a JoinPoint.")
    found: Sequence[Any] = [tree.flatten(x.subtree) for x in marks]
    return OptimizerState(tuple(tuple(s) for s, _ in found), structure, tuple(d for _, d in found))
