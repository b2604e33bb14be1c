"""Axes of type Explicit on workers: types say how arrays are cut, and that is how they are."""

import itertools

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import NamedSharding, P, lax
from fnarray.errors import ShardingTypeError
from fnarray.sharding import AxisType, auto_axes, reshard

X = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
EXPLICIT, AUTO = AxisType.Explicit, AxisType.Auto
TYPES = {"one": (EXPLICIT,), "two": (EXPLICIT, EXPLICIT), "mixed": (EXPLICIT, AUTO)}


@pytest.fixture(params=TYPES)
def meshes(request, cluster):
    """A mesh of workers, and one of local devices."""
    with_devices = fa.config.num_cpu_devices
    fa.config.update("num_cpu_devices", 8)
    types = TYPES[request.param]
    shape, names = ((4,), ("i",)) if len(types) == 1 else ((2, 2), ("i", "j"))
    yield [
        fa.make_mesh(shape, names, devices=devices[:4], axis_types=types)
        for devices in (cluster.devices, fa.devices("cpu"))
    ]
    fa.config.update("num_cpu_devices", with_devices)


def rows(mesh, *spec):
    return fa.device_put(X, NamedSharding(mesh, P(*(spec or ("i", None)))))


def both(mesh):
    return rows(mesh, *(("i", "j") if len(mesh.axis_names) > 1 else (None, "i")))


def set_mesh(mesh, f, *args):
    with fa.set_mesh(mesh):
        return f(*args)


PROGRAMS = {
    "reshard": lambda m: fa.jit(
        lambda a: reshard(a * 2, NamedSharding(m, P(None, "i"))) + 1
    )(rows(m)),
    "reshard in the middle": lambda m: fa.jit(
        lambda a: jnp.cumsum(reshard(a, NamedSharding(m, P(None, "i"))), 0)
    )(rows(m)),
    "reshard, eager": lambda m: reshard(rows(m), NamedSharding(m, P(None, "i"))),
    "product": lambda m: fa.jit(lambda a, b: a @ b)(both(m).T, rows(m, None, None)),
    "product, eager": lambda m: rows(m) @ rows(m, None, None),
    "said of a product": lambda m: fa.jit(
        lambda a: jnp.einsum("ij,ik->jk", a, a, out_sharding=NamedSharding(m, P(None, "i")))
    )(rows(m)),
    "sum": lambda m: fa.jit(lambda a: a.sum(0))(rows(m)),
    "transposed": lambda m: both(m).T,
    "std": lambda m: jnp.std(rows(m), 1),
    "gradient": lambda m: fa.jit(fa.grad(lambda w, a: (jnp.tanh(a @ w) ** 2).sum()))(
        rows(m, None, None), rows(m)
    ),
    "vmap": lambda m: fa.jit(fa.vmap(lambda v: v / v.sum()))(rows(m)),
    "scan": lambda m: fa.jit(
        lambda a: lax.scan(lambda c, _: (jnp.sin(c), c.sum(1)), a, None, length=3)[1]
    )(rows(m)),
    "shard_map": lambda m: fa.jit(
        fa.shard_map(lambda x: lax.psum(x, "i"), mesh=m, in_specs=P("i"), out_specs=P())
    )(rows(m)),
    "mesh about it": lambda m: set_mesh(
        m, fa.jit(lambda a: reshard(a, P(None, "i")) + jnp.zeros((8, 8))), rows(m)
    ),
    "made on the mesh": lambda m: set_mesh(
        m, fa.jit(lambda a: a + jnp.zeros((8, 8), out_sharding=P("i"))), rows(m)
    ),
    "a region": lambda m: set_mesh(
        m, fa.jit(auto_axes(lambda a: a.T @ a, out_sharding=P("i"))), rows(m)
    ),
    "out_shardings": lambda m: fa.jit(
        lambda a: a * 3, out_shardings=NamedSharding(m, P(None, "i"))
    )(rows(m)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_types_are_those_of_local_devices(meshes, name):
    """Values, types and shardings: blocks lie where the type says."""
    there, here = (PROGRAMS[name](m) for m in meshes)
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-5)
    assert str(fa.typeof(there)) == str(fa.typeof(here))
    assert there.sharding.spec == here.sharding.spec
    for a, b in zip(there.addressable_shards, here.addressable_shards, strict=True):
        assert a.index == b.index
        np.testing.assert_allclose(a.data, b.data, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "f",
    [lambda a: a.T @ a, lambda a: jnp.cumsum(a, 0), lambda a: jnp.sort(a, 0), lambda a: a[0]],
    ids=["product", "cumsum", "sort", "row"],
)
def test_what_has_no_one_cut_is_refused(meshes, f):
    """Before anything runs, eagerly and compiled, with the words of local devices."""
    for call, mesh in itertools.product((f, fa.jit(f)), meshes):
        with pytest.raises(ShardingTypeError):
            call(rows(mesh))


def test_calls_of_other_types_are_other_programs(cluster):
    """Of one shape, first on a mesh of one kind, then of the other: each has its own results."""
    found = []
    for types in (TYPES["two"], TYPES["mixed"], TYPES["two"]):
        mesh = fa.make_mesh((2, 2), ("i", "j"), devices=cluster.devices, axis_types=types)
        a, b = rows(mesh), both(mesh)
        for _ in range(3):
            out = a @ b
        np.testing.assert_allclose(out, X @ X, rtol=1e-4, atol=1e-5)
        found.append(str(fa.typeof(out)))
    assert found == ["float32[8@i,8@j]", "float32[8@i,8]", "float32[8@i,8@j]"]
