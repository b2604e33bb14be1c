"""``grad jvp vjp linearize linear_transpose`` do what JAX's do: results, types, trees, errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest

import fnarray
import fnarray.numpy
from fnarray.config import effects
from fnarray.core.dtypes import float0

from ..oracle import in_one
from .agreement import refused, same

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3) / 4
V = X[1]
C = np.array([1 + 2j, 0.5 - 1j], np.complex64)
H = np.array([0.5, 1.5], np.float16)
I = np.array([1, 2], np.int32)  # noqa: E741
for _array in (X, V, C, H, I):
    _array.flags.writeable = False


def run(module: Any, text: str) -> Any:
    """Evaluate an expression, in which ``J`` is a package and ``jnp`` and ``lax`` are its own."""
    names = {"J": module, "jnp": module.numpy, "lax": module.lax, "np": np, "float0": float0}
    return eval(
        text, {**names, "X": X, "V": V, "C": C, "H": H, "I": I, "f": _product, "turn": _turn}
    )


def _product(x: Any, y: Any) -> Any:
    return (x * y).sum()


def _turn(c: Any, y: Any) -> Any:
    value, factor = c
    return (value * factor, factor + y), value


VALUES = """
J.grad(f)(X, X)
J.grad(f, argnums=1)(X, V)
J.grad(f, argnums=-1)(X, V)
J.grad(f, argnums=(0, 1))(X, V)
J.grad(f, argnums=(1, 0))(X, V)
J.grad(f, argnums=(-1,))(X, V)
J.grad(f, argnums=[0, 1])(X, V)
J.grad(f, argnums=np.int64(1))(X, V)
J.value_and_grad(f, argnums=(0, 1))(X, V)
J.value_and_grad(lambda x: jnp.sin(x).sum() ** 2)(V)
J.grad(lambda x: x**3)(2.0)
J.grad(lambda x: x**3)(np.float32(2))
J.grad(lambda x: 3.0)(2.0)
J.grad(lambda x: np.float32(3))(V)
J.grad(lambda x: (x * 2).sum())(H)
J.grad(lambda x: (x.astype(jnp.float32) * 2).sum())(H)
J.grad(lambda x: (x**2).sum())(np.zeros((0, 3), np.float32))
J.grad(lambda d: (d['w'] @ d['b'][0]).sum() + d['b'][1])({'w': X, 'b': (V, 2.0)})
J.grad(lambda d, *, s: d['a'] * s['k'])({'a': 2.0, 'b': None}, s={'k': 3.0})
J.grad(lambda x, *, power=2: x**power)(3.0)
J.grad(lambda x, y: x * len(y))(2.0, 'abc')
J.grad(lambda x, *rest: x * sum(rest))(2.0, 1, 2.5, V[0])
J.grad(lambda x: [x * 2, {'n': x, 'k': (1, None, 'name')}], has_aux=True)(3.0)
J.grad(lambda x: (x * 2, None), has_aux=True)(3.0)
J.grad(lambda x: (x * 2, (X, I)), has_aux=True)(3.0)
J.value_and_grad(lambda x: (x * 2, {'twice': jnp.sin(x)}), has_aux=True)(np.float32(3))
J.grad(lambda x: x['f'] * x['i'], allow_int=True)({'f': 2.0, 'i': 3})
J.grad(lambda x, i: (x[i] ** 2).sum(), argnums=(0, 1), allow_int=True)(V, I)
J.grad(lambda x, b: jnp.where(b, x, 0.0), argnums=1, allow_int=True)(2.0, True)
J.grad(lambda z: (z * z).sum(), holomorphic=True)(C)
J.grad(lambda z: jnp.exp(z[0]) * z[1], holomorphic=True)(C)
J.grad(lambda z: (jnp.abs(z) ** 2).sum())(C)
J.grad(lambda z: jnp.real(z * z).sum())(C)
J.grad(lambda x: jnp.imag(jnp.exp(1j * x)))(0.5)
J.grad(J.grad(lambda x: x**4))(2.0)
J.grad(J.grad(J.grad(lambda x: jnp.sin(x) * x)))(2.0)
J.grad(lambda x: J.grad(lambda y: jnp.sin(x * y) * y)(x * x))(0.7)
J.grad(lambda x: J.value_and_grad(lambda y: x * y * y)(x)[0])(3.0)
J.grad(lambda x: x * J.grad(lambda y: x + y)(2.0))(3.0)
J.grad(lambda x: lax.stop_gradient(x) * x)(3.0)
J.grad(J.jit(lambda x, y: (x @ y).sum()), argnums=(0, 1))(X, V)
J.jit(J.grad(lambda x: J.jit(jnp.sin)(x) * x))(2.0)
J.jit(J.value_and_grad(lambda d: (d['a'] ** 2).sum()))({'a': V, 'b': V})
J.grad(J.grad(J.jit(lambda x: jnp.tanh(x) ** 2)))(0.3)
J.jvp(f, (X, V), (X, V))
J.jvp(jnp.sin, (2.0,), (1.0,))
J.jvp(jnp.sin, [V], [V])
J.jvp(lambda d: {'s': d['a'] * d['b'], 'k': d['a']}, ({'a': V, 'b': V},), ({'a': V, 'b': V},))
J.jvp(lambda x, i: (x[i], i), (V, I), (V, np.zeros(2, float0)))
J.jvp(lambda x: (x, x > 1, 3), (V,), (V,))
J.jvp(lambda x: (x * 2, {'aux': x}), (V,), (V,), has_aux=True)
J.jvp(lambda x: J.jvp(jnp.sin, (x,), (x,))[1], (V,), (V,))
J.jvp(J.grad(lambda x: jnp.cos(x).sum()), (V,), (V,))
J.jvp(J.jit(lambda x, y: x * y), (V, V), (V, V))
J.jit(lambda x, t: J.jvp(jnp.tanh, (x,), (t,)))(V, V)
J.jvp(lambda z: z * jnp.conj(z), (C,), (C,))
J.jvp(jnp.sin, (np.float32(1),), (np.float64(1),))
J.vjp(f, X, V)[1](np.float32(2))
J.vjp(jnp.sin, 2.0)[1](1.0)
J.vjp(lambda x, y: {'a': x * y, 'b': (x, y.sum())}, V, V)[1]({'a': V, 'b': (V, np.float32(2))})
J.vjp(lambda x, i: (x[i], i), V, I)[1]((V[:2], np.zeros(2, float0)))
J.vjp(lambda x: (x * 2, 'aux'), 2.0, has_aux=True)[2]
J.vjp(lambda z: z * jnp.conj(z), C)[1](C)
J.vjp(lambda: {})[1]({})
J.vjp(J.vjp(jnp.sin, V)[1], V)[1]((V,))
J.jit(lambda x, c: J.vjp(jnp.sin, x)[1](c))(V, V)
J.grad(lambda x: (J.vjp(jnp.sin, x)[1](x)[0] ** 2).sum())(V)
J.linearize(jnp.sin, V)[0]
J.linearize(jnp.sin, V)[1](V)
J.linearize(lambda x, y: (x * y, {'s': x.sum()}), V, V)[1](V, X[0])
J.linearize(lambda x: (x, 3), V)[1](V)
J.linearize(lambda x: (x**2, [x]), V, has_aux=True)[2]
J.linearize(J.linearize(jnp.sin, V)[1], V)[1](V)
J.vmap(J.linearize(jnp.sin, V)[1])(np.stack([V, V]))
J.linear_transpose(lambda x: 2 * x, V)(V)
J.linear_transpose(lambda x, y: (x.sum() + y, {'y': y}), V, V)((V, {'y': V}))
J.linear_transpose(lambda x: X @ x, V)(V[:2])
J.linear_transpose(J.linear_transpose(lambda x: X @ x, V), V[:2])((V,))
J.linear_transpose(lambda x: x[1:] * 3, J.ShapeDtypeStruct((3,), np.float32))(V[:2])
J.jit(J.linear_transpose(lambda x: jnp.cumsum(x), V))(V)
J.linear_transpose(lambda x: lax.cond(True, lambda x: 2 * x, lambda x: x, x), 1.0)(1.0)
J.linear_transpose(lambda x: lax.scan(lambda c, y: (c + y, c), V[0] * 0, x), V)((V[0], V))
J.linear_transpose(lambda x: lax.fori_loop(0, 3, lambda i, c: c.at[i].add(c[i - 1]), x), V)(V)
J.linear_transpose(lambda x: lax.scan(turn, (x[0], 1.0), V, reverse=True), V)(((V[0], 2.0), V))
J.linear_transpose(lambda x: lax.scan(turn, (x, 2.0), V)[1], V[0])(V)
J.grad(lambda a: J.linear_transpose(lambda x: lax.scan(turn, (x, a), V)[0][0], 1.0)(1.0)[0])(2.0)
""".strip().splitlines()


@pytest.mark.parametrize("text", VALUES)
def test_as_jax(text: str) -> None:
    """Results are JAX's: structure, shapes, dtypes, weak types and values."""
    same(run(fnarray, text), in_one(lambda: run(jax, text)))


