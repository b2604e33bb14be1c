"""Arrays made of Python values, by filling, by counting, by pattern, agree with ``jax.numpy``."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray.numpy as jnp
from fnarray import jit, lax
from fnarray.core.trace import trace_graph
from fnarray.errors import ConcretizationTypeError

from .numpy_oracle import both_raise, compare


@pytest.mark.parametrize(
    "text",
    """
jnp.array([1, 2], dtype=float)
jnp.array(np.arange(3.0))
jnp.array([w, 1.0])
jnp.array([1, True])
jnp.array([])
jnp.array([[]])
jnp.array(1.5, dtype=int)
jnp.array((1, 2))
jnp.array(range(3))
jnp.array([np.float64(1), 2])
jnp.array([np.int8(1), np.int8(2)])
jnp.array([1j, 2])
jnp.array(w)
jnp.array(w, dtype=float)
jnp.asarray(3, dtype=int)
jnp.asarray(True)
jnp.asarray(2.5)
jnp.array([f, f])
jnp.array([jnp.bfloat16(1), 2])
jnp.array([[jnp.bfloat16(1)], [jnp.float32(3)]], "bfloat16")
jnp.array((jnp.float32(2), 3, True), "float8_e4m3fn")
jnp.array([jnp.float32(2), 3], "int4")
jnp.array(f, ndmin=4)
jnp.array([[1, 2], [3, 4.5]])
jnp.array([v, [1, 2, 3]])
jnp.array(np.int64(2**40))
jnp.zeros(3)
jnp.zeros((2,), int)
jnp.ones(np.int32(3))
jnp.full((2,), w)
jnp.full((2, 3), v)
jnp.full(2, 1, dtype='uint8')
jnp.full((2,), 1)
jnp.full_like(f, w)
jnp.full_like(i, 1.5)
jnp.zeros_like(w)
jnp.ones_like(3)
jnp.zeros_like(f, shape=(2,))
jnp.empty_like(f, dtype=int)
jnp.arange(3.0)
jnp.arange(3)
jnp.arange(1, 5, 2)
jnp.arange(5, 1)
jnp.arange(5, 1, -2)
jnp.arange(0, 1, 0.1)
jnp.arange(3, dtype=float)
jnp.arange(2.5)
jnp.arange(np.int8(5))
jnp.linspace(0, 1, 5)
jnp.linspace(0, 1, 5, retstep=True)
jnp.linspace(0, 10, 5, dtype=int)
jnp.linspace(0, 1, 0)
jnp.linspace(0, 1, 1)
jnp.linspace(f, 2 * f, 4, axis=-1)
jnp.linspace(0, 1, 5, endpoint=False)
jnp.linspace(0, 1j, 3)
jnp.linspace(v, f, 3, axis=1)
jnp.linspace(0, 10, 4, endpoint=False, retstep=True)
jnp.logspace(0, 3, 4)
jnp.logspace(0, 3, 4, base=2)
jnp.geomspace(1, 1000, 4)
jnp.geomspace(1j, 1000j, 4)
jnp.geomspace(v, 2 * v, 3, axis=1)
jnp.eye(3)
jnp.eye(2, 3, 1, int)
jnp.eye(2, k=-1)
jnp.identity(2)
jnp.tri(2, 3, 1)
jnp.tri(2, dtype=int)
jnp.tril(i)
jnp.triu(f, 1)
jnp.triu(b)
jnp.tril(jnp.ones((2, 3, 3)), -1)
jnp.diag(f)
jnp.diag(i8)
jnp.diag(i8, 1)
jnp.diag(i8, -2)
jnp.diag(f, 1)
jnp.diag(f, -1)
jnp.diag(f, 5)
jnp.diagflat(f, 1)
jnp.diag_indices(2, 3)
jnp.diag_indices_from(jnp.ones((2, 2)))
jnp.meshgrid(i8, v)
jnp.meshgrid(i8, h, indexing='ij', sparse=True)
jnp.meshgrid(v)
jnp.meshgrid()
jnp.mgrid[0:3]
jnp.mgrid[0:3, 0:2.0]
jnp.mgrid[0:3:5j]
jnp.ogrid[0:3, 0:2]
jnp.ogrid[0:3]
jnp.indices((2, 3))
jnp.indices((2, 3), sparse=True)
jnp.indices((2, 3), dtype=float)
jnp.fromfunction(lambda i, j: i + j, (2, 3), dtype=int)
jnp.frombuffer(b'abcdefgh', dtype='int8')
jnp.from_dlpack(np.arange(3, dtype='float32'))
jnp.vander(i8)
jnp.vander(v, 2, True)
jnp.copy(f)
jnp.astype(f, int)
jnp.astype(i, bool)
jnp.astype(c, float)
jnp.astype(f, None)
jnp.float32(1)
jnp.float32([1, 2])
jnp.int32(1.5)
jnp.bool_(2)
jnp.int8(w)
jnp.bfloat16(1)
jnp.zeros(2, jnp.float16)
jnp.ndim([1, 2])
jnp.size(f, 0)
jnp.shape(f)
jnp.isscalar(w)
jnp.isscalar(f)
jnp.iscomplexobj(c)
    """.strip().split("\n"),
)
def test_agrees_with_jax(text):
    """Each expression has JAX's values, shape, dtype and weak type."""
    if any(word in text for word in ("ndim([", "size(", "shape(f)", "isscalar", "obj(")):
        import jax.numpy

        from .numpy_oracle import run

        assert run(text, jnp) == run(text, jax.numpy)
    else:
        compare(text, rtol=3e-6, values="jax")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jnp.array([1, 2**40])", ()),
        ("jnp.array(2**40)", ()),
        ("jnp.array(-1, dtype='uint8')", ()),
        ("jnp.array('a')", ("numpy.array",)),
        ("jnp.array(['a'])", ("numpy.array",)),
        ("jnp.array([None, 1])", ("numpy.array", "None")),
        ("jnp.array(None)", ("numpy.array", "None")),
        ("jnp.array({1: 2})", ("numpy.array",)),
        ("jnp.array([[1, 2], [3]])", ()),
        ("jnp.zeros(-1)", ("-1",)),
        ("jnp.zeros(2.5)", ()),
        ("jnp.zeros((2, 2.0))", ("2.0",)),
        ("jnp.zeros(3, 'O')", ("object",)),
        ("jnp.full((2,), [1, 2])", ("numpy.full", "list")),
        ("jnp.full((2,), v)", ("(3,)", "(2,)")),
        ("jnp.zeros_like([1, 2])", ("zeros_like", "list")),
        ("jnp.arange(1j)", ("arange",)),
        ("jnp.arange(True)", ("arange",)),
        ("jnp.arange(None)", ("arange",)),
        ("jnp.arange(0, 10, 0)", ("arange", "step")),
        ("jnp.linspace(0, 1, -1)", ("linspace", "-1")),
        ("jnp.eye(-1)", ("eye", "-1")),
        ("jnp.eye(2.0)", ("eye", "2.0")),
        ("jnp.tril(i8)", ("tril", "(3,)")),
        ("jnp.diag(jnp.ones((2, 2, 2)))", ("diag", "(2, 2, 2)")),
        ("jnp.diag_indices_from(f)", ("diag_indices_from", "(2, 3)")),
        ("jnp.meshgrid(v, v, indexing='xx')", ("meshgrid", "xx")),
        ("jnp.meshgrid(f, f)", ("meshgrid", "(2, 3)")),
        ("jnp.vander(f)", ("vander", "(2, 3)")),
    ],
)
def test_errors(text, words):
    """What JAX refuses is refused, naming the function and what it got."""
    message = both_raise(text, (TypeError, ValueError, OverflowError, ZeroDivisionError))
    for word in words:
        assert word in message


