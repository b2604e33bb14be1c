"""A GPU: its memory, one stream on which everything happens in order, and its kernels."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from math import prod
from typing import Any, Final

import numpy as np

from ...errors import JaxRuntimeError
from ..cache.key import KernelSource
from .build import Binary, assembly, build
from .launching import PACKED, launcher, packer_of
from .libcuda import LOST, DriverError, Libcuda, libcuda, opening
from .recording import FAKE, NotRecorded, Recorder, current
from .staging import Staging

_log: Final = logging.getLogger("fnarray.compile")
_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16
_NON_BLOCKING, _RELEASE_THRESHOLD, _OUT_OF_MEMORY = 1, 4, 2
#: Errors of a driver that does not know machine code: of another format, architecture or toolkit.
_UNKNOWN: Final = (200, 209, 218, 222, 300, 801)
_NO_TIMING, _ORDINAL, _MAX_THREADS = 2, 9, 0
_ON_DEVICE, _READ_AND_WRITE = 1, 3
#: Bytes of a number, which are written without a wait.
_FEW: Final = 16
#: The stream on which other libraries work, unless they are told another.
_LEGACY: Final = 1


class _Process:
    """How often the process was forked; to ask the system which it is takes 0.3 us."""

    forks = 0

    def forked(self) -> None:
        """Note that this is a child."""
        self.forks += 1


_process: Final = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


class _Access(ctypes.Structure):
    """Who may reach a pool's memory: ``CUmemAccessDesc``."""

    _fields_ = (("kind", c_int), ("number", c_int), ("flags", c_int))


def _copier(code: str) -> KernelSource:
    text = """def kernel(x, out, n):
    i = thread()
    while i < n:
        out[u(i)] = x[u(i)]
        i += threads()
"""
    return KernelSource(text, (f"{code}[1]", f"{code}[1]", "i64"))


#: Copy as programs that are recorded do: eight bytes at a time, or one.
_COPIES: Final = {8: _copier("u64"), 1: _copier("u8")}


class DeviceArray:
    """Elements in a GPU's memory, C-contiguous; what drivers of programs pass on.

    ``base`` is what the memory belongs to, where it is not the array's own.

    Attributes
    ----------
    pointer : int
    shape : tuple of int
    dtype : numpy.dtype
    seen : bool
        Whether other libraries were told of the memory.
    """

    __slots__ = ("base", "device", "dtype", "pointer", "seen", "shape", "size")

    def __init__(
        self,
        device: Gpu,
        shape: tuple[int, ...],
        dtype: np.dtype,
        base: Any = None,
        pointer: int = 0,
    ):
        self.device, self.shape, self.dtype, self.base = device, shape, dtype, base
        self.size = prod(shape)
        self.pointer = pointer
        self.seen = False
        if base is None:
            self.pointer = device.allocate(self.size * dtype.itemsize)

    def __del__(self) -> None:
        if self.pointer and self.base is None and sys and not sys.is_finalizing():
            self.device.free(self.pointer, self.nbytes, seen=self.seen)

    def rows(self, t: int | slice) -> DeviceArray:
        """Return an element, or some, of the first axis, in the same memory."""
        shape = self.shape[1:]
        size = prod(shape) * self.dtype.itemsize
        if isinstance(t, slice):
            first, shape = t.start, (t.stop - t.start, *shape)
        else:
            first = t
        return DeviceArray(self.device, shape, self.dtype, self, self.pointer + first * size)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def copy(self) -> DeviceArray:
        """Return a copy on the same device."""
        out = DeviceArray(self.device, self.shape, self.dtype)
        self.device.copy(out, self)
        return out

    def on_host(self) -> np.ndarray:
        """Return the elements as a NumPy array, once all that computes them is done."""
        return self.device.to_host(self)

    def show(self) -> None:
        """Note that another library is told of the memory."""
        x: Any = self
        while isinstance(x.base, DeviceArray):
            x = x.base
        x.seen = True

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """What CuPy, PyTorch and Numba read.

        Raises
        ------
        AttributeError
            It has no name for bfloat16.
        """
        if self.dtype.kind == "V":
            raise AttributeError(f"__cuda_array_interface__ has no {self.dtype}; use DLPack")
        self.show()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (
                self.pointer if self.size else 0,
                False,
            ),  # PyTorch takes none that is marked as to be read only
            "strides": None,
            "stream": self.device.stream or 1,
            "version": 3,
        }


