"""A machine with GPUs that the processor stands in for, driver and all: what users see there."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.compile.cuda import cublas, device, vendor
from fnarray.config import scoped
from fnarray.control import progress
from fnarray.core import array
from fnarray.errors import JaxRuntimeError
from fnarray.runtime import device as devices

from . import cupy_standin
from .cublas_standin import Cublas
from .machine import forget, needs_gcc
from .programs import EVERY_NAME, LIBRARY, PRODUCTS, floats, positive

pytestmark = needs_gcc
_PACKAGES = ("nvidia", "cupy")
#: Whether CuPy is there, which the tests of this folder are told by hand.
_installed = vendor.installed


@pytest.fixture
def by_default(machine, monkeypatch):
    """The same, found as a driver is found."""
    monkeypatch.setattr(devices, "has_driver", lambda: True)
    monkeypatch.setattr(array.default, "find", devices.find_default)
    with scoped("platforms", None):
        yield machine


def gpus():
    return fnarray.devices("gpu")


@pytest.mark.parametrize(
    "name",
    [
        "softmax_is_a_block_for_each_row",
        "whole_sum_is_two_kernels",
        "scatter_add_is_atomic",
        "large_while",
        "tiled_product",
        "sorted",
        "random",
        "cumulative_long",
        "gradient_of_scan",
    ],
)
def test_programs_run_through_the_driver(machine, name) -> None:
    """Packing, launching, and the kernels' own LLVM text: results are the processor's."""
    fun, args = EVERY_NAME[name]
    f = fnarray.jit(lambda *xs: fun(*xs))
    with scoped("cuda_fma", False):
        want = fnarray.tree.leaves(f(*args))
        there = fnarray.device_put(args, gpus()[1])
        got = fnarray.tree.leaves(f(*there))
        for g, w in zip(got, want, strict=True):
            assert g.devices() == {gpus()[1]}
            np.testing.assert_allclose(np.asarray(g), w, rtol=2e-5, atol=2e-5)


# ---- devices -----------------------------------------------------------------------------------


def test_a_gpu_is_the_default_device(by_default) -> None:
    """New arrays, and functions of the host's numbers, are there, as in JAX."""
    first, second = gpus()
    assert fnarray.devices() == [first, second]
    assert fnarray.default_backend() == "gpu"
    assert jnp.asarray([1.0, 2.0]).device == first
    assert jnp.zeros(3).device == first
    assert fnarray.random.normal(fnarray.random.key(0), (3,)).device == first
    assert fnarray.jit(lambda x: x + 1)(floats(4)).device == first
    assert jnp.sin(floats(4)).device == first
    assert fnarray.device_put(floats(4)).device == first
    here = fnarray.device_put(floats(4), fnarray.devices("cpu")[0])
    assert here.device.platform == "cpu"
    assert fnarray.jit(lambda x: x + 1)(here).device.platform == "cpu"
    assert fnarray.jit(lambda x: x + 1, backend="cpu")(floats(4)).device.platform == "cpu"
    with fnarray.default_device(second):
        assert jnp.ones(3).device == second
        assert fnarray.jit(lambda x: x + 1)(floats(4)).device == second
    with fnarray.default_device(fnarray.devices("cpu")[0]):
        assert jnp.ones(3).device.platform == "cpu"
        assert jnp.asarray(3.0).device.platform == "cpu"


def test_platforms_choose(by_default) -> None:
    """``FNARRAY_PLATFORMS`` says which are used, the first the default."""
    with scoped("platforms", "cpu"):
        assert fnarray.devices()[0].platform == "cpu"
        assert jnp.ones(3).device.platform == "cpu"
        with pytest.raises(RuntimeError, match=r"platforms allows 'cpu' alone"):
            fnarray.devices("gpu")
    with scoped("platforms", "cuda,cpu"):
        assert fnarray.devices()[0].platform == "gpu"
        assert fnarray.devices("cpu")[0].platform == "cpu"
    with scoped("platforms", "tpu"), pytest.raises(RuntimeError, match="Unknown backend 'tpu'"):
        fnarray.devices()


