"""``shard_map`` over local meshes, meshes themselves, and arrays put on devices, against JAX."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.config import scoped
from fnarray.experimental.mesh_utils import create_device_mesh
from fnarray.experimental.shard_map import shard_map as old_shard_map
from fnarray.sharding import AxisType, ManualAxisType, Mesh, NamedSharding, SingleDeviceSharding
from fnarray.sharding import PartitionSpec as P

from .mapped_cases import SHARDED, sharded

A = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    """Give every test eight devices."""
    with scoped("num_cpu_devices", 8):
        yield


@pytest.fixture
def mesh():
    """Return a mesh of two by four devices."""
    return fa.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)


@pytest.mark.parametrize("name", SHARDED)
def test_agrees_with_jax(name, oracle):
    """Blocks are cut, exchanged and joined as JAX does, compiled too."""
    fun, args = sharded(fa, name)
    for f in (fun, fa.jit(fun)):
        np.testing.assert_allclose(f(*args), oracle["sharded", name], rtol=2e-6)


@pytest.mark.parametrize("name", SHARDED)
def test_gradients(name, oracle):
    """The derivative is that of the map from whole arrays to whole arrays."""
    fun, args = sharded(fa, name)
    got = fa.grad(lambda *a: (fun(*a) ** 2).sum())(*args)
    np.testing.assert_allclose(got, oracle["grad", name], rtol=1e-5)


def test_of_trees_and_as_a_decorator(mesh):
    """A spec holds for all arrays under it; results are trees too."""

    @fa.shard_map(mesh=mesh, in_specs=(P("x"), P()), out_specs={"a": P("x", "y"), "b": P()})
    def fun(pair, w):
        a, b = pair
        return {"a": (a + b)[:, lax.axis_index("y")][:, None] * w, "b": w}

    got = fun((A, A), np.float32(2))
    np.testing.assert_array_equal(got["a"], 4 * A)
    assert got["a"].sharding == NamedSharding(mesh, P("x", "y"))
    assert got["b"] == 2


def test_mesh_from_context(mesh):
    """Without a mesh of its own it runs on the one entered."""
    f = fa.shard_map(lambda a: lax.psum(a, "x"), in_specs=P("x"), out_specs=P())
    with mesh:
        np.testing.assert_array_equal(f(A), A[:4] + A[4:])
    with pytest.raises(ValueError, match="no mesh"):
        f(A)


def test_types_say_how_values_vary(mesh):
    """A type names the axes along which its values differ, as JAX's does; others say none."""

    def f(x):
        assert fa.typeof(x).manual_axis_type == ManualAxisType(varying=frozenset("xy"))
        y = lax.psum(x, "y")
        assert fa.typeof(y).manual_axis_type.varying == {"x"}
        return y

    fa.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))(A)
    assert fa.typeof(fnp.asarray(A)).manual_axis_type == ManualAxisType()


def test_old_name(mesh):
    """The function of jax.experimental takes its arguments by position."""
    f = old_shard_map(lambda a: a * 2, mesh, P("y"), P("y"))
    np.testing.assert_array_equal(f(A), 2 * A)


def test_vmap_of_shard_map(mesh):
    """A batch of whole arrays: each is cut as one is."""
    f = fa.shard_map(lambda a: lax.psum(a, "y"), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))
    batch = np.stack([A, A + 1, A * 2])
    np.testing.assert_array_equal(fa.vmap(f)(batch), [f(a) for a in batch])


@pytest.mark.parametrize(
    ("specs", "out", "error", "message"),
    [
        (P("z"), P(), ValueError, "'z'.*not found in the mesh"),
        (P("x", "x"), P(), ValueError, "more than once"),
        (P("y"), P("y", None, "x"), ValueError, "rank at least 3"),
        (P(None, None, "x"), P(), ValueError, "argument a of .*rank at least 3"),
        ((P(), P()), P(), ValueError, "one entry for each of the 1 arguments"),
        (P("x"), P("z"), ValueError, "'z'"),
        (3, P(), TypeError, "PartitionSpec"),
    ],
)
def test_bad_specs(specs, out, error, message, mesh):
    """Specs that do not fit the mesh or the arrays are refused, with the argument's name."""
    with pytest.raises(error, match=message):
        fa.shard_map(lambda a: a, mesh=mesh, in_specs=specs, out_specs=out)(A)


def test_specs_of_none(mesh):
    """None among ``in_specs`` leaves it to types: where axes are of type Auto, arrays are whole."""
    f = fa.shard_map(
        lambda a, n, rest: a * n, mesh=mesh, in_specs=(P("x"), None, None), out_specs=P("x")
    )
    np.testing.assert_array_equal(f(A, 3.0, {"unused": None}), 3 * A)
    whole = fa.shard_map(lambda a: a.sum(), mesh=mesh, in_specs=None, out_specs=P())
    assert whole(A) == A.sum()


