"""Small libraries of layers and optimizers, as ``jax.example_libraries`` has them."""

from . import optimizers as optimizers
from . import stax as stax

__all__ = ["optimizers", "stax"]
