"""Activation functions and what else neural networks need, as ``jax.nn`` names them."""

from ..core.lazy import absent as _absent
from . import initializers as initializers
from ._activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from ._attention import dot_product_attention
from ._normalization import log_softmax, logmeanexp, logsumexp, one_hot, softmax, standardize
from ._scaled import scaled_matmul

__all__ = [
    "celu",
    "dot_product_attention",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "scaled_matmul",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]

_MISSING = {
    "it quantizes for a GPU's tensor cores; scale by hand, and use scaled_matmul": """
        get_scaled_dot_general_config scaled_dot_general
    """,
}
__getattr__ = _absent(__name__, _MISSING)
