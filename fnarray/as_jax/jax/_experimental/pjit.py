"""``jax.experimental.pjit``: what `jit` is now."""

from fnarray import jit as pjit

__all__ = ["pjit"]
