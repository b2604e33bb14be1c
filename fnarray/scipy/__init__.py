"""SciPy's functions over arrays, as ``jax.scipy`` has them."""

from . import linalg as linalg
from . import special as special

__all__ = ["linalg", "special"]
