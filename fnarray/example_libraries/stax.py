"""Layers of neural networks as pairs of functions: to make parameters, and to apply them.

``init_fun(rng, input_shape)`` returns the shape of the output and parameters; ``apply_fun(params,
inputs, **kwargs)`` the output. Combinators make one such pair of several.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .. import lax, random
from .. import numpy as jnp
from ..nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from ..nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "parallel",
    "serial",
    "shape_dependent",
]
__dir__ = __all__.copy

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]

#: Older names.
glorot, randn, logsoftmax = glorot_normal, normal, log_softmax


# ---- layers --------------------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """Return a fully connected layer."""
    W_init = glorot_normal() if W_init is None else W_init
    b_init = normal() if b_init is None else b_init

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        k1, k2 = random.split(rng)
        W, b = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), (W, b)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _convolution(
    convolve: Callable[..., Any],
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any,
    padding: Any,
    W_init: Any,
    b_init: Any,
) -> Layer:
    lhs, rhs, out = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))
    b_init = b_init or normal(1e-6)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        kernel = tuple(channels[c] if c in channels else next(sizes) for c in rhs)
        bias = tuple(out_chan if c == "C" else 1 for c in out)
        k1, k2 = random.split(rng)
        params = W_init(k1, kernel), b_init(k2, bias)
        shape = _result_shape(convolve, input_shape, kernel, strides, padding, dimension_numbers)
        return shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        found = convolve(inputs, W, strides, padding, dimension_numbers=dimension_numbers)
        return found + b

    return init_fun, apply_fun


def _result_shape(
    convolve: Any, inputs: Shape, kernel: Shape, strides: Any, padding: Any, numbers: Any
) -> Shape:
    if convolve is lax.conv_transpose:
        return lax.conv_transpose_shape_tuple(inputs, kernel, strides, padding, numbers)
    return lax.conv_general_shape_tuple(inputs, kernel, strides, padding, numbers)


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Return a convolution whose axes are as ``dimension_numbers`` says."""
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding,
        W_init, b_init,
    )  # fmt: skip