def test_a_driver_that_cannot_be_used_leaves_the_processor(by_default, caplog) -> None:
    """The reason is in the log, and programs run."""
    by_default.stub_set(1, 11000, 1 << 30)
    forget()
    assert fnarray.devices()[0].platform == "cpu"
    assert float(jnp.sin(1.0)) == pytest.approx(np.sin(1.0))
    assert "the GPU is not used" in caplog.text


def test_shards_say_where_they_are(machine) -> None:
    """An array on one device has one shard: itself."""
    x = fnarray.device_put(floats(4), gpus()[0])
    (shard,) = x.addressable_shards
    assert (shard.device, shard.data) == (gpus()[0], x)
    assert jnp.asarray(floats(4), device=gpus()[1]).device == gpus()[1]


def test_a_captured_array_takes_the_function_with_it(machine) -> None:
    """A function that closes over an array on a GPU runs there."""
    w = fnarray.device_put(floats(4), gpus()[1])
    y = fnarray.jit(lambda x: x * w)(floats(4))
    assert y.device == gpus()[1]
    np.testing.assert_allclose(np.asarray(y), floats(4) ** 2, rtol=1e-6)


def test_later_calls_are_found_at_once(machine, monkeypatch) -> None:
    """By what arrays are like and where they lie; others go the way of first calls."""
    f = fnarray.jit(lambda x, y: (x + y, {"y": y * 2}))
    slow = []
    run = type(f)._run
    monkeypatch.setattr(type(f), "_run", lambda self, *a: slow.append(a) or run(self, *a))
    x, y = (fnarray.device_put(floats(4, seed=k), gpus()[0]) for k in (0, 1))
    for _ in range(3):
        total, rest = f(x, y)
    assert len(slow) == 1
    np.testing.assert_allclose(np.asarray(total), floats(4) + floats(4, seed=1))
    assert len(f(total, rest["y"])) == 2
    assert len(slow) == 1
    there = fnarray.device_put((x, y), gpus()[1])
    assert f(*there)[0].device == gpus()[1]
    assert f(x, y)[0].device == gpus()[0]
    assert len(slow) == 2
    with pytest.raises(ValueError, match="incompatible devices"):
        f(x, there[1])
    np.testing.assert_allclose(np.asarray(f(x, 1.0)[0]), floats(4) + 1)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(x, y)


def test_first_bad_values_are_found(machine) -> None:
    """``debug_nans`` looks at results of programs on a GPU, too."""
    x = fnarray.device_put(floats(4) * 0, gpus()[0])
    with scoped("debug_nans", True), pytest.raises(FloatingPointError, match=r"nan.*in div"):
        fnarray.jit(lambda x: (x * 2) / x)(x)


def test_what_is_given_up_is_deleted(machine) -> None:
    """A donated array lets its memory go at once; whoever reads it gets an error."""
    x, y = (fnarray.device_put(floats(4), gpus()[0]) for _ in "xy")
    assert not x.is_deleted()
    assert any(a is x for a in fnarray.live_arrays("gpu"))
    z = fnarray.jit(lambda x: x + 1, donate_argnums=0)(x)
    y.delete()
    np.testing.assert_array_equal(np.asarray(z), floats(4) + 1)
    for gone in (x, y):
        assert gone.is_deleted()
        assert not any(a is gone for a in fnarray.live_arrays())
        for use in (lambda x: x + 1, np.asarray, repr, lambda x: fnarray.jit(jnp.sin)(x)):
            with pytest.raises(RuntimeError, match="has been deleted with shape=float32"):
                use(gone)


def test_a_device_says_what_it_is(machine) -> None:
    """Its name, its capability, and what arrays hold of its memory."""
    first, _ = gpus()
    assert (first.device_kind, first.compute_capability) == ("stub 0", "9.0")
    before = first.memory_stats()
    x = fnarray.device_put(np.zeros(1000, np.float32), first)
    stats = first.memory_stats()
    assert stats["bytes_in_use"] == before["bytes_in_use"] + x.nbytes
    assert stats["peak_bytes_in_use"] >= stats["bytes_in_use"]
    assert stats["bytes_limit"] == 1 << 30
    cpu = fnarray.devices("cpu")[0]
    assert (cpu.device_kind, cpu.memory_stats()) == ("cpu", None)
    with pytest.raises(AttributeError, match="is no GPU"):
        print(cpu.compute_capability)


