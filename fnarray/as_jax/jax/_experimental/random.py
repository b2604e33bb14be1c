"""``jax.experimental.random``: generators that go on by themselves, their count in a Ref."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnarray import Array, new_ref, random, tree_util
from fnarray import numpy as jnp
from fnarray.core.trace import state

__all__ = ["StatefulPRNG", "stateful_rng"]


def _shape(size: int | Sequence[int] | None, *args: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*map(jnp.shape, args))
    return tuple(map(operator.index, size)) if isinstance(size, Sequence) else (int(size),)


@tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class StatefulPRNG:
    """A generator as NumPy's are, made by `stateful_rng`.

    Draw ``n`` is made with the key folded with ``n``.
    """

    _base_key: Any
    _counter: Any

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Return a new key, or an array of them.

        Raises
        ------
        ValueError
            The generator was split, and is not mapped over.
        """
        if getattr(self._base_key, "shape", ()):
            raise ValueError(
                f"key: this generator was split into {self._base_key.shape}. Map over it, with "
                "vmap, or spawn generators."
            )
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        wanted = _shape(shape)
        return random.split(key, wanted) if wanted else key

    def random(self, size: Any = None, dtype: Any = float) -> Array:
        """Draw from the uniform distribution over [0, 1)."""
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self, low: Any = 0, high: Any = 1, size: Any = None, *, dtype: Any = float
    ) -> Array:
        """Draw from the uniform distribution over [low, high)."""
        return random.uniform(self.key(), _shape(size, low, high), dtype, low, high)

    def normal(
        self, loc: Any = 0, scale: Any = 1, size: Any = None, *, dtype: Any = float
    ) -> Array:
        """Draw from normal distributions."""
        drawn = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * drawn).astype(dtype)

    def integers(self, low: Any, high: Any = None, size: Any = None, *, dtype: Any = int) -> Array:
        """Draw integers from ``low`` on, below ``high``; from 0 on, where there is one number."""
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Return generators in one object, to be mapped over."""
        return StatefulPRNG(self.key(num), new_ref(jnp.zeros(num, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Return a list of independent generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """Return a generator that goes on by itself.

    Parameters
    ----------
    seed : int, optional
        Without one, of the system's entropy.
    impl : optional
        As in `fnarray.random.key`.

    Raises
    ------
    TypeError
        There is no seed, and something is traced: every call would draw the same.
    """
    if seed is None:
        if state.trace is not None:
            raise TypeError("stateful_rng: give a seed where something is traced.")
        seed = np.int64(secrets.randbits(63))
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))
