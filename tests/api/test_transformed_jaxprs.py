"""Printed graphs of transformed functions are JAX's, letter for letter."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fnarray
import fnarray.numpy

s = np.float32(2)
v = np.arange(1, 4, dtype=np.float32)
x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
for _array in (v, x):
    _array.flags.writeable = False

#: A function, then its arguments.
PROGRAMS = """
jax.grad(lambda x: jnp.sin(x)), s
jax.grad(lambda x: x*x), s
jax.grad(lambda x: x**3), s
jax.grad(lambda x: jnp.sin(x).sum()), v
jax.grad(lambda x: (x*x).sum()), v
jax.grad(lambda x: jnp.tanh(x) * 3.), s
jax.grad(jax.grad(jnp.sin)), s
jax.grad(jax.grad(jax.grad(jnp.sin))), s
jax.value_and_grad(lambda x: jnp.exp(x)), s
jax.value_and_grad(lambda x: jnp.log(x) + x), s
jax.grad(lambda x, y: x*y, argnums=(0,1)), s, s
jax.grad(lambda d: d['a']*d['b']), {'a': s, 'b': s}
jax.grad(lambda x: 3.), s
jax.grad(lambda x, y: jnp.dot(x, y)), v, v
jax.grad(lambda w: (x @ w).sum()), v
jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)**2)), v
lambda x: jax.jvp(jnp.sin, (x,), (x,)), s
lambda x: jax.jvp(jnp.sin, (x,), (np.float32(1),)), s
lambda x: jax.jvp(lambda x: x*x+jnp.cos(x), (x,), (x,)), v
lambda x: jax.jvp(lambda x: (x, 2.), (x,), (x,)), v
lambda x, t: jax.jvp(lambda x: x.sum(), (x,), (t,)), v, v
lambda x, ct: jax.vjp(jnp.sin, x)[1](ct), v, v
lambda x, ct: jax.vjp(lambda x: x.sum(), x)[1](ct), v, s
lambda x, t: jax.linearize(jnp.sin, x)[1](t), v, v
lambda x, t: jax.linearize(lambda x: x*x, x)[1](t), v, v
lambda ct: jax.linear_transpose(lambda x: 2.*x, np.float32(1))(ct), s
lambda ct: jax.linear_transpose(lambda x: x.sum(), v)(ct), s
jax.vmap(jnp.sin), v
jax.vmap(lambda x: x*2), v
jax.vmap(lambda x, y: x+y, in_axes=(0, None)), v, s
jax.vmap(lambda x: x, in_axes=1), x
jax.vmap(lambda x: 3.), v
jax.vmap(jnp.dot), x, x
jax.vmap(jnp.dot, in_axes=(0, None)), x, v
jax.vmap(lambda x: x[0]), x
jax.vmap(jax.vmap(jnp.sin)), x
jax.vmap(jax.grad(jnp.sin)), v
jax.vmap(jax.grad(lambda x: x*x*x)), v
jax.grad(lambda x: jax.vmap(jnp.sin)(x).sum()), v
jax.vmap(lambda x: x.reshape(3, 1)), x
jax.vmap(lambda x: jnp.concatenate([x, x])), x
jax.grad(lambda x: lax.reduce_max(x, (0,))), v
jax.grad(jax.jit(lambda x: x*x)), s
jax.jit(jax.grad(lambda x: x*x)), s
jax.vmap(jax.jit(lambda x: x*x)), v
jax.grad(lambda x: jax.jit(jnp.sin)(x) * 2.), s
jax.grad(lambda x: lax.cond(x > 0, lambda x: x*2., lambda x: -x, x)), s
lambda x: jax.jvp(lambda x: lax.cond(x > 0, lambda x: x*2., lambda x: -x, x), (x,), (x,)), s
lambda x: jax.jvp(lambda x: lax.while_loop(lambda c: c < 10., lambda c: c*c, x), (x,), (x,)), s
lambda x: jax.jvp(lambda x: lax.scan(lambda c, y: (c*y, c), 1., x), (x,), (x,)), v
jax.vmap(lambda x: lax.scan(lambda c, y: (c*y, c), 1., x)), x
jax.grad(lambda x: lax.stop_gradient(x) * x), s
jax.grad(lambda x: lax.dynamic_slice(x, (1,), (2,)).sum()), v
jax.grad(lambda x: x.at[0].set(0.).sum()), v
jax.grad(lambda x: jnp.max(x)), v
jax.grad(lambda x: jnp.mean(x)), v
jax.vmap(jax.jit(lambda x: jnp.sin(x) * 2.)), v
jax.grad(lambda x: jax.jit(lambda y: jnp.sin(y) * y)(x)), s
jax.vmap(lambda x: lax.scan(lambda c, y: (c + y, c), 0., x)), x
jax.grad(lambda x: lax.scan(lambda c, y: (c + y, c), np.float32(0), x)[0]), v
jax.vmap(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x)), v
jax.jit(jax.value_and_grad(lambda x: jnp.tanh(x))), s
jax.grad(lambda x: -x / 3.), s
jax.grad(lambda x: jnp.sqrt(x)), s
jax.grad(lambda x: jnp.exp(-x * x)), s
jax.grad(lambda x: x.reshape(3, 2).sum()), x
jax.grad(lambda x: x.T.sum()), x
jax.vmap(lambda x: x[None] + 1.), v
jax.vmap(jax.vmap(lambda x: x * 2.)), x
jax.grad(lambda x: jnp.abs(x)), s
""".strip().splitlines()


def _text(module: Any, program: str) -> str:
    names = {"jax": module, "jnp": module.numpy, "lax": module.lax, "np": np}
    f, *args = eval(f"({program})", {**names, "s": s, "v": v, "x": x})
    return str(module.make_jaxpr(f)(*args))


@pytest.mark.parametrize("program", PROGRAMS)
def test_printed_as_jax(program: str) -> None:
    """Derivatives and maps record the equations that JAX's record, in their order."""
    assert _text(fnarray, program) == _text(jax, program)


def _lines(graph):
    for eqn in graph.eqns:
        yield eqn.source.function
        for value in eqn.params.values():
            yield from _lines(value.jaxpr) if hasattr(value, "jaxpr") else ()


def test_what_backward_passes_compute_is_at_the_line_of_the_function():
    """Sums of cotangents too: no operation of a gradient is where the gradient was asked for."""

    def layer(w, x):
        return fnarray.numpy.tanh(w * x)

    def loss(w, x):
        h = layer(w, x)
        looped = fnarray.lax.fori_loop(0, 3, lambda i, c: c * h + w, h)
        return fnarray.numpy.sum(looped * h + layer(w, h))

    def train(w, x):
        return fnarray.grad(loss)(w, x)

    graph = fnarray.make_jaxpr(train)(v, v).jaxpr
    places = set(_lines(graph))
    assert any(name.endswith("layer") for name in places)
    assert not any(name.endswith("train") for name in places), places


@pytest.mark.parametrize("m", [jax, fnarray], ids=lambda m: m.__name__)
def test_what_a_function_is_closed_over_is_a_constant(m):
    """Of any shape, in trees and functions of functions; numbers, and arrays made, are not."""
    zero, ones = m.numpy.array(0.0), m.numpy.ones(2)
    held = {"a": [m.numpy.array(1.0), ones]}

    def inner(x, unset=None):
        return x * held["a"][0] + held["a"][1]

    def outer(x):
        return m.numpy.where(x > 0, inner(x), 0.0) + zero + m.numpy.float32(2)

    assert [c.shape for c in m.make_jaxpr(outer)(ones).consts] == [(), (2,), ()]
