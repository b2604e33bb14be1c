"""The launch path, memory and errors of a GPU, against a driver that does nothing."""

from __future__ import annotations

import ctypes
import gc
import logging
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fnarray.numpy as jnp
from fnarray.compile.cuda import device, libcuda, staging
from fnarray.compile.cuda.exchange import from_interface
from fnarray.compile.cuda.recording import Recorder
from fnarray.errors import JaxRuntimeError
from fnarray.runtime import gpu

from .machine import forget, needs_gcc, on_gpu
from .programs import PROGRAMS, floats

pytestmark = needs_gcc
ROOT = Path(__file__).parents[2]


@pytest.fixture
def stub(library):
    """The stub with one device and 1 GiB."""
    library.stub_set(1, 12040, 1 << 30)
    forget()
    gc.collect()  # what other tests left in circles holds memory of the stub
    yield library
    gc.collect()
    library.stub_set(1, 12040, 1 << 30)
    forget()


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "loop" not in n])
def test_programs_launch(stub, name) -> None:
    """Every launch of a driver's text reaches the device, with its grid and its arguments."""
    fun, given = PROGRAMS[name]
    executable, args = on_gpu(fun, *given)
    outs = executable.run(*args)
    assert stub.stub_launches() == executable.source.text.count("launch(")
    for out, aval in zip(outs, executable.graph.jaxpr.out_avals, strict=True):
        assert (out.shape, out.dtype) == (aval.shape, aval.dtype)


def test_arguments_are_packed_as_the_driver_lays_them_out(stub) -> None:
    """Pointers and scalars stand at multiples of their own size."""
    executable, args = on_gpu(lambda x: x * 2 + 1, floats(64))
    executable.run(*args)
    grid, block, size = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_size_t()
    stub.stub_last(ctypes.byref(grid), ctypes.byref(block), ctypes.byref(size))
    assert (grid.value, block.value) == (1, 256)
    codes = executable.source.kernels[0].source.signature
    assert size.value == 8 * len(codes)


def test_arrays_go_and_come_back(stub) -> None:
    """All dtypes, rank 0 and no elements; a copy is another array."""
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "complex128"):
        for shape in ((), (0,), (3, 4)):
            x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
            there = device.gpu().put(x)
            again = there.copy()
            np.testing.assert_array_equal(again.on_host(), x)
            assert again.pointer != there.pointer
            face = there.__cuda_array_interface__
            assert (face["shape"], face["data"][0]) == (shape, there.pointer if x.size else 0)


def test_the_hosts_arrays_go_without_a_wait(stub, monkeypatch) -> None:
    """They may change at once; locked memory is taken again once it is read, and is bounded."""
    monkeypatch.setattr(staging, "PIECE", 1 << 14)
    monkeypatch.setattr(staging, "ALL", 1 << 16)
    there, syncs, locked = device.gpu(), stub.stub_syncs(), stub.stub_locked()
    stub.stub_late(1)
    try:
        for sizes in ((3, 1000, 5000), (20000, 7, 900), (5, 4096), (3000,) * 4):
            given = [np.arange(n, dtype=np.float32) for n in sizes]
            arrays = [there.put(x) for x in given]
            for x in given:
                x[:] = -1
            assert stub.stub_syncs() == syncs
            assert there._staging.held <= staging.ALL
            for x, n in zip(arrays, sizes, strict=True):
                np.testing.assert_array_equal(x.on_host(), np.arange(n, dtype=np.float32))
            syncs = stub.stub_syncs()
        assert stub.stub_locked() - locked <= 16
        monkeypatch.setattr(there, "_staging", staging.Staging(there.stream))
        stub.stub_fail(b"cuMemHostAlloc", 2)
        np.testing.assert_array_equal(there.put(np.arange(99)).on_host(), np.arange(99))
    finally:
        stub.stub_late(0)


def test_memory_is_given_back(stub) -> None:
    """Temporaries are freed as the program goes, results with their arrays."""
    executable, args = on_gpu(jnp.sum, floats(150, 150))
    before = stub.stub_held()
    outs = executable.run(*args)
    assert stub.stub_held() == before + 4
    assert device.gpu().held == before + 4
    del outs
    assert stub.stub_held() == before
    del args
    gc.collect()
    assert stub.stub_blocks() == 0


def test_exhausted_memory_says_what_was_asked_and_is_held(stub) -> None:
    """The error names both; what was there before is still there."""
    held = device.gpu().put(np.ones(1000, np.float32))
    with pytest.raises(JaxRuntimeError, match=r"RESOURCE_EXHAUSTED.*8,589,934,592.*hold 4,000"):
        device.gpu().empty(1 << 31, np.float32)
    np.testing.assert_array_equal(held.on_host(), np.ones(1000, np.float32))


def test_an_error_of_a_kernel_shows_its_text(stub) -> None:
    """With the user's line in it, and what to do."""
    executable, args = on_gpu(lambda x: jnp.tanh(x) * 3, floats(64))
    stub.stub_fail(b"cuLaunchKernel", 701)
    with pytest.raises(JaxRuntimeError, match=r"(?s)more registers.*In the kernel.*jnp.tanh"):
        executable.run(*args)


