"""``jacfwd jacrev hessian`` give JAX's matrices: trees, shapes, dtypes, weak types, errors."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray
import fnarray.numpy

from ..oracle import in_one
from .agreement import refused, same
from .test_derivatives import run

SHARED = """
(lambda x: x**2)(2.0)
(lambda x: x**2)(V)
(lambda x: x.sum())(X)
(lambda x: jnp.sin(x) * x.sum())(X)
(lambda x: X @ x)(V)
(lambda x: 3.0)(V)
(lambda x: x)(np.zeros((0, 3), np.float32))
(lambda x: x[:0])(V)
(lambda x: {'a': x, 'b': [x.sum(), 2 * x]})(V)
(lambda d: {'s': d['a'].sum(), 'v': d['a'] * d['b'][0]})({'a': V, 'b': (V, 2.0)})
(lambda d: {'s': d['a'].sum(), 'v': d['b']})({'a': H, 'b': V})
(lambda d: {'s': d['a'].astype(jnp.float32).sum() * d['b']})({'a': H, 'b': V})
(lambda x: (x, {'k': 2 * x, 'none': None}))(V)
(lambda x, y: x * y)(V, V)
(lambda x, y: x * y, 1)(V, 2.0)
(lambda x, y: x * y, -1)(V, V)
(lambda x, y: x * y, (0, 1))(2.0, 3.0)
(lambda x, y: (x @ y, y), (1, 0))(X, V)
(lambda x, y: x * y['w'], (1,))(V, {'w': V})
(lambda x, *, k: x * k)(V, k=2.0)
(lambda x: jnp.where(x > 1, x**2, 0.0))(V)
(lambda x: x if x[0] > 0 else -x)(V)
(lambda x: lax.scan(lambda c, y: (c * y, c), np.float32(1), x)[1])(V)
(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))(V)
(lambda x: J.grad(lambda y: (y**3).sum())(x))(V)
(lambda x: J.vmap(jnp.sin)(x))(V)
""".strip().splitlines()


@pytest.mark.parametrize("name", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("text", SHARED)
def test_jacobians(text: str, name: str) -> None:
    """Both modes give JAX's Jacobian."""
    same(run(fnarray, f"J.{name}{text}"), in_one(lambda: run(jax, f"J.{name}{text}")))


VALUES = """
J.jacfwd(lambda x: ())(V)
J.jacfwd(lambda x: None)(V)
J.jacfwd(lambda x: [x**2, {'x': x, 'n': 1}], has_aux=True)(V)
J.jacrev(lambda x: (x**2, {'x': x, 'n': 1, 's': 'text'}), has_aux=True)(V)
J.jacfwd(lambda z: z * z, holomorphic=True)(C)
J.jacrev(lambda z: jnp.exp(z), holomorphic=True)(C)
J.jacrev(lambda z: jnp.abs(z) ** 2)(C)
J.jacfwd(lambda x: x * 1j)(V)
J.jacrev(lambda x: x['f'] * x['i'], allow_int=True)({'f': 2.0, 'i': 3})
J.jacfwd(lambda x: (x, np.int32(3)))(V)
J.jacfwd(J.jacrev(lambda x: (x**3).sum()))(V)
J.jacrev(J.jacfwd(lambda x: (x**3).sum()))(V)
J.jacfwd(J.jacfwd(lambda x: jnp.sin(x) * x[0]))(V)
J.jacrev(J.jacrev(lambda x: jnp.sin(x) * x[0]))(V)
J.jacobian(lambda x: x * x)(V)
J.hessian(lambda x: x**3)(2.0)
J.hessian(lambda x: (x**3).sum())(X)
J.hessian(lambda x, y: (x * y).sum() * x.sum(), argnums=(0, 1))(V, V)
J.hessian(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
J.hessian(lambda d: (d['a'] * d['b']).sum() ** 2)({'a': V, 'b': V})
J.hessian(lambda x: (x**3, x * 2), has_aux=True)(2.0)
J.hessian(lambda x: jnp.sin(x))(V)
J.hessian(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())(V)
J.jit(J.hessian(lambda x: (x**3).sum()))(V)
J.jit(J.jacfwd(lambda x: X @ x))(V)
J.vmap(J.jacrev(lambda x: x**2))(X)
J.grad(lambda x: J.jacfwd(lambda y: y**3)(x).sum())(V)
J.jacfwd(J.jit(lambda x: jnp.tanh(x) * 2))(V)
J.jacrev(J.jit(lambda x: jnp.tanh(x) * 2))(V)
""".strip().splitlines()


