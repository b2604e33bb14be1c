"""What goes in and out of a cluster: checkpoints, Dask's arrays, sweeps, and bad input."""

import json
import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import NamedSharding, P, distributed, lax
from fnarray.distributed import as_chunk, connecting, programs

from .conftest import connected

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

X = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def mesh(cluster):
    """Two of the workers."""
    return fa.make_mesh((2,), ("i",), devices=cluster.devices)


def test_what_is_given_up_is_deleted(mesh):
    """A donated array on workers is freed there; whoever reads it gets an error."""
    x, y = (fa.device_put(X, NamedSharding(mesh, P("i"))) for _ in "xy")
    assert any(a is x for a in fa.live_arrays("dask"))
    z = fa.jit(lambda x: x + 1, donate_argnums=0)(x)
    y.delete()
    np.testing.assert_array_equal(z, X + 1)
    for gone in (x, y):
        assert gone.is_deleted()
        assert gone.shape == X.shape
        for use in (lambda x: x + 1, np.asarray, repr, lambda x: fa.jit(jnp.sin)(x)):
            with pytest.raises(RuntimeError, match="has been deleted with shape=float32"):
                use(gone)


# ---- checkpoints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["npy", "zarr"])
def test_a_checkpoint_on_another_number_of_workers(cluster, mesh, tmp_path, format):
    """What two workers wrote one reads, or the client, bit for bit, dtypes and all."""
    if format == "zarr":
        zarr = pytest.importorskip("zarr")
    state = {
        "w": fa.device_put(X, NamedSharding(mesh, P("i"))),
        "rows": fa.device_put(X, NamedSharding(mesh, P(None, "i"))),
        "half": fa.device_put(jnp.asarray(X, jnp.bfloat16), NamedSharding(mesh, P("i"))),
        "step": np.int32(7),
    }
    distributed.checkpoint(tmp_path / "c", state, format=format)
    one = fa.make_mesh((1,), ("j",), devices=cluster.devices[1:2])
    to = NamedSharding(one, P("j"))
    for like in (
        {"w": to, "rows": to, "half": to, "step": None},
        dict.fromkeys(state),
        {"w": NamedSharding(mesh, P(None, "i")), "rows": state["w"], "half": None, "step": None},
    ):
        found = distributed.restore(tmp_path / "c", like)
        for k, x in state.items():
            assert np.asarray(found[k]).tobytes() == np.asarray(x).tobytes()
            assert found[k].dtype == x.dtype
            assert found[k].shape == np.shape(x)
    parts = {p.name for p in (tmp_path / "c").iterdir()}
    if format == "npy":
        assert {"1.0.npy", "1.1.npy"} <= parts  # each worker its own
    else:
        rows = zarr.open_array(str(tmp_path / "c/1"))  # as others read it
        assert rows.chunks == (8, 2)
        np.testing.assert_array_equal(rows[:], X)
    with pytest.raises(ValueError, match="must be 'npy' or 'zarr', got 'hdf5'"):
        distributed.checkpoint(tmp_path / "c", state, format="hdf5")


def test_a_checkpoint_is_whole_or_the_one_before(mesh, tmp_path):
    """A failure in the middle of writing leaves the checkpoint that was there, and nothing else."""
    x = fa.device_put(X, NamedSharding(mesh, P("i")))
    path = tmp_path / "c"
    distributed.checkpoint(path, [x])

    def bad(x):
        raise OSError("disk full")

    f = lambda x: fa.pure_callback(bad, fa.ShapeDtypeStruct(x.shape, x.dtype), x)  # noqa: E731
    broken = fa.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(x)
    with pytest.raises(Exception, match="disk full"):
        distributed.checkpoint(path, [x + 1, broken])
    np.testing.assert_array_equal(distributed.restore(path, [None])[0], X)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
    distributed.checkpoint(path, [x + 1])
    np.testing.assert_array_equal(distributed.restore(path, [None])[0], X + 1)
    with pytest.raises(ValueError, match=r"has the leaves \['\[0\]'\], and `like` has"):
        distributed.restore(path, {"a": None})
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        distributed.restore(tmp_path / "none", [None])


# ---- Dask's arrays -------------------------------------------------------------------------------


