"""First values of weights: functions of a key, a shape and a dtype, as ``jax.nn.initializers``.

The same key gives JAX's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from operator import index
from typing import Any, Protocol

import numpy as np

from .. import numpy as jnp
from .. import random
from ..core.array import Array
from ..core.dtypes import canonicalize_dtype, is_complex, to_real
from ..core.hooks import cut_as

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
__dir__ = __all__.copy

Axes = int | Sequence[int]


class Initializer(Protocol):
    """What makes weights: ``init(key, shape, dtype)``."""

    def __call__(
        self, key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
    ) -> Array:
        """Return the weights."""
        ...


def _initializer(draw: Callable[[Any, tuple[int, ...], np.dtype], Array], default: Any) -> Any:
    """Make an initializer of what draws weights of a canonical shape and dtype."""

    def init(
        key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: Any = None
    ) -> Array:
        if out_sharding is not None:
            return cut_as(out_sharding, init, key, shape, dtype)
        dtype = canonicalize_dtype(float if dtype is None else dtype)
        return draw(key, tuple(map(index, shape)), dtype)

    return init


# ---- constants -----------------------------------------------------------------------------------


def zeros(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """Return weights that are 0; the key is not used."""
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


def ones(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """Return weights that are 1; the key is not used."""
    return jnp.ones(shape, dtype, out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Make an initializer of a value, which broadcasts to the shape asked for."""
    return _initializer(lambda key, shape, dtype: jnp.full(shape, value, dtype), dtype)


# ---- distributions -------------------------------------------------------------------------------


def uniform(scale: float = 1e-2, dtype: Any = None) -> Initializer:
    """Make an initializer that draws uniformly from ``[0, scale)``."""
    return _initializer(
        lambda key, shape, dtype: random.uniform(key, shape, dtype) * jnp.array(scale, dtype),
        dtype,
    )


def normal(stddev: float = 1e-2, dtype: Any = None) -> Initializer:
    """Make an initializer that draws from a normal distribution around 0."""
    return _initializer(
        lambda key, shape, dtype: random.normal(key, shape, dtype) * jnp.array(stddev, dtype),
        dtype,
    )


