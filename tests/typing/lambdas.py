# pyright: standard
# mypy: allow-untyped-calls
"""Lambdas whose arguments have no types, and get none: no checker has an objection, if not strict.

Run by ``pyright`` and ``mypy``; pytest imports the file and no more.
"""

from __future__ import annotations

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import Array


def doubled(x: Array) -> Array:
    """Take an array."""
    return x * 2


x = jnp.ones(3)

gradients = [
    fa.grad(lambda w: jnp.sum(w**2))(x),
    fa.grad(lambda p: p["w"].sum())({"w": x})["w"],
    fa.value_and_grad(lambda w: (w @ w).sum())(x)[1],
    fa.grad(lambda w: doubled(w).sum())(x),
    fa.grad(lambda w: w * 2)(3.0),
    fa.value_and_grad(lambda w, y: (w @ y).sum(), argnums=1)(x, x)[1],
    fa.value_and_grad(lambda w: (w.sum(), w), has_aux=True)(x)[0][1],
]
programs = [
    fa.jit(lambda w: w.sum() + 1)(x),
    fa.vmap(lambda a, b: a * b + doubled(a))(x, x),
    fa.checkpoint(lambda w: w.sum())(x),
    fa.pmap(lambda t: t + 1)(jnp.ones((1, 3))),
    fa.jit(lambda w, k: w * k, static_argnums=1)(x, 2),
]
shape = fa.eval_shape(lambda t: jnp.sin(t), x).shape
graph = str(fa.make_jaxpr(lambda t: t + 1)(x))