def test_dask_arrays_to_and_fro(mesh, cluster):
    """Dask arrays of any chunks become arrays on workers and back, without the client."""
    source = da.from_array(X, chunks=(3, 2)) * 2
    for spec in (P("i"), P(None, "i"), P()):
        x = distributed.from_dask(source, NamedSharding(mesh, spec))
        np.testing.assert_array_equal(x, X * 2)
        back = distributed.to_dask(x + 1)
        assert back.shape == X.shape
        np.testing.assert_array_equal(cluster.client.compute(back).result(), X * 2 + 1)
    assert distributed.to_dask(fa.device_put(X, NamedSharding(mesh, P("i")))).chunks[0] == (4, 4)
    with pytest.raises(TypeError, match="array on workers is needed"):
        distributed.to_dask(X)


def test_arrays_as_chunks():
    """Chunks of Dask arrays are arrays, on which NumPy's functions are ours."""
    x = as_chunk(X)
    for y in (
        np.tanh(x), np.mean(x, axis=0), np.concatenate([x, x]), np.linalg.norm(x), x + 1, X * x,
        x[0], x.T, x.sum(axis=1), np.zeros_like(x), np.arange(3, like=x), np.add.reduce(X, 0) + x,
    ):  # fmt: skip
        assert isinstance(y, type(x))
    chunks = da.from_array(X, chunks=(4, 4)).map_blocks(as_chunk, dtype=X.dtype)
    f = fa.jit(lambda x: jnp.tanh(x) * 2)
    done = chunks.map_blocks(f, dtype=X.dtype).compute(scheduler="synchronous")
    np.testing.assert_allclose(done, np.tanh(X) * 2, rtol=1e-6)
    np.testing.assert_allclose(
        chunks.sum(axis=0).compute(scheduler="synchronous"), X.sum(0), rtol=1e-5
    )


def test_xarray_holds_arrays():
    """xarray's operations keep arrays as they are."""
    xr = pytest.importorskip("xarray")
    v = xr.DataArray(as_chunk(X), dims=("a", "b"))
    out = np.tanh(v).mean("a") + v.isel(a=0)
    assert isinstance(out.data, fa.Array)
    np.testing.assert_allclose(out.data, np.tanh(X).mean(0) + X[0], rtol=1e-5)


# ---- sweeps --------------------------------------------------------------------------------------


def test_a_sweep(cluster):
    """Results come in order, whatever the chunks."""
    xs = {"a": np.arange(37.0, dtype=np.float32), "b": np.ones((37, 2), np.float32)}
    f = lambda p: (jnp.sin(p["a"]) + p["b"].sum(), p["a"] ** 2)  # noqa: E731
    for chunk in (None, 5):
        s, q = distributed.map(f, xs, cluster=cluster, chunk=chunk, progress=False)
        np.testing.assert_allclose(s, np.sin(xs["a"]) + 2, rtol=1e-5)
        np.testing.assert_array_equal(q, xs["a"] ** 2)


def test_points_that_fail(cluster):
    """Failures are told by point; what the others gave is there."""

    def check(x):
        if (x == 3).any():
            raise ArithmeticError("three")
        return x

    def f(x):
        return (
            fa.pure_callback(
                check, fa.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims"
            )
            * 2
        )

    with pytest.raises(distributed.SweepError, match=r"1 of 6 points failed.*number 3") as caught:
        distributed.map(f, np.arange(6.0, dtype=np.float32), cluster=cluster, chunk=4)
    assert list(caught.value.failures) == [3]
    np.testing.assert_array_equal(caught.value.results, [0, 2, 4, 0, 8, 10])


# ---- kernels -------------------------------------------------------------------------------------


def test_each_kernel_is_compiled_once(cluster, mesh, tmp_path):
    """Workers that share no disk compile what no other has: each kernel by one of them."""
    root = str(tmp_path)

    def alone(dask_worker):
        os.makedirs(f"{root}/{dask_worker.name}", mode=0o700, exist_ok=True)  # noqa: PTH103
        before = fa.config.cache_dir
        fa.config.update("cache_dir", f"{root}/{dask_worker.name}")
        return before

    def counted():
        from fnarray.compile.cpu import build

        return build.stats["compiled"]

    def shared(dask_worker, cache):
        fa.config.update("cache_dir", cache)

    cache = next(iter(cluster.client.run(alone).values()))
    try:
        before = sum(cluster.client.run(counted).values())
        known = set(cluster.directory.compiled)
        f = fa.shard_map(
            lambda x: lax.psum(jnp.sinh(x) * 1.5 + 0.25, "i") ** 3 - x,
            mesh=mesh, in_specs=P("i"), out_specs=P("i"),
        )  # fmt: skip
        f(X).block_until_ready()
        compiled = {k: n for k, n in cluster.directory.compiled.items() if k not in known}
        assert compiled
        assert set(compiled.values()) == {1}
        # Other object code is shared, too, and not counted as a kernel.
        assert 0 < sum(cluster.client.run(counted).values()) - before <= len(compiled)
    finally:
        cluster.client.run(shared, cache=cache)