def truncated_normal(
    stddev: float = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Make an initializer that draws from a truncated normal distribution around 0.

    Parameters
    ----------
    stddev : float
        Of the distribution before it is truncated, which makes it smaller.
    dtype : dtype-like, optional
    lower, upper : float
        Bounds, in standard deviations.
    """

    def draw(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        drawn = random.truncated_normal(key, lower, upper, shape, dtype)
        return drawn * jnp.array(stddev, dtype)

    return _initializer(draw, dtype)


def _fans(shape: tuple[int, ...], *axes: Axes) -> tuple[float, float]:
    """Return how many inputs an output has, and how many outputs an input has.

    Axes that are neither inputs, outputs nor batch are the window of a convolution.
    """
    if axes[0] == -2 and len(shape) <= 1:
        raise ValueError(
            "nn.initializers: weights that scale with fan-in and fan-out need at least 2 axes "
            f"with the default in_axis, got shape {shape}. Give in_axis, or another initializer."
        )
    in_size, out_size, batch = (
        prod(shape[i] for i in ((a,) if isinstance(a, int) else a)) for a in axes
    )
    window = prod(shape) / in_size / out_size / batch
    return in_size * window, out_size * window


def _disk(key: Any, shape: tuple[int, ...], dtype: np.dtype, squared: Callable[..., Any]) -> Array:
    """Draw complex numbers of uniform phase, their squared moduli a function of uniform numbers."""
    of_modulus, of_phase = random.split(key)
    real = to_real(dtype)
    modulus = jnp.sqrt(squared(random.uniform(of_modulus, shape, real)))
    phase = 2 * np.pi * random.uniform(of_phase, shape, real).astype(dtype)
    return modulus.astype(dtype) * jnp.exp(1j * phase)


def uniform_disk(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Draw complex numbers evenly from a disk, of mean zero and variance one."""
    return _disk(key, shape, dtype, lambda u: 2 * u)


def truncated_disk(key: Any, upper: float, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Draw standard normal complex numbers whose modulus is at most `upper`."""
    inside = -np.expm1(-(float(upper) ** 2))
    return _disk(key, shape, dtype, lambda u: -jnp.log(1 - inside * u))


#: Standard deviations of standard normal numbers, real and complex, whose modulus is at most 2.
_TRUNCATED = (0.87962566103423978, 0.95311164380491208)


def _scaled(
    distribution: str, key: Any, shape: tuple[int, ...], dtype: np.dtype, variance: Array
) -> Array:
    if distribution == "normal":
        return random.normal(key, shape, dtype) * jnp.sqrt(variance)
    if distribution == "uniform":
        if not is_complex(dtype):
            return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
        return uniform_disk(key, shape, dtype) * jnp.sqrt(variance)
    stddev = jnp.sqrt(variance) / jnp.array(_TRUNCATED[is_complex(dtype)], dtype)
    if not is_complex(dtype):
        return random.truncated_normal(key, -2, 2, shape, dtype) * stddev
    return truncated_disk(key, 2.0, shape, dtype) * stddev


_DENOMINATORS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda inward, outward: inward,
    "fan_out": lambda inward, outward: outward,
    "fan_avg": lambda inward, outward: (inward + outward) / 2,
    "fan_geo_avg": lambda inward, outward: sqrt(inward * outward),
}


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """Make an initializer whose variance is ``scale`` over the number of connections.

    Parameters
    ----------
    scale : float
    mode : {"fan_in", "fan_out", "fan_avg", "fan_geo_avg"}
        What is counted: inputs, outputs, their mean, or their geometric mean.
    distribution : {"truncated_normal", "normal", "uniform"}
        Complex weights that are "uniform" lie in a disk.
    in_axis, out_axis, batch_axis : int or sequence of int
        Axes of inputs, outputs, and of independent copies; the others are a convolution's window.
    dtype : dtype-like, optional
        Default of the initializer.

    Raises
    ------
    ValueError
        When called, for another mode or distribution, or a shape with too few axes.

    Notes
    -----
    Glorot and Bengio (2010); He, Zhang, Ren and Sun (2015).
    """

    def draw(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        fans = _fans(shape, in_axis, out_axis, batch_axis)
        for what, given, known in (
            ("mode", mode, tuple(_DENOMINATORS)),
            ("distribution", distribution, ("truncated_normal", "normal", "uniform")),
        ):
            if given not in known:
                raise ValueError(
                    f"invalid {what} for variance scaling initializer: {given}. Use one of "
                    f"{', '.join(known)}."
                )
        variance = jnp.array(scale / _DENOMINATORS[mode](*fans), dtype)
        return _scaled(distribution, key, shape, dtype, variance)

    return _initializer(draw, dtype)


def _named(scale: float, mode: str, distribution: str, doc: str) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__doc__ = f"{doc}\n\nParameters are as of `variance_scaling`."
    return make


glorot_uniform = _named(1.0, "fan_avg", "uniform", "Glorot's uniform initializer.")
glorot_normal = _named(1.0, "fan_avg", "truncated_normal", "Glorot's normal initializer.")
lecun_uniform = _named(1.0, "fan_in", "uniform", "LeCun's uniform initializer.")
lecun_normal = _named(1.0, "fan_in", "truncated_normal", "LeCun's normal initializer.")
he_uniform = _named(2.0, "fan_in", "uniform", "He's uniform initializer, for ReLU.")
he_normal = _named(2.0, "fan_in", "truncated_normal", "He's normal initializer, for ReLU.")
for _name in ("glorot", "lecun", "he"):
    for _kind in ("uniform", "normal"):
        _make = globals()[f"{_name}_{_kind}"]
        _make.__name__ = _make.__qualname__ = f"{_name}_{_kind}"
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# ---- orthogonal ----------------------------------------------------------------------------------


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Make an initializer of matrices whose columns (or rows, if fewer) are orthogonal.

    Parameters
    ----------
    scale : float
        Length of the columns.
    column_axis : int
        Axis along which the columns lie side by side; the others together make the rows.
    dtype : dtype-like, optional

    Raises
    ------
    ValueError
        When called, for shapes with fewer than 2 axes.

    Notes
    -----
    Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks" (2014).
    """

    def draw(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if len(shape) < 2:
            raise ValueError(
                "orthogonal initializer requires at least a 2D shape, got "
                f"{shape}. Use normal for vectors."
            )
        if 0 in shape:
            return jnp.zeros(shape, dtype)
        columns = shape[column_axis]
        q = random.orthogonal(key, prod(shape) // columns, (), dtype, columns)
        others = np.delete(shape, column_axis)
        q = jnp.moveaxis(jnp.reshape(q, (*map(int, others), columns)), -1, column_axis)
        return jnp.array(scale, dtype) * q

    return _initializer(draw, dtype)


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Make an initializer of convolutions: an orthogonal matrix at the centre, 0 elsewhere.

    Parameters are as of `orthogonal`.

    Raises
    ------
    ValueError
        When called, for shapes without 3 to 5 axes, or with more inputs than outputs.

    Notes
    -----
    Xiao, Bahri, Sohl-Dickstein, Schoenholz and Pennington, "Dynamical isometry and a mean field
    theory of CNNs" (2018).
    """

    def draw(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                "Delta orthogonal initializer requires a 3D, 4D or 5D shape: 1 to 3 axes of the "
                f"window, inputs, outputs; got {shape}."
            )
        if shape[-1] < shape[-2]:
            raise ValueError(
                "delta_orthogonal: `fan_in` must be less or equal than `fan_out`, got "
                f"{shape[-2]} and {shape[-1]}."
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, dtype).at[centre].set(matrix)

    return _initializer(draw, dtype)
