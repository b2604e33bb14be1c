"""Programs on workers give what they give on local devices."""

import time

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import NamedSharding, P, lax
from fnarray.sharding import AxisType

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 4)).astype(np.float32)
W = RNG.standard_normal((4, 4)).astype(np.float32)


@pytest.fixture(scope="module", params=[2, 4])
def meshes(request, cluster):
    """Two meshes of a size: of workers, and of local devices."""
    n = request.param
    with_devices = fa.config.num_cpu_devices
    fa.config.update("num_cpu_devices", 8)
    there = fa.make_mesh((n,), ("i",), devices=cluster.devices)
    yield there, fa.make_mesh((n,), ("i",), devices=fa.devices("cpu"), axis_types=AxisType.Auto)
    fa.config.update("num_cpu_devices", with_devices)


@pytest.fixture(scope="module")
def grids(cluster):
    """Meshes of two axes."""
    with_devices = fa.config.num_cpu_devices
    fa.config.update("num_cpu_devices", 8)
    there = fa.make_mesh((2, 2), ("a", "b"), devices=cluster.devices)
    yield (
        there,
        fa.make_mesh((2, 2), ("a", "b"), devices=fa.devices("cpu"), axis_types=AxisType.Auto),
    )
    fa.config.update("num_cpu_devices", with_devices)


def equal(found, expected):
    """Bit for bit, leaf by leaf."""
    found, expected = fa.tree.leaves(found), fa.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert a.dtype == b.dtype


def loop(x):
    def turn(c, _):
        c = c + lax.psum(jnp.sum(c), "i") * 0.01
        return c, lax.pmean(c[0], "i")

    return lax.scan(turn, x, None, length=3)


def until(x):
    def more(c):
        return lax.psum(jnp.sum(c[1]), "i") < 1000.0

    return lax.while_loop(more, lambda c: (c[0] + 1, jnp.abs(c[1]) * 2 + 1), (0, x))[1]


