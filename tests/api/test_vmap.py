"""``vmap`` maps as JAX's does: axes, trees, sizes, nesting, types of results, and errors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import fnarray
import fnarray.numpy
from fnarray.config import effects

from ..oracle import in_one
from .agreement import refused, same

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
V = np.array([1.5, -2.0, 0.5], np.float32)
T = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8
I = np.array([2, 0, 1], np.int32)  # noqa: E741
E = np.zeros((0, 3), np.float32)
for _array in (X, V, T, I, E):
    _array.flags.writeable = False


def run(module: Any, text: str) -> Any:
    """Evaluate an expression, in which ``J`` is a package and ``jnp`` and ``lax`` are its own."""
    names = {"J": module, "jnp": module.numpy, "lax": module.lax, "np": np}
    return eval(text, {**names, "X": X, "V": V, "T": T, "I": I, "E": E})


VALUES = """
J.vmap(jnp.sin)(V)
J.vmap(lambda x: x * 2)(I)
J.vmap(lambda x: x.sum())(X)
J.vmap(lambda x: x.sum(), in_axes=1)(X)
J.vmap(lambda x: x.sum(), in_axes=-1)(X)
J.vmap(lambda x: x, in_axes=-1, out_axes=-1)(X)
J.vmap(lambda x: x * 2, in_axes=2, out_axes=1)(T)
J.vmap(lambda x: x * 2, in_axes=-3, out_axes=-2)(T)
J.vmap(lambda x: (x, x.sum()), in_axes=1, out_axes=(2, 0))(T)
J.vmap(lambda x: {'a': x, 'b': [x, x]}, out_axes={'a': 0, 'b': 1})(X)
J.vmap(lambda x: {'a': x, 'b': [x, x]}, out_axes={'a': 0, 'b': [1, -1]})(X)
J.vmap(lambda x: (x, x), out_axes=(0, 1))(X)
J.vmap(lambda x: (x, 3.0), out_axes=(0, None))(V)
J.vmap(lambda x: 3.0)(X)
J.vmap(lambda x: np.float32(3), out_axes=None)(X)
J.vmap(lambda x: V, out_axes=1)(X)
J.vmap(lambda x: (x, None))(V)
J.vmap(lambda x: None)(V)
J.vmap(lambda x: ())(V)
J.vmap(lambda x, y: x + y, in_axes=(0, None))(V, 2)
J.vmap(lambda x, y: x + y, in_axes=(None, 0))(V, X)
J.vmap(lambda x, y: x + y, in_axes=[0, None])(X, V)
J.vmap(lambda x, y: x * y, in_axes=(0, 1))(X, X.T)
J.vmap(lambda x, y: x @ y, in_axes=(None, 0))(X, T)
J.vmap(lambda x, y: x, in_axes=(0, None))(V, None)
J.vmap(lambda x, y: x, in_axes=(0, 0))(V, {'none': None})
J.vmap(lambda d: d['a'] * d['b'][0], in_axes=({'a': 0, 'b': (1, None)},))({'a': X, 'b': (X.T, V)})
J.vmap(lambda d: d['a'] * d['b'], in_axes=({'a': None, 'b': 0},))({'a': V, 'b': X})
J.vmap(lambda d, s: d['a'] * s, in_axes=({'a': 0}, None))({'a': X}, 2.0)
J.vmap(lambda l: l[0] + l[1], in_axes=([0, 0],))([V, I])
J.vmap(lambda *xs: sum(xs))(V, V, V)
J.vmap(lambda x, *, k: x * k)(V, k=I)
J.vmap(lambda x, *, k: x * k['s'], in_axes=None)(2.0, k={'s': V})
J.vmap(lambda *, k: k.sum())(k=X)
J.vmap(lambda x, y=V: x * y)(X)
J.vmap(lambda: 2.0, axis_size=3)()
J.vmap(lambda: jnp.arange(2), axis_size=3, out_axes=1)()
J.vmap(lambda x: x + 1, in_axes=None, axis_size=2)(V)
J.vmap(lambda x: x, axis_size=3)(V)
J.vmap(lambda x: x, axis_size=np.int64(3))(V)
J.vmap(jnp.sin)(E)
J.vmap(lambda x: (x.sum(), x.max(initial=0.0)), in_axes=0)(E)
J.vmap(lambda x: x * 2, in_axes=1)(E)
J.vmap(lambda x, y: x @ y, in_axes=(0, None))(E, V)
J.vmap(jnp.dot)(X[:1], X[:1])
J.vmap(lambda x: jnp.sort(x)[::-1])(X[:1])
J.vmap(J.vmap(jnp.sin))(X)
J.vmap(J.vmap(lambda x, y: x * y, in_axes=(0, None)), in_axes=(None, 0))(V, V)
J.vmap(J.vmap(J.vmap(lambda x: x * x)))(T)
J.vmap(lambda x: J.vmap(lambda y: x * y)(x))(X)
J.vmap(lambda x: J.vmap(lambda y: x + y, in_axes=1, out_axes=1)(X))(X[0])
J.vmap(lambda x, i: x[i])(X.T, I % 2)
J.vmap(lambda i: jnp.asarray(V)[i])(I)
J.vmap(lambda x, i: x.at[i].set(9.0), in_axes=(None, 0))(jnp.asarray(V), I)
J.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), in_axes=(None, 0))(V, I)
J.vmap(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(V)
J.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(V)
J.vmap(lambda p, x: lax.cond(p, lambda: x, lambda: -x), in_axes=(None, 0))(True, V)
J.vmap(lambda k, x: lax.switch(k, [jnp.sin, jnp.cos, jnp.tanh], x))(I, V)
J.vmap(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0)))(I)
J.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, c: c * x, 1.0))(I, V)
J.vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: c + 1, 0))(I[:0])
J.vmap(lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x))(X)
J.vmap(lambda c, x: lax.scan(lambda c, y: (c + y, c), c, x)[0], in_axes=(0, None))(V, V)
J.vmap(lambda x: lax.map(jnp.sin, x))(X)
J.vmap(lambda x: lax.associative_scan(jnp.add, x))(X)
J.vmap(J.grad(lambda x: x**3))(V)
J.vmap(J.grad(lambda x, y: (x * y).sum(), argnums=(0, 1)), in_axes=(0, None))(X, V)
J.vmap(J.value_and_grad(lambda w: jnp.tanh(w @ V)))(X)
J.vmap(lambda x, t: J.jvp(jnp.sin, (x,), (t,)))(V, V)
J.vmap(lambda x, c: J.vjp(jnp.sin, x)[1](c))(V, V)
J.vmap(J.jacrev(lambda x: x**2))(X)
J.vmap(J.hessian(lambda x: (x**3).sum()))(X)
J.vmap(J.jit(lambda x: jnp.tanh(x) * 2))(V)
J.jit(J.vmap(lambda x: jnp.tanh(x) * 2))(V)
J.grad(lambda w: J.vmap(lambda x: jnp.sin(x @ w))(X).sum())(V)
J.jvp(J.vmap(jnp.sin), (V,), (V,))
J.linearize(J.vmap(jnp.sin), V)[1](V)
J.vmap(lambda x: x, axis_name='i')(V)
J.vmap(lambda x: (x.astype(jnp.float16), x > 1, x.astype(int)))(X)
lax.map(lambda x: {'a': x * 2, 'b': (x @ V, x > 3)}, T[0].T, batch_size=3)
lax.map(lambda x: x.sum(), T.reshape(8, 3), batch_size=4)
lax.map(lambda x: x * 2, V, batch_size=9)
lax.map(lambda x: x * 2, V[:0], batch_size=2)
J.grad(lambda x: lax.map(lambda r: r * r, x, batch_size=2).sum())(V)
J.vmap(lambda x: lax.map(lambda r: r * r, x, batch_size=2))(X)
J.jit(lambda x: lax.map(jnp.tanh, x, batch_size=2))(V)
jnp.vectorize(lambda x, y: x * y)(X, V)
jnp.vectorize(lambda x, y: x + y)(X[:, :1], V)
jnp.vectorize(lambda x, y: (x, {'y': y * 2}))(X, 2.0)
jnp.vectorize(lambda x: 3.0)(X)
jnp.vectorize(lambda x: x + 1)(3)
jnp.vectorize(lambda x, y: x @ y, signature='(n),(n)->()')(X, V)
jnp.vectorize(lambda x, y: x @ y, signature='(m,n),(n)->(m)')(T, T[:, 0])
jnp.vectorize(lambda x: (x.sum(), x[:2]), signature='(n)->(),(k)')(X)
jnp.vectorize(lambda x, y: x * len(y), excluded={1})(X, 'abc')
jnp.vectorize(lambda x, k: x * k.sum(), excluded={'k'})(X, k=V)
jnp.vectorize(lambda x, y: x if y is None else x * y)(X, None)
jnp.vectorize(lambda x, y: x, signature='(),(4)->()')(X, np.ones((2, 1, 4), np.float32))
J.grad(lambda x: jnp.vectorize(jnp.sin)(x).sum())(X)
J.vmap(jnp.vectorize(lambda x, y: x * y, signature='(n),()->(n)'))(X, X[:, 0])
J.jit(jnp.vectorize(lambda x, y: jnp.sin(x) * y))(X, V)
""".strip().splitlines()


@pytest.mark.parametrize("text", VALUES)
def test_as_jax(text: str) -> None:
    """Results are JAX's: structure, shapes, dtypes, weak types and values."""
    same(run(fnarray, text), in_one(lambda: run(jax, text)))