def test_late_errors_surface_where_the_host_waits(stub) -> None:
    """Launches are asynchronous: what failed is known when results are asked for."""
    executable, args = on_gpu(lambda x: jnp.tanh(x) * 3, floats(64))
    (out,) = executable.run(*args)
    stub.stub_fail(b"cuStreamSynchronize", 700)
    with pytest.raises(
        JaxRuntimeError, match=r"(?s)memory that is not its own.*last kernels.*test_stub.py:\d+"
    ):
        out.on_host()


@pytest.mark.parametrize(
    ("devices", "version", "says"),
    [(0, 12040, "There is no GPU"), (1, 11080, r"CUDA 11\.8, and 12\.0 is the oldest")],
)
def test_drivers_that_cannot_be_used(stub, devices, version, says) -> None:
    """No device, or too old a driver: the error says what to do."""
    stub.stub_set(devices, version, 1 << 30)
    forget()
    with pytest.raises(JaxRuntimeError, match=says):
        device.gpu()


def test_a_number_out_of_range(stub) -> None:
    """The error says how many there are."""
    with pytest.raises(JaxRuntimeError, match=r"gpu:3 does not exist: this machine has 1"):
        device.gpu(3)


def test_a_stale_kernel_says_what_to_do(stub) -> None:
    """Machine code that the device refuses."""
    executable, args = on_gpu(lambda x: jnp.sin(x) - 7, floats(64))
    stub.stub_fail(b"cuModuleLoadData", 209)
    with pytest.raises(JaxRuntimeError, match="fnarray cache clear"):
        executable.run(*args)


def test_a_kernel_of_many_registers_has_fewer_lanes(stub) -> None:
    """As many as the driver says fit: a power of two."""
    stub.stub_threads(640)
    try:
        executable, args = on_gpu(lambda x: jnp.sum(x * 9), floats(10000))
        executable.run(*args)
    finally:
        stub.stub_threads(1024)
    grid, block, size = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_size_t()
    stub.stub_last(ctypes.byref(grid), ctypes.byref(block), ctypes.byref(size))
    assert (grid.value, block.value) == (1, 512)


def test_damaged_machine_code_says_what_to_do(stub) -> None:
    """Code that is none."""
    executable, args = on_gpu(lambda x: jnp.sin(x) - 8, floats(64))
    stub.stub_fail(b"cuModuleLoadData", 200)
    with pytest.raises(JaxRuntimeError, match=r"damaged.*fnarray cache clear"):
        executable.run(*args)


def test_machine_code_of_a_newer_toolkit_is_loaded_as_text(stub, monkeypatch, caplog) -> None:
    """A driver that does not know its format compiles the text; a line of the log says so."""
    executable, args = on_gpu(lambda x: jnp.sin(x) - 9, floats(64))
    made = device.build

    def newer(source, capability):
        return replace(made(source, capability), kind="cubin", code=b"\x7fELF of tomorrow")

    monkeypatch.setattr(device, "build", newer)
    stub.stub_fail(b"machine code", 200)
    with caplog.at_level(logging.WARNING, "fnarray.compile"):
        executable.run(*args)
    assert stub.stub_launches() == 1
    assert "fnarray[cuda12]" in caplog.text


def test_memory_that_others_saw_waits_for_them(stub) -> None:
    """Before it is given back, the stream that other libraries work on is waited for."""
    for shown in (False, True):
        x = device.gpu().put(np.ones((4, 4), np.float32))
        if shown:
            assert x.rows(1).__cuda_array_interface__["data"][0] == x.pointer + 16
        before = stub.stub_waits()
        del x
        assert stub.stub_waits() == before + shown


def test_memory_of_others_is_given_back_when_kernels_are_done(stub) -> None:
    """Its owner takes it for other things at once."""
    there = device.gpu().put(np.arange(6.0))
    borrowed = from_interface(there)
    before = stub.stub_syncs()
    del borrowed
    assert stub.stub_syncs() == before + 1


def test_memory_of_others_that_begins_anywhere_is_copied(stub) -> None:
    """Kernels load sixteen bytes at once, from where that many begin."""
    x = device.gpu().put(np.arange(6, dtype=np.float32))
    tail = device.DeviceArray(x.device, (5,), x.dtype, x, x.pointer + 4)
    own = gpu.borrowed(tail, copy=False)
    shared = gpu.borrowed(x, copy=False)
    assert own is not None
    assert shared is not None
    assert own._there.pointer % 16 == 0
    assert shared._there.pointer == x.pointer
    np.testing.assert_array_equal(np.asarray(own), np.arange(1, 6))


def test_bytes_are_counted_by_all_threads(stub) -> None:
    """Nothing is lost where threads allocate and free at once."""
    where = device.gpu()
    before = where.held

    def work() -> None:
        for _ in range(200):
            where.empty(100, "f4")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert where.held == before


