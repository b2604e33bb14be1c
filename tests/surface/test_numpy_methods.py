"""Operators, methods and properties of arrays and tracers agree with JAX's."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.core.array import Array
from fnarray.core.trace import trace_graph

from .numpy_oracle import VALUES, both_raise, compare

OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=")
PAIRS = (
    ("f", "g"), ("f", "2"), ("2", "f"), ("2.5", "f"), ("i", "2"), ("3", "i"), ("f", "v"),
    ("i", "2.5"), ("w", "f"), ("np.float32(2)", "f"), ("np.ones(3, 'float32')", "f"),
)  # fmt: skip


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_have_jax_types_and_numpy_values(symbol):
    """Operators work with arrays, NumPy arrays and scalars on either side."""
    for x, y in PAIRS:
        if symbol in ("**", "//", "%") and (x, y) == ("3", "i"):  # integers by 0
            continue
        base = f"abs({x})" if symbol == "**" else x
        compare(f"{base} {symbol} {y}", rtol=1e-5, values="numpy")


@pytest.mark.parametrize(
    "text",
    """
i & j
i | 3
3 ^ i
~i
i << 1
i >> 1
1 << u8
u8 >> 1
b & b2
~b
-f
+f
abs(i)
abs(c)
divmod(i, 3)
divmod(f, 2.0)
divmod(7, i)
f @ f.T
v @ np.ones(3, 'float32')
round(f)
round(f, 1)
f.sum()
f.mean(axis=0)
f.max(axis=1, keepdims=True)
f.min()
f.prod()
f.std()
f.var(ddof=1)
f.any()
f.all(axis=0)
f.argmax(axis=1)
f.argmin()
f.cumsum()
f.cumprod(axis=1)
f.ptp()
f.T
c.real
c.imag
c.conj()
c.conjugate()
f.real
f.mT
f.reshape(3, 2)
f.reshape((6,))
f.reshape(-1)
f.ravel()
f.flatten()
f.transpose()
f.transpose(1, 0)
f.transpose((1, 0))
f.swapaxes(0, 1)
f[None].squeeze()
f.astype(int)
f.astype('bfloat16')
f.clip(0, 1)
f.round(1)
f.copy()
f.repeat(2)
f.sort()
f.argsort()
f.take(jnp.asarray([0, 1]))
f.diagonal()
f.trace()
f.dot(f.T)
v.searchsorted(0.5)
f.nonzero()
v.view('int32')
v.view('int16')
i8.view('uint8')
f.at[0].set(1)
f.at[0, 1].add(2)
f.item(0)
f.tolist()
f.ndim
f.size
f.nbytes
f.itemsize
    """.strip().split("\n"),
)  # fmt: skip
def test_methods_agree_with_jax(text):
    """Each method is its function, the array first."""
    if text in ("f.item(0)", "f.tolist()", "f.ndim", "f.size", "f.nbytes", "f.itemsize"):
        x = jnp.asarray(VALUES["f"])
        assert eval(text, {"f": x}) == eval(text, {"f": VALUES["f"]})
    elif "nonzero" in text or "item" in text or "ptp" in text:
        theirs = VALUES["f"].nonzero() if "nonzero" in text else np.ptp(VALUES["f"])
        np.testing.assert_allclose(eval(text, {"f": jnp.asarray(VALUES["f"])}), theirs)
    else:
        compare(text, rtol=1e-5, values="types only" if "round(f)" in text else "jax")


@pytest.mark.parametrize(
    "text", ["f + [1]", "f + 'a'", "f < None", "[1] + f", "f == [1]", "f @ 2", "f[0] + {1: 2}"]
)
def test_unsupported_operands_are_type_errors(text):
    """Lists, strings and None are no operands."""
    both_raise(text, (TypeError, ValueError))


def test_equality_with_other_objects_is_false():
    """Comparing with None or a string is False, as for any object."""
    x = jnp.ones(2)
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True


@pytest.mark.parametrize("name", ["add", "mul", "truediv", "floordiv", "mod", "pow", "lt", "eq"])
def test_tracers_have_the_operators(name):
    """An operator on a tracer records; its value is that of the eager call."""
    op = getattr(operator, name)
    x = jnp.asarray(VALUES["p"])
    graph = trace_graph(lambda a: [op(a, 2.0), op(2.0, a)], [x.aval])
    assert [v.aval for v in graph.jaxpr.outvars] == [op(x, 2.0).aval, op(2.0, x).aval]


def test_eager_and_recorded_agree():
    """Direct evaluation gives what the recorded equations give, bit for bit."""
    from fnarray.core.graph import eval_graph
    from fnarray.core.trace import bind

    x, y = (jnp.asarray(VALUES[k]) for k in ("f", "g"))

    def f(a, b):
        return [
            a + b,
            a * 2,
            1 / a,
            -a,
            a < b,
            jnp.sin(a),
            a.sum(axis=0),
            a // b,
            jnp.maximum(a, 1),
        ]

    graph = trace_graph(f, [x.aval, y.aval])

    def replay(prim, *args, **params):
        return bind(prim, *(getattr(a, "val", a) for a in args), **params)

    outs = eval_graph(graph.jaxpr, graph.consts, [x, y], replay)
    for eager, again in zip(f(x, y), outs, strict=True):
        np.testing.assert_array_equal(np.asarray(eager), np.asarray(again))


def test_array_api():
    """An array names its namespace, and is an instance of its array type."""
    x = jnp.ones((2, 3))
    assert x.__array_namespace__() is jnp
    assert x.__array_namespace__(api_version="2023.12") is jnp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.12")
    assert isinstance(x, jnp.ndarray)
    assert isinstance(x, Array)
    assert x.device in x.devices()
    moved = x.to_device(x.device)  # another array over the same memory, as of JAX
    assert moved is not x
    assert moved.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


def test_compress():
    """The condition comes first in the function, second in the method."""
    f = VALUES["f"]
    ours = jnp.asarray(f).compress(np.array([True, False, True]), axis=1)
    np.testing.assert_array_equal(ours, f[:, [0, 2]])


@pytest.mark.cpu
@pytest.mark.parametrize("shape", [(8,), (2, 4), ()])
@pytest.mark.parametrize("kind", ["complex64", "complex128", "bool", "float32", "int8"])
def test_views_of_pairs_and_bools_trace(shape, kind):
    """Complex numbers are pairs, bools are bytes; NumPy's bits, compiled."""
    rng = np.random.default_rng(0)
    x = np.asarray(rng.integers(0, 2, (*shape, 2)) + 0.5 * (kind[0] in "cf"))
    x = np.asarray(x[..., 0] + 1j * x[..., 1] if kind[0] == "c" else x[..., 0]).astype(kind)
    with fnarray.enable_x64():
        for to in ("complex64", "complex128", "bool", "float32", "float64", "int8", "uint16"):
            f = fnarray.jit(lambda x, to=to: x.view(to))
            try:
                want = x.view(to)
            except ValueError:
                with pytest.raises(ValueError, match="view"):
                    f(x)
                continue
            got = f(x)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(got, want != 0 if to == "bool" else want)


