"""Functions with a rule of their own for `vmap`, named as in ``jax.custom_batching``."""

from .control.custom_batch import custom_vmap as custom_vmap
from .control.custom_batch import sequential_vmap as sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
