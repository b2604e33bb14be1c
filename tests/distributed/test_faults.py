"""What is lost with a worker is computed again, bit for bit; and what cannot be is an error."""

import os
import random
import re
import signal
import threading
import time

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import NamedSharding, P, lax
from fnarray.distributed import cluster as distributed_cluster
from fnarray.errors import WorkerLost

from .conftest import connected

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

STEPS = 50
RNG = np.random.default_rng(0)
X = RNG.standard_normal((64, 8)).astype(np.float32)
Y = np.tanh(X @ RNG.standard_normal((8, 1)).astype(np.float32))


@pytest.fixture(scope="module")
def cluster():
    """Two workers; results have a second copy every ten steps."""
    with connected(2, lineage=10) as found:
        yield found


@pytest.fixture(scope="module")
def mesh(cluster):
    return fa.make_mesh((2,), ("i",), devices=cluster.devices)


def step(params, x, y):
    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["w"]) + p["b"] - y) ** 2)

    value, slopes = fa.value_and_grad(loss)(params)
    slopes = lax.pmean(slopes, "i")
    # Noise that differs on each device, so that a step left out or done twice would be seen.
    new = fa.tree.map(lambda p, g: p - 0.2 * g, params, slopes)
    return new, lax.pmean(value, "i")


def train(mesh, steps=STEPS, before=lambda k: None):
    update = fa.shard_map(step, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=(P(), P()))
    x, y = (fa.device_put(v, NamedSharding(mesh, P("i"))) for v in (X, Y))
    params = {"w": np.zeros((8, 1), np.float32), "b": np.zeros(1, np.float32)}
    losses = []
    for k in range(steps):
        before(k)
        params, value = update(params, x, y)
        losses.append(value)
    return fa.device_get(params), [float(v) for v in losses[-3:]]


@pytest.fixture(scope="module")
def undisturbed(mesh):
    return train(mesh)


def processes(cluster):
    found = cluster.client.run(os.getpid)
    return [found[link.address] for link in cluster.links]


def kill(cluster, k):
    """Kill the process of a device as the kernel does that is out of memory."""
    pid = processes(cluster)[k]
    os.kill(pid, signal.SIGKILL)


def same(found, expected):
    for a, b in zip(fa.tree.leaves(found), fa.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


SEEDS = [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 20))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_worker_changes_nothing(cluster, mesh, undisturbed, seed):
    """A worker killed in the middle of a loop: the same parameters at its end, bit for bit."""
    random.seed(seed)
    at, which, wait = random.randrange(1, STEPS), random.randrange(2), random.random() < 0.5

    def disturb(k):
        if k == at:
            if wait:
                kill(cluster, which)
            else:  # while steps are under way
                pid = processes(cluster)[which]
                threading.Timer(random.random() * 0.02, os.kill, (pid, signal.SIGKILL)).start()

    same(train(mesh, before=disturb), undisturbed)
    lost = cluster.links[which]
    assert lost.times_lost


def test_what_is_read_after_a_loss_is_there(cluster, mesh):
    """Arrays that were ready when a worker was lost are made again when they are read."""
    x = fa.device_put(X, NamedSharding(mesh, P("i")))
    made = fa.make_array_from_callback(
        X.shape, NamedSharding(mesh, P("i")), lambda index: X[index] * 2
    )
    y = (x + made).block_until_ready()
    kill(cluster, 0)
    np.testing.assert_array_equal(y, X * 3)
    np.testing.assert_array_equal(made, X * 2)


def test_a_function_that_raises(cluster, mesh):
    """An error on one worker is the user's own, with his line, and says which shard; others end."""

    def check(x):
        if x.max() > 0:
            raise ArithmeticError("too large")
        return x

    def body(x):
        x = fa.pure_callback(check, fa.ShapeDtypeStruct(x.shape, x.dtype), x)
        return lax.psum(x, "i")

    f = fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P())
    with pytest.raises(Exception, match="too large") as caught:
        f(np.array([0.0, 1.0], np.float32)).block_until_ready()
    notes = "\n".join(caught.value.__notes__)
    assert "Raised in shard 1 of shard_map(body)" in notes
    assert "test_faults.py" in notes
    assert "in check" in notes
    np.testing.assert_array_equal(f(np.zeros(2, np.float32)), [0.0])