def test_views_trace():
    """The bits of a traced array can be read as another dtype, of any size."""
    x = jnp.asarray(VALUES["f"][:, :2])
    for dtype in ("int32", "int16", "uint8"):
        graph = trace_graph(lambda a, d=dtype: [a.view(d)], [x.aval])
        aval = graph.jaxpr.outvars[0].aval
        assert (aval.shape, aval.dtype) == (x.view(dtype).shape, np.dtype(dtype))
    with pytest.raises(ValueError, match="view"):
        jnp.ones(3, jnp.int8).view("int32")


@pytest.mark.parametrize("name", ["mean", "var", "std", "trace", "sum", "conj"])
def test_methods_work_on_tracers(name):
    """Nothing that a tracer keeps hides a method: `var` and `trace` did."""
    x = jnp.arange(9.0).reshape(3, 3)
    want = getattr(np.asarray(x), name)()
    np.testing.assert_allclose(fnarray.jit(lambda x: getattr(x, name)())(x), want, rtol=1e-6)
    fnarray.grad(lambda x: jnp.sum(getattr(x, name)()))(x)


@pytest.mark.parametrize("again", [False, True])
def test_shapes_and_axes_that_are_arrays(again):
    """They are read by value, however often operands of their avals were seen."""
    for sizes in [(1, 2, 3), (3, 1, 2), (6, 1, 1)][: 1 + 2 * again]:
        shape = jnp.array(sizes)
        assert jnp.reshape(jnp.ones(6), shape).shape == sizes
        assert jnp.reshape(np.ones(6), shape).shape == sizes
        assert jnp.ones(6).reshape(shape).shape == sizes
    x = jnp.ones((2, 3, 4))
    assert x.transpose(jnp.array([1, 2, 0])).shape == (3, 4, 2)
    assert (x.transpose().shape, x.reshape(jnp.array(24)).shape) == ((4, 3, 2), (24,))


def test_bytes_are_the_elements():
    """``bytes(x)`` is what lies in memory, as NumPy has it, and a length for an integer."""
    for x in (np.int32(3), np.arange(2, dtype=np.int16), np.ones(2, np.float32)):
        assert bytes(jnp.asarray(x)) == bytes(x)


def test_completion_offers_what_arrays_of_jax_have():
    """`dir` of an array, and of its class, lists no public name that JAX's arrays lack."""
    import jax

    x = jnp.ones(3)
    assert {n for n in {*dir(x), *dir(type(x))} if n[0] != "_"} <= set(dir(jax.numpy.ones(3)))