# ---- Python branching on values ------------------------------------------------------------------


def _branches(lib: Any) -> Any:
    return lambda x: lib.sin(x) * x if x > 0 else x**2


def _nested(lib: Any) -> Any:
    def f(x):
        if x > 2:
            return lib.log(x) if x > 10 else x**3
        return lib.exp(x) if bool(x < 0) and x != -1 else x * 2

    return f


def _newton(lib: Any) -> Any:
    def f(x):
        square = x * x + 0.5
        guess = square
        while abs(guess * guess - square) > 0.05:
            guess = (guess + square / guess) / 2
        return guess

    return f


def _recursion(lib: Any) -> Any:
    def f(x):
        return x * f(x - 1) + lib.cos(x) if x > 0.5 else x * x

    return f


def _counted(lib: Any) -> Any:
    def f(x):
        total = x
        for k in range(int(x * 3)):
            total = total * x + k
        return total

    return f


def _looked_up(lib: Any) -> Any:
    def f(x):
        funs = [lib.sin, lib.cos, lib.tanh]
        return funs[int(x) % 3](x) * x

    return f


def _closure(lib: Any) -> Any:
    def f(x):
        def scaled(y):
            return y * x if y > x else y + x * x

        return scaled(x * x) * scaled(lib.sin(x))

    return f