def test_two_requests_for_one_kernel_get_an_answer_each():
    """Threads of one worker that want the same kernel each get an answer, in order."""
    asked = SimpleQueue()
    kernels = programs.Kernels(asked.put)
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(kernels.get, "k_1") for _ in range(2)]
        for data in (None, b"code"):
            assert asked.get()["key"] == "k_1"
            kernels.answer("k_1", data)
        assert {f.result() for f in found} == {None, b"code"}
        waiting = pool.submit(kernels.get, "k_2")
        asked.get()
        kernels.close()
        kernels.answer("k_2", b"late")
        assert waiting.result() is None


def test_a_kernel_that_another_process_has_written(monkeypatch):
    """What a worker was to compile, and then finds on disk, or not at all, keeps nobody waiting."""
    from fnarray.compile.cache import store

    sent = []
    kernels = programs.Kernels(lambda m: (sent.append(m), kernels.answer(m["key"], None)))
    clients = programs.Clients()
    clients.front(kernels)
    monkeypatch.setattr(store, "others", clients)
    assert store.get("k_disk") is None
    store.store.put("k_disk", b"code", store._mark())  # as another process does
    assert store.get("k_disk") == b"code"
    assert store.get("k_never") is None
    kernels.settle()
    assert [m for m in sent if m["op"] == "compiled"] == [
        {"op": "compiled", "key": "k_disk", "data": b"code"},
        {"op": "compiled", "key": "k_never", "data": None},
    ]


def test_a_kernel_goes_to_the_client_that_waits_for_it(monkeypatch):
    """Of several clients of a worker each gets what it was promised, whoever came or left since."""
    from fnarray.compile.cache import store

    def client(name):
        kernels = programs.Kernels(
            lambda m: (sent.append((name, m["op"], m["key"])), kernels.answer(m["key"], None))
        )
        return kernels

    sent = []
    first, second, clients = client("first"), client("second"), programs.Clients()
    monkeypatch.setattr(store, "others", clients)
    clients.front(first)
    assert store.get("k_of_first") is None
    clients.front(second)
    assert store.get("k_of_second") is None
    store.put("k_of_first", b"code")
    assert sent[2:] == [("first", "compiled", "k_of_first"), ("second", "compiled", "k_of_first")]
    clients.front(first)  # its program begins
    assert store.get("k_more") is None
    clients.remove(first)
    second.close()
    clients.remove(second)
    assert store.get("k_none") is None
    assert sent[4:] == [("first", "kernel", "k_more")]


def test_clients_come_and_go(cluster, mesh, tmp_path):
    """After another client of the same workers has left they share kernels as before."""
    with distributed.connect(client=cluster.client):
        pass

    def asked(dask_worker):
        from fnarray.compile.cache import store

        (session,) = dask_worker.plugins["fnarray"].sessions.values()
        return store.others._all[-1] is session.kernels

    assert all(cluster.client.run(asked).values())


class Link:
    """A worker, as the directory sees it; ``sent`` is what it was told."""

    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append((message["key"], message["data"]))


def test_no_worker_waits_for_itself():
    """One that asks again for what it compiles, or for what waits for it, compiles that too."""
    directory, a, b, c = programs.Directory(), Link(), Link(), Link()
    for key, link in (("1", a), ("1", a), ("2", b), ("3", c), ("2", a), ("3", b)):
        directory.asked(key, link)
    assert (a.sent, b.sent, c.sent) == ([("1", None)] * 2, [("2", None)], [("3", None)])
    directory.asked("1", c)  # which would wait for a, that waits for b, that waits for c
    assert c.sent[1:] == [("1", None)]
    for key in "321":
        directory.given(key, key.encode())
    assert (a.sent[2:], b.sent[1:]) == ([("2", b"2")], [("3", b"3")])


