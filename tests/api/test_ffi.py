"""C functions written for XLA's interface: called as its headers lay out, with what they report."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import ffi
from fnarray.errors import JaxRuntimeError
from fnarray.experimental.layout import Layout
from fnarray.extend.core import Primitive
from fnarray.interpreters import mlir


def at(address, kind=ctypes.c_void_p):
    """Return the C value at an address."""
    return ctypes.cast(address, ctypes.POINTER(kind)).contents.value


# Places in structs as a C compiler has them for xla/ffi/api/c_api.h, version 0.3. Whole kernels,
# compiled with those headers, were called the same way when this was written.
ARGS, RETS, ATTRS, CREATE_ERROR = 40, 80, 120, 48
ERRORS = []


def items(frame, where):
    """Return a list's length and its elements' addresses."""
    first = at(frame + where + (40 if where == ATTRS else 32))
    return [at(first + 8 * i) for i in range(at(frame + where + 16, ctypes.c_int64))]


def elements(buffer):
    """Return the array that a buffer describes, of float32."""
    assert at(buffer, ctypes.c_size_t) == 48
    assert at(buffer + 16, ctypes.c_int) == 11
    rank, dims = at(buffer + 32, ctypes.c_int64), at(buffer + 40)
    shape = tuple(at(dims + 8 * i, ctypes.c_int64) for i in range(rank))
    count = int(np.prod(shape))
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(at(buffer + 24)))


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def scale(frame):
    """Multiply by the attribute ``by``; refuse a negative one."""
    assert at(frame, ctypes.c_size_t) == 168
    assert at(frame + 32, ctypes.c_int) == 3  # the stage of execution
    (x,), (y,), (by,) = (items(frame, where) for where in (ARGS, RETS, ATTRS))
    name = at(at(frame + ATTRS + 32))
    assert ctypes.string_at(at(name), at(name + 8, ctypes.c_size_t)) == b"by"
    assert at(at(frame + ATTRS + 24), ctypes.c_int) == 3  # a scalar
    factor = at(at(by + 8), ctypes.c_float)
    if factor < 0:
        return error(at(frame + 16), b"by must not be negative")
    elements(y)[:] = elements(x) * factor
    return None


def error(api, text):
    """Make an error by the interface's function."""

    class Args(ctypes.Structure):
        _fields_ = (
            ("size", ctypes.c_size_t),
            ("extension", ctypes.c_void_p),
            ("message", ctypes.c_char_p),
            ("code", ctypes.c_int),
        )

    args = Args(28, None, text, 3)
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(at(api + CREATE_ERROR))
    return create(ctypes.addressof(args))


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
def add(out, ins):
    """Add two arrays of four float32, by the untyped interface."""
    a, b = ((ctypes.c_float * 4).from_address(at(ins + 8 * i)) for i in range(2))
    (ctypes.c_float * 4).from_address(out)[:] = [u + v for u, v in zip(a, b, strict=True)]


ffi.register_ffi_target("test_scale", ffi.pycapsule(scale))
ffi.register_ffi_target("test_add", add, api_version=0)
X = jnp.arange(6, dtype="float32").reshape(2, 3)


def scaled(x, by=2.0):
    spec = fnarray.ShapeDtypeStruct(x.shape, x.dtype)
    return ffi.ffi_call("test_scale", spec, vmap_method="broadcast_all")(x, by=np.float32(by))


def test_a_typed_handler_computes():
    """Arrays of any rank, results and attributes arrive; compiled and mapped as well."""
    np.testing.assert_array_equal(scaled(X), 2 * np.asarray(X))
    np.testing.assert_array_equal(fnarray.jit(scaled)(X), 2 * np.asarray(X))
    np.testing.assert_array_equal(fnarray.vmap(scaled)(X), 2 * np.asarray(X))
    assert scaled(jnp.float32(3.0)).shape == ()