#: Bad calls, JAX's error type, and what the message says.
ERRORS = (
    ("J.vmap(3)", TypeError, "vmap: Expected a callable value, got 3"),
    ("J.vmap(lambda x: x, in_axes='a')", TypeError, "in_axes must be an int, None"),
    ("J.vmap(lambda x: x, in_axes=0.5)", TypeError, "in_axes must be an int, None"),
    ("J.vmap(lambda x: x, in_axes={'x': 0})", TypeError, "but got {'x': 0}"),
    ("J.vmap(lambda x: x, in_axes=(0, 'a'))", TypeError, "container with those types as leaves"),
    ("J.vmap(lambda x: x, out_axes='a')", TypeError, "out_axes must be an int, None"),
    ("J.vmap(lambda x: x, in_axes=(0,))(V, V)", ValueError, r"len\(in_axes\)=1, len\(args\)=2"),
    ("J.vmap(lambda d: d, in_axes=({'b': 0},))({'a': V})", ValueError, "must be a tree prefix"),
    ("J.vmap(lambda l: l, in_axes=([0, None],))((V, 1.0))", ValueError, "must be a tree prefix"),
    ("J.vmap(lambda x: x)()", ValueError, "at least one argument containing an array"),
    ("J.vmap(lambda x: x, in_axes=None)(V)", ValueError, "at least one non-None value in in_axes"),
    ("J.vmap(lambda x, y: x, in_axes=(None, None))(V, V)", ValueError, "at least one non-None"),
    ("J.vmap(lambda x: x)(1.0)", ValueError, r"argument x along axis 0.*its shape is \(\)"),
    ("J.vmap(lambda x, y: x)(V, 2.0)", ValueError, "argument y along axis 0"),
    ("J.vmap(lambda x: x, in_axes=2)(X)", ValueError, "should be at least 3, but is only 2"),
    ("J.vmap(lambda x: x, in_axes=-3)(X)", ValueError, "should be at least 3, but is only 2"),
    ("J.vmap(lambda d: 1)({'w': [V, 1.0]})", ValueError, r"argument d\['w'\]\[1\] along axis 0"),
    ("J.vmap(lambda x, y: x)(V, X)", ValueError,
     r"size 3: axis 0 of argument x of type float32\[3\].*size 2: axis 0 of argument y of type "),
    ("J.vmap(lambda d: 1)({'a': V, 'b': [X, V]})", ValueError, r"argument d\['b'\]\[0\]"),
    ("J.vmap(lambda x, *, k: x)(V, k=X)", ValueError, "inconsistent sizes.*argument k"),
    ("J.vmap(lambda x: x, axis_size=4)(V)", ValueError, "inconsistent sizes.*axis_size.*4"),
    ("J.vmap(lambda x: x)('a')", TypeError, "argument x of <lambda>.*not a valid fnarray type"),
    ("J.vmap(lambda x: 'a')(V)", TypeError, "<lambda>.*returned 'a'"),
    ("J.vmap(lambda x: x, out_axes=None)(V)", ValueError, "at vmap out_axes, got axis spec"),
    ("J.vmap(lambda x: (x, x), out_axes=(0, None))(V)", ValueError, r"out_axes\[1\], got axis"),
    ("J.vmap(lambda x: x, out_axes=1)(V)", ValueError, "axis 1 is out of bounds"),
    ("J.vmap(lambda x: x, out_axes=-2)(V)", ValueError, "axis -2 is out of bounds"),
    ("J.vmap(lambda x: 3.0, out_axes=1)(V)", ValueError, "out of bounds"),
    ("J.vmap(lambda x: (x, x), out_axes=[0, 1])(V)", ValueError, "must be a tree prefix"),
    ("J.vmap(lambda x: x, out_axes=(0, 0))(V)", ValueError, "must be a tree prefix"),
    ("J.vmap(lambda x: bool(x))(V)", TypeError, "boolean conversion"),
    ("J.vmap(lambda x: x if x > 0 else -x)(V)", TypeError, "boolean conversion"),
    ("J.vmap(lambda x: float(x))(V)", TypeError, r"float\(\)"),
    ("J.vmap(lambda x: np.asarray(x))(V)", TypeError, "numpy"),
    ("J.vmap(lambda x: [1, 2, 3][x])(I)", TypeError, "__index__"),
    ("J.vmap(lambda x: jnp.ones(x))(I)", TypeError, "concrete integers"),
    ("J.vmap(lambda x, y: x)(V)", TypeError, "missing 1 required positional argument"),
    ("jnp.vectorize(lambda x: x, excluded={-1})", ValueError, "contains negative numbers"),
    ("jnp.vectorize(lambda x: x, excluded={1.5})", TypeError, "ints and strings alone"),
    ("jnp.vectorize(lambda x: x, signature='(n)')(V)", ValueError, "not a valid gufunc signature"),
    ("jnp.vectorize(lambda x, *, k: x)(V, k=V)", TypeError, "'k' is not in excluded"),
    ("jnp.vectorize(lambda x, y: x)(X, V[:2])", ValueError, "Incompatible shapes"),
    ("jnp.vectorize(sum, signature='(n),(n)->()')(X)", TypeError, "number of positional arguments"),
    ("jnp.vectorize(np.add, signature='(n),(n)->()')(X, V[:2])", ValueError, "core dimension 'n'"),
    ("jnp.vectorize(np.add, signature='(n),(n)->()')(X, 1.0)", ValueError, "enough dimensions"),
    ("jnp.vectorize(np.add, signature='(n),()->()')(X, None)", TypeError, ""),
    ("jnp.vectorize(lambda x: x, signature='(n)->()')(X)", ValueError, "does not match the core"),
    ("jnp.vectorize(lambda x: x, signature='(n)->(n),()')(X)", TypeError, "tuple of 2 results"),
    ("jnp.vectorize(lambda x: (x, x), signature='(n)->(n)')(X)", TypeError, "number of results"),
    ("jnp.vectorize(lambda x: x, signature='(n)->(n)')(None)", ValueError, "None for argument"),
    ("lax.map(lambda x: x, V, batch_size=-1)", ValueError, "batch_size must be positive"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "error", "said"), ERRORS, ids=[row[0] for row in ERRORS])