def test_what_is_compiled_ahead_runs_where_its_arguments_were(machine) -> None:
    """On the GPU of the arrays, or of what the function captured; another one is an error."""
    first, second = gpus()
    x = fnarray.device_put(floats(4), second)
    lowered = fnarray.jit(lambda x: jnp.sin(x) + 1).lower(x)
    assert "launch(" in lowered.as_text()
    compiled = lowered.compile()
    for given in (x, floats(4)):  # the host's numbers are brought there
        y = compiled(given)
        assert y.device == second
        np.testing.assert_allclose(np.asarray(y), np.sin(floats(4)) + 1, rtol=1e-6)
    assert compiled.output_shardings.device_set == {second}
    assert compiled.memory_analysis().argument_size_in_bytes == 16
    with pytest.raises(ValueError, match=r"is for cuda:1, and an argument lies on cuda:0"):
        compiled(fnarray.device_put(floats(4), first))
    captured = fnarray.jit(lambda y: x * y).lower(floats(4)).compile()
    assert captured(floats(4)).device == second
    told = fnarray.jit(lambda x: x + 1, device=first).lower(floats(4)).compile()
    assert told(floats(4)).device == first


def test_a_platform_that_is_named_needs_no_file(library, tmp_path) -> None:
    """What finds drivers looks for files of /dev; the setting says that there is one."""
    code = (
        "import pathlib, sys; from tests.cuda.machine import loaded\n"
        "loaded(pathlib.Path(sys.argv[1]))\n"
        "import fnarray.numpy as jnp; print(jnp.ones(3).device)\n"
    )
    env = {**os.environ, "FNARRAY_PLATFORMS": "cpu"}
    for platforms, where in (("gpu,cpu", "cuda:0"), ("cpu,gpu", "cpu:0")):
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=Path(__file__).parents[2],
            env={**env, "FNARRAY_PLATFORMS": platforms},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout.strip()) == (0, where), done.stderr


# ---- other libraries ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64", "bool"])
def test_dlpack_both_ways(machine, dtype) -> None:
    """Memory is shared where nobody writes to it, else copied; the reader's stream waits."""
    x = fnarray.device_put(jnp.asarray(floats(3, 4) > 0, dtype), gpus()[0])
    waits, lent = machine.stub_waits(), x.__dlpack__(stream=7)
    assert machine.stub_waits() == waits + 1
    del lent
    shared, own = jnp.from_dlpack(x, copy=False), jnp.from_dlpack(x)
    assert shared._there.pointer == x._there.pointer != own._there.pointer
    for y in (shared, own):
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, gpus()[0])
        assert (np.asarray(y) == np.asarray(x)).all()
    held = machine.stub_held()
    del x, shared, y
    gc.collect()
    assert machine.stub_held() < held


class Foreign:
    """Another library's array."""

    def __init__(self, x, **changes):
        self.keeps = x
        self.__cuda_array_interface__ = {**x.__cuda_array_interface__, **changes}


def test_the_interface_of_numba(machine) -> None:
    """Its memory is read after its stream; what does not lie in order is refused."""
    x = fnarray.device_put(floats(3, 4), gpus()[0])
    waits = machine.stub_waits()
    y = jnp.asarray(Foreign(x, stream=5))
    assert machine.stub_waits() == waits + 1
    np.testing.assert_array_equal(y, floats(3, 4))
    with pytest.raises(TypeError, match="does not lie in C order"):
        jnp.asarray(Foreign(x, strides=(4, 12)))
    assert not hasattr(x.astype(jnp.bfloat16)._there, "__cuda_array_interface__")


# ---- graphs ------------------------------------------------------------------------------------


def steps(a, b):
    return lax.fori_loop(0, 6, lambda i, c: jnp.roll(c, 1) * 0.5 + b, a)


def test_many_small_kernels_become_one_graph(machine) -> None:
    """From the third call on: one launch, addresses patched where arguments changed."""
    f = fnarray.jit(steps)
    a, b = floats(70, 70), floats(70, 70, seed=3)
    for turn in range(5):
        x, y = (a, b) if turn % 2 else (b, a)
        graphs = machine.stub_replays()
        out = f(*(fnarray.device_put(z, gpus()[0]) for z in (x, y)))
        assert machine.stub_replays() - graphs == (turn >= 2)
        np.testing.assert_allclose(np.asarray(out), f(x, y), rtol=1e-6)
    assert machine.stub_graphs() == 1
    assert 0 < machine.stub_patched() < machine.stub_launches()


