"""Arrays on a GPU, which the processor stands in for: what users do with them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.compile.cuda import device
from fnarray.compile.cuda.processor import Emulated
from fnarray.config import scoped
from fnarray.errors import JaxRuntimeError

from .programs import EVERY_NAME, floats


@pytest.fixture
def gpu(monkeypatch):
    """The first of two devices; programs are bound to the device that they ran on first."""
    fnarray.clear_caches()
    device.gpu.cache_clear()
    monkeypatch.setattr(device, "Gpu", Emulated)
    monkeypatch.setattr(device, "count", lambda: 2)
    yield fnarray.devices("gpu")[0]
    fnarray.clear_caches()
    device.gpu.cache_clear()


def test_devices(gpu) -> None:
    """They are JAX's in name and text; the processor stays the default."""
    first, second = fnarray.devices("cuda")
    assert (repr(first), str(first), first.platform) == ("CudaDevice(id=0)", "cuda:0", "gpu")
    assert first == gpu != second
    assert fnarray.devices()[0].platform == "cpu"
    with pytest.raises(RuntimeError, match=r"Unknown backend 'tpu'.*\['cpu', 'gpu'\]"):
        fnarray.devices("tpu")


def test_arrays_go_there_and_back(gpu) -> None:
    """Where they are is said, and they reach the host when asked, in all the usual ways."""
    x = floats(3, 4)
    there = fnarray.device_put(x, gpu)
    assert isinstance(there, fnarray.Array)
    assert there.devices() == {gpu}
    assert there.device == gpu
    assert there.block_until_ready() is there
    np.testing.assert_array_equal(np.asarray(there), x)
    np.testing.assert_array_equal(there.tolist(), x.tolist())
    assert repr(there) == repr(jnp.asarray(x))
    assert there.shape == (3, 4)
    assert there.dtype == np.float32
    assert there.__cuda_array_interface__["shape"] == (3, 4)
    back = fnarray.device_put(there, fnarray.devices("cpu")[0])
    assert back.device.platform == "cpu"
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(there)), x)
    np.testing.assert_array_equal(copy.copy(there), x)
    again = fnarray.device_put(there, gpu)  # another array: to donate it leaves the first alone
    assert again is not there
    assert again._there is there._there
    assert float(fnarray.device_put(2.5, gpu)) == 2.5
    with pytest.raises(TypeError, match="unhashable"):
        hash(there)


def test_operations_run_where_their_operands_are(gpu) -> None:
    """Results stay there; numbers and arrays that are nowhere in particular come along."""
    x = fnarray.device_put(floats(5), gpu)
    for y in (
        x + 1,
        2 * x,
        x * floats(5),
        jnp.sin(x) + jnp.asarray(floats(5)),
        x[1:3],
        -x,
        x.sum(),
    ):
        assert y.device == gpu
    np.testing.assert_allclose(np.asarray(x * x + 1), floats(5) ** 2 + 1, rtol=1e-6)
    assert bool((x == x).all())


def test_compiled_functions_run_where_their_arguments_are(gpu) -> None:
    """One function, both devices; trees, static arguments and captured arrays as ever."""
    weight = jnp.asarray(floats(4, 3))

    @fnarray.jit
    def layer(p, x):
        return {"y": jnp.tanh(x @ weight + p["b"]), "n": x.shape[0]}

    x, b = floats(6, 4), floats(3)
    here = layer({"b": b}, x)
    there = layer({"b": fnarray.device_put(b, gpu)}, fnarray.device_put(x, gpu))
    assert there["y"].device == gpu
    assert here["y"].device.platform == "cpu"
    np.testing.assert_allclose(np.asarray(there["y"]), here["y"], rtol=1e-6)
    assert there["n"] == 6
    again = layer({"b": b}, there["y"] @ fnarray.device_put(floats(3, 4), gpu))
    assert again["y"].device == gpu


@pytest.mark.parametrize("name", [n for n in EVERY_NAME if n not in ("random",)])
def test_programs_run_there(gpu, name) -> None:
    """Results are the processor's, loops that the driver turns included."""
    fun, args = EVERY_NAME[name]
    f = fnarray.jit(lambda *xs: fun(*xs))
    want = fnarray.tree.leaves(f(*args))
    got = fnarray.tree.leaves(f(*(fnarray.device_put(a, gpu) for a in args)))
    for g, w in zip(got, want, strict=True):
        assert g.device == gpu
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        # What cancels has the rounding of its terms, by processor features: of the largest result.
        finite = np.asarray(w)[np.isfinite(w)] if w.dtype.kind in "fc" else w
        size = max(1, np.abs(np.asarray(finite)).max(initial=0))
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-5, atol=2e-5 * size)


def test_transforms_of_compiled_functions(gpu) -> None:
    """Gradients and batches that are compiled run there."""
    x = fnarray.device_put(floats(8), gpu)
    slope = fnarray.jit(fnarray.value_and_grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))
    value, grad = slope(x)
    assert grad.device == gpu
    want = slope(floats(8))
    np.testing.assert_allclose(float(value), float(want[0]), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(grad), want[1], rtol=1e-5, atol=1e-6)


def test_arrays_of_two_devices_do_not_meet(gpu) -> None:
    """JAX's error, which names both places; what lies on the default device comes along."""
    x = fnarray.device_put(floats(4), gpu)
    with scoped("num_cpu_devices", 2):
        y = fnarray.device_put(floats(4), fnarray.devices("cpu")[1])
    for add in (fnarray.jit(lambda a, b: a + b), lambda a, b: a + b):
        with pytest.raises(ValueError, match=r"incompatible devices.*cuda:0.*cpu:1"):
            add(x, y)


def test_the_host_does_not_take_them_silently(gpu) -> None:
    """What works on the host's memory alone says how to ask for it."""
    from fnarray.core.array import asarray

    with pytest.raises(TypeError, match=r"cuda:0.*device_put"):
        asarray(fnarray.device_put(floats(4), gpu))


def test_a_device_that_is_not_there(gpu) -> None:
    """Its number is out of range."""
    with pytest.raises(JaxRuntimeError, match="gpu:7 does not exist"):
        fnarray.device_put(floats(4), type(gpu)(7, "gpu"))


def test_the_second_device(gpu) -> None:
    """Programs run on it as on the first; arrays go from one to the other; both do not meet."""
    second = fnarray.devices("gpu")[1]
    x = fnarray.device_put(floats(4), gpu)
    y = fnarray.device_put(x, second)
    assert y.devices() == {second}
    assert (y + 1).device == second
    np.testing.assert_array_equal(y, floats(4))
    f = fnarray.jit(jnp.sin)
    assert (f(x).device, f(y).device) == (gpu, second)
    with pytest.raises(ValueError, match=r"incompatible devices.*cuda:0.*cuda:1"):
        x + y


def test_a_function_may_say_where_it_runs(gpu) -> None:
    """Its arguments are brought there."""
    for options in ({"device": gpu}, {"backend": "gpu"}):
        f = fnarray.jit(lambda x: jnp.sin(x) + 1, **options)
        for _ in range(3):
            y = f(jnp.asarray(floats(5)))
            assert y.device == gpu
        assert f(2.0).device == gpu
        np.testing.assert_allclose(np.asarray(y), np.sin(floats(5)) + 1, rtol=1e-6)
