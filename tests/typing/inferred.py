"""Lambdas, whose arguments have no types, where those of the other arguments say them.

Run by ``pyright`` (strict); mypy, which takes each of these for ``Any``, has no objection to any.
What nothing says, such as the argument of ``jit`` or ``grad`` of a lambda, is in ``lambdas``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, assert_type

import numpy as np

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import Array, lax


class State(NamedTuple):
    """What a loop carries."""

    m: Array
    n: Array


x = jnp.ones(3)
s = State(x, x[0])
tree = {"w": x, "b": x}

# ---- derivatives ---------------------------------------------------------------------------------

assert_type(fa.jacfwd(lambda w: w**2)(x), Any)
assert_type(fa.jacrev(lambda w: w**2)(x), Any)
assert_type(fa.hessian(lambda w: (w**2).sum())(x), Any)
assert_type(fa.vjp(lambda w: w**2, x)[1](x), tuple[Array])
assert_type(fa.vjp(lambda w: w**2, 3.0)[1](1.0), tuple[Array])
assert_type(fa.jvp(lambda w: w**2, (x,), (x,)), tuple[Array, Array])
assert_type(fa.jvp(lambda w: w**2, (3.0,), (1.0,)), tuple[Array, Array])
assert_type(fa.linearize(lambda t: jnp.sin(t), x)[1](x), Array)

# ---- loops: numbers become arrays ----------------------------------------------------------------

assert_type(lax.scan(lambda c, r: (c + r, c * r), 0.0, x), tuple[Array, Array])
assert_type(lax.scan(lambda c, r: (c + r, None), x[0], x), tuple[Array, None])
assert_type(lax.scan(lambda c, r: (c + r, r), x[0], np.ones(3))[0], Array)
assert_type(lax.fori_loop(0, 3, lambda i, v: v * 2 + i, x), Array)
assert_type(lax.fori_loop(0, 3, lambda i, v: v * 2 + i, 1.0), Array)
assert_type(lax.fori_loop(0, 3, lambda i, c: c._replace(m=c.m + i), s), State)
assert_type(
    lax.fori_loop(0, 3, lambda i, v: {"w": v["w"] + i, "b": v["b"]}, tree), dict[str, Array]
)
turned = lax.fori_loop(0, 3, lambda i, v: v + i, x)
assert_type(turned, Array)
summed = lax.fori_loop(0, 3, lambda i, v: (v[0] + i, v[1].at[i].add(x[i] ** i)), (x[0], x))
assert_type(summed, tuple[Array, Array])
assert_type(lax.while_loop(lambda v: v.sum() < 30, lambda v: v + 1, x), Array)
assert_type(lax.while_loop(lambda v: v < 3, lambda v: v + 1, 0), Array)
assert_type(lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1]), (x[0], x))[1], Array)
assert_type(lax.map(lambda r: r + 1, x), Array)
assert_type(lax.map(lambda r: (r[1], r[0]), (x, x)), tuple[Array, Array])
assert_type(lax.associative_scan(lambda a, b: a + b, x), Array)
assert_type(
    lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x)),
    tuple[Array, Array],
)

# ---- branches ------------------------------------------------------------------------------------

assert_type(lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, x), Array)
assert_type(lax.cond(True, lambda: x, lambda: x + 1), Array)
assert_type(lax.cond(True, lambda: 1.0, lambda: x[0]), Array)
assert_type(lax.cond(True, lambda: x[0], lambda: 2.0), Array)
assert_type(lax.cond(True, lambda c, v: c, lambda c, v: State(v, c.n), s, x), State)
assert_type(lax.cond(True, lambda v: v, lambda v: -v, operand=x), Any)
assert_type(lax.switch(1, [lambda v: v, lambda v: v * 2], x), Array)

# ---- trees ---------------------------------------------------------------------------------------

stepped: dict[str, Array] = fa.tree.map(lambda w, g: w - 0.1 * g, tree, tree)
scaled: dict[str, Array] = fa.tree.map(lambda w: w / 2, tree)
