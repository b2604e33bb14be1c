"""The effects next to the harmless idioms."""

import queue
from contextvars import ContextVar
from functools import partial

import numpy as np

import fnarray.numpy as jnp
from fnarray import jit

tasks = queue.Queue()
current = ContextVar("current")
tracing = False
LAYERS = [1.0]
held = np.zeros(3)


class Box:
    pass


box = Box()


@jit
def r_queue(x):
    tasks.put(x)  # !
    return x


@jit
def r_context_set(x):
    current.set(x)  # !
    return x


@jit
def r_setattr(x):
    setattr(box, "w", x)  # !
    return x


@jit
def r_globals(x):
    globals()["last"] = x  # !
    return x


@jit
def r_vars(x):
    vars(box)["w"] = x  # !
    return x


@jit
def r_slice_of_an_array(x):
    view = held[:]
    view[0] = 1.0  # !
    return x


@jit
def r_slice_of_a_list(x):
    return x * jnp.asarray(LAYERS[:])  # !


@jit
def r_copy_of_another(a, b):
    if a:
        c = b.copy()
    else:
        c = a
    c.append(b)  # !
    return c


@jit
def r_global_flag(x):
    if not tracing:
        print(x)  # !
    return x


@jit
def r_popped_pair(pairs):
    key, value = pairs.pop()  # !
    return key + value


@partial(jit, static_argnames="copied")
def r_copied_too_late(d, x, copied=True):
    d["x"] = x  # !
    if copied:
        d = d.copy()
    return d