PYTHON = (_branches, _nested, _newton, _recursion, _counted, _looked_up, _closure)


def _derivative(module: Any, f: Any, modes: str) -> Any:
    for mode in modes:
        if mode == "r":
            f = module.grad(f)
        else:
            f = (lambda g: lambda x: module.jvp(g, (x,), (1.0,))[1])(f)
    return f


@pytest.mark.parametrize("modes", ["", "r", "f", "rr", "fr", "rf", "frr"])
@pytest.mark.parametrize("make", PYTHON, ids=lambda f: f.__name__.lstrip("_"))
def test_python_control_flow(make: Any, modes: str) -> None:
    """Outside ``jit`` Python branches, loops and recursion follow values, to third order."""
    for x in (-1.5, 0.25, 3.25) if len(modes) > 1 else (-1.5, -1.0, 0.25, 1.5, 3.25, 12.0):
        want = _derivative(jax, make(jax.numpy), modes)(x)
        got = _derivative(fnarray, make(fnarray.numpy), modes)(x)
        assert np.shape(got) == ()
        np.testing.assert_allclose(float(got), float(want), rtol=2e-4, atol=1e-3)


# ---- linear functions as trees -------------------------------------------------------------------


def _powers(x: Any) -> dict[str, Any]:
    return {"cube": x**3, "sum": (x * x).sum()}


def test_vjp_function_is_a_tree() -> None:
    """What ``vjp`` returns goes out of a compiled function and into another; leaves: residuals."""
    out, pull = fnarray.jit(lambda x: fnarray.vjp(_powers, x))(V)
    ct = {"cube": V, "sum": np.float32(2)}
    want = jax.vjp(_powers, V)[1](ct)
    same(pull(ct), want)
    same(fnarray.jit(lambda p, c: p(c))(pull, ct), want)
    same(fnarray.jit(pull)(ct), want)
    leaves = fnarray.tree.leaves(pull)
    assert leaves
    assert all(isinstance(x, fnarray.Array) for x in leaves)
    assert set(out) == {"cube", "sum"}


