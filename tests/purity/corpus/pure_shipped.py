"""Harmless idioms of libraries that people ship, each once taken for an effect."""

import copy
import queue
from functools import partial

import jax

import fnarray.numpy as jnp
from fnarray import jit, lax


class Box:
    pass


@jit
def q_nested_builder(params):
    root = {}
    for path, leaf in params.items():
        cursor = root
        *front, last = path.split("/")
        for key in front:
            cursor = cursor.setdefault(key, {})
        cursor[last] = leaf
    return root


@jit
def q_slice_copy(layers, x):
    stack = layers[:]
    stack.append(x)
    return stack


@jit
def q_slice_of_a_slice(layers, x):
    rest = layers[1:][:-1]
    rest[0] = x
    rest.extend([x])
    return rest


@partial(jit, static_argnames="mine")
def q_conditional_copy(d, x, mine=True):
    if mine:
        d = d.copy()
    d["x"] = x
    return d


@partial(jit, static_argnames="deep")
def q_conditional_deepcopy(d, x, deep=True):
    if deep:
        d = copy.deepcopy(d)
    d["x"] = x
    return d


@jit
def q_copy_of_either_kind(layers, x):
    layers = list(layers) if isinstance(layers, tuple) else layers.copy()
    layers.append(x)
    return layers


@jit
def q_ref_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1
    o_ref[0] += 1


@jit
def q_ref_in_a_loop(x):
    def body(i, total_ref):
        total_ref[...] = total_ref[...] + i
        return total_ref

    return lax.fori_loop(0, 3, body, x)


@jit
def q_print_outside_of_traces(x):
    tracing = isinstance(x, jax.core.Tracer)
    if not tracing:
        print(x)
    return x


@jit
def q_print_where_eager(x):
    if isinstance(x, jax.core.Tracer):
        return x + 1
    print("eager", x)
    return x


@partial(jit, static_argnames="tracing")
def q_print_unless_told(x, tracing=True):
    if not tracing:
        print(x)
    return x


@jit
def q_own_queue(x):
    waiting = queue.Queue()
    waiting.put(x)
    waiting.put_nowait(x + 1)
    return waiting.get() + waiting.get_nowait()


@jit
def q_vars_of_a_local(x):
    local = Box()
    vars(local)["w"] = x
    local.__dict__["v"] = x
    return local.w + local.v


@jit
def q_functional_stack(s):
    top, s = s.pop()
    return s.push(top + 1)




def make_partial_of_itself():
    def loss(x, a, b):
        return x * a * b

    loss = partial(loss, a=2.0)
    loss = partial(loss, b=3.0)
    return jit(lambda x: jnp.sum(loss(x)))


@jit
def q_nested_builder_by_items(flat):
    out = {}
    for path, leaf in flat.items():
        cursor = out
        for key in path[:-1]:
            if key not in cursor:
                cursor[key] = {}
            cursor = cursor[key]
        cursor[path[-1]] = leaf
    return out


@partial(jit, static_argnames="verbose")
def q_print_if_told_and_eager(x, verbose=False):
    if verbose and not isinstance(x, jax.core.Tracer):
        print(x)
    return x