def test_what_depends_on_a_failure_fails_alike(cluster, mesh):
    """What is computed of a failed step's results raises the same; other programs run on."""

    def bad(x):
        raise LookupError("no such thing")

    def body(x):
        return fa.pure_callback(bad, fa.ShapeDtypeStruct(x.shape, x.dtype), x)

    y = fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(X)
    with pytest.raises(Exception, match="no such thing"):
        np.asarray(y + 1)
    np.testing.assert_array_equal(fa.device_put(X, NamedSharding(mesh, P("i"))) + 1, X + 1)


def test_collectives_that_some_never_reach(mesh):
    """A shard that waits for one that has ended gets an error that says what for."""

    def body(x):
        return lax.cond(lax.axis_index("i") == 0, lambda x: lax.psum(x, "i"), lambda x: x, x)

    # Types that say along which axes values differ would refuse it.
    f = fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    with pytest.raises(RuntimeError, match="never reach"):
        f(X).block_until_ready()


def test_an_interrupted_wait(cluster, mesh):
    """After an interrupt the next program runs; the arrays that were waited for can be had."""

    def slow(x):
        time.sleep(1.0)
        return x

    def body(x):
        x = fa.pure_callback(slow, fa.ShapeDtypeStruct(x.shape, x.dtype), x)
        return lax.psum(x, "i")

    def interrupt(*args):
        raise KeyboardInterrupt

    y = fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P())(X)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            y.block_until_ready()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(y, X[:32] + X[32:])


def test_who_is_waited_for(cluster, mesh, monkeypatch, caplog):
    """A worker that is slow is logged, and named by the error where there is a limit."""

    def slow(x):
        time.sleep(1.5 if x[0] > 0 else 0)
        return x

    def body(x):
        return fa.pure_callback(slow, fa.ShapeDtypeStruct(x.shape, x.dtype), x)

    monkeypatch.setattr(distributed_cluster, "SLOW", 0.3)
    f = fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    with caplog.at_level("WARNING", "fnarray.distributed"):
        f(np.array([0.0, 1.0], np.float32)).block_until_ready()
    told = [r.getMessage() for r in caplog.records if r.name == "fnarray.distributed"]
    assert any(re.search(r"waiting for worker 1 \(.*\) since .*; 1 others have", t) for t in told)
    monkeypatch.setattr(cluster, "timeout", 0.2)
    with pytest.raises(TimeoutError, match=r"no answer of worker 1 \(tcp.*MB\) for 0.2 s"):
        f(np.array([0.0, 1.0], np.float32)).block_until_ready()


def test_workers_almost_full():
    """Of an array that fills the workers parts are read; what would kill one is refused by name."""
    with connected(2, memory_limit="700MB") as small:
        mesh = fa.make_mesh((2,), ("i",), devices=small.devices)
        x = fa.make_array_from_callback(
            (2, 80_000_000),
            NamedSharding(mesh, P("i")),
            lambda index: np.full((1, 80_000_000), index[0].start, np.float32),
            dtype=np.float32,
        )
        assert float(x[1, -1]) == 1.0
        np.testing.assert_array_equal(x[:, 10:70_000_000:30_000_000], [[0.0] * 3, [1.0] * 3])
        np.testing.assert_array_equal(jnp.max(x, axis=1), [0.0, 1.0])
        assert float(fa.jit(jnp.std)(x)) == float(jnp.std(x)) == 0.5
        assert float(jnp.nanmax(x)) == 1.0
        assert int(jnp.argmax(x)) == 80_000_000
        np.testing.assert_allclose(jnp.linalg.norm(x), np.sqrt(8e7))
        np.testing.assert_array_equal(fa.jit(lambda x: x[jnp.array([1]), 5])(x), [1.0])
        more = (
            r"worker [01] .* need 640.0 MB more .* killed at 665.0 MB; it holds 1 arrays of 320.0"
        )
        with pytest.raises(MemoryError, match=more):
            fa.jit(lambda x: jnp.sort(x, axis=0)[0, 0])(x).block_until_ready()
        assert float(x[1, 3]) == 1.0
        assert not any(link.times_lost for link in small.links)