@pytest.mark.parametrize("text", VALUES)
def test_as_jax(text: str) -> None:
    """Results are JAX's."""
    same(run(fnarray, text), in_one(lambda: run(jax, text)))


#: Bad calls, JAX's error type, and what the message says.
ERRORS = (
    ("J.jacfwd(3)", TypeError, "jacfwd: Expected a callable"),
    ("J.jacrev(3)", TypeError, "jacrev: Expected a callable"),
    ("J.hessian(3)", TypeError, "Expected a callable"),
    ("J.jacfwd(f, argnums=2)(1.0, 2.0)", ValueError, "argnums=2 must be at least -2 and less than"),
    ("J.jacrev(f, argnums=-3)(1.0, 2.0)", ValueError, "argnums=-3 must be"),
    ("J.jacrev(f, argnums=1.5)(1.0, 2.0)", TypeError, "argnums must be an int or a sequence"),
    ("J.jacrev(lambda x: None)(V)", ValueError, "at least one argument containing an array"),
    ("J.jacfwd(lambda x: x)(1)", TypeError, "jacfwd requires real-valued inputs.*int32"),
    ("J.jacrev(lambda x: x * 2)(1)", TypeError, "real- or complex-valued inputs.*int32"),
    ("J.jacfwd(lambda x: x)(1j)", TypeError, "requires real-valued inputs.*complex64"),
    ("J.jacrev(lambda x: x * 1j)(1.0)", TypeError, "real-valued outputs.*complex64"),
    ("J.jacrev(lambda x: np.int32(3))(1.0)", TypeError, "real-valued outputs.*int32"),
    ("J.jacfwd(lambda x: x, holomorphic=True)(1.0)", TypeError, "inputs with complex dtype"),
    ("J.jacrev(lambda x: x, holomorphic=True)(1.0)", TypeError, "inputs with complex dtype"),
    ("J.jacfwd(jnp.abs, holomorphic=True)(1j)", TypeError, "outputs with complex dtype"),
    ("J.jacrev(jnp.abs, holomorphic=True)(1j)", TypeError, "outputs with complex dtype"),
    ("J.jacfwd(lambda x: 'a')(1.0)", TypeError, "returned by"),
    ("J.jacrev(lambda x: 'a')(1.0)", TypeError, "returned by"),
    ("J.jacfwd(lambda x: x)('a')", TypeError, "not a valid fnarray type"),
    ("J.jacrev(lambda x: x)('a')", TypeError, "not a valid fnarray type"),
    ("J.jacfwd(lambda x: x, has_aux=True)(1.0)", TypeError, "two-element tuple"),
    ("J.jacrev(lambda x: x, has_aux=True)(1.0)", TypeError, "two-element tuple"),
    ("J.hessian(lambda x: x)(1)", TypeError, "int32"),
    ("J.jit(J.jacfwd(lambda x: x if x[0] > 0 else x))(V)", TypeError, "boolean conversion"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "error", "said"), ERRORS, ids=[row[0] for row in ERRORS])
def test_bad_calls(text: str, error: type[Exception], said: str) -> None:
    """Bad input raises the type of error that JAX raises, and says what is wrong."""
    refused(run, text, error, said)


def test_polynomials() -> None:
    """The Jacobian of a quadratic map ``x_i A_ij x_j`` is known in closed form."""
    a = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    x = np.arange(4, dtype=np.float32)
    a.flags.writeable = False
    got = fnarray.hessian(lambda x: x @ fnarray.numpy.asarray(a) @ x)(x)
    np.testing.assert_allclose(got, a + a.T, rtol=1e-5)