def test_copies_of_recorded_programs(stub) -> None:
    """Eight bytes at a time where that is possible, one else; nothing of nothing."""
    where = device.gpu()
    with Recorder(10) as recorder:
        for size in (0, 5, 16):
            x, y = where.empty(size, "u1"), where.empty(size, "u1")
            where.copy(y, x)
    turns = [(source.signature[0], given[-1]) for source, *_, given in recorder.launches]
    assert turns == [("u8[1]", 5), ("u64[1]", 2)]


def test_no_driver_at_all(monkeypatch) -> None:
    """The error says what to install, that the processor is there, and JAX's words for it."""

    def none(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(libcuda.ctypes, "CDLL", none)
    said = r"Unknown backend 'cuda': no driver of a GPU.*Install.*run on the cpu"
    with pytest.raises(JaxRuntimeError, match=said):
        libcuda.Libcuda()


def test_a_driver_without_a_function(stub, monkeypatch) -> None:
    """One that lacks what is called is too old; what is not called is not missed."""
    monkeypatch.setitem(libcuda._FUNCTIONS, "cuFromTheFuture", ())
    driver = libcuda.Libcuda()
    with pytest.raises(JaxRuntimeError, match=r"no cuFromTheFuture.*older than 12.0"):
        driver.cuFromTheFuture()


@pytest.mark.parametrize("code", [201, 400])
def test_a_context_that_another_library_took_is_taken_again(stub, code) -> None:
    """Numba's context managers leave none, others leave their own."""
    executable, args = on_gpu(lambda x: x + 2, floats(64))
    executable.run(*args)
    before = stub.stub_launches()
    stub.stub_lose(code)
    out = executable.run(*args)  # allocates first
    kernel = executable.source.kernels[0]
    run = device.gpu().kernel(kernel.source)
    stub.stub_lose(code)
    run(1, 256, args[0], out[0], *kernel.scalars)
    assert stub.stub_launches() == before + 2


def test_numbers_are_sent_without_a_wait(stub) -> None:
    """They travel with the commands, without memory that is locked for them."""
    before = stub.stub_syncs()
    for x in (np.float64(0.1), np.complex128(1 - 2j), np.int16(-3), np.bool_(True), np.arange(3)):
        there = device.gpu().put(np.asarray(x))
        assert stub.stub_syncs() == before
        assert (there.device._staging.held > 0) == (there.nbytes > 16)
        np.testing.assert_array_equal(there.on_host(), x)
        before = stub.stub_syncs()


def test_threads_that_come_first_at_once_share_a_device(stub) -> None:
    """The driver is loaded, and a device opened, once."""
    forget()
    ready, found = threading.Barrier(8), set()

    def open_it() -> None:
        ready.wait()
        found.add(id(device.gpu()))

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 1


def test_memory_exhausted_in_a_program_leaves_what_was_there(stub) -> None:
    """Temporaries are given back with the call; the next program runs."""
    stub.stub_set(1, 12040, 1 << 20)
    executable, args = on_gpu(lambda x: jnp.sort(x) + jnp.cumsum(x), floats(1 << 16))
    before = stub.stub_held()
    with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        executable.run(*args)
    gc.collect()
    assert stub.stub_held() == before
    small, given = on_gpu(lambda x: x + 1, floats(8))
    assert small.run(*given)[0].shape == (8,)


# A process of its own forks: a test worker's memory may be more than the machine can promise twice.
FORKED = """
import os, sys
from pathlib import Path
import numpy as np
from tests.cuda.machine import loaded
loaded(Path(sys.argv[1]))
from fnarray.compile.cuda import device
x = device.gpu().put(np.arange(8.0))
if not os.fork():
    x.on_host()
os.wait()
print(x.on_host().sum())
"""


def test_a_forked_process_is_told(tmp_path) -> None:
    """The driver does not survive a fork; the parent goes on."""
    command = [sys.executable, "-c", FORKED, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "28.0\n"), done.stderr
    assert "JaxRuntimeError" in done.stderr
    assert "'spawn'" in done.stderr


def test_a_launch_enters_the_driver_once(stub) -> None:
    """Nothing is asked beside the launch; ``python -m tests.cuda --launch`` prints its time."""
    executable, args = on_gpu(lambda x: x + 1, floats(64))
    kernel = executable.source.kernels[0]
    out = device.gpu().empty(64, np.float32)
    run = device.gpu().kernel(kernel.source)
    before = stub.stub_launches()
    for _ in range(5):
        run(1, 256, args[0], out, *kernel.scalars)
    assert stub.stub_launches() == before + 5


def test_without_a_driver_nothing_of_it_is_imported() -> None:
    """A program on the processor never loads this folder, nor the driver."""
    code = (
        "import sys, fnarray, fnarray.numpy as jnp; fnarray.jit(jnp.sin)(1.0)\n"
        "assert not [m for m in sys.modules if 'compile.cuda' in m or m.startswith('cuda')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