@pytest.mark.usefixtures("machine")
def test_a_watched_loop_tells_of_its_blocks(monkeypatch) -> None:
    """Each block, a kernel or many, is waited for; such a program is no graph, which tells none."""
    told: list[int] = []
    monkeypatch.setattr(progress, "_EVERY", 0)
    monkeypatch.setattr(progress._Bar, "_show", lambda bar, done, passed: told.append(done))
    for size, turns in ((70, 6), (3, 25)):
        body = fnarray.progress(label=f"gpu{size}", parts=3)(lambda c, x: (c * 0.5 + x, c[0]))
        f = fnarray.jit(lambda c, xs, body=body: lax.scan(body, c, xs))
        c, xs = floats(size, size), floats(turns, size, size, seed=3)
        there = [fnarray.device_put(z, gpus()[0]) for z in (c, xs)]
        for _ in range(4):
            told.clear()
            out = f(*there)
            step = -(-turns // 3)
            assert told == [step, 2 * step, turns]
        for a, b in zip(out, f(c, xs), strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)


def test_one_array_twice_is_two_arguments(machine) -> None:
    """A graph recorded of ``f(x, x)`` serves ``f(x, y)``."""
    f = fnarray.jit(steps)
    x, y = (fnarray.device_put(floats(70, 70, seed=k), gpus()[0]) for k in (0, 3))
    for _ in range(3):
        f(x, x)
    out = f(x, y)
    np.testing.assert_allclose(
        np.asarray(out), f(floats(70, 70), floats(70, 70, seed=3)), rtol=1e-6
    )


def test_what_asks_the_host_is_no_graph(machine) -> None:
    """A loop's test is the host's to read: kernels are launched, its body's as a graph."""
    fun, (x,) = EVERY_NAME["large_while"]
    f = fnarray.jit(lambda x: fun(x))
    want, there = f(x), fnarray.device_put(x, gpus()[0])
    before = machine.stub_replays()
    for _ in range(4):
        np.testing.assert_allclose(np.asarray(f(there)), want, rtol=1e-5)
    assert machine.stub_replays() == before


def test_a_graph_that_the_driver_refuses(machine, caplog) -> None:
    """Kernels are launched one by one then, and the log says why."""
    f = fnarray.jit(steps)
    x = fnarray.device_put(floats(70, 70), gpus()[0])
    want = np.asarray(f(x, x))
    machine.stub_fail(b"cuGraphCreate", 801)
    with caplog.at_level("WARNING", "fnarray.compile"):
        for _ in range(4):
            np.testing.assert_array_equal(np.asarray(f(x, x)), want)
    assert caplog.text.count("kernel by kernel") == 1


def test_a_graph_gives_its_memory_back(machine) -> None:
    """With the program that it belongs to."""
    f = fnarray.jit(steps)
    x = fnarray.device_put(floats(70, 70), gpus()[0])
    for _ in range(4):
        f(x, x)
    assert machine.stub_graphs() == 1
    del f, x
    fnarray.clear_caches()
    gc.collect()
    assert machine.stub_graphs() == 0
    assert machine.stub_blocks() == 0


# ---- library steps -----------------------------------------------------------------------------


@pytest.fixture
def cupy(machine, monkeypatch):
    """The same machine with CuPy."""
    monkeypatch.setattr(vendor, "installed", lambda: True)
    monkeypatch.setattr(vendor, "module", cupy_standin.MODULES.__getitem__)
    fnarray.clear_caches()
    for noted in cupy_standin.asked.values():
        noted.clear()
    yield cupy_standin
    fnarray.clear_caches()


@pytest.mark.parametrize("name", LIBRARY)
def test_library_steps_are_cupys(cupy, name) -> None:
    """On our memory and stream, of the program's device; nothing goes by the host."""
    fun, args = LIBRARY[name]
    f = fnarray.jit(lambda *xs: fun(*xs))
    want = fnarray.tree.leaves(f(*args))
    assert "(library: CuPy)" in f.lower(*args).as_text("cuda")
    got = fnarray.tree.leaves(f(*fnarray.device_put(args, gpus()[1])))
    assert cupy.asked["streams"][-1] == (device.gpu(1).stream, 1)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-3, atol=1e-4)