def test_bad_calls(text: str, error: type[Exception], said: str) -> None:
    """Bad input raises the type of error that JAX raises, and says what is wrong."""
    refused(run, text, error, said)


def test_runs_the_function_once() -> None:
    """The function is run once, whatever the number of examples, on tracers of one example."""
    shapes = []

    def f(x):
        shapes.append(x.shape)
        return x

    with effects("off"):
        fnarray.vmap(f)(np.ones((7, 2), np.float32))
    assert shapes == [(2,)]


@pytest.mark.parametrize("axis", [0, -1])
def test_axes_of_random_keys_are_those_their_user_sees(axis: int) -> None:
    """The words of keys are no axis, counted from either end."""
    keys = fnarray.random.split(fnarray.random.key(0), 3)
    drawn = fnarray.vmap(fnarray.random.uniform, in_axes=axis)(keys)
    assert [float(x) for x in drawn] == [float(fnarray.random.uniform(k)) for k in keys]
    pairs = fnarray.vmap(fnarray.random.split, out_axes=axis)(keys)
    assert pairs.shape == ((2, 3) if axis else (3, 2))
    first = pairs[:, 0] if axis else pairs[0]
    assert (first == fnarray.random.split(keys[0])).all()


def test_anything_is_the_same_for_all():
    """An argument that is not mapped may be anything, such as a function, in a tree or not."""
    mapped = fnarray.vmap(lambda f, x, names: f(x) * len(names["a"]), (None, 0, None))
    got = mapped(lambda x: x + 1, np.arange(3.0, dtype=np.float32), {"a": "bc"})
    np.testing.assert_array_equal(np.asarray(got), [2, 4, 6])
    with pytest.raises(TypeError, match="not a valid"):
        fnarray.vmap(lambda f: f)(len)


