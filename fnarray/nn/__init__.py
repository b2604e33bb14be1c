"""Activation functions and what else neural networks need, as ``jax.nn`` names them."""

from ._activations import *
from ._activations import __all__ as _activations
from ._attention import dot_product_attention
from ._normalization import *
from ._normalization import __all__ as _normalization

__all__ = sorted([*_activations, *_normalization, "dot_product_attention"])