@pytest.fixture
def blas(machine, monkeypatch):
    """The same machine with cuBLAS, for products of any size."""
    found = Cublas()
    monkeypatch.setattr(cublas, "library", lambda: found)
    monkeypatch.setattr(cublas, "LARGE", 1 << 10)
    fnarray.clear_caches()
    yield found
    fnarray.clear_caches()


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_cublass(blas, name) -> None:
    """Operands are told as they lie; to the highest precision results are the processor's."""
    fun, args = PRODUCTS[name]
    with scoped("default_matmul_precision", "highest"):
        f = fnarray.jit(lambda *xs: fun(*xs))
        want = fnarray.tree.leaves(f(*args))
        got = fnarray.tree.leaves(f(*fnarray.device_put(args, gpus()[1])))
    assert "(library: cuBLAS)" in f.lower(*args).as_text("cuda")
    assert set(blas.streams.values()) == {device.gpu(1).stream}
    assert blas.calls
    rtol = {"halves": 2e-3, "bfloat16": 2e-2}.get(name, 1e-5)
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(
            np.asarray(g), w, rtol=rtol, atol=rtol * abs(np.asarray(w)).max()
        )


def test_transposes_are_told(blas, monkeypatch) -> None:
    """Only what the library cannot be told is laid out first; stacks are one call or few."""

    def laid_out(name):
        blas.calls.clear()
        fun, args = PRODUCTS[name]
        fnarray.jit(lambda *xs: fun(*xs))(*fnarray.device_put(args, gpus()[0]))
        return len(copies), [count for count, *_ in blas.calls]

    copies: list = []
    layout = cublas._layout
    monkeypatch.setattr(cublas, "_layout", lambda *a: copies.append(a) or layout(*a))
    assert laid_out("both transposed") == (0, [1])
    assert laid_out("stack") == (0, [2])
    assert laid_out("two axes are one") == (0, [6])
    assert laid_out("heads between") == (0, [3, 3])
    assert laid_out("many heads") == (2, [1600])
    assert laid_out("two terms")[0] == 4


def test_products_are_rounded_as_jaxs_are(blas) -> None:
    """float32 is TF32, unless the highest precision is asked for; others are as they are."""
    x, y = (fnarray.device_put(floats(64, 64, seed=k), gpus()[0]) for k in (0, 1))
    exact = np.asarray(x, np.float64) @ np.asarray(y, np.float64)

    def formed(f, *args):
        blas.calls.clear()
        out = fnarray.jit(f)(*args)
        return blas.calls[-1][-1], float(abs(np.asarray(out) - exact).max())

    how, error = formed(lambda x, y: x @ y, x, y)
    assert how == 77
    assert 1e-4 < error < 5e-2
    assert formed(lambda x, y: jnp.matmul(x, y, precision="high"), x, y)[0] == 77
    how, error = formed(lambda x, y: jnp.matmul(x, y, precision="highest"), x, y)
    assert how == 68
    assert error < 1e-5
    for named, how in (("F32_F32_F32", 68), ("TF32_TF32_F32", 77), ("BF16_BF16_F32", 75)):
        assert formed(lambda x, y, p=named: lax.dot(x, y, precision=p), x, y)[0] == how
    for setting, how in (("float32", 68), ("tensorfloat32", 77), ("highest", 68)):
        with scoped("default_matmul_precision", setting):
            assert formed(lambda x, y: x @ y + 0 * x, x, y)[0] == how
    half = x.astype(jnp.float16)
    assert formed(lambda x: x @ x, half)[0] == 68


def test_a_failure_of_a_product_is_an_error(blas, monkeypatch) -> None:
    """With what to do about it."""
    x = fnarray.device_put(floats(64, 64), gpus()[0])
    monkeypatch.setattr(blas, "cublasGemmStridedBatchedEx", lambda *args: 8)
    with pytest.raises(JaxRuntimeError, match="no code for this GPU: install one of another"):
        fnarray.jit(lambda x: x @ x)(x)


