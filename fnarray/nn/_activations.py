"""Activation functions, elementwise."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..control.custom import custom_jvp
from ..core.apart import another
from ..core.array import Array
from ..core.eager import replayed
from ._args import inexact_operands

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
]


def identity(x: Any) -> Array:
    """Return the elements of ``x``, as an array."""
    return another(jnp.asarray(x))


@custom_jvp
def relu(x: Any) -> Array:
    """``max(x, 0)``; its derivative at 0 is 0."""
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, out, x: jnp.where(x > 0, t, jnp.zeros_like(t)))


@custom_jvp
def relu6(x: Any) -> Array:
    """``min(max(x, 0), 6)``; its derivative at 0 and at 6 is 0."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, out, x: jnp.where((x > 0) & (x < 6), t, jnp.zeros_like(t)))


@replayed
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Array:
    """``x`` where it is not negative, ``negative_slope * x`` elsewhere."""
    x = jnp.asarray(x)
    return jnp.where(x >= 0, x, negative_slope * x)


@replayed
def elu(x: Any, alpha: Any = 1.0) -> Array:
    """Exponential linear unit: ``x`` above 0, ``alpha * (exp(x) - 1)`` elsewhere.

    Source: Clevert, Unterthiner, Hochreiter, ICLR 2016.
    """
    x = jnp.asarray(x)
    # The inner choice keeps an overflow of the branch not taken out of derivatives.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@replayed
def selu(x: Any) -> Array:
    """Scaled `elu` whose constants make zero mean and unit variance a fixed point.

    Source: Klambauer, Unterthiner, Mayr, Hochreiter, NeurIPS 2017.
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@replayed
def celu(x: Any, alpha: Any = 1.0) -> Array:
    """Continuously differentiable `elu`: ``alpha * (exp(x / alpha) - 1)`` at and below 0.

    Source: Barron, arXiv:1704.07483.
    """
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@replayed
def gelu(x: Any, approximate: bool = True) -> Array:
    """Gaussian error linear unit: ``x`` times the normal distribution function of ``x``.

    Parameters
    ----------
    x : array
    approximate : bool
        Use ``tanh`` for the distribution function (error below 5e-4).

    Notes
    -----
    Source: Hendrycks, Gimpel, arXiv:1606.08415.
    """
    (x,) = inexact_operands("gelu", x)
    if approximate:
        inner = np.asarray(sqrt(2 / pi), x.dtype) * (x + 0.044715 * x**3)
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return 0.5 * x * lax.erfc(-x * np.asarray(sqrt(0.5), x.dtype))


@replayed
def sigmoid(x: Any) -> Array:
    """Logistic function ``1 / (1 + exp(-x))`` of inexact operands."""
    return lax.logistic(x)


@replayed
def silu(x: Any) -> Array:
    """``x * sigmoid(x)``, also named swish (Ramachandran, Zoph, Le, arXiv:1710.05941)."""
    x = jnp.asarray(x)
    return x * sigmoid(x)


swish = silu


@replayed
def mish(x: Any) -> Array:
    """``x * tanh(softplus(x))`` (Misra, arXiv:1908.08681)."""
    (x,) = inexact_operands("mish", x)
    return x * jnp.tanh(softplus(x))


@replayed
def softplus(x: Any) -> Array:
    """``log(1 + exp(x))``, without overflow."""
    return jnp.logaddexp(*inexact_operands("softplus", x), 0.0)


@replayed
def squareplus(x: Any, b: Any = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2`` (Barron, arXiv:2112.11687)."""
    x = jnp.asarray(x)
    # Of a negative x and the root only a difference is left: the product of both sums is b.
    total = jnp.abs(x) + jnp.sqrt(jnp.square(x) + b)
    return jnp.where(x < 0, b / total, total) / 2


@replayed
def sparse_plus(x: Any) -> Array:
    """0 up to -1, ``x`` from 1 on, the parabola ``(x + 1)**2 / 4`` between."""
    x = jnp.asarray(x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@replayed
def sparse_sigmoid(x: Any) -> Array:
    """Derivative of `sparse_plus`: ``(x + 1) / 2`` limited to [0, 1]."""
    return 0.5 * jnp.clip(jnp.asarray(x) + 1.0, 0.0, 2.0)


@replayed
def soft_sign(x: Any) -> Array:
    """``x / (|x| + 1)``."""
    x = jnp.asarray(x)
    return x / (jnp.abs(x) + 1)


@replayed
def log_sigmoid(x: Any) -> Array:
    """Logarithm of the logistic function."""
    return -softplus(-inexact_operands("log_sigmoid", x)[0])


@replayed
def hard_tanh(x: Any) -> Array:
    """``x`` limited to [-1, 1]."""
    x = jnp.asarray(x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@replayed
def hard_sigmoid(x: Any) -> Array:
    """``relu6(x + 3) / 6``."""
    return relu6(jnp.asarray(x) + 3.0) / 6.0


@replayed
def hard_silu(x: Any) -> Array:
    """``x * hard_sigmoid(x)`` (Howard et al., ICCV 2019)."""
    x = jnp.asarray(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def tanh(x: Any, /) -> Array:
    """Hyperbolic tangent."""
    return jnp.tanh(x)


@custom_jvp
def log1mexp(x: Any) -> Array:
    """``log(1 - exp(-x))`` for positive ``x``, accurate at both ends.

    Source: Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    (x,) = inexact_operands("log1mexp", x)
    small = x < log(2.0)
    return jnp.where(
        small,
        jnp.log(-jnp.expm1(-jnp.where(small, x, 1.0))),
        jnp.log1p(-jnp.exp(-jnp.where(small, 1.0, x))),
    )


# In powers of exp(-x), which large x do not make infinite: the next slope is a number, too.
log1mexp.defjvps(lambda t, out, x: t * jnp.exp(-x) / -jnp.expm1(-x))


@replayed
def glu(x: Any, axis: int = -1) -> Array:
    """Gated linear unit: the first half along ``axis`` times the `sigmoid` of the second.

    Raises
    ------
    ValueError
        The axis has an odd size.
    """
    x = jnp.asarray(x)
    size = x.shape[axis]
    if size % 2:
        raise ValueError(f"nn.glu: axis {axis} must have an even size, got shape {x.shape}.")
    axis %= x.ndim
    first = lax.slice_in_dim(x, 0, size // 2, axis=axis)
    return first * sigmoid(lax.slice_in_dim(x, size // 2, size, axis=axis))
