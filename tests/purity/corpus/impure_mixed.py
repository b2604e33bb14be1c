"""Combinations: effects behind several layers, or in unusual places."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import logging
import operator
import os
import random
import sys
import threading
import time
from functools import partial, reduce

import numpy as np

import fnarray.numpy as jnp
from fnarray import jit, lax
from jax import checkpoint, grad, value_and_grad, vmap

losses = []
metrics = {"loss": []}
registry = {}
scale = 2.0
lock = threading.Lock()
log = logging.getLogger("m")
table = np.arange(4.0)
source = iter(range(9))
GRID = np.zeros((2, 2))
DEFAULTS = {"k": 1}
NESTED = ([1.0], 2.0)


def record(kind, value, sink=losses):
    sink.append((kind, value))  # ! m_default_sink m_partial_record m_reduce m_argument_helper_list


@jit
def m_default_sink(x):
    record("a", x)
    return x


noted = partial(record, "loss")


@jit
def m_partial_record(x):
    noted(x)
    return x


@jit
def m_reduce(x):
    return reduce(lambda a, b: record("r", a) or a + b, [x, x])


@jit
def m_dict_of_lists(x):
    metrics["loss"].append(x)  # !
    return x


@jit
def m_alias_of_element(x):
    bucket = metrics["loss"]
    bucket.append(x)  # !
    return x


@jit
def m_loop_alias(x):
    for bucket in metrics.values():  # !
        bucket.clear()  # !
    return x


@jit
def m_grad_loss(params, x):
    def loss(p):
        losses.append(p)  # !
        return jnp.sum(p * x)

    return grad(loss)(params)


@jit
def m_value_and_grad_local(params, x):
    trace = []

    def loss(p):
        trace.append(p)  # !
        return jnp.sum(p * x)

    return value_and_grad(loss)(params)


@jit
def m_vmap_lambda(x):
    return vmap(lambda v: v * scale)(x)  # !


@jit
def m_checkpoint(x):
    @checkpoint
    def block(v):
        print("block")  # !
        return v

    return block(x)


@jit
def m_nested_scan(x):
    def outer(c, v):
        def inner(d, w):
            registry["inner"] = w  # !
            return d + w, w

        return lax.scan(inner, c, v)

    return lax.scan(outer, 0.0, x)


@jit
def m_body_local_dict(x):
    best = {"value": x}

    def body(i, v):
        best["value"] = v  # !
        return v + 1

    lax.fori_loop(0, 3, body, x)
    return best["value"]


@jit
def m_body_local_array(x):
    w = np.zeros(3)

    def body(i, v):
        w[0] += 1.0  # !
        return v + 1

    return lax.fori_loop(0, 3, body, x)


@jit
def m_body_object(x):
    class Box:
        total = 0.0

    box = Box()

    def body(i, v):
        box.total = v  # !
        return v

    return lax.fori_loop(0, 3, body, x)


@jit
def m_switch(i, x):
    return lax.switch(i, [lambda v: v, lambda v: losses.append(v) or v], x)  # !


@jit
def m_while_cond(x):
    return lax.while_loop(lambda v: v < scale, lambda v: v + 1, x)  # !


@jit
def m_map_print(x):
    return lax.map(lambda v: (print(v), v)[1], x)  # !


@jit
def m_associative(x):
    return lax.associative_scan(lambda a, b: a * scale + b, x)  # !


@jit
def m_with_lock(x):
    with lock:
        losses.append(x)  # !
    return x


@jit
def m_except(x):
    try:
        return x.reshape(3)
    except ValueError:
        log.warning("bad shape")  # !
        return x


@jit
def m_else(x):
    for _ in range(3):
        x = x + 1
    else:
        losses.append(x)  # !
    return x


@jit
def m_lambda_default(x):
    f = lambda v, k=scale: v * k  # !  # noqa: E731
    return f(x)


@jit
def m_chained(x):
    (lambda: losses.append(x))()  # !
    return x


@jit
def m_star_args(x):
    print(*[x, x])  # !
    return x


@jit
def m_fstring_call(x):
    return x, f"{time.time()}"  # !


@jit
def m_index_random(x):
    return x[random.randrange(3)]  # !


@jit
def m_default_in_call(x):
    return jnp.sum(x, axis=int(os.environ.get("AXIS", 0)))  # !


@jit
def m_dict_comprehension(x):
    return {k: registry.setdefault(k, x) for k in "ab"}  # !


@jit
def m_any(x):
    return x if any(losses.append(v) for v in range(2)) else -x  # !


@jit
def m_sorted_captured(x):
    return x * sorted(table)[0]  # !


@jit
def m_enumerate_captured(x):
    for i, v in enumerate(losses):  # !
        x = x + i * v
    return x


@jit
def m_islice(x):
    return x + sum(itertools.islice(source, 2))  # !


@jit
def m_upper_alias(x):
    grid = GRID
    grid[0, 0] = 1.0  # !
    return x


@jit
def m_upper_setdefault(x):
    return x * DEFAULTS.setdefault("k", 2)  # !


@jit
def m_tuple_with_list(x):
    return x * NESTED[0][0]  # !


@jit
def m_attrgetter(x):
    operator.iadd(losses, [x])  # !
    return x


@jit
def m_getattr_method(x):
    getattr(losses, "append")(x)  # !
    return x


@jit
def m_exit(x):
    if x.ndim > 3:
        sys.exit(1)  # !
    return x


@contextlib.contextmanager
def timed(name):
    start = time.perf_counter()  # ! m_timed
    yield
    registry[name] = start  # ! m_timed


@jit
def m_timed(x):
    with timed("step"):
        return x * 2


def memo(fun):
    kept = {}

    @functools.wraps(fun)
    def wrapper(x):
        if "y" not in kept:  # ! m_memo
            kept["y"] = fun(x)  # ! m_memo
        return kept["y"]  # ! m_memo

    return wrapper


@jit
@memo
def m_memo(x):
    return x * 2


def counted(fun):
    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1  # ! m_counted
        return fun(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


@counted
def helper(x):
    return x + 1


@jit
def m_counted(x):
    return helper(x)


class Layer:
    """A layer that counts."""

    instances = 0

    def __init__(self, k):
        self.k = k
        Layer.instances += 1  # ! m_constructor

    def __call__(self, x):
        return x * self.k  # ! m_layer_list m_layer

    @classmethod
    def reset(cls):
        cls.instances = 0  # ! m_classmethod

    @staticmethod
    def shout(x):
        print(x)  # ! m_staticmethod
        return x

    @functools.cached_property
    def expensive(self):
        return time.time()  # ! m_cached_property


layer = Layer(2.0)
layers = (layer, layer)


@jit
def m_constructor(x):
    Layer(3.0)
    return x


@jit
def m_layer(x):
    return layer(x)


@jit
def m_layer_list(x):
    for one in layers:
        x = one(x)
    return x


@jit
def m_classmethod(x):
    Layer.reset()
    return x


@jit
def m_staticmethod(x):
    return Layer.shout(x)


@jit
def m_cached_property(x):
    return x * layer.expensive


class Base:
    def step(self, x):
        self.seen = x  # ! m_inherited m_super
        return x


class Derived(Base):
    pass


class Super(Base):
    def step(self, x):
        return super().step(x) * 2


m_inherited = jit(Derived().step)


@dataclasses.dataclass
class Knobs:
    rate: float = 0.1


knobs = Knobs()


@jit
def m_dataclass_read(x):
    return x * knobs.rate  # !


@jit
def m_argument_helper_list(batch, x):
    record("b", x, batch["items"])
    return batch


@jit
def m_argument_setdefault(params, x):
    return params.setdefault("w", x)  # !


@jit
def m_argument_zip(layers, grads):
    for one, g in zip(layers, grads, strict=True):
        one["w"] = one["w"] - g  # !
    return layers


@jit
def m_argument_closure(params, g):
    def apply():
        params["w"] = g  # !

    apply()
    return params


@jit
def m_argument_tuple(pair):
    params, g = pair
    params["w"] = g  # !
    return params


@jit
def m_argument_star(*trees):
    trees[0]["w"] = 1.0  # !
    return trees


@jit
def m_argument_out(x, w: np.ndarray):
    np.multiply(x, 2.0, out=w)  # !
    return w


@jit
def m_deque_global(x, q=collections.deque()):  # noqa: B008
    q.append(x)  # !
    return x


def make_two_levels():
    total = []

    def outer(x):
        def inner(v):
            total.append(v)  # !
            return v

        return inner(x)

    return jit(outer)


def make_counter_object():
    counter = itertools.count()
    return jit(lambda x: x * next(counter))  # !


def make_nonlocal_read():
    step = 0

    def advance():
        nonlocal step
        step += 1

    def apply(x):
        return x * step  # !

    advance()
    return jit(apply)


def make_method_on_capture():
    class Meter:
        def __init__(self):
            self.total = 0.0

        def update(self, v):
            self.total += v  # ! make_method_on_capture

    meter = Meter()

    def step(x):
        meter.update(x)
        return x

    return jit(step)


def make_partial_list():
    def step(sink, x):
        sink.append(x)  # !
        return x

    return jit(partial(step, []))


def make_generator_expression():
    stream = (i for i in range(9))
    return jit(lambda x: x + max(stream))  # !


def rescale():
    """Rebind what the functions above read: bound once, it would be final, and no effect."""
    global scale, table
    scale, table = 3.0, np.ones(4)
