"""Functions that read constants, frozen values, functions, classes and modules."""

import enum
import functools
import math
import operator
import typing
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import pi, tau
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
from numpy import inf, newaxis

import fnarray
import fnarray.numpy as jnp
from fnarray import jit, lax, nn, random
from jax import grad, vmap

LEARNING_RATE = 0.1
N_STEPS = 3
MODE = "train"
SHAPE = (2, 3)
_EPS = 1e-6
BETA2 = 0.999
FLAGS = frozenset({"a", "b"})
TABLE = MappingProxyType({"scale": 2.0})
NONE = None
DEBUG = False
HALF = np.float32(0.5)
RATIO = Fraction(1, 3)
limit: Final = 10
width: Final[int] = 4
depth: "Final" = 2
weights = jnp.ones(3)
bias = jnp.zeros(())
key = random.key(0)
params = (jnp.ones(3), jnp.zeros(3))
frozen_array = np.arange(3.0)
frozen_array.flags.writeable = False
KERNEL = np.ones(3)
KERNEL.setflags(write=False)
dtype = jnp.float32
index = slice(0, 2)
activations = (jnp.sin, jnp.cos)
LAYERS = ("dense", "relu")
NESTED = ((1, 2), ("a", 3.0))


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: float
    y: float


Pair = namedtuple("Pair", "left right")
origin = Point(0.0, 1.0)
pair = Pair(jnp.ones(2), 3)


@dataclass(frozen=True)
class Settings:
    scale: float = 2.0
    shape: tuple = (2, 3)
    inner: Point = origin

    def apply(self, x):
        return x * self.scale + self.bias

    @property
    def bias(self):
        return self.scale / 2

    def __call__(self, x):
        return self.apply(x)


settings = Settings()


class Config:
    RATE = 0.1
    SIZES = (1, 2)
    steps: Final = 3

    @staticmethod
    def scale(x):
        return x * Config.RATE

    @classmethod
    def build(cls, x):
        return x * cls.RATE

    def run(self, x):
        return self.helper(x) * self.RATE

    def helper(self, x):
        return x + 1


config = Config()


def relu(x):
    return jnp.maximum(x, 0)


double = lambda x: x * 2  # noqa: E731
triple = partial(operator.mul, 3)
compiled = jit(relu)
batched = vmap(relu)
slope = grad(lambda v: jnp.sum(v * v))
Kernel = Callable[[float], float]


@jit
def c_caps(x):
    return x * LEARNING_RATE


@jit
def c_caps_private(x):
    return x / (jnp.abs(x) + _EPS) ** BETA2


@jit
def c_caps_string(x):
    return x if MODE == "train" else -x


@jit
def c_caps_tuple(x):
    return jnp.reshape(x, SHAPE)


@jit
def c_caps_range(x):
    for i in range(N_STEPS):
        x = x * i
    return x


@jit
def c_caps_bool(x):
    if DEBUG:
        return x
    return x + 1


@jit
def c_caps_none(x):
    return x if NONE is None else -x


@jit
def c_caps_nested(x):
    return x * NESTED[0][1]


@jit
def c_caps_loop(x):
    for name in LAYERS:
        x = x * len(name)
    return x


@jit
def c_numpy_scalar(x):
    return x * HALF


@jit
def c_fraction(x):
    return x * float(RATIO)


@jit
def c_final(x):
    return x * limit


@jit
def c_final_typed(x):
    return x * width


@jit
def c_final_text(x):
    return x * depth


@jit
def c_array(x):
    return x * weights + bias


@jit
def c_array_method(x):
    return x * weights.sum() + weights[0]


@jit
def c_array_at(x):
    return weights.at[0].set(x)


@jit
def c_key(x):
    return x + random.normal(key, x.shape)


@jit
def c_tuple_arrays(x):
    w, b = params
    return x * w + b


@jit
def c_tuple_arrays_index(x):
    return x * params[0]


@jit
def c_frozen_array(x):
    return x * frozen_array + KERNEL[0]


@jit
def c_mapping(x):
    return x * TABLE["scale"]


@jit
def c_frozenset(x):
    return x if "a" in FLAGS else -x


@jit
def c_frozenset_loop(x):
    for flag in FLAGS:
        x = x * len(flag)
    return x


@jit
def c_enum(x):
    return x if Mode.TRAIN is Mode.TEST else x * Mode.TRAIN.value


@jit
def c_int_enum(x):
    return x * Level.LOW


@jit
def c_enum_match(x, mode=Mode.TRAIN):
    match mode:
        case Mode.TRAIN:
            return x
        case Mode.TEST:
            return -x


@jit
def c_named_tuple(x):
    return x * origin.x + origin.y


@jit
def c_named_tuple_array(x):
    return x * pair.left * pair.right


@jit
def c_make_point(x):
    p = Point(x, 1.0)
    return p._replace(y=x)


@jit
def c_frozen_dataclass(x):
    return x * settings.scale


@jit
def c_frozen_method(x):
    return settings.apply(x)


@jit
def c_frozen_property(x):
    return x + settings.bias


@jit
def c_frozen_nested(x):
    return x + settings.inner.y + settings.shape[0]


c_frozen_callable = jit(settings)
c_frozen_bound = jit(settings.apply)


