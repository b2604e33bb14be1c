"""Programs that reports are made of."""

from __future__ import annotations

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax


def softmax(x):
    z = x - x.max(-1, keepdims=True)
    e = jnp.exp(z)
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v):
    scores = q @ k.T / 8.0
    with fa.named_scope("weights"):
        w = softmax(scores)
    return w @ v


def loss(w, x, y):
    h = jnp.tanh(x @ w)

    def body(c, t):
        return 0.9 * c + t, c.sum()

    c, s = lax.scan(body, jnp.zeros(h.shape[1]), h)
    return jnp.mean((h - y) ** 2) + s.sum() + c.sum()


def branches(x):
    y = x + 1
    if y.sum() > 0:
        return y
    return x


def layered(x):
    """5,000 equations in 25 scopes."""
    for i in range(1250):
        with fa.named_scope(f"layer{i // 50}"):
            y = jnp.sin(x)
            y = y * x
            y = y + 0.5
            x = jnp.tanh(y)
    return x


def updated(x, i):
    return x.at[i].set(1.0) + x
