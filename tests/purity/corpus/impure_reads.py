"""Functions that read what may change between calls."""

import argparse
import math
from collections import deque, namedtuple
from functools import partial
from types import SimpleNamespace

import numpy as np

import fnarray.numpy as jnp
from fnarray import jit, lax

config = {"scale": 2.0}
weights = [1.0, 2.0]
names = {"a", "b"}
window = deque([1.0])
TABLE = [1.0, 2.0]
SETTINGS = {"rate": 0.1}
KERNEL = np.ones(3)
matrix = np.eye(3)
rate = 0.1
steps = 10
mode = "train"
shape = (2, 3)
verbose = False
offset = -1.5
half = np.float32(0.5)
args = argparse.Namespace(lr=0.1)
space = SimpleNamespace(scale=2.0)
Pair = namedtuple("Pair", "left right")
mixed = Pair([1.0], 2.0)
_hidden = 3


class Settings:
    scale = 2.0

    def turn(self):
        Settings.scale = 3.0

    def __init__(self):
        self.gain = 1.0
        self.table = [1.0]

    @property
    def twice(self):
        return self.gain * 2  # ! r_property

    def apply(self, x):
        return x * self.gain  # ! r_method r_bound


settings = Settings()


@jit
def r_dict(x):
    return x * config["scale"]  # !


@jit
def r_dict_get(x):
    return x * config.get("scale", 1.0)  # !


@jit
def r_dict_in(x):
    return x if "scale" in config else -x  # !


@jit
def r_list_index(x):
    return x * weights[0]  # !


@jit
def r_list_sum(x):
    return x * sum(weights)  # !


@jit
def r_list_len(x):
    return x * len(weights)  # !


@jit
def r_list_loop(x):
    for w in weights:  # !
        x = x * w
    return x


@jit
def r_list_comprehension(x):
    return [x * w for w in weights]  # !


@jit
def r_list_star(x):
    return jnp.stack([x, *weights])  # !


@jit
def r_list_array(x):
    return x + jnp.array(weights)  # !


@jit
def r_list_zip(x):
    return [a * b for a, b in zip(x, weights, strict=False)]  # !


@jit
def r_list_return(x):
    return x, weights  # !


@jit
def r_set(x):
    return x if "a" in names else -x  # !


@jit
def r_deque(x):
    return x + window[0]  # !


@jit
def r_upper_list(x):
    return x * TABLE[1]  # !


@jit
def r_upper_dict(x):
    return x * SETTINGS["rate"]  # !


@jit
def r_array(x):
    return x @ matrix  # !


@jit
def r_array_call(x):
    return jnp.dot(x, matrix)  # !


@jit
def r_array_index(x):
    return x * matrix[0, 0]  # !


@jit
def r_array_method(x):
    return x * matrix.sum()  # !


@jit
def r_array_alias(x):
    m = matrix  # !
    return x @ m


@jit
def r_scalar(x):
    return x * rate  # !


@jit
def r_scalar_unary(x):
    return x * -offset  # !


@jit
def r_scalar_range(x):
    for _ in range(steps):  # !
        x = x + 1
    return x


@jit
def r_scalar_if(x):
    if verbose:  # !
        return x
    return x + 1


@jit
def r_string(x):
    return x if mode == "train" else x * 0  # !


@jit
def r_tuple(x):
    return jnp.reshape(x, shape)  # !


@jit
def r_numpy_scalar(x):
    return x * half  # !


@jit
def r_private(x):
    return x + _hidden  # !


@jit
def r_fstring(x):
    label = f"{mode}-{x.ndim}"  # !
    return x * len(label)


@jit
def r_namespace(x):
    return x * space.scale  # !


@jit
def r_argparse(x):
    return x * args.lr  # !


@jit
def r_attribute(x):
    return x * settings.gain  # !


@jit
def r_attribute_list(x):
    return x * settings.table[0]  # !


@jit
def r_class_attribute(x):
    return x * Settings.scale  # !


@jit
def r_property(x):
    return x * settings.twice


@jit
def r_method(x):
    return settings.apply(x)


r_bound = jit(settings.apply)


@jit
def r_getattr(x):
    return x * getattr(settings, "gain")  # !


@jit
def r_namedtuple_list(x):
    return x * mixed.left[0]  # !