def test_gradients_of_library_steps(cupy) -> None:
    """Derivatives are programs of the same steps, products among them."""
    f = fnarray.jit(fnarray.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a) ** 3)))
    a = positive(30)
    got = f(fnarray.device_put(a, gpus()[0]))
    np.testing.assert_allclose(np.asarray(got), f(a), rtol=1e-3, atol=1e-3)


def test_memory_of_library_steps_is_counted(cupy) -> None:
    """CuPy allocates from the device's pool, and gives back with its arrays."""
    there = fnarray.device_put(floats(2, 30, 30), gpus()[0])
    before = machine_held = device.gpu(0).held
    out = fnarray.jit(lambda a: lax.linalg.lu(a))(there)
    assert cupy.asked["bytes"]
    assert device.gpu(0).held > before
    del out
    gc.collect()
    assert device.gpu(0).held == machine_held


def test_libraries_are_of_the_drivers_cuda(machine, monkeypatch, tmp_path, caplog) -> None:
    """Those of a newer one are left, where an older one is beside it, and where none is."""
    for major in (12, 13):
        folder = tmp_path / "nvidia" / f"cu{major}" / "lib"
        folder.mkdir(parents=True)
        (folder / f"libcublas.so.{major}").touch()
    there = {n: SimpleNamespace(submodule_search_locations=[str(tmp_path / n)]) for n in _PACKAGES}
    monkeypatch.setattr(cublas.importlib.util, "find_spec", there.get)
    monkeypatch.setattr(cublas, "library", lambda: object())
    for driver, expected in ((12040, ["12"]), (13000, ["13", "12"])):
        machine.stub_set(1, driver, 1 << 30)
        forget()
        here = [p for p in cublas._paths() if p.startswith(str(tmp_path))]
        assert [p[-2:] for p in here] == expected
        for name, known in (("cupy_cuda12x", True), ("cupy_cuda13x", driver >= 13000)):
            folder = tmp_path / f"{name}-14.2.0.dist-info"
            folder.mkdir()
            assert _installed.__wrapped__() == known
            folder.rmdir()
    assert "CuPy is for CUDA 13, and the driver is older" in caplog.text


# ---- what the host does ------------------------------------------------------------------------


def test_a_step_of_the_hosts_is_told_once(machine) -> None:
    """Where, how many bytes, and what to do; the setting accepts it, or refuses."""
    x = fnarray.device_put(floats(6, 8), gpus()[0])
    f = fnarray.jit(lambda x: jnp.fft.fft(x))
    assert "(host: operands are copied there" in f.lower(floats(6, 8)).as_text("cuda")
    with pytest.warns(UserWarning, match=r"fft at .*test_machine.*768 bytes are copied.*CuPy"):
        y = f(x)
    np.testing.assert_allclose(np.asarray(y), np.fft.fft(floats(6, 8)), rtol=1e-5, atol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x)
        with fnarray.transfer_guard("allow"):
            fnarray.jit(lambda x: jnp.fft.fft(x * 2))(x)
    with fnarray.transfer_guard("disallow"), pytest.raises(JaxRuntimeError, match="refuses that"):
        fnarray.jit(lambda x: jnp.fft.fft(x * 3))(x)


def test_callbacks_are_the_users_own(machine) -> None:
    """What the user asks of the host is no surprise."""
    x = fnarray.device_put(floats(6), gpus()[0])
    shape = fnarray.ShapeDtypeStruct((6,), np.float32)
    f = fnarray.jit(lambda x: fnarray.pure_callback(np.sin, shape, x) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(np.asarray(f(x)), np.sin(floats(6)) + 1, rtol=1e-6)


def test_a_default_device_where_no_file_tells_of_a_driver(machine) -> None:
    """Once GPUs were asked for, one may be the default, where new arrays and programs are."""
    (gpu, _), processor = gpus(), fnarray.devices("cpu")[0]
    key = fnarray.random.key(3)
    with fnarray.default_device(gpu):
        for made in (
            jnp.zeros(3),
            fnarray.jit(lambda: jnp.ones(3))(),
            fnarray.jit(lambda: fnarray.random.normal(key, (4,)))(),
        ):
            assert made.devices() == {gpu}
    assert jnp.zeros(3).devices() == {processor}