def test_a_kernel_whose_compiler_fails_is_compiled_by_the_next():
    """Who waits for a kernel of a worker that failed, or was lost, is asked in its place.

    The one that compiles never waits for itself, however often it asks.
    """

    def told(link):
        return [data for _, data in link.sent]

    directory, links = programs.Directory(), [Link() for _ in range(4)]
    for link in (*links, links[0]):
        directory.asked("k_none", link)
    assert [told(link) for link in links] == [[None, None], [], [], []]
    directory.failed(links[0])
    assert [told(link) for link in links] == [[None, None], [None], [], []]
    directory.gone(links[1])
    assert told(links[2]) == [None]
    directory.asked("k_none", links[1])
    directory.given("k_none", None)
    assert told(links[3]) == [None]
    directory.given("k_none", b"code")
    assert [told(link) for link in links[1:]] == [[None, b"code"], [None], [None]]


def test_programs_are_data():
    """A program without Python functions is written as data, and reading it runs nothing."""
    graph = fa.make_jaxpr(lambda x: jnp.tanh(x) + 1)(X)
    digest, data = programs.dumped(graph)
    assert data[:1] == b"D"
    assert programs.dumped(graph)[0] == digest
    assert str(programs.loaded(data)) == str(graph)


def test_functions_of_packages_are_pickled():
    """What a user sends to workers himself may name the packages that it uses."""

    def fun(x):
        return fa.jit(jnp.tanh)(x)

    read = cloudpickle.loads(cloudpickle.dumps(fun))
    assert read.__globals__ is not fun.__globals__
    assert cloudpickle.loads(cloudpickle.dumps(fa)) is fa
    np.testing.assert_array_equal(read(X), fun(X))


# ---- security ------------------------------------------------------------------------------------


def test_tls(tmp_path):
    """All comms of a cluster with TLS are encrypted, those between workers too."""
    from distributed.security import Security

    with connected(2, security=Security.temporary()) as secure:
        assert all(link.address.startswith("tls://") for link in secure.links)
        mesh = fa.make_mesh((2,), ("i",), devices=secure.devices)
        f = fa.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
        np.testing.assert_array_equal(f(X), X[:4] + X[4:])
        short = {"distributed.comm.timeouts.connect": "1s"}
        with dask.config.set(short), pytest.raises((ConnectionError, TypeError)):
            distributed.connect(address=secure.client.scheduler.address)


def test_a_peer_without_the_token_is_turned_away(cluster):
    """A worker takes from others only what comes with the session's secret."""
    from distributed.comm import CommClosedError, connect

    async def intrude():
        comm = await connect(cluster.links[0].address, **cluster.client.connection_args)
        await comm.write({"op": "fnarray_peer", "token": "guess", "offer": None, "reply": False})
        await comm.write([{"run": "1.1", "tag": "t", "from": 0, "what": "w", "data": None}])
        await comm.read()

    with pytest.raises(CommClosedError):
        cluster.client.sync(intrude)


# ---- bad input -----------------------------------------------------------------------------------


def test_uneven_shards(mesh):
    """An axis that workers cannot share evenly is named."""
    with pytest.raises(ValueError, match=r"axis 0 is partitioned 2 times.*size is 3"):
        fa.device_put(np.ones(3), NamedSharding(mesh, P("i")))


def test_a_mesh_larger_than_the_cluster(cluster):
    """How many there are and how many are needed."""
    with pytest.raises(ValueError, match=r"Number of devices 4 must be >= .*5.*more workers"):
        fa.make_mesh((5,), ("i",), devices=cluster.devices)