def test_linear_function_is_a_tree() -> None:
    """So does what ``linearize`` returns."""
    out, push = fnarray.jit(lambda x: fnarray.linearize(_powers, x))(V)
    want = jax.linearize(_powers, V)[1](X[0])
    same(push(X[0]), want)
    same(fnarray.jit(lambda p, t: p(t))(push, X[0]), want)
    double = fnarray.tree.map(lambda r: 2 * r, push)
    np.testing.assert_allclose(double(X[0])["cube"], 2 * np.asarray(want["cube"]), rtol=1e-6)
    assert set(out) == {"cube", "sum"}


def test_linear_functions_carried() -> None:
    """A scan stacks the residuals of a pullback, and a map takes one apart again."""

    def step(carry, x):
        y, pull = fnarray.vjp(fnarray.numpy.sin, x)
        return carry + y, pull

    total, pulls = fnarray.lax.scan(step, np.float32(0), V)
    (back,) = fnarray.vmap(lambda p: p(np.float32(1)))(pulls)
    np.testing.assert_allclose(total, np.sin(V).sum(), rtol=1e-6)
    np.testing.assert_allclose(back, np.cos(V), rtol=1e-6)


def test_equal_functions_share_a_program() -> None:
    """Two pullbacks of one function at two points are one tree structure: one compilation."""
    traces = []

    @fnarray.jit(effects="off")
    def apply(pull, ct):
        traces.append(1)
        return pull(ct)

    for scale in (1, 2, 3):
        (got,) = apply(fnarray.vjp(fnarray.numpy.sin, V * scale)[1], V)
        np.testing.assert_allclose(got, np.cos(V * scale) * V, rtol=1e-5)
    assert len(traces) == 1


# ---- errors --------------------------------------------------------------------------------------

