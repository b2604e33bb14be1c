"""Linear equations given by products, as ``jax.scipy.sparse`` has them."""

from . import linalg as linalg

__all__ = ["linalg"]
