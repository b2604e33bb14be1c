# pyright: standard
# mypy: allow-untyped-calls
"""What is written with lambdas, whose arguments have no types: no checker has an objection.

Run by ``pyright`` and ``mypy``; pytest imports the file and no more.
"""

from __future__ import annotations

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import Array, lax


def doubled(x: Array) -> Array:
    """Take an array."""
    return x * 2


x = jnp.ones(3)
tree = {"w": x, "b": x}

gradients = [
    fa.grad(lambda w: jnp.sum(w**2))(x),
    fa.grad(lambda w: (w**2).sum())(x),
    fa.grad(lambda w: doubled(w).sum())(x),
    fa.grad(lambda w: w * 2)(3.0),
    fa.grad(lambda p: p["w"].sum())(tree)["w"],
    fa.value_and_grad(lambda w: (w @ w).sum())(x)[1],
    fa.value_and_grad(lambda w, y: (w @ y).sum(), argnums=1)(x, x)[1],
    fa.value_and_grad(lambda w: (w.sum(), w), has_aux=True)(x)[0][1],
    fa.jacfwd(lambda w: w**2)(x),
    fa.jacrev(lambda w: doubled(w))(x),
    fa.hessian(lambda w: (w**2).sum())(x),
    fa.jvp(lambda w: w**2, (x,), (x,))[1],
    fa.vjp(lambda w: w**2, x)[1](x)[0],
    fa.linearize(lambda t: jnp.sin(t), x)[1](x),
]
programs = [
    fa.jit(lambda w: w.sum() + 1)(x),
    fa.vmap(lambda a, b: a * b + doubled(a))(x, x),
    fa.checkpoint(lambda w: w.sum())(x),
    fa.pmap(lambda t: t + 1)(jnp.ones((1, 3))),
    fa.jit(lambda w, k: w * k, static_argnums=1)(x, 2),
]
loops = [
    lax.scan(lambda c, t: (c + t, c * t), x[0], x)[1],
    lax.fori_loop(0, 3, lambda i, v: v * 2 + i, x),
    lax.while_loop(lambda v: v.sum() < 3, lambda v: v + 1, x),
    lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, x),
    lax.switch(1, [lambda v: v, lambda v: doubled(v)], x),
    lax.map(lambda r: r + 1, x),
]
trees = fa.tree.map(lambda a, b: a + b, tree, tree)
shape = fa.eval_shape(lambda t: jnp.sin(t), x).shape
graph = str(fa.make_jaxpr(lambda t: t + 1)(x))
