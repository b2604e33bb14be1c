"""The stub as a machine: the processor runs its kernels, from the LLVM text that a GPU gets."""

from __future__ import annotations

import ctypes
import functools
import shutil
import struct
import subprocess
import timeit
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import fnarray
from fnarray.compile.cuda import build, device, launching, libcuda
from fnarray.compile.cuda.target import CUDA
from fnarray.compile.emit.source import KernelSource
from fnarray.compile.pipeline import compile_graph
from fnarray.config import config
from fnarray.core.array import default
from fnarray.runtime import device as devices

from .host import _built

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="the stub is compiled by gcc")


def loaded(folder: Path) -> Any:
    """Return the stub, loaded under the driver's name: who asks for that now gets it."""
    path = folder / "libcuda.so.1"
    source = Path(__file__).with_name("stub.c")
    flags = ["-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["gcc", *flags, "-o", path, source], check=True)
    found = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    found.stub_set.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_size_t
    found.stub_held.restype = found.stub_blocks.restype = ctypes.c_size_t
    found.stub_locked.restype = found.stub_room.restype = ctypes.c_size_t
    found.stub_room.argtypes = (ctypes.c_void_p,)
    return found


def forget() -> None:
    """Forget devices, and programs, which are bound to the device that they ran on first."""
    fnarray.clear_caches()
    libcuda.libcuda.cache_clear()
    device.gpu.cache_clear()
    devices._gpus.cache_clear()
    default.find = None


def on_gpu(fun: Any, *args: Any) -> tuple[Any, list[Any]]:
    """Return a program for the device, and its arguments there."""
    lowered = fnarray.jit(lambda *xs: fun(*xs)).lower(*args)
    executable = compile_graph(lowered._traced.closed, CUDA)
    arrays = [device.gpu().put(np.asarray(c)) for c in lowered._traced.consts]
    return executable, [*arrays, *(device.gpu().put(np.asarray(a)) for a in args)]


def launch_time() -> float:
    """Return the host's seconds for a launch: packing, entering, a stub that does nothing."""
    executable, args = on_gpu(lambda x: x + 1, np.zeros(64, np.float32))
    out = device.gpu().empty(64, np.float32)
    kernel = executable.source.kernels[0]
    run = device.gpu().kernel(kernel.source)
    launch = functools.partial(run, 1, 256, args[0], out, *kernel.scalars)
    return min(timeit.repeat(launch, number=100, repeat=50)) / 100


#: The driver's numbers of arguments that no kernel has, and of addresses that a kernel has not.
_INVALID, _NOT_ITS_OWN, _MISALIGNED = 1, 700, 716


def _fault(stub: Any, address: int) -> int:
    """Return the number of the error that a kernel runs into at an address; 0 if it does not."""
    if not stub.stub_room(address):
        return _NOT_ITS_OWN
    return _MISALIGNED if address % 16 else 0


_RUN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t
)


@contextmanager
def computing(stub: Any) -> Generator[list[str]]:
    """Let the stub's kernels compute, one lane a block; yields the names of those that ran."""
    sources: dict[bytes, KernelSource] = {}
    ran: list[str] = []
    made = build.build

    def known(source: KernelSource, capability: str) -> Any:
        binary = made(source, capability)
        sources[binary.name.encode()] = source
        return binary

    def run(name: bytes, blocks: int, lanes: int, packed: int, size: int) -> int:
        source = sources[name]
        function, here = _built(source, config.cuda_fma)
        layout = "@" + "".join(launching.PACKED.get(c, "P") for c in source.signature)
        if size != struct.calcsize(layout):
            return _INVALID
        args = struct.unpack(layout, ctypes.string_at(packed, size))
        for code, x in zip(source.signature, args, strict=True):
            if code not in launching.PACKED and (fault := _fault(stub, x)):
                return fault
        here[1] = blocks
        for block in range(blocks):
            here[0] = block
            function(*args)
        ran.append(name.decode())
        return 0

    callback = _RUN(run)
    stub.stub_run(callback)
    try:
        with mock.patch.object(device, "build", known):
            yield ran
    finally:
        stub.stub_run(_RUN())
