"""Several GPUs, or one seen as several: shards on devices of their own, and what they exchange."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.cuda.device import Gpu
from fnarray.config import scoped

from .machine import needs_gcc
from .programs import floats

pytestmark = needs_gcc


@pytest.fixture
def nothing_leaves(monkeypatch):
    """Fail where an array's elements are asked for by the host, or a step tells that it does."""

    def refused(self, x):
        raise AssertionError(f"{x.shape} goes to the host")

    def stay(f, *args):
        with warnings.catch_warnings(), monkeypatch.context() as patch:
            warnings.simplefilter("error")
            patch.setattr(Gpu, "to_host", refused)
            return f(*args)

    return stay


def gpus():
    return fnarray.devices("gpu")


def cpus():
    with scoped("num_cpu_devices", 4):
        return fnarray.devices("cpu")


GROUPS = ((0, 2), (3, 1))
COLLECTIVES = {
    "psum": lambda x: x / lax.psum(x, "i"),
    "psum of groups": lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
    "psum of integers": lambda x: lax.psum((x * 100).astype(jnp.int32), "i"),
    "psum of halves": lambda x: lax.psum(x.astype(jnp.bfloat16), "i").astype(jnp.float32),
    "pmean": lambda x: lax.pmean(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i"),
    "pmin": lambda x: lax.pmin(x, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i", axis=1),
    "all_gather tiled": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "all_gather of groups": lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
    "psum_scatter tiled": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "i", [(0, 3), (2, 1)]),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 1),
    "all_to_all tiled": lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    "all_to_all of groups": lambda x: lax.all_to_all(
        x, "i", 1, 0, tiled=True, axis_index_groups=GROUPS
    ),
    "axis_index": lambda x: x * (lax.axis_index("i") + 1),
    "scan": lambda x: lax.scan(lambda c, r: (c + lax.psum(r, "i"), c), x[0], x)[0],
    "gradient": fnarray.grad(lambda x: jnp.sum(jnp.sin(lax.psum(x**2, "i")))),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_stay_on_the_devices(machine, nothing_leaves, name) -> None:
    """Four shards on two devices exchange what the processor's do; the host sees no element."""
    x = floats(4, 4, 8)
    fun = COLLECTIVES[name]
    want = fnarray.pmap(fun, axis_name="i", devices=cpus())(x)
    there = fnarray.device_put(x, gpus()[0])
    mapped = fnarray.pmap(fun, axis_name="i", devices=[*gpus(), *gpus()])
    copies = machine.stub_peers()
    for _ in range(4):
        got = nothing_leaves(mapped, there)
        assert (got.shape, got.dtype, got.devices()) == (want.shape, want.dtype, {gpus()[0]})
        room = 2**-6 if "halves" in name else 1e-5  # these add up in float32, and round once
        np.testing.assert_allclose(np.asarray(got), want, rtol=room, atol=room)
    assert machine.stub_peers() > copies


def test_collectives_over_two_axes(machine, nothing_leaves) -> None:
    """Of several names the last runs fastest; of one, shards at the same place meet."""
    mesh = fnarray.sharding.Mesh(np.asarray([*gpus(), *gpus()]).reshape(2, 2), ("a", "b"))
    spec = fnarray.sharding.PartitionSpec("a", "b")

    def fun(x):
        both = lax.psum(x, ("a", "b"))
        return both + lax.pmax(x, "a") * 2 + lax.axis_index(("a", "b"))

    x = floats(4, 6)
    f = fnarray.jit(fnarray.shard_map(fun, mesh=mesh, in_specs=spec, out_specs=spec))
    got = nothing_leaves(f, fnarray.device_put(x, gpus()[0]))
    parts = x.reshape(2, 2, 2, 3).swapaxes(1, 2)  # by place along "a" and "b"
    most = np.broadcast_to(parts.max(0), parts.shape)
    numbers = np.arange(4).reshape(2, 2, 1, 1)
    want = parts.sum((0, 1)) + 2 * most + numbers
    np.testing.assert_allclose(np.asarray(got), want.swapaxes(1, 2).reshape(4, 6), rtol=1e-5)


def test_memory_of_what_is_exchanged_comes_back(machine) -> None:
    """The values of all shards lie on each device for as long as it computes with them."""
    mapped = fnarray.pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=[*gpus(), *gpus()])
    there = fnarray.device_put(floats(4, 1000), gpus()[0])
    mapped(there)
    gc.collect()
    held = machine.stub_held()
    for _ in range(3):
        mapped(there)
    gc.collect()
    assert machine.stub_held() == held


def test_shards_that_never_meet_are_an_error(machine) -> None:
    """As on the processor: nobody waits for ever."""

    def fun(x):
        return lax.cond(x[0] > 0, lambda x: lax.psum(x, "i"), lambda x: x, x)

    x = np.asarray([[1.0], [-1.0]], np.float32)
    mapped = fnarray.pmap(fun, axis_name="i", devices=gpus())
    with pytest.raises(RuntimeError, match="never reach"):
        mapped(fnarray.device_put(x, gpus()[0]))


def test_shards_run_on_devices_of_their_own(machine) -> None:
    """Under `jit`, and called as it is; more shards than devices take turns."""
    x = floats(4, 6)
    there = fnarray.device_put(x, gpus()[0])
    mapped = fnarray.pmap(lambda x: jnp.sin(x) * 2, devices=[*gpus(), *gpus()])
    for f in (mapped, mapped, fnarray.jit(mapped)):
        y = f(there)
        assert y.devices() == {gpus()[0]}
        np.testing.assert_allclose(np.asarray(y), np.sin(x) * 2, rtol=1e-6)


def test_shard_map_runs_on_devices(machine) -> None:
    """Blocks go to the devices, and results come together on the first."""
    mesh = fnarray.sharding.Mesh(np.asarray(gpus()), ("d",))
    spec = fnarray.sharding.PartitionSpec("d")
    f = fnarray.shard_map(lambda x: jnp.cumsum(x, 0), mesh=mesh, in_specs=spec, out_specs=spec)
    x = floats(6, 3)
    y = f(fnarray.device_put(x, gpus()[0]))
    want = np.concatenate([np.cumsum(x[:3], 0), np.cumsum(x[3:], 0)])
    np.testing.assert_allclose(np.asarray(y), want, rtol=1e-5)


def test_too_few_gpus_may_be_named_several_times(machine) -> None:
    """The error says how one GPU is several devices, and that is so."""
    fun = lambda x: lax.psum(x, "i")  # noqa: E731
    with scoped("platforms", "gpu,cpu"):
        with pytest.raises(ValueError, match=r"requires 6 .* only 2 .*devices\('gpu'\) \* 3"):
            fnarray.pmap(fun, axis_name="i")(np.arange(6.0))
        shared = fnarray.pmap(fun, axis_name="i", devices=gpus()[:1] * 6)(np.arange(6.0))
    np.testing.assert_array_equal(np.asarray(shared), np.full(6, 15.0))