class Gpu:
    """One GPU.

    Attributes
    ----------
    number : int
    name : str
    capability : str
        ``"sm_90"``.
    held, most : int
        Bytes of the arrays that live there, and of those that did at most.
    context : c_void_p
        Handle of the primary context, which other libraries share.
    stream : int
        Handle of the one stream; calls return before what they start is done.
    started : deque of KernelSource
        Kernels that were launched last, since the last wait.
    graphs : bool
        Whether programs may become graphs.
    """

    graphs = True

    def __init__(self, number: int):
        self.number = number
        self._forks = _process.forks
        self._driver = driver = libcuda()
        device = c_int()
        driver.cuDeviceGet(byref(device), number)
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, 256, device)
        self.name = name.value.decode()
        major, minor = (self._attribute(device, k) for k in (_MAJOR, _MINOR))
        self.capability = f"sm_{major}{minor}"
        self.multiprocessors = self._attribute(device, _MULTIPROCESSORS)
        self.context, self._pool, stream = c_void_p(), c_void_p(), c_void_p()
        self._only, self._reached = count() == 1, set[int]()
        driver.cuDevicePrimaryCtxRetain(byref(self.context), device)
        self.enter()
        driver.cuStreamCreate(byref(stream), _NON_BLOCKING)
        self.stream = stream.value or 0
        self._staging = Staging(self.stream)
        # Memory that is freed stays with the process: the next allocation of the stream takes it.
        driver.cuDeviceGetDefaultMemPool(byref(self._pool), device)
        driver.cuMemPoolSetAttribute(self._pool, _RELEASE_THRESHOLD, byref(c_uint64(2**64 - 1)))
        self.held = self.most = 0
        self.started: deque[KernelSource] = deque(maxlen=8)
        self._kernels: dict[KernelSource, Callable[..., None]] = {}
        self._told = False
        self._counting = threading.RLock()  # an array may die while another one is counted

    def _attribute(self, device: Any, number: int) -> int:
        value = c_int()
        self._driver.cuDeviceGetAttribute(byref(value), number, device)
        return value.value

    def enter(self) -> Libcuda:
        """Make the device the calling thread's; return the driver.

        Raises
        ------
        JaxRuntimeError
            The process was forked after the device was opened.
        """
        if current.recorder is not None:
            raise NotRecorded
        return self._entered()

    def _entered(self) -> Libcuda:
        if self._forks != _process.forks:
            raise JaxRuntimeError(
                "this process was forked from one that uses the GPU, and cannot use it. Start "
                "processes by the 'spawn' method, or fork before the first use."
            )
        # Where there are several devices, another library may have turned to another of them.
        if current.context is not self or not self._only:
            self._driver.cuCtxSetCurrent(self.context)
            current.context = self
        return self._driver

    # -- memory ------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Return the address of so many bytes.

        Raises
        ------
        JaxRuntimeError
            The device has no such memory left.
        """
        if current.recorder is not None:
            return current.recorder.allocate(size)
        driver, address = self.enter(), c_void_p()
        try:
            driver.cuMemAllocAsync(byref(address), max(size, 1), self.stream)
        except DriverError as error:
            if error.number != _OUT_OF_MEMORY:
                raise
            free, total = self._room()
            raise JaxRuntimeError(
                f"RESOURCE_EXHAUSTED: out of memory on gpu:{self.number} ({self.name}): {size:,} "
                f"bytes were asked for, arrays hold {self.held:,}, {free:,} of "
                f"{total:,} are free. Delete arrays that are not needed, or compute in parts."
            ) from error
        self._count(size)
        return address.value or 0

    def _count(self, size: int) -> None:
        with self._counting:
            self.held += size
            self.most = max(self.most, self.held)

    def _room(self) -> tuple[int, int]:
        """Return how many bytes the device has free, and in all."""
        free, total = c_size_t(), c_size_t()
        self.enter().cuMemGetInfo_v2(byref(free), byref(total))
        return free.value, total.value

    def memory_stats(self) -> dict[str, int]:
        """Return bytes that arrays hold, and held at most, and those of the device."""
        held = {"bytes_in_use": self.held, "peak_bytes_in_use": self.most}
        return {**held, "bytes_limit": self._room()[1]}

    def free(self, address: int, size: int, *, seen: bool = False) -> None:
        """Give bytes back, after all that was started before.

        Other libraries may read what they have ``seen``: those on the default stream are waited
        for.
        """
        if address >= FAKE:
            if current.recorder is not None:
                current.recorder.moves.append((False, address, size))
            return
        if self._forks == _process.forks:
            driver = self._entered()  # in a recording as well
            if seen:
                self._after(_LEGACY, self.stream)
            driver.cuMemFreeAsync(address, self.stream)
            self._count(-size)

    def empty(self, shape: Any, dtype: Any) -> DeviceArray:
        """Return an array of unknown elements."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return DeviceArray(self, shape, np.dtype(dtype))

    def put(self, x: np.ndarray) -> DeviceArray:
        """Return a NumPy array's elements on the device."""
        if current.recorder is not None:
            return self._put_for(current.recorder, x)
        x = np.ascontiguousarray(x).reshape(x.shape)
        out = DeviceArray(self, x.shape, x.dtype)
        driver = self.enter()
        if x.nbytes <= _FEW:
            self._set(driver, out.pointer, x.tobytes())
            return out
        if not self._staging.send(driver, out.pointer, x.ctypes.data, x.nbytes):
            driver.cuMemcpyHtoDAsync_v2(out.pointer, x.ctypes.data, x.nbytes, self.stream)
            self._synchronize(driver)  # or the array could change before it is read
        return out

    def _set(self, driver: Libcuda, address: int, data: bytes) -> None:
        """Write a few bytes without waiting for what was started: they go with the commands."""
        sets = {4: driver.cuMemsetD32Async, 2: driver.cuMemsetD16Async, 1: driver.cuMemsetD8Async}
        at = 0
        while at < len(data):
            n = next(n for n in sets if len(data) - at >= n)
            word = int.from_bytes(data[at : at + n], sys.byteorder)
            sets[n](address + at, word, 1, self.stream)
            at += n

    def _put_for(self, recorder: Recorder, x: np.ndarray) -> DeviceArray:
        """Return elements that a recorded program always holds."""
        recorder.done()
        try:
            out = self.put(x)
        finally:
            current.recorder = recorder
        recorder.kept.append(out)
        return out

    def take(self, x: DeviceArray) -> DeviceArray:
        """Return an array of another device on this one; it does not go by the host."""
        out = DeviceArray(self, x.shape, x.dtype)
        self.bring(out, x)
        return out

    def bring(self, to: DeviceArray, source: DeviceArray) -> None:
        """Copy an array of any device into one of this one; neither goes by the host."""
        there = source.device
        if there is self:
            self.copy(to, source)
            return
        self._reach(there)
        self._follow(there)
        self.enter().cuMemcpyPeerAsync(
            to.pointer, self.context, source.pointer, there.context, source.nbytes, self.stream
        )
        there._follow(self)  # or its memory could be given back, and filled, before it is read

    def _follow(self, other: Gpu) -> None:
        """Let what is started here wait for what was started on another device."""
        driver, event = other.enter(), c_void_p()
        driver.cuEventCreate(byref(event), _NO_TIMING)
        driver.cuEventRecord(event, other.stream)
        self.enter().cuStreamWaitEvent(self.stream, event, 0)
        driver.cuEventDestroy_v2(event)

    def _reach(self, other: Gpu) -> None:
        """Let the device read another's memory, and be read, where a link joins them.

        Where none does, or it is refused, the driver takes copies through the host's memory.
        """
        if other.number in self._reached:
            return
        for one, two in ((self, other), (other, self)):
            joined = c_int()
            self._driver.cuDeviceCanAccessPeer(byref(joined), one.number, two.number)
            if joined.value:
                reader = _Access(_ON_DEVICE, one.number, _READ_AND_WRITE)
                self._driver.cuMemPoolSetAccess(two._pool, byref(reader), 1)
            one._reached.add(two.number)

    def copy(self, to: DeviceArray, source: DeviceArray) -> None:
        """Copy one array of the device into another."""
        if current.recorder is not None:
            n = 1 if (source.pointer | to.pointer | source.nbytes) % 8 else 8
            turns = source.nbytes // n
            if turns:
                self.kernel(_COPIES[n])(-(-turns // 1024), 256, source, to, turns)
            return
        driver = self.enter()
        driver.cuMemcpyDtoDAsync_v2(to.pointer, source.pointer, source.nbytes, self.stream)

    def to_host(self, x: DeviceArray) -> np.ndarray:
        """Return an array's elements as NumPy's, once they are computed."""
        out = np.empty(x.shape, x.dtype)
        driver = self.enter()
        driver.cuMemcpyDtoHAsync_v2(out.ctypes.data, x.pointer, out.nbytes, self.stream)
        self._synchronize(driver)
        return out

    def _after(self, first: int, then: int) -> None:
        """Let one stream go on only when what the other has been given is done."""
        driver, event = self._entered(), c_void_p()
        driver.cuEventCreate(byref(event), _NO_TIMING)
        driver.cuEventRecord(event, first)
        driver.cuStreamWaitEvent(then, event, 0)
        driver.cuEventDestroy_v2(event)

    def let_wait(self, stream: int) -> None:
        """Let another library's stream wait for what was started here."""
        self.enter()
        self._after(self.stream, stream)

    def wait_for(self, stream: int) -> None:
        """Let what is started here wait for another library's stream."""
        self.enter()
        self._after(stream, self.stream)

    @staticmethod
    def of_pointer(pointer: int) -> Gpu:
        """Return the GPU whose memory an address is in."""
        number = c_int()
        if pointer:
            libcuda().cuPointerGetAttribute(byref(number), _ORDINAL, pointer)
        return gpu(number.value)

    def forget(self, graph: c_void_p, ready: c_void_p) -> None:
        """Give back a graph, and what the driver made of it to be launched."""
        if self._forks == _process.forks:
            driver = self._entered()
            driver.cuGraphExecDestroy(ready)
            driver.cuGraphDestroy(graph)

    def wait(self) -> None:
        """Return once all that was started is done."""
        self._synchronize(self.enter())

    def let_go(self) -> None:
        """Return once nothing that was started needs another library's memory."""
        if self._forks == _process.forks:
            self._synchronize(self._entered())

    def _synchronize(self, driver: Libcuda) -> None:
        """Wait; an error of a kernel, known only now, says which may have failed, and where."""
        try:
            driver.cuStreamSynchronize(self.stream)
        except DriverError as error:
            lines = [x.strip() for s in self.started for x in s.text.splitlines()]
            notes = dict.fromkeys(x[2:] for x in lines if x.startswith("# "))
            where = "; ".join(reversed(notes)) or "none of a program"
            raise DriverError(
                f"{error}\nThe last kernels, the latest first: {where}", error.number
            ) from error
        self.started.clear()

    # -- kernels -----------------------------------------------------------------------------

    def kernel(self, source: KernelSource) -> Callable[..., None]:
        """Return ``run(blocks, lanes, *args)`` of a kernel, loaded once."""
        found = self._kernels.get(source)
        if found is None:
            recorder, current.recorder = current.recorder, None
            try:
                found = self._kernels[source] = self._load(source)
            finally:
                current.recorder = recorder
        return found

    def _module(self, source: KernelSource, binary: Binary) -> c_void_p:
        """Load a kernel's code; as text, where it is for newer drivers than this one."""
        module = c_void_p()
        try:
            self._driver.cuModuleLoadData(byref(module), binary.code)
        except DriverError as error:
            if binary.kind == "ptx" or error.number not in _UNKNOWN:
                raise
            self._say_unknown(error)
            text = assembly(source, self.capability).encode() + b"\0"
            self._driver.cuModuleLoadData(byref(module), text)
        return module

    def _say_unknown(self, error: DriverError) -> None:
        """Say, once, that the driver does not know the linker's machine code."""
        if not self._told:
            _log.warning(
                "%s The text of kernels is compiled by the driver instead, in each process: "
                "install the linker of the driver's own CUDA, %d (fnarray[cuda%d]).",
                error, self._driver.version // 1000, self._driver.version // 1000,
            )  # fmt: skip
            self._told = True

    def _load(self, source: KernelSource) -> Callable[..., None]:
        binary = build(source, self.capability)
        driver, function = self.enter(), c_void_p()
        module = self._module(source, binary)
        driver.cuModuleGetFunction(byref(function), module, binary.name.encode())
        threads = c_int()
        driver.cuFuncGetAttribute(byref(threads), _MAX_THREADS, function)
        # Kernels run with any power of two: one that takes many registers has fewer lanes.
        most = 1 << max(threads.value, 1).bit_length() - 1
        packer, kept = packer_of(source.signature), function.value or 0
        arrays = [k for k, c in enumerate(source.signature) if c not in PACKED]
        launch = launcher(driver.launch, kept, self.stream, most, source.signature, DeviceArray)
        enter, started = self._entered, self.started.append

        def run(blocks: int, lanes: int, *args: Any) -> None:
            recorder = current.recorder
            if recorder is not None:
                given = [x.pointer if k in arrays else x for k, x in enumerate(args)]
                recorder.launch(source, kept, blocks, min(lanes, most), packer, arrays, given)
                return
            enter()
            started(source)
            code = launch(blocks, lanes, *args)
            if code in LOST and driver.regained():
                code = launch(blocks, lanes, *args)
            if code:
                error = driver.error("cuLaunchKernel", code)
                raise DriverError(f"{error}\nIn the kernel:\n{source.text}", code)

        return run


def gpu(number: int = 0) -> Gpu:
    """Return a GPU, opened at the first use; there is one object for each.

    Raises
    ------
    JaxRuntimeError
        There is no driver, it is too old, or there is no such device.
    """
    with opening:
        return _opened(number)


@functools.cache
def _opened(number: int) -> Gpu:
    there = count()
    if not 0 <= number < there:
        raise JaxRuntimeError(
            f"gpu:{number} does not exist: this machine has {there}. CUDA_VISIBLE_DEVICES chooses "
            "which of them a process sees."
        )
    return Gpu(number)


gpu.cache_clear = _opened.cache_clear  # type: ignore[attr-defined]


def count() -> int:
    """Return how many GPUs the process sees."""
    number = c_int()
    libcuda().cuDeviceGetCount(byref(number))
    return number.value
