"""SciPy's functions over arrays, as ``jax.scipy`` has them."""

from . import special as special

__all__ = ["special"]