#: A convolution of images, the channels last: `GeneralConv` in that layout.
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Any = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Return a transposed convolution whose axes are as ``dimension_numbers`` says."""
    return _convolution(
        lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init,
        b_init,
    )  # fmt: skip


#: A transposed convolution of sequences, the channels last.
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
#: A transposed convolution of images, the channels last.
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Return a layer that standardizes along axes, with a scale and a shift to learn."""
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple(n for k, n in enumerate(input_shape) if k not in axis)
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        gamma = gamma_init(k2, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        spread = tuple(None if k in axis else slice(None) for k in range(x.ndim))
        z = standardize(x, axis, epsilon=epsilon)
        z = gamma[spread] * z if scale else z
        return z + beta[spread] if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Return a layer that applies a function to each element."""

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return fun(inputs, **fun_kwargs)

    return init_fun, apply_fun


#: Hyperbolic tangent, as a layer.
Tanh = elementwise(jnp.tanh)
#: The larger of the input and 0, as a layer.
Relu = elementwise(relu)
#: Exponential, as a layer.
Exp = elementwise(jnp.exp)
#: Logarithm of the softmax over the last axis, as a layer.
LogSoftmax = elementwise(log_softmax, axis=-1)
#: Softmax over the last axis, as a layer.
Softmax = elementwise(softmax, axis=-1)
#: ``log(1 + exp(x))``, as a layer.
Softplus = elementwise(softplus)
#: Logistic function, as a layer.
Sigmoid = elementwise(sigmoid)
#: Exponential linear unit, as a layer.
Elu = elementwise(elu)
#: Rectifier that lets a hundredth of what is negative pass, as a layer.
LeakyRelu = elementwise(leaky_relu)
#: Scaled exponential linear unit, as a layer.
Selu = elementwise(selu)
#: Gaussian error linear unit, as a layer.
Gelu = elementwise(gelu)


def _pooling(
    reducer: Callable[..., Any], start: float, rescale: Callable[..., Any] | None = None
) -> Callable[..., Layer]:
    def pooling(
        window_shape: Sequence[int], strides: Any = None, padding: str = "VALID", spec: Any = None
    ) -> Layer:
        """Return a layer that reduces windows."""
        strides = strides or (1,) * len(window_shape)
        axes = "NHWC" if spec is None else spec
        sizes, steps = iter(window_shape), iter(strides)
        plain = [c in ("N", "C") for c in axes]
        window = tuple(1 if p else next(sizes) for p in plain)
        moves = tuple(1 if p else next(steps) for p in plain)

        def init_fun(rng: Any, input_shape: Shape) -> Any:
            pads = lax.padtype_to_pads(input_shape, window, moves, padding)
            shape = lax.reduce_window_shape_tuple(input_shape, window, moves, pads)
            return shape, ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            first = jnp.asarray(start, inputs.dtype)[()]
            out = lax.reduce_window(inputs, first, reducer, window, moves, padding)
            return rescale(out, inputs, window, moves, padding) if rescale else out

        return init_fun, apply_fun

    return pooling


def _mean(out: Any, inputs: Any, window: Shape, strides: Shape, padding: str) -> Any:
    """Divide sums of windows by how many elements each has."""
    counted = [k for k, n in enumerate(window) if n != 1 or strides[k] != 1]
    shape = tuple(n if k in counted else 1 for k, n in enumerate(inputs.shape))
    steps = tuple(s if k in counted else 1 for k, s in enumerate(strides))
    one = jnp.ones(shape, inputs.dtype)
    counts = lax.reduce_window(one, jnp.zeros((), one.dtype), lax.add, window, steps, padding)
    return out / counts


MaxPool = _pooling(lax.max, float("-inf"))
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, _mean)


def _flatten() -> Layer:
    def init_fun(rng: Any, input_shape: Shape) -> Any:
        return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.reshape(inputs, (inputs.shape[0], -1))

    return init_fun, apply_fun


#: A layer that makes each example a vector.
Flatten = _flatten()
#: A layer that changes nothing.
Identity = elementwise(lambda x: x)


def FanOut(num: int) -> Layer:
    """Return a layer that gives its input several times."""

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        return [input_shape] * num, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return [inputs] * num

    return init_fun, apply_fun


def _fan_in_sum() -> Layer:
    def init_fun(rng: Any, input_shape: Any) -> Any:
        return input_shape[0], ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return functools.reduce(operator.add, inputs)

    return init_fun, apply_fun


#: A layer that adds up its inputs, a list of arrays.
FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """Return a layer that concatenates its inputs."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        first = input_shape[0]
        place = axis % len(first)
        total = sum(shape[place] for shape in input_shape)
        return (*first[:place], total, *first[place + 1 :]), ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return jnp.concatenate(inputs, axis)

    return init_fun, apply_fun


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return a layer that keeps each element with probability ``rate``, while it is trained."""

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        return input_shape, ()

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key: "
                "apply_fun(params, inputs, rng=key)."
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return init_fun, apply_fun


# ---- combinators ---------------------------------------------------------------------------------


def serial(*layers: Layer) -> Layer:
    """Return layers one after the other as one."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        params = []
        for init in inits:
            rng, own = random.split(rng)
            input_shape, param = init(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _split(kwargs.pop("rng", None), len(layers))
        for apply, param, rng in zip(applies, params, rngs, strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Return layers beside each other as one: it takes a list of inputs, one for each."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init_fun(rng: Any, input_shape: Any) -> Any:
        rngs = random.split(rng, len(layers))
        found = [init(r, s) for init, r, s in zip(inits, rngs, input_shape, strict=True)]
        shapes, params = zip(*found, strict=True)
        return tuple(shapes), tuple(params)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _split(kwargs.pop("rng", None), len(layers))
        pieces = zip(applies, params, inputs, rngs, strict=True)
        return [apply(p, x, rng=r, **kwargs) for apply, p, x, r in pieces]

    return init_fun, apply_fun


def _split(rng: Any, count: int) -> Any:
    return (None,) * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Return the layer that ``make_layer(input_shape)`` makes once the shape is known."""

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        shape = [x.shape for x in inputs] if isinstance(inputs, list | tuple) else inputs.shape
        return make_layer(shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