def test_an_untyped_function_computes():
    """The older interface takes pointers alone."""
    ones = np.ones(4, np.float32)
    got = ffi.ffi_call("test_add", fnarray.ShapeDtypeStruct((4,), np.float32))(ones, ones)
    np.testing.assert_array_equal(got, 2 * ones)


@pytest.mark.parametrize("layouts", [[(0, 1)], (None,), (Layout((0, 1)),)], ids=str)
def test_row_major_layouts_are_the_default(layouts):
    """Libraries that say what every array's order is here are heard; other orders are refused."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    spec = fnarray.ShapeDtypeStruct(x.shape, x.dtype)
    call = ffi.ffi_call("test_scale", spec, input_layouts=layouts, output_layouts=(0, 1))
    np.testing.assert_array_equal(fnarray.jit(lambda x: call(x, by=np.float32(3)))(x), 3 * x)
    for other in ([(1, 0)], (Layout((1, 0)),)):
        with pytest.raises(ValueError, match="layouts"):
            ffi.ffi_call("test_scale", spec, input_layouts=other)


def test_what_goes_wrong_is_said():
    """A handler's error, a name nobody registered, and what there is not."""
    with pytest.raises(JaxRuntimeError, match="test_scale reports: by must not be negative"):
        scaled(X, -1.0)
    spec = fnarray.ShapeDtypeStruct((2,), np.float32)
    with pytest.raises(JaxRuntimeError, match="No FFI handler registered for nobody"):
        ffi.ffi_call("nobody", spec)(np.ones(2, np.float32))
    with pytest.raises(TypeError, match="pure_callback"):
        ffi.register_ffi_target("python", lambda x: x)
    with pytest.raises(ValueError, match="only 'execute' is run"):
        ffi.register_ffi_target("stages", {"prepare": scale, "execute": scale})
    with pytest.raises(FileNotFoundError, match="come with jaxlib"):
        ffi.include_dir()


def primitive(name, rule):
    """Return a primitive of one operand whose results are like it, lowered by a rule."""
    p = Primitive(name)
    p.def_abstract_eval(lambda x, **_: x)
    mlir.register_lowering(p, rule)
    return p


def test_lowerings_written_with_what_is_here():
    """A rule may call C functions, Python functions, and functions on arrays."""

    def by_callback(ctx, x):
        found, _, keepalive = mlir.emit_python_callback(
            ctx, lambda v: (np.sin(v),), None, [x], ctx.avals_in, ctx.avals_out,
            has_side_effect=False,
        )  # fmt: skip
        ctx.module_context.add_keepalive(keepalive)
        return found

    def by_function(ctx, x, *, n):
        return mlir.lower_fun(lambda v: jnp.sin(v) ** n, multiple_results=False)(ctx, x)

    def by_library(ctx, x):
        return ffi.ffi_lowering("test_scale")(ctx, x, by=np.float32(3))

    sine, power = primitive("test_sine", by_callback), primitive("test_power", by_function)
    three = primitive("test_three", by_library)
    run = fnarray.jit(lambda x: (sine.bind(x), power.bind(x, n=2), three.bind(x)))
    x = np.asarray(X)
    for got, want in zip(run(X), (np.sin(x), np.sin(x) ** 2, 3 * x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_lowering_that_builds_mlir_says_so():
    """What asks for MLIR's builders gets an error that names the way round."""
    p = primitive("test_builds", lambda ctx, x: [mlir.aval_to_ir_type(ctx.avals_out[0])])
    with pytest.raises(NotImplementedError, match="lower_fun"):
        fnarray.jit(p.bind)(X)


def test_a_lowering_that_makes_an_array_of_nothing():
    """Arrays that a lowering makes are computed in what it is inlined in, empty ones too."""
    nothing, some = np.zeros((0, 2), np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)

    def function(x):
        return jnp.concatenate([jnp.asarray(nothing), x * jnp.asarray(some)])

    p = primitive("test_nothing", lambda ctx, x: mlir.lower_fun(function, False)(ctx, x))
    x = np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(fnarray.jit(p.bind)(x), some)