BODIES = {
    "psum": lambda x: lax.psum(x, "i"),
    "pmean": lambda x: lax.pmean(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i") * lax.pmin(x, "i"),
    "gather": lambda x: lax.all_gather(x, "i", tiled=True) @ W,
    "gather_rows": lambda x: x * lax.all_gather(x.sum(0), "i").sum(0),
    "permute": lambda x: lax.ppermute(x, "i", [(k, k + 1) for k in range(axis() - 1)]),
    "index": lambda x: x * lax.axis_index("i"),
    "exchange": lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    "scatter": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    "scan": loop,
    "while": until,
    "relu": lambda x: fa.nn.relu(x) + lax.psum(jnp.max(fa.nn.gelu(x)), "i"),
}


def axis():
    return lax.axis_size("i")


@pytest.mark.parametrize("name", BODIES)
def test_shard_map_is_that_of_local_devices(meshes, name):
    """The same program on workers and on local devices gives the same bits."""
    outs = (P("i"), P()) if name == "scan" else P("i")
    there, here = (
        fa.shard_map(BODIES[name], mesh=m, in_specs=P("i"), out_specs=outs) for m in meshes
    )
    equal(there(X), here(X))


@pytest.mark.parametrize("name", ["psum", "gather", "permute", "scatter", "scan"])
def test_gradients_are_those_of_local_devices(meshes, name):
    """Gradients through collectives and loops, compiled as one program, give the same bits."""
    outs = (P("i"), P()) if name == "scan" else P("i")

    def loss(mesh):
        f = fa.shard_map(BODIES[name], mesh=mesh, in_specs=P("i"), out_specs=outs)
        return fa.jit(fa.grad(lambda x: jnp.sum(fa.tree.leaves(f(x))[0] ** 2)))

    there, here = map(loss, meshes)
    placed = fa.device_put(X, NamedSharding(meshes[0], P("i")))
    np.testing.assert_allclose(there(placed), here(X), rtol=2e-5, atol=1e-6)


def test_large_values_go_by_ring_and_directly(meshes, monkeypatch):
    """A large sum, gather and scatter give the bits of local ones: the order of sums is fixed."""
    n = meshes[0].size
    x = RNG.standard_normal((n * n, 300_000 // n)).astype(np.float32)

    def body(x):
        total = lax.psum(x, "i")
        parts = lax.psum_scatter(x, "i", scatter_dimension=0, tiled=True)
        return total, parts, lax.all_to_all(x, "i", 0, 0, tiled=True)

    there, here = (
        fa.shard_map(body, mesh=m, in_specs=P("i"), out_specs=(P(), P("i"), P("i"))) for m in meshes
    )
    equal(there(x), here(x))


def test_two_axes_and_groups(grids):
    """Collectives over one axis of two, over both, and within groups."""

    def body(x):
        a = lax.psum(x, "a") + lax.psum(x, ("a", "b"))
        b = lax.all_gather(x, "b", axis=0, tiled=True).sum(0)
        return a * lax.axis_index(("a", "b")) + b + lax.psum(x, "b", axis_index_groups=[[0], [1]])

    there, here = (
        fa.shard_map(body, mesh=m, in_specs=P("a", "b"), out_specs=P("a", "b")) for m in grids
    )
    equal(there(X), here(X))


def test_pmap_is_that_of_local_devices(cluster):
    """pmap with axes, arguments that all get, and results of the first."""
    fa.config.update("num_cpu_devices", 8)

    def f(x, w):
        return x * w + lax.psum(x, "r").sum(), lax.pmax(x, "r")

    def both(devices):
        return fa.pmap(f, axis_name="r", in_axes=(1, None), out_axes=(1, None), devices=devices)(
            X, W[:, 0].repeat(2)
        )

    x = both(cluster.devices)
    equal(x, both(fa.devices("cpu")[:4]))
    assert x[0].sharding.num_devices == 4


def test_jit_over_sharded_arrays(meshes):
    """A program of whole arrays follows how its arguments are cut; results stay cut."""
    there, _ = meshes
    x = fa.device_put(X, NamedSharding(there, P("i")))
    w = fa.device_put(W, NamedSharding(there, P()))

    def loss(w, x):
        h = jnp.tanh(x @ w)
        return jnp.mean((h - jnp.max(x, axis=1, keepdims=True)) ** 2)

    @fa.jit
    def step(w, x):
        value, slope = fa.value_and_grad(loss)(w, x)
        return w - 0.1 * slope, value, jnp.tanh(x @ w).T.reshape(2, 2, 8)

    found, expected = step(w, x), step(W, X)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert found[2].sharding.spec == P(None, None, "i")
    assert found[0].sharding.spec == P()


def test_jit_with_control_flow_over_sharded_arrays(meshes):
    """Loops and branches of whole arrays run on blocks."""
    there, _ = meshes
    x = fa.device_put(X, NamedSharding(there, P("i")))

    @fa.jit
    def f(x, w):
        def turn(w, _):
            return w - 0.1 * (x.T @ (x @ w - 1.0)) / 8, jnp.sum(w)

        w, sums = lax.scan(turn, w, None, length=4)
        w = lax.while_loop(lambda w: jnp.sum(w * w) > 0.01, lambda w: w / 2, w)
        return lax.cond(w[0] > 0, lambda x: x + 1, lambda x: x - 1, x), sums, w

    for a, b in zip(f(x, W[0]), f(X, W[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_program_says_how_arrays_are_cut(meshes):
    """with_sharding_constraint is honoured in jit, loops, vmap and under grad."""
    there, _ = meshes
    rows, columns = NamedSharding(there, P("i")), NamedSharding(there, P(None, "i"))
    x = fa.device_put(X, rows)

    @fa.jit
    def f(x):
        turned = lax.scan(
            lambda c, _: (lax.with_sharding_constraint(c + 1, columns), None), x, None, length=2
        )[0]
        made = lax.with_sharding_constraint(jnp.ones((4, 8)) * x[0, 0], rows)
        all_of_it = lax.with_sharding_constraint(x * 2, NamedSharding(there, P()))
        return lax.with_sharding_constraint(x + turned, columns), made, all_of_it

    found = f(x)
    assert [y.sharding.spec for y in found] == [P(None, "i"), P("i"), P()]
    for y, expected in zip(found, (2 * X + 2, np.full((4, 8), X[0, 0]), X * 2), strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-6)
    lanes = fa.jit(fa.vmap(lambda r: lax.with_sharding_constraint(r, NamedSharding(there, P("i")))))
    assert lanes(x).sharding.spec == P(None, "i")
    slope = fa.grad(lambda x: jnp.sum(lax.with_sharding_constraint(x**2, columns)))
    np.testing.assert_array_equal(fa.jit(slope)(x), 2 * X)
    with fa.set_mesh(there):
        named = fa.jit(lambda x: lax.with_sharding_constraint(x, P(None, "i")))
        assert named(x).sharding.spec == P(None, "i")
    other = fa.make_mesh((1,), ("k",), devices=list(there.devices.flat)[:1])
    wrong = fa.jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(other, P("k"))))
    with pytest.raises(ValueError, match=r"of the mesh {'k': 1}, and the program's arguments lie"):
        wrong(x)


def test_programs_in_programs(grids):
    """A shard_map along one axis of a mesh in one along the other, eagerly and compiled."""

    def both(mesh):
        def body(x):
            inner = fa.shard_map(
                lambda y: lax.psum(y, "b") * (1 + lax.axis_index("a")),
                in_specs=P("b"), out_specs=P(), axis_names={"b"},
            )  # fmt: skip
            return inner(x)

        return fa.shard_map(body, mesh=mesh, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})

    there, here = grids
    x = fa.device_put(X, NamedSharding(there, P("a")))
    expected = both(here)(X)
    for found in (both(there)(X), both(there)(x), fa.jit(both(there))(x)):
        equal(found, expected)


def test_minus_zero_is_read_as_it_is(meshes):
    """What one worker has is not changed by what others bring to it."""
    there, _ = meshes
    x = fa.device_put(np.full((8, 4), -0.0, np.float32), NamedSharding(there, P("i")))
    for y in fa.jit(lambda x: (x[5], x[jnp.array([1, 6])], x[2:7]))(x):
        assert np.signbit(y).all()


def test_operations_one_by_one(meshes):
    """Operations outside jit run where their operands are."""
    there, _ = meshes
    x = fa.device_put(X, NamedSharding(there, P("i")))
    np.testing.assert_array_equal(x + 1, X + 1)
    np.testing.assert_allclose(jnp.sum(x, axis=0), X.sum(0), rtol=1e-5)
    np.testing.assert_array_equal(x[2:3], X[2:3])
    np.testing.assert_array_equal(jnp.sort(x, axis=0), np.sort(X, axis=0))
    assert float(jnp.max(x)) == X.max()
    assert (x + 1).sharding == x.sharding


def test_a_compiled_program_of_local_arrays(meshes):
    """jit of a shard_map on workers takes the client's arrays, too."""
    f, g = (
        fa.jit(fa.shard_map(BODIES["psum"], mesh=m, in_specs=P("i"), out_specs=P("i")))
        for m in meshes
    )
    equal(f(X), g(X))


def test_arrays_stay_and_are_freed(meshes, cluster):
    """What no array refers to any more is freed on the workers; what is referred to stays."""
    there, _ = meshes

    def stored(dask_worker):
        (session,) = dask_worker.plugins["fnarray"].sessions.values()
        return set(session.store)

    def kept(*keys):
        """Wait until all workers of the mesh have these of the keys alone."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            found = [s & set(all_keys) for s in cluster.client.run(stored).values()]
            if sorted(map(len, found)) == [0] * (4 - there.size) + [len(keys)] * there.size:
                return set().union(*found) == set(keys)
            time.sleep(0.02)
        return False

    x = fa.device_put(X, NamedSharding(there, P("i")))
    f = fa.shard_map(
        lambda x: (x + 1, x.sum(keepdims=True)), mesh=there, in_specs=P("i"), out_specs=P("i")
    )
    y, total = f(x)
    all_keys = [v.handle.node.key(v.handle.k) for v in (x, y, total)]
    assert kept(*all_keys)
    del y
    assert kept(all_keys[0], all_keys[2])
    del x
    assert kept(all_keys[2])
    del total
    assert kept()


def test_arrays_move_between_shardings(meshes, grids):
    """Arrays are cut otherwise, on other workers; shards are at their places."""
    there, _ = meshes
    x = fa.device_put(X, NamedSharding(there, P("i")))
    for mesh, spec in (
        (there, P(None, "i")),
        (grids[0], P("b", "a")),
        (grids[0], P(("a", "b"))),
        (there, P()),
    ):
        y = fa.device_put(x, NamedSharding(mesh, spec))
        np.testing.assert_array_equal(y, X)
        for shard in y.addressable_shards:
            np.testing.assert_array_equal(shard.data, X[shard.index])
    single = fa.device_put(x, fa.devices("dask")[1])
    np.testing.assert_array_equal(single * 2, X * 2)
    np.testing.assert_array_equal(fa.device_get(x), X)


def test_parts_are_made_where_they_are(meshes, tmp_path):
    """Each worker reads its own part of a file."""
    there, _ = meshes
    np.save(tmp_path / "x.npy", X)
    path = str(tmp_path / "x.npy")
    x = fa.make_array_from_callback(
        X.shape, NamedSharding(there, P("i")), lambda index: np.load(path, mmap_mode="r")[index]
    )
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, X)


def test_random_programs(meshes):
    """Programs put together of collectives and arithmetic at random give the same bits."""
    rng = np.random.default_rng(7)
    steps = [
        lambda x: lax.psum(x, "i") * 0.1,
        lambda x: x - lax.pmax(jnp.max(x), "i"),
        lambda x: lax.ppermute(x, "i", [(k, (k + 1) % axis()) for k in range(axis())]),
        lambda x: jnp.tanh(x) + lax.axis_index("i"),
        lambda x: lax.all_gather(x, "i").mean(0),
        lambda x: lax.psum_scatter(jnp.concatenate([x] * axis()), "i", tiled=True),
    ]
    for _ in range(3):
        chosen = [steps[k] for k in rng.integers(0, len(steps), 5)]

        def body(x, chosen=chosen):
            for step in chosen:
                x = step(x)
            return x

        there, here = (
            fa.shard_map(body, mesh=m, in_specs=P("i"), out_specs=P("i")) for m in meshes
        )
        equal(there(X), here(X))


def test_functions_of_several_operations_are_one_step(cluster):
    """Called alone a function of NumPy's names is one program, which makes no array on its way."""
    mesh = fa.make_mesh((4,), ("i",), devices=cluster.devices)
    x = fa.device_put(X, NamedSharding(mesh, P("i")))
    for fun in (jnp.std, jnp.linalg.norm, lambda x: jnp.var(x, axis=0, ddof=1), jnp.nanmax):
        first = x.handle.node.depth
        found = fun(x)
        assert found.handle.node.depth == first + 1
        np.testing.assert_allclose(found, fun(np.asarray(X)), rtol=1e-6)
    with pytest.raises(ValueError, match="axis 2"):
        jnp.std(x, axis=2)
