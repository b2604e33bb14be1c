"""Equations are labelled by blocks of `named_scope`, and by transforms, as JAX labels its own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fnarray
import fnarray.extend.core

X = np.arange(3, dtype=np.float32)


def labels(jaxpr: Any) -> list[tuple[str, str, Any]]:
    """Return the operation and labels of each equation, and those of the graphs in it."""
    return [
        (
            str(e.primitive),
            str(e.source_info.name_stack),
            [labels(g) for g in graphs(e)],
        )
        for e in jaxpr.eqns
        if str(e.primitive) != "convert_element_type"
    ]


def graphs(eqn: Any) -> list[Any]:
    """Return the graphs that an equation holds."""
    held = [getattr(p, "jaxpr", p) for p in eqn.params.values()]
    return [g for g in held if hasattr(g, "eqns")]


def layer(xp: Any, x: Any) -> Any:
    """Return the result of a block, and a block in it."""
    with xp.named_scope("layer"):
        with xp.named_scope("a/b"):
            y = xp.numpy.sin(x)
        return y * 2.0


def net(xp: Any) -> Any:
    """Return a function with blocks in blocks."""
    return xp.named_call(lambda x: layer(xp, x).sum(), name="net")


def looped(xp: Any) -> Any:
    """Return a function with a block around a loop, and a block in its body."""

    def body(carry: Any, x: Any) -> Any:
        with xp.named_scope("body"):
            return carry * xp.numpy.sin(x), None

    def fun(x: Any) -> Any:
        with xp.named_scope("loop"):
            return xp.lax.scan(body, xp.numpy.float32(1), x)[0]

    return fun


def around(xp: Any, fun: Any) -> Any:
    """Return a function that calls another in a block."""
    return xp.named_call(lambda x: fun(x), name="outer")


CASES = {
    "plain": net,
    "jvp": lambda xp: lambda x: xp.jvp(net(xp), (x,), (x,)),
    "grad": lambda xp: xp.grad(net(xp)),
    "value_and_grad": lambda xp: xp.value_and_grad(net(xp)),
    "vmap": lambda xp: xp.vmap(lambda x: layer(xp, x)),
    "vmap of grad": lambda xp: xp.vmap(xp.grad(lambda x: layer(xp, x))),
    "linearize": lambda xp: lambda x: xp.linearize(net(xp), x)[1](x),
    "vjp": lambda xp: lambda x: xp.vjp(net(xp), x)[1](xp.numpy.float32(1)),
    "jit": lambda xp: xp.jit(net(xp)),
    "grad of jit": lambda xp: xp.grad(xp.jit(net(xp))),
    "jit of grad": lambda xp: xp.jit(xp.grad(net(xp))),
    "vmap of jit": lambda xp: xp.vmap(xp.jit(lambda x: layer(xp, x))),
    "a block around grad": lambda xp: around(xp, xp.grad(net(xp))),
    "a block around jit": lambda xp: around(xp, xp.jit(net(xp))),
    "grad of a block around jit": lambda xp: xp.grad(around(xp, xp.jit(net(xp)))),
    "grad of grad": lambda xp: xp.grad(lambda x: xp.grad(net(xp))(x).sum()),
    "a loop": looped,
    "jvp of a loop": lambda xp: lambda x: xp.jvp(looped(xp), (x,), (x,)),
    "grad of no block": lambda xp: xp.grad(lambda x: xp.numpy.sin(x).sum()),
    "grad of a checkpoint": lambda xp: xp.grad(xp.checkpoint(net(xp))),
    "a vjp called in another block": lambda xp: (
        lambda x: around(xp, xp.vjp(net(xp), x)[1])(xp.numpy.float32(1))
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_labels_are_those_of_jax(case):
    """Each equation, and each in the graphs it holds, has the labels that JAX gives it."""
    ours, theirs = (xp.make_jaxpr(CASES[case](xp))(X).jaxpr for xp in (fnarray, jax))
    assert labels(ours) == labels(theirs)


def test_a_compiled_function_is_labelled_alike_wherever_it_is_called_first():
    """A function of `jit` knows nothing of the block it was traced in: the call has its labels."""
    fun = fnarray.jit(net(fnarray))
    expected = labels(fnarray.make_jaxpr(fnarray.jit(net(fnarray)))(X).jaxpr)
    around(fnarray, fun)(X)
    assert labels(fnarray.make_jaxpr(fun)(X).jaxpr) == expected