@jit
def c_class_constant(x):
    return x * Config.RATE


@jit
def c_class_constant_instance(x):
    return x * config.RATE + config.SIZES[0]


@jit
def c_class_final(x):
    return x * Config.steps


@jit
def c_static_method(x):
    return Config.scale(x)


@jit
def c_class_method(x):
    return Config.build(x)


c_method = jit(config.run)


@jit
def c_math(x):
    return x * math.pi + math.sqrt(2.0) * math.e


@jit
def c_imported(x):
    return x * pi + tau


@jit
def c_imported_numpy(x):
    return jnp.where(x > 0, x, inf)[newaxis]


@jit
def c_numpy_constants(x):
    return x * np.pi + np.float32(1.0) + np.finfo(np.float32).eps


@jit
def c_numpy_static(x):
    n = np.prod(x.shape)
    return x / np.sqrt(n)


@jit
def c_dtype(x):
    return x.astype(dtype) + jnp.zeros(3, jnp.float32)


@jit
def c_slice(x):
    return x[index]


@jit
def c_function(x):
    return relu(double(x))


@jit
def c_partial(x):
    return triple(x)


@jit
def c_compiled(x):
    return compiled(x) + batched(x) + slope(x)


@jit
def c_function_tuple(x):
    for f in activations:
        x = f(x)
    return x


@jit
def c_function_argument(x, f=relu):
    return f(x)


@jit
def c_module(x):
    return fnarray.numpy.sin(x) + nn.relu(x)


@jit
def c_lax(x):
    return lax.fori_loop(0, N_STEPS, lambda i, v: v * LEARNING_RATE + weights, x)


@jit
def c_scan(x):
    def body(carry, v):
        return carry * BETA2 + v, carry

    return lax.scan(body, bias, x)


@jit
def c_map(x):
    return lax.map(relu, x)


@jit
def c_grad(x):
    return grad(lambda v: jnp.sum(relu(v) * weights))(x)


@jit
def c_fstring(x):
    if x.ndim > N_STEPS:
        raise ValueError(f"{MODE}: too many axes, {x.shape}, at most {N_STEPS}")
    return x


@jit
def c_cast(x):
    y = typing.cast(float, x)
    return y * 2


@functools.lru_cache
def table(n):
    return tuple(i * i for i in range(n))


@jit
def c_cached(x):
    return x * table(3)[1]


@jit
def c_builtins(x):
    n = max(len(x.shape), 1) + abs(-2) + round(2.6) + int(3.2) + divmod(7, 2)[0]
    return x * n * bool(n) * sum(range(n)) * min(n, 3) * ord("a")


@jit
def c_any_all(xs):
    if all(v.ndim == 1 for v in xs) or any(isinstance(v, list) for v in xs):
        return xs[0]
    return xs[-1]


@jit
def c_dataclass_argument(state, x):
    return state.mu * BETA2 + x, state.count + 1


@jit
def c_self_argument(self, x):
    return x * self.scale + self.table["w"]


@dataclass(frozen=True)
class Dense:
    w: jnp.ndarray = field(default=None)
    f: Callable = relu

    def __call__(self, x):
        return self.f(x * self.w)


dense = Dense(w=weights)
layers = (dense, dense)


@jit
def c_layers(x):
    for layer in layers:
        x = layer(x)
    return x


@jit
def c_layer(x):
    return dense(x)


def compose(*fs):
    def run(x):
        for f in fs:
            x = f(x)
        return x

    return run


pipeline = compose(relu, double)


@jit
def c_pipeline(x):
    return pipeline(x)


def traced(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)

    return wrapper


@jit
@traced
def c_decorated(x):
    return x * 2


@traced
def helper(x, *, scale=2.0):
    return x * scale


@jit
def c_decorated_helper(x):
    return helper(x, scale=3.0)


@jit
def c_ternary(x):
    f = relu if MODE == "train" else double
    return f(x)


@jit
def c_unpack_constant(x):
    n, m = SHAPE
    return x * n * m


@jit
def c_star_constant(x):
    return jnp.zeros((*SHAPE, 1)) + x


@jit
def c_default_constant(x, rate=LEARNING_RATE, shape=SHAPE):
    return x * rate * shape[0]


@jit
def c_type_call(x):
    return type(x), Mode(1).value, Level["LOW"].value


@jit
def c_isinstance(x):
    return x if isinstance(x, Point | Pair) else x * 2


@jit
def c_callback_argument(f, x):
    return f(x) + relu(x)


@jit
def c_string_methods(x):
    return x * len("-".join(LAYERS).upper().split("-"))


c_lambda = jit(lambda x: x * LEARNING_RATE)
c_two_on_a_line = (jit(lambda x: x + 1), jit(lambda x: x - 1))[1]
c_partial_jit = jit(partial(compose(relu), ))
c_builtin = jit(abs)


def make_frozen_capture():
    local = Settings(scale=3.0)
    return jit(lambda x: local.apply(x) + local.scale)


def make_capture_module():
    xp = jnp
    return jit(lambda x: xp.sin(x))


def make_capture_string():
    name = "dense"
    return jit(lambda x: x * len(name))


def make_recursive():
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return jit(lambda x: x * fact(4))


def make_class_closure():
    class Scale:
        K = 3.0

    return jit(lambda x: x * Scale.K)