def test_numpy_arrays_are_copied():
    """An array does not change with the NumPy array it was made of."""
    x = np.zeros(3)
    y = jnp.asarray(x)
    x[0] = 1
    assert float(y[0]) == 0
    with pytest.raises(ValueError, match="copy"):
        jnp.asarray(x, copy=False)


def test_lists_may_hold_tracers():
    """Under a trace, nested lists of tracers and numbers become an array."""
    aval = jnp.asarray(1.0).aval
    graph = trace_graph(lambda x: [jnp.array([[x, 1], [2, x]])], [aval])
    out = graph.jaxpr.outvars[0].aval
    assert (out.shape, out.dtype, out.weak_type) == ((2, 2), np.float32, False)


def test_counts_must_be_concrete():
    """A traced bound of arange is refused, as the shape depends on it."""
    with pytest.raises(ConcretizationTypeError, match="arange"):
        trace_graph(lambda n: [jnp.arange(n)], [jnp.asarray(3).aval])


def test_scalar_types_are_dtypes():
    """``jnp.float32`` is equal to, and counts as, the dtype; calling it makes an array."""
    assert jnp.float32 == np.float32
    assert jnp.float32 == np.dtype("float32")
    assert np.dtype(jnp.float32) == np.float32
    assert {np.float32: 1}[jnp.float32] == 1
    assert not isinstance(jnp.float32(1), jnp.float32)
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)


