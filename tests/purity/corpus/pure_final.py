"""Functions that read what is bound once: nothing is seen to change it, and a guard would see it."""

import enum
import math as maths
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import default_rng

import fnarray.numpy as jnp
from fnarray import grad, jit, lax, vmap

KERNEL = np.ones(3)
matrix = np.eye(3)
rate = 0.1
steps: int = 10
mode = "train"
shape = (2, 3)
nested = ((1, 2), "a", None)
verbose = False
offset = -1.5
half = np.float32(0.5)
_hidden = 3
dtype = np.dtype("float32")
first, second = 0.9, 0.999
if verbose:
    level = 2
pair = (np.ones(3), 2.0)
data = np.arange(3.0)
data -= data.mean()
data = data / 2
c000, c001, c002 = 8.0, 2.6e-2, -7.2e-5
alias = rate


class Kind(enum.Enum):
    FAST = 1


@dataclass(frozen=True)
class Settings:
    scale: float = 2.0
    table: np.ndarray = None


class Model:
    width = 3.0
    """Nothing sets it."""


DEBUG = False
if dtype.itemsize > 4:
    branch = 1.0
else:
    branch = 2.0
try:
    import nowhere_to_be_found
    found = 1.0
except ImportError:
    found = 0.0

kind = Kind.FAST
settings = Settings(3.0, np.ones(3))


@jit
def l_scalar(x):
    return x * rate


@jit
def l_annotated(x):
    for _ in range(steps):
        x = x + 1
    return x


@jit
def l_string(x):
    return x if mode == "train" else -x


@jit
def l_tuple(x):
    return jnp.zeros(shape) + x


@jit
def l_nested(x):
    return x * nested[0][1]


@jit
def l_bool(x):
    return x if verbose else x + 1


@jit
def l_unary(x):
    return x * -offset


@jit
def l_numpy_scalar(x):
    return x * half


@jit
def l_private(x):
    return x + _hidden


@jit
def l_dtype(x):
    return x.astype(dtype)


@jit
def l_unpacked(m, g):
    return first * m + (1 - second) * g


@jit
def l_in_if(x):
    return x if verbose is False else x * level


@jit
def l_alias(x):
    return x * alias


@jit
def l_imported(x):
    return x * maths.pi


@jit
def l_enum(x):
    return x * kind.value


@jit
def l_frozen(x):
    return x * settings.scale + settings.table


@jit
def l_polynomial(t):
    return c000 + t * (c001 + t * c002)


def scaled(x):
    return x * rate


@jit
def l_helper(x):
    return scaled(x)


@jit
def l_body(x):
    return lax.fori_loop(0, 3, lambda i, v: v * rate, x)


@jit
def l_vmap(x):
    return vmap(lambda v: v * rate)(x)


@jit
def l_grad(x):
    return grad(lambda v: v * rate)(x)


@jit
def l_default(x, scale=rate):
    return x * scale


@jit
def l_array(x):
    return x @ matrix


@jit
def l_array_call(x):
    return jnp.dot(x, matrix)


@jit
def l_array_index(x):
    return x * matrix[0, 0]


@jit
def l_array_method(x):
    return x * matrix.sum()


@jit
def l_array_attribute(x):
    return x @ matrix.T


@jit
def l_array_alias(x):
    m = matrix
    return x @ m


@jit
def l_upper_array(x):
    return x * KERNEL


@jit
def l_array_in_tuple(x):
    return x * pair[0]


def make_dict():
    params = {"w": 1.0}

    @jit
    def apply(x):
        return x * params["w"]

    return apply


def make_dict_call():
    config = dict(scale=2.0)

    def step(x):
        return x * config["scale"]

    return step


def make_list():
    layers = [1.0, 2.0]

    def apply(x):
        for layer in layers:
            x = x * layer
        return x

    return jit(apply)


def make_set():
    names = {"a"}
    return lambda x: {n: x for n in names}


def make_array():
    w = np.ones(3)
    return jit(lambda x: x * w)


def make_array_def():
    w = np.ones(3)

    def f(x):
        return x @ w

    return f


def make_array_argument(w=np.ones(3)):
    return jit(lambda x: x * w)


def layer(**options):
    def apply(x):
        return jnp.sum(x, **options)

    return apply


def make_options():
    return layer(axis=0)


def stacked(*parts, **options):
    def apply(x):
        for part in parts:
            x = part(x)
        return x * options.get("scale", 1.0)

    return jit(apply)


def make_parts():
    return stacked(jnp.sin, lambda v: v * rate, scale=2.0)


def make_filled():
    table = {}
    for k in range(3):
        table[k] = k * 2.0
    table.setdefault(4, 1.0)

    def apply(x):
        return x * table[2]

    return apply


def make_popped(**options):
    scale = options.pop("scale", 2.0)

    def apply(x):
        return jnp.sum(x, **options) * scale

    return apply


def make_passed():
    options = {"a": 1.0, "b": [1.0, 2.0]}

    def apply(x):
        return combine(x, options)

    return apply


def combine(x, options):
    return x * options["a"] + options["b"][1]


def make_partial():
    weights = np.ones(3)
    return partial(jnp.dot, weights)


def make_array_of_argument(weights=(1.0, 2.0, 3.0)):
    weights = np.asarray(weights)
    weights = weights / weights.sum()
    return lambda x: x @ weights


def make_compiled_by_cython():
    def apply(x):
        return x + default_rng(0).normal()

    return apply


@jit
def l_class_attribute(x):
    return x * Model.width


@jit
def l_branch(x):
    return x * branch


@jit
def l_handler(x):
    return x * found


@jit
def l_debug(x):
    if DEBUG:
        print(x)
    return x


@jit
def l_no_debug(x):
    if not DEBUG:
        return x
    print(x)
    return x


@jit
def l_normalised(x):
    return x * data