#: Bad calls, JAX's error type, and what the message says.
ERRORS = (
    ("J.grad(3)", TypeError, "grad: Expected a callable value, got 3"),
    ("J.value_and_grad('f')", TypeError, "Expected a callable value"),
    ("J.grad(f, argnums=1.5)", TypeError, "argnums must be an int or a sequence of ints, got 1.5"),
    ("J.grad(f, argnums='a')(X, X)", TypeError, "argnums must be"),
    ("J.grad(f, argnums=3)(X, X)", TypeError, "requires at least 4 positional arguments"),
    ("J.grad(f, argnums=(0, 2))(X, X)", TypeError, "requires at least 3 positional arguments"),
    ("J.grad(f, argnums=-3)(X, X)", ValueError, "argnums=-3 must be at least -2"),
    ("J.grad(f, argnums=())(X, X)", ValueError, "argnums is empty"),
    ("J.grad(f, argnums=(0, 0))(1.0, 2.0)", TypeError, "gives an argument twice"),
    ("J.grad(f, argnums=(0, -2))(1.0, 2.0)", TypeError, "gives an argument twice"),
    ("J.grad(lambda: 3.0)()", TypeError, "got only 0 positional arguments"),
    ("J.grad(lambda x: x)(x=1.0)", TypeError, "got only 0 positional arguments"),
    ("J.grad(lambda x, y: x)(1.0)", TypeError, "missing 1 required positional argument: 'y'"),
    ("J.grad(jnp.sin)(V)", TypeError, r"only defined for scalar-output.*had shape: \(3,\)"),
    ("J.grad(lambda x: (x, x))(1.0)", TypeError, "only defined for scalar-output functions"),
    ("J.grad(lambda x: {'a': x})(1.0)", TypeError, "only defined for scalar-output functions"),
    ("J.grad(lambda x: None)(1.0)", TypeError, "only defined for scalar-output functions"),
    ("J.grad(lambda x: x * 2)(1)", TypeError, "but got int32.*set allow_int to True"),
    ("J.grad(lambda x: x)(True)", TypeError, "requires real- or complex-valued inputs"),
    ("J.grad(lambda d: d['a'])({'a': 1.0, 'b': 3})", TypeError, "but got int32"),
    ("J.grad(lambda x: x * 2)(1j)", TypeError, "real-valued outputs.*holomorphic=True"),
    ("J.grad(lambda x: 3j)(1.0)", TypeError, "real-valued outputs"),
    ("J.grad(lambda x: x, holomorphic=True)(1.0)", TypeError, "inputs with complex dtype"),
    ("J.grad(jnp.abs, holomorphic=True)(1j)", TypeError, "outputs with complex dtype"),
    ("J.grad(lambda x: x.astype(int))(1.0)", TypeError, "real-valued outputs"),
    ("J.grad(lambda x: x > 0)(1.0)", TypeError, "real-valued outputs"),
    ("J.grad(lambda x: x * 2)('a')", TypeError, r"'a' of type.*argument x of grad"),
    ("J.grad(lambda p: 1.0)({'w': [1.0, 'a']})", TypeError, r"argument p\['w'\]\[1\] of grad"),
    ("J.grad(lambda x: 'a')(1.0)", TypeError, "'a' of type.*returned by <lambda>"),
    ("J.grad(lambda x: x, has_aux=True)(1.0)", TypeError, "two-element tuple"),
    ("J.grad(lambda x: (x, 2, 3), has_aux=True)(1.0)", TypeError, "two-element tuple"),
    ("J.grad(lambda x: float(x))(1.0)", TypeError, r"expected by float\(\): traced array"),
    ("J.grad(lambda x: np.sin(x))(1.0)", TypeError, "numpy"),
    ("J.jit(J.grad(lambda x: x if x > 0 else -x))(1.0)", TypeError,
     "Attempted boolean conversion of traced array"),
    ("J.grad(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x))(1.0)", ValueError,
     "scan"),
    ("J.jit(J.grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x)))(1.0, 3)", ValueError,
     "scan"),
    ("J.jvp(3, (1.0,), (1.0,))", TypeError, "jvp: Expected a callable"),
    ("J.jvp(f, 1.0, 2.0)", TypeError, "must be tuples or lists"),
    ("J.jvp(f, (X, X), (X,))", TypeError, "must have the same tree structure"),
    ("J.jvp(jnp.sin, (1.0,), [1.0])", TypeError, "must have the same tree structure"),
    ("J.jvp(lambda d: d['a'], ({'a': V},), ({'b': V},))", TypeError, "same tree structure"),
    ("J.jvp(jnp.sin, (V,), (X,))", ValueError, r"argument 0 has shape \(3,\) and its tangent"),
    ("J.jvp(jnp.sin, (1.0,), (1,))", TypeError, "expects tangent dtype float32, but got int32"),
    ("J.jvp(jnp.sin, (V,), (V.astype(np.float16),))", TypeError, "but got float16"),
    ("J.jvp(lambda x: x, (1,), (1,))", TypeError, "expects tangent dtype float0, but got int32"),
    ("J.jvp(jnp.sin, ('a',), (1.0,))", TypeError, "not a valid fnarray type"),
    ("J.jvp(jnp.sin, (1.0,), ('no',))", TypeError, "not a valid fnarray type"),
    ("J.jvp(lambda x: 'a', (1.0,), (1.0,))", TypeError, "returned by <lambda>"),
    ("J.jvp(lambda x: x, (1.0,), (1.0,), has_aux=True)", TypeError, "two-element tuple"),
    ("J.vjp(3, 1.0)", TypeError, "vjp: Expected a callable"),
    ("J.vjp(jnp.sin, 'a')", TypeError, "not a valid fnarray type.*argument x of vjp"),
    ("J.vjp(lambda x: 'a', 1.0)", TypeError, "returned by <lambda>"),
    ("J.vjp(lambda x, y: x, 1.0)", TypeError, "missing 1 required positional argument"),
    ("J.vjp(f, X, X)[1](V)", ValueError, r"got float32\[3\], but expected float32\[\]"),
    ("J.vjp(f, X, X)[1]((1.0, 2.0))", ValueError, "unexpected tree structure"),
    ("J.vjp(f, X, X)[1](1)", ValueError, r"got int32\[\], but expected float32\[\]"),
    ("J.vjp(jnp.sin, V)[1](V.astype(np.float16))", ValueError, "got float16"),
    ("J.vjp(jnp.sin, 1.0)[1]()", TypeError, "takes one cotangent"),
    ("J.vjp(jnp.sin, 1.0)[1](1.0, 2.0)", TypeError, "takes one cotangent"),
    ("J.vjp(jnp.sin, 1.0)[1]('a')", TypeError, "cotangent 0 of sin"),
    ("J.vjp(jnp.sin, 1.0, bogus=3)", TypeError, "bogus"),
    ("J.linearize(3, 1.0)", TypeError, "linearize: Expected a callable"),
    ("J.linearize(jnp.sin, 1.0)[1](1.0, 2.0)", TypeError, "takes tangents of structure"),
    ("J.linearize(lambda d: d['a'], {'a': V})[1]({'b': V})", TypeError, "tangents of structure"),
    ("J.linearize(jnp.sin, V)[1](X)", ValueError, "different primal and tangent shapes"),
    ("J.linearize(jnp.sin, 1.0)[1](1)", ValueError, "dtype float32, but got int32"),
    ("J.linear_transpose(3, 1.0)", TypeError, "linear_transpose: Expected a callable"),
    ("J.linear_transpose(lambda x: x * 2, 1)(1.0)", TypeError, "float or complex dtypes"),
    ("J.linear_transpose(lambda x: x.astype(int), 1.0)", TypeError, "float or complex dtypes"),
    ("J.linear_transpose(lambda x: x * 2, 1.0)((1.0, 2.0))", TypeError, "tree does not match"),
    ("J.linear_transpose(lambda x: x * 2, 1.0)(V)", TypeError, "cotangent type does not match"),
    ("J.linear_transpose(lambda x: x * 2, 1.0)(1)", TypeError, "cotangent type does not match"),
    ("J.linear_transpose(jnp.sin, 1.0)(1.0)", NotImplementedError, "'sin'.*not linear"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "error", "said"), ERRORS, ids=[row[0] for row in ERRORS])
