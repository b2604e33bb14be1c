"""Results that are an operand itself, and those that are another array: as of JAX.

Donation deletes arrays, so that one tells the other (decision 0045).
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray

#: Kinds of arrays: name, shape, dtype.
ARRAYS = {
    "vector": ((3,), "float32"),
    "matrix": ((2, 3), "float32"),
    "scalar": ((), "float32"),
    "row": ((1, 3), "float32"),
    "ints": ((3,), "int32"),
    "bools": ((3,), "bool"),
    "complex": ((3,), "complex64"),
}

#: Each is called with (library, array).
CALLS = {
    "+x": lambda m, x: +x,
    "abs": lambda m, x: abs(x),
    "ravel": lambda m, x: x.ravel(),
    "flatten": lambda m, x: x.flatten(),
    "conj": lambda m, x: m.numpy.conj(x),
    "real": lambda m, x: x.real,
    "numpy.real": lambda m, x: m.numpy.real(x),
    "squeeze": lambda m, x: x.squeeze(),
    "squeeze of no axis": lambda m, x: m.numpy.squeeze(x, ()),
    "atleast_1d": lambda m, x: m.numpy.atleast_1d(x),
    "atleast_1d of two": lambda m, x: m.numpy.atleast_1d(x, 1)[0],
    "atleast_2d": lambda m, x: m.numpy.atleast_2d(x),
    "atleast_3d": lambda m, x: m.numpy.atleast_3d(x),
    "roll": lambda m, x: m.numpy.roll(x, 0),
    "reshape": lambda m, x: m.numpy.reshape(x, x.shape),
    "x.reshape": lambda m, x: x.reshape(x.shape),
    "reshape by name": lambda m, x: m.numpy.reshape(x, shape=x.shape),
    "lax.reshape": lambda m, x: m.lax.reshape(x, x.shape),
    "astype": lambda m, x: x.astype(x.dtype),
    "astype with a copy": lambda m, x: x.astype(x.dtype, copy=True),
    "asarray": lambda m, x: m.numpy.asarray(x),
    "array": lambda m, x: m.numpy.array(x),
    "copy": lambda m, x: x.copy(),
    "transpose": lambda m, x: m.numpy.transpose(x),
    "T": lambda m, x: x.T,
    "swapaxes": lambda m, x: m.numpy.swapaxes(x, 0, 0) if x.ndim else x + 1,
    "moveaxis": lambda m, x: m.numpy.moveaxis(x, (), ()),
    "expand_dims": lambda m, x: m.numpy.expand_dims(x, ()),
    "broadcast_to": lambda m, x: m.numpy.broadcast_to(x, x.shape),
    "broadcast_arrays": lambda m, x: m.numpy.broadcast_arrays(x, x)[1],
    "meshgrid": lambda m, x: m.numpy.meshgrid(x)[0] if x.ndim == 1 else x + 1,
    "clip": lambda m, x: m.numpy.clip(x.real),
    "round": lambda m, x: m.numpy.round(x) if x.dtype != bool else x.copy(),
    "floor": lambda m, x: m.numpy.floor(x) if x.dtype != "complex64" else x.copy(),
    "nan_to_num": lambda m, x: m.numpy.nan_to_num(x),
    "diff": lambda m, x: m.numpy.diff(x, 0) if x.ndim else x.copy(),
    "rot90": lambda m, x: m.numpy.rot90(x, 4) if x.ndim > 1 else x.copy(),
    "einsum": lambda m, x: m.numpy.einsum("...->...", x),
    "concatenate": lambda m, x: m.numpy.concatenate([x]) if x.ndim else x.copy(),
    "hstack": lambda m, x: m.numpy.hstack([x]),
    "block": lambda m, x: m.numpy.block(x),
    "vectorize": lambda m, x: m.numpy.vectorize(lambda a: a)(x),
    "lax.squeeze": lambda m, x: m.lax.squeeze(x, ()),
    "lax.transpose": lambda m, x: m.lax.transpose(x, tuple(range(x.ndim))),
    "lax.expand_dims": lambda m, x: m.lax.expand_dims(x, ()),
    "lax.broadcast": lambda m, x: m.lax.broadcast(x, ()),
    "lax.broadcast_to_rank": lambda m, x: m.lax.broadcast_to_rank(x, x.ndim),
    "lax.broadcast_in_dim": lambda m, x: m.lax.broadcast_in_dim(x, x.shape, tuple(range(x.ndim))),
    "lax.pmax": lambda m, x: m.lax.pmax(x, ()),
    "device_put": lambda m, x: m.device_put(x),
    "device_put on a device": lambda m, x: m.device_put(x, m.devices("cpu")[0]),
    "nn.identity": lambda m, x: m.nn.identity(x),
    "image.resize": lambda m, x: m.image.resize(x, x.shape, "linear"),
    "jit": lambda m, x: m.jit(lambda a: a)(x),
    "vmap": lambda m, x: m.vmap(lambda a: a)(x) if x.ndim else x,
}  # fmt: skip


def _same(lib, call, shape, dtype, times):
    x = lib.numpy.ones(shape, dtype)
    return [call(lib, x) is x for _ in range(times)]


@pytest.mark.parametrize("name", CALLS)
def test_the_operand_itself_or_another(name):
    """At each of three calls, as a signature is met, recorded and replayed."""
    call = CALLS[name]
    for kind, array in ARRAYS.items():
        (want,) = _same(jax, call, *array, 1)
        assert _same(fnarray, call, *array, 3) == [want] * 3, kind


def test_a_donated_result_leaves_the_operand():
    """What no operation had to do anything for may be donated: no data is lost."""
    jnp = fnarray.numpy
    f = fnarray.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.arange(3.0)
    for make in (lambda: x.ravel(), lambda: +x, lambda: jnp.real(x), lambda: jnp.roll(x, 0)):
        for _ in range(3):
            given = make()
            f(given)
            assert given.is_deleted()
            np.testing.assert_array_equal(x, [0, 1, 2])


def test_another_array_that_is_placed():
    """So it is for arrays on a mesh, which stay where they are."""
    mesh = fnarray.make_mesh((1,), ("i",))
    where = fnarray.sharding.NamedSharding(mesh, fnarray.P("i"))
    x = fnarray.device_put(fnarray.numpy.arange(4.0), where)
    other = +x
    assert other is not x
    assert (type(other), other.sharding, other.aval) == (type(x), where, x.aval)
    other.delete()
    np.testing.assert_array_equal(x, [0, 1, 2, 3])


def test_traced_functions_return_what_they_have():
    """Nothing is made of an array of outside while a function is traced: it is one constant."""
    x = fnarray.numpy.arange(3.0)
    graph = fnarray.make_jaxpr(lambda y: y + x + fnarray.numpy.real(x) + x.ravel())(x)
    assert [c is x for c in graph.consts] == [True]


@pytest.mark.parametrize("value", [3, 2.5, True, 1j, np.float64(2.0)])
def test_auxiliary_numbers_stay(value):
    """Numbers that are no result of an axis are returned as they were given."""
    for lib, x in ((jax, jax.numpy.ones(3)), (fnarray, fnarray.numpy.ones(3))):
        _, aux = lib.jacfwd(lambda a: (a, value), has_aux=True)(x)
        _, of_hessian = lib.hessian(lambda a: (a.sum(), value), has_aux=True)(x)
        _, mapped = lib.vmap(lambda a: (a, value), out_axes=(0, None))(x)
        assert aux is of_hessian is mapped is value


def test_what_is_lowered_has_no_weak_types():
    """Results are weak where a function is traced, and no more where it is lowered."""

    def weak(lib):
        traced = lib.jit(lambda x: (x * 2, 3)).trace(2.0)
        lowered = traced.lower()
        return [
            [bool(getattr(o, "weak_type", False)) for o in stage.out_info]
            for stage in (traced, lowered, lowered.compile())
        ]

    assert weak(fnarray) == weak(jax) == [[True] * 2, [False] * 2, [False] * 2]