@jit
def r_tuple_of_list(x, pair=(TABLE, 1.0)):
    return x * pair[0][0]  # !


@jit
def r_default_dict(x, table={}):  # noqa: B006
    return x * table.get("k", 1.0)  # !


def scaled(x):
    return x * rate  # ! r_helper r_helper_twice


@jit
def r_helper(x):
    return scaled(x)


def outer_helper(x):
    return scaled(x) + 1


@jit
def r_helper_twice(x):
    return outer_helper(x)


@jit
def r_passed(x):
    return jnp.polyval(weights, x)  # !


@jit
def r_lambda(x):
    f = lambda v: v * rate  # !  # noqa: E731
    return f(x)


@jit
def r_inner(x):
    def inner(v):
        return v + config["scale"]  # !

    return inner(x)


@jit
def r_body(x):
    return lax.fori_loop(0, 3, lambda i, v: v * rate, x)  # !


@jit
def r_cond(x):
    return lax.cond(x.ndim > 0, lambda v: v * offset, lambda v: v, x)  # !


def power(x, n):
    return x**n * rate  # ! r_partial


r_partial = jit(partial(power, n=2))


@jit
def r_while(x):
    while x.ndim < steps:  # !
        x = x[None]
    return x


@jit
def r_keyword(x):
    return jnp.sum(x, axis=_hidden)  # !


@jit
def r_slice(x):
    return x[:steps]  # !


@jit
def r_assert(x):
    assert steps > 0  # !
    return x


@jit
def r_ifexp(x):
    return x * 2 if verbose else x  # !


@jit
def r_boolop(x):
    return x * (verbose or 2)  # !


@jit
def r_compare(x):
    return x * (1 < steps < 20)  # !


@jit
def r_math(x):
    return x * math.sqrt(steps)  # !


@jit
def r_match(x):
    match mode:  # !
        case "train":
            return x
        case _:
            return -x


@jit
def r_dict_display(x):
    return {**config, "x": x}  # !


@jit
def r_globals(x):
    return x * globals()["rate"]  # !


def make_dict_of_caller():
    params = {"w": 1.0}
    return with_params(params)


def with_params(params):
    @jit
    def apply(x):
        return x * params["w"]  # ! make_dict_of_caller

    return apply


def make_dict_written_later():
    params = {"w": 1.0}

    @jit
    def apply(x):
        return x * params["w"]  # !

    params["w"] = 2.0
    return apply


def make_dict_given_away():
    params = {"w": 1.0}

    @jit
    def apply(x):
        return x * params["w"]  # !

    return apply if params is None else keep(apply, params)


def keep(value, _):
    return value


def make_list_appended_in_a_loop():
    layers = []
    for k in range(2):

        def apply(x):
            return x * len(layers)  # !  # noqa: B023

        layers.append(k)
    return jit(apply)


def make_list_of_a_sibling():
    layers = [1.0]

    @jit
    def apply(x):
        return x * layers[0]  # !

    apply.push = lambda value: layers.append(value)
    return apply


def make_array_bound_twice():
    w = np.ones(3)
    apply = jit(lambda x: x * w)  # !
    w = w * 2
    return apply


def make_object():
    box = SimpleNamespace(scale=2.0)
    return jit(lambda x: x * box.scale)  # !


def make_sibling():
    scale = 1.0

    def update(value):
        nonlocal scale
        scale = value

    @jit
    def apply(x):
        return x * scale  # !

    apply.update = update
    return apply


def make_late():
    fs = []
    for k in range(3):
        fs.append(jit(lambda x: x * k))  # !  # noqa: B023
    return fs[0]


def make_late_def():
    out = {}
    for k in range(3):

        @jit
        def times(x):
            return x * k  # !  # noqa: B023

        out[k] = times
    return out[1]


def make_late_comprehension():
    return [jit(lambda x: x + k) for k in range(3)][0]  # !  # noqa: B023


def retune():
    """Rebind what the functions above read: bound once, it would be final, and no effect."""
    global rate, steps, mode, shape, verbose, offset, half, matrix, _hidden
    rate, steps, mode, shape, verbose = 0.2, 20, "test", (3, 2), True
    offset, half, matrix, _hidden = 1.5, np.float32(2.0), np.ones((3, 3)), 4