@pytest.mark.parametrize("number", [0.5, -3, True, np.float32(2), np.ones((), np.int32)])
@pytest.mark.parametrize("outer", [lambda f: f, fnarray.jit, fnarray.vmap, fnarray.linearize])
def test_numbers_that_are_not_mapped_keep_their_value(outer, number):
    """A function may choose by them, whatever is traced around it, and sees what was given."""
    seen = []

    def scaled(x, h):
        seen.append(type(h))
        return x * h if h > 0 else x - h

    def run(x):
        return fnarray.vmap(scaled, in_axes=(0, None))(x, number)

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with effects("off"):  # `seen` is written to
        got = outer(run, x)[0] if outer is fnarray.linearize else outer(run)(x)
    np.testing.assert_allclose(got, x * number if number > 0 else x - number)
    assert set(seen) == {type(number)}


def test_types_of_other_rules():
    """A type that an extension gave rules of mapping is refused, never mapped by its leaves."""
    from fnarray.interpreters import batching

    @fnarray.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, x: Any, shared: Any):
            self.x, self.shared = x, shared

        def tree_flatten(self) -> Any:
            return (self.x, self.shared), None

        @classmethod
        def tree_unflatten(cls, aux: Any, leaves: Any) -> Any:
            return cls(*leaves)

    pair = Pair(V, V)
    batching.register_vmappable(Pair, int, int, lambda *a: 0, lambda *a: 0, None)
    try:
        for f in (lambda p: p.x, lambda p: p):
            with pytest.raises(NotImplementedError, match=r"vmap: .* is a Pair, .*each with its"):
                fnarray.vmap(f)(pair)
        with pytest.raises(NotImplementedError, match="is a Pair"):
            fnarray.vmap(lambda x: Pair(x, x))(V)
        assert fnarray.vmap(lambda x: x * 2)(V).shape == (3,)
    finally:
        batching.unregister_vmappable(Pair)
    np.testing.assert_array_equal(fnarray.vmap(lambda p: p.x)(pair), V)


def test_shapes_without_values_are_mapped():
    """A function that reads a shape alone gets an example's; its values cannot be asked for."""
    x = np.arange(6.0).reshape(2, 3)
    shape = fnarray.ShapeDtypeStruct((2, 4, 3), np.float32)
    got = fnarray.vmap(lambda r, s: r * s.shape[0])(x, shape)
    np.testing.assert_array_equal(got, x * 4)
    nested = fnarray.vmap(fnarray.vmap(lambda r, s: r * s.shape[0]), in_axes=(0, 2))
    np.testing.assert_array_equal(nested(x.T, shape), x.T * 4)
    with pytest.raises(TypeError):
        fnarray.vmap(lambda r, s: r + s)(x, shape)
    with pytest.raises(ValueError, match=r"size 3: .*float32\[2,4,3\]"):
        fnarray.vmap(lambda r, s: r, in_axes=(0, 2))(x, shape)