def test_bad_calls(text: str, error: type[Exception], said: str) -> None:
    """Bad input raises the type of error that JAX raises, and says what is wrong."""
    refused(run, text, error, said)


@pytest.mark.parametrize(
    "text",
    [
        "J.linear_transpose(lambda x: x * x, 1.0)(1.0)",
        "J.linear_transpose(lambda x: x @ x, V)(1.0)",
        "J.jit(J.linear_transpose(lambda x, y: x * y, 1.0, 1.0))(1.0)",
        "J.linear_transpose(lambda x: 1 / x, 1.0)(1.0)",
    ],
)
def test_not_linear(text: str) -> None:
    """A function that is not linear is refused when transposed, where JAX fails an assertion."""
    with pytest.raises((TypeError, NotImplementedError), match="not linear"):
        run(fnarray, text)


def test_errors_show_the_users_line() -> None:
    """Messages about a function name it with its file and line."""
    line = _product.__code__.co_firstlineno
    with pytest.raises(TypeError, match=rf"_product \(.*test_derivatives.py:{line}\)"):
        fnarray.grad(_product, argnums=5)(1.0, 2.0)
    with pytest.raises(TypeError, match=rf"returned by <lambda> \(.*test_derivatives.*{line}"):
        fnarray.vjp(eval(compile(f"{chr(10) * (line - 1)}lambda x: 'a'", __file__, "eval")), 1.0)


def test_a_kept_tracer_is_refused() -> None:
    """A tracer that a side effect kept cannot be used once its derivative is done."""
    kept = []

    def leaky(x):
        kept.append(x * 2)
        return x

    with effects("off"):
        fnarray.grad(leaky)(1.0)
    with pytest.raises(fnarray.errors.UnexpectedTracerError, match="outside the function"):
        kept[0] + 1