def test_x64(x64):
    """With 64-bit types on, defaults are 64 bits wide."""
    assert jnp.zeros(2).dtype == np.float64
    assert jnp.arange(3).dtype == np.int64
    assert jnp.array([np.float32(1), 2.5]).dtype == np.float32
    assert int(jnp.array(2**40)) == 2**40


def test_numbers_beyond_the_default_integer_are_of_the_dtype_asked_for():
    """A Python number has no dtype before it is given one: 2**32 - 1 is a uint32."""
    for value, dtype in ((2**32 - 1, "uint32"), (2**31, "float32"), (2**40, "float32")):
        wanted = np.full(2, value, dtype)
        np.testing.assert_array_equal(lax.full((2,), value, dtype), wanted)
        np.testing.assert_array_equal(lax.full_like(jnp.zeros(2, dtype), value), wanted)
    start = 2**40
    np.testing.assert_array_equal(
        jnp.arange(start, start + 2, dtype="float32"), np.full(2, start, "float32")
    )


def test_floats_beyond_an_integer_saturate_in_updates_as_in_conversions():
    """Storing a float in integers is converting it, compiled or not."""
    x = jnp.asarray([1, -2, 3], dtype="int8")
    with pytest.warns(FutureWarning, match="incompatible types"):
        assert x.at[0].set(1000.7)[0] == 127
    with pytest.warns(FutureWarning, match="incompatible types"):
        assert jit(lambda x: x.at[0].set(1000.7))(x)[0] == 127
    np.testing.assert_array_equal(jnp.full(2, 1e10, int), [2**31 - 1] * 2)


def test_flat_indices_may_be_of_a_narrow_dtype():
    """Axes longer than the dtype of an index counts are taken apart in a wider one."""
    i = jnp.asarray([1, -2, 3], dtype="int8")
    (got,) = jnp.unravel_index(i, (1000,))
    np.testing.assert_array_equal(got, [1, 998, 3])
    assert jnp.unravel_index(i, (10, 10))[0].dtype == np.int8


def test_the_namespace_tells_the_standard_about_itself():
    """Devices, dtypes and capabilities are there, as in JAX."""
    info, theirs = jnp.__array_namespace_info__(), jax.numpy.__array_namespace_info__()
    assert jnp.__array_api_version__ == jax.numpy.__array_api_version__
    assert info.capabilities() == theirs.capabilities()
    assert info.default_dtypes() == theirs.default_dtypes()
    assert info.dtypes() == theirs.dtypes()
    kinds = ("signed integer", "bool")
    assert info.dtypes(kind=kinds) == theirs.dtypes(kind=kinds)
    assert info.devices()[0] is None
    assert info.default_device() is None
    x = jnp.ones(3)
    assert x.platform() == "cpu"
    assert x.unsafe_buffer_pointer() == np.asarray(x).ctypes.data