def test_a_worker_that_does_not_come_back():
    """With no worker in the place of a lost one the error names it, after some patience."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as local,
        Client(local, set_as_default=False) as client,
    ):
        from fnarray import distributed

        with distributed.connect(client=client, patience=0.3) as cluster:
            mesh = fa.make_mesh((1,), ("i",), devices=cluster.devices)
            x = fa.device_put(X, NamedSharding(mesh, P("i"))).block_until_ready()
            local.scale(0)
            while client.scheduler_info()["workers"]:
                time.sleep(0.02)
            with pytest.raises(WorkerLost, match=r"dask:0 \(worker 0, last at .*Start a worker"):
                np.asarray(x + 1)


@pytest.mark.slow
def test_the_scheduler_is_lost(tmp_path):
    """A lost scheduler is an error that says so, and does not hang; checkpoints are intact."""
    import subprocess
    import sys

    code = (
        "import asyncio\nfrom distributed import Scheduler, Worker\n"
        "async def main():\n"
        "    async with Scheduler(host='127.0.0.1', port=0, dashboard=False) as s:\n"
        "        async with Worker(s.address, host='127.0.0.1', nthreads=1, dashboard=False):\n"
        "            print(s.address, flush=True)\n"
        "            await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as there:
        try:
            from fnarray import distributed

            with distributed.connect(
                address=there.stdout.readline().strip(), patience=1, timeout=60
            ) as cluster:
                mesh = fa.make_mesh((1,), ("i",), devices=cluster.devices)
                x = fa.device_put(X, NamedSharding(mesh, P("i"))).block_until_ready()
                distributed.checkpoint(tmp_path / "kept", {"x": x})
                there.kill()
                with pytest.raises((ConnectionError, WorkerLost), match="restore"):
                    for _ in range(1000):
                        x = (x + 1).block_until_ready()
        finally:
            there.kill()
    with connected(2) as another:
        mesh = fa.make_mesh((2,), ("i",), devices=another.devices)
        found = distributed.restore(tmp_path / "kept", {"x": NamedSharding(mesh, P("i"))})
        np.testing.assert_array_equal(found["x"], X)


CLIENT = """
import signal, sys, time
import numpy as np
import fnarray as fa
from fnarray import NamedSharding, P, distributed, lax

def slow(x):
    time.sleep(2)
    return x

def body(x):
    return lax.psum(fa.pure_callback(slow, fa.ShapeDtypeStruct(x.shape, x.dtype), x), "i")

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run where it is ignored
    mesh = fa.make_mesh((2,), ("i",), devices=distributed.connect(address=sys.argv[1]).devices)
    x = fa.device_put(np.ones(1000, np.float32), NamedSharding(mesh, P("i"))).block_until_ready()
    y = fa.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P())(x)
    print("runs", flush=True)
    y.block_until_ready()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_client_that_ends(cluster, tmp_path, how):
    """Workers free what a client held that was interrupted, or killed, in the middle of a step."""
    import subprocess
    import sys

    def held(dask_worker):
        sessions = dask_worker.plugins["fnarray"].sessions.values()
        return len(sessions), sum(len(s.store) for s in sessions if s.token != kept)

    kept, script = cluster.token, tmp_path / "client.py"
    script.write_text(CLIENT)
    command = [sys.executable, str(script), cluster.client.scheduler.address]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as client:
        assert client.stdout.readline() == "runs\n"
        assert all(n == 2 and arrays for n, arrays in cluster.client.run(held).values())
        client.send_signal(how)
    assert client.returncode == -how
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = list(cluster.client.run(held).values())
        if all(n == 1 for n, _ in found):
            break
        time.sleep(0.05)
    assert found == [(1, 0)] * 2