def test_indivisible(mesh):
    """An axis must be a multiple of the devices along it."""
    f = fa.shard_map(lambda a: a, mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    with pytest.raises(ValueError, match="axis 0 is partitioned 4 times, but the dimension size"):
        f(A[:6])


# ---- meshes and placement ------------------------------------------------------------------------


def test_mesh(mesh):
    """A mesh knows its axes, sizes and devices, and prints as JAX's."""
    assert mesh.axis_names == ("x", "y")
    assert dict(mesh.shape) == {"x": 2, "y": 4}
    assert mesh.size == 8
    assert str(mesh) == "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
    assert repr(mesh) == "Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert mesh == Mesh(create_device_mesh((2, 4)), ("x", "y"))
    assert hash(mesh) == hash(Mesh(mesh.devices, ("x", "y")))
    with pytest.raises(ValueError, match="Number of devices 8 must be >="):
        fa.make_mesh((3, 4), ("x", "y"))
    with pytest.raises(ValueError, match="ndim"):
        Mesh(fa.devices(), ("x", "y"))


def test_device_put(mesh):
    """Arrays are said to be where they are put, and keep their values."""
    one = fa.device_put(A, fa.devices()[3])
    assert one.devices() == {fa.devices()[3]}
    assert one.device == fa.devices()[3]
    assert one.sharding == SingleDeviceSharding(fa.devices()[3])
    cut = fa.device_put({"a": A}, NamedSharding(mesh, P("x", "y")))["a"]
    np.testing.assert_array_equal(cut, A)
    assert cut.sharding.shard_shape(A.shape) == (4, 1)
    shard = cut.addressable_shards[5]
    assert shard.device == fa.devices()[5]
    np.testing.assert_array_equal(shard.data, A[4:, 1:2])
    assert not cut.is_fully_replicated
    assert fa.device_put(A, NamedSharding(mesh, P())).is_fully_replicated
    np.testing.assert_array_equal(fa.jit(lambda x: x + 1)(cut), A + 1)
    np.testing.assert_array_equal(fnp.sin(cut), fnp.sin(A))
    with pytest.raises(ValueError, match="partitioned 4 times"):
        fa.device_put(A[:3], NamedSharding(mesh, P("y")))
    with pytest.raises(ValueError, match="device must be"):
        fa.device_put(A, 3.0)


def test_device_put_rows():
    """Copies or parts of a tree, one for each device, are stacked on a first axis."""
    devices = fa.devices()[:3]
    copies = fa.device_put_replicated({"w": A[0]}, devices)["w"]
    np.testing.assert_array_equal(copies, np.tile(A[0], (3, 1)))
    assert copies.devices() == set(devices)
    parts = fa.device_put_sharded([A[0], A[1], A[2]], devices)
    np.testing.assert_array_equal(parts, A[:3])
    np.testing.assert_array_equal(fa.pmap(lambda x: x.sum())(parts), A[:3].sum(1))
    assert isinstance(fa.device_get(parts), np.ndarray)
    with pytest.raises(ValueError, match="len\\(shards\\)"):
        fa.device_put_sharded([A[0]], devices)
    with pytest.raises(ValueError, match="one shape"):
        fa.device_put_sharded([A[0], A, A], devices)
    with pytest.raises(ValueError, match="non-empty"):
        fa.device_put_replicated(A, [])


def _numbered_sum():
    """Return a function whose derivative, of its own, tells devices apart: by collectives."""

    @fa.custom_vjp
    def total(x):
        return lax.psum(x, "x")

    def backward(turn, ct):
        return (lax.pcast(ct, "x", to="varying") * turn * lax.axis_size("x"),)

    total.defvjp(lambda x: (lax.psum(x, "x"), lax.axis_index("x") + 1), backward)
    return total


@pytest.mark.parametrize("wrap", [lambda f: f, fa.jit, fa.checkpoint], ids=["own", "jit", "remat"])
def test_rules_of_custom_functions_name_axes(wrap):
    """Rules run where the axes of the program are bound, whatever holds their function."""
    line, total = fa.make_mesh((4,), ("x",), (AxisType.Auto,)), _numbered_sum()
    fun = fa.shard_map(
        wrap(lambda x: total(fnp.sin(x)).sum()), mesh=line, in_specs=P("x"), out_specs=P()
    )
    xs = np.arange(16, dtype=np.float32).reshape(2, 8)
    want = np.cos(xs) * 4 * np.repeat(np.arange(1, 5), 2)
    np.testing.assert_allclose(fa.grad(fun)(xs[0]), want[0], rtol=1e-6)
    np.testing.assert_allclose(fa.vmap(fa.grad(fun))(xs), want, rtol=1e-6)


def test_weights_are_gathered_again_on_the_way_back():
    """A layer keeps its part of the weights alone: it gathers the others twice, and sums."""

    @fa.custom_vjp
    def layer(part, x):
        return x @ lax.all_gather(part, "x", tiled=True)

    def backward(kept, ct):
        part, x = kept
        whole = lax.all_gather(lax.optimization_barrier(part), "x", tiled=True)
        return lax.psum_scatter(x.T @ ct, "x", tiled=True), ct @ whole.T

    layer.defvjp(lambda part, x: (layer(part, x), (part, x)), backward)

    def loss(w, x):
        return lax.psum((layer(w, x) ** 2).sum(), "x")

    line = fa.make_mesh((2,), ("x",), (AxisType.Auto,))
    fun = fa.shard_map(loss, mesh=line, in_specs=(P("x"), P("x")), out_specs=P())
    w, x = A[:4], A / 9
    dw, dx = fa.grad(fun, (0, 1))(w, x)
    np.testing.assert_allclose(dw, 2 * x.T @ x @ w, rtol=1e-5)
    np.testing.assert_allclose(dx, 2 * x @ w @ w.T, rtol=1e-5)


def test_rules_give_cotangents_that_vary_as_arguments_do():
    """A cotangent that varies where its argument does not would count once for each device."""

    @fa.custom_vjp
    def keep(x):
        return x

    keep.defvjp(lambda x: (x, None), lambda _, ct: (lax.pcast(ct, "x", to="varying"),))
    line = fa.make_mesh((2,), ("x",), (AxisType.Auto,))
    fun = fa.shard_map(
        lambda w, x: lax.psum((keep(w) * x).sum(), "x"),
        mesh=line, in_specs=(P(), P("x")), out_specs=P(),
    )  # fmt: skip
    with pytest.raises(ValueError, match="manual axis types do not match"):
        fa.grad(fun)(A[0], A[:4])
