"""Derivatives that functions bring along may be made by `jvp`: reverse mode tells its values apart.

The values of a `jvp` inside of a rule are known; of its tangents only that they are linear. Where
both came from one equation, of a loop, a branch or a call, the values counted as linear too.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fnarray
import fnarray.numpy


def _loop(m: Any) -> Any:
    def body(c, _):
        k, y, z = c
        return (k + 1, m.numpy.where(k < 2, y * z, y * 3.0), m.numpy.sin(z)), y

    return lambda x: m.lax.scan(body, (0, x, x), None, length=4)[0][1]


def _branch(m: Any) -> Any:
    return lambda x: m.lax.cond(x > 1, _loop(m), lambda x: x * 2, x)


BODIES = {
    "call": lambda m: m.jit(lambda x: m.numpy.sin(x) * x),
    "loop": _loop,
    "counted": lambda m: lambda x: m.lax.fori_loop(0, 3, lambda i, c: c * x + i, x),
    "branch": _branch,
    "nested": lambda m: lambda x: m.lax.scan(lambda c, _: (_branch(m)(c), 0), x, None, length=2)[0],
    "kept": lambda m: m.checkpoint(lambda x: m.numpy.exp(m.numpy.sin(x))),
    "mapped": lambda m: lambda x: m.vmap(_loop(m))(m.numpy.stack([x, x + 1])).sum(),
}


@pytest.mark.parametrize("body", BODIES)
def test_rule_made_by_jvp(body):
    """Gradients, compiled, of a call and of gradients; the transpose of the tangents."""

    def found(m: Any) -> list[Any]:
        g = BODIES[body](m)

        def rule(primals: Any, tangents: Any) -> Any:
            y, dy = m.jvp(g, primals, tangents)
            return y, dy * y + dy

        f = m.custom_jvp(g)
        f.defjvp(rule)
        return [
            m.jit(m.value_and_grad(f))(0.5),
            m.grad(m.jit(f))(1.5),
            m.linear_transpose(lambda t: rule((1.5,), (t,))[1], 1.0)(1.0),
            m.grad(m.grad(f))(1.5) if body == "loop" else None,
        ]

    for got, want in zip(found(fnarray), found(jax), strict=True):
        for a, b in zip(fnarray.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5)