def test_a_function_that_cannot_be_pickled(cluster, mesh):
    """What it holds is named, before anything has run."""
    import threading

    lock = threading.Lock()

    def locked(x):
        with lock:
            return x

    def body(x):
        return fa.pure_callback(locked, fa.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(TypeError, match=r"cannot be sent to workers.*locked.*cannot be pickled"):
        fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(X)
    with pytest.raises(TypeError, match=r"cannot be sent to workers.*lock"):
        fa.make_array_from_callback(
            (8,), NamedSharding(mesh, P("i")), lambda index: locked(np.ones(8)[index])
        )
    with pytest.raises(TypeError, match=r"cannot be sent to workers.*lock"):
        distributed.map(
            lambda x: fa.pure_callback(
                locked, fa.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential"
            ),
            np.ones(4, np.float32),
            cluster=cluster,
        )


def test_an_unreachable_address():
    """The address, and what to check."""
    short = {"distributed.comm.timeouts.connect": "1s"}
    unreachable = r"no Dask scheduler answers at 'tcp://127.0.0.1:9'"
    with dask.config.set(short), pytest.raises(ConnectionError, match=unreachable):
        distributed.connect(address="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match="one of client, address and processes"):
        distributed.connect(address="tcp://127.0.0.1:9", processes=1)


def test_an_address_where_no_scheduler_is(cluster):
    """One that accepts and says nothing is not waited for, and a worker's is told as such."""
    short = {"distributed.comm.timeouts.connect": "500ms"}
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        dask.config.set(short),
        pytest.raises(ConnectionError, match=r"what is there is silent for 0.75 s"),
    ):
        distributed.connect(address=f"tcp://127.0.0.1:{mute.getsockname()[1]}")
    with pytest.raises(ConnectionError, match="it is the address of a Worker"):
        distributed.connect(address=cluster.links[0].address)
    with distributed.connect(address=cluster.client.scheduler.address) as second:
        assert len(second.devices) == 4


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"client": "tcp://127.0.0.1:9"}, TypeError, r"got 'tcp://127.0.0.1:9'.*as address="),
        ({"address": 8786}, TypeError, "such as 'tcp://host:8786', got 8786"),
        ({"processes": 0}, ValueError, "a positive number of workers.*got 0"),
        ({"processes": "2"}, ValueError, "a positive number of workers.*got '2'"),
    ],
)
def test_what_connect_takes(given, error, said):
    """What is no client, address or number of processes is refused before anything is started."""
    with pytest.raises(error, match=said):
        distributed.connect(**given)


def test_parts_of_another_shape(mesh):
    """Which part, on which worker, and what shape it must have; so for a part that fails."""
    where = NamedSharding(mesh, P("i"))
    with pytest.raises(
        ValueError, match=r"index \[(0:2|2:4)\] must return .* \(2,\), got \(5,\), on worker"
    ):
        fa.make_array_from_callback((4,), where, lambda index: np.ones(5))
    with pytest.raises(ZeroDivisionError) as caught:
        fa.make_array_from_callback(
            (4,), where, lambda index: np.full(2, 1 // (index[0].start - 2))
        )
    assert "data_callback for index [2:4], on worker" in caught.value.__notes__[0]


def test_a_worker_that_cannot_allocate(mesh):
    """The error names the worker, the shard, and what the worker held, in a callback too."""

    def huge(x):
        return np.empty(1 << 55)[: x.size]

    def body(x):
        return fa.pure_callback(huge, fa.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(fa.errors.JaxRuntimeError, match="Unable to allocate") as caught:
        fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(X).block_until_ready()
    notes = "\n".join(caught.value.__notes__)
    assert "in shard" in notes
    assert re.search(r"memory of worker \d \(tcp.*\): it holds \d+ arrays of .* MB", notes)


def test_after_the_connection_is_closed(cluster):
    """Arrays of a connection that was closed say so when they are read."""
    with distributed.connect(client=cluster.client) as second:
        mesh = fa.make_mesh((2,), ("i",), devices=second.devices[:2])
        x = fa.device_put(X, NamedSharding(mesh, P("i"))).block_until_ready()
    with pytest.raises(RuntimeError, match=r"the connection is closed. connect\(\) anew"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match=r"closed. connect\(\) anew"):
        x + 1


def test_versions_that_differ(cluster, monkeypatch):
    """Which version is where, and on which worker, before anything has run."""
    monkeypatch.setattr(fa, "__version__", "9.9")
    with pytest.raises(RuntimeError, match=r"fnarray is 9.9 here and .* on the worker at tcp"):
        distributed.connect(client=cluster.client)
    monkeypatch.undo()
    assert connecting.versions()["fnarray"] == fa.__version__


def test_devices_of_different_kinds(cluster, mesh):
    """A mesh of workers and local devices is refused."""
    mixed = fa.make_mesh((2,), ("i",), devices=[cluster.devices[0], fa.devices()[0]])
    with pytest.raises(ValueError, match="devices of one cluster are needed"):
        fa.device_put(X, NamedSharding(mixed, P("i")))


def test_nothing_is_imported_without_it():
    """fnarray itself imports no Dask, and says what to do for devices of one."""
    code = (
        "import sys, fnarray as fa, fnarray.numpy as jnp\n"
        "fa.jit(lambda x: x + 1)(jnp.ones(3))\n"
        "try: fa.devices('dask')\n"
        "except RuntimeError as e: print(e)\n"
        "import json; print(json.dumps([m for m in ('dask', 'distributed') if m in sys.modules]))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said, modules = out.stdout.strip().splitlines()
    assert "fnarray.distributed.connect() first" in said
    assert json.loads(modules) == []
