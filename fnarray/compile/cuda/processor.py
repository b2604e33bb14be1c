"""The kernels of a GPU as the processor reads them: for tests, on machines without one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fnarray_kernels import grid

from ..cpu.halves import words
from ..cpu.library import step_of
from ..cpu.namespace import CODES, python_function, spell
from ..emit.source import KernelSource
from ..target import Limits, Target, one_by_one
from .build import key
from .device import DeviceArray, Gpu
from .driver import emit
from .library import is_step
from .target import LIMITS, loop_order


def python_kernel(source: KernelSource) -> Callable[..., None]:
    """Return a kernel as the Python function that its text is, over the words of `grid`."""
    function: Any = python_function("kernel", spell("kernel", source), "<kernel>")
    function.__globals__.update(grid.WORDS)
    typed = [(k, CODES[c]) for k, c in enumerate(source.signature) if c in CODES and c != "i64"]

    def kernel(*args: Any) -> None:
        given = list(args)
        for k, code in typed:
            given[k] = code(given[k])
        function(*given)

    return kernel


def _launch(most: int, kernel: Callable[..., None], blocks: int, lanes: int, *args: Any) -> None:
    flat = (words(a).reshape(-1) if isinstance(a, np.ndarray) else a for a in args)
    grid.run(kernel, blocks, min(lanes, most), *flat)


def simulated(lanes: int) -> Target:
    """Return a target that runs blocks of so many lanes, which meet at barriers."""

    def names(limits: Limits) -> dict[str, Any]:
        return {"empty": np.empty, "launch": partial(_launch, lanes), **CODES}

    return replace(ONE_THREAD, name=f"cuda, {lanes} lanes on the processor", names=names)


class Emulated(Gpu):
    """A GPU whose memory is the host's and whose kernels the processor reads.

    Parameters
    ----------
    number : int
    lanes : int
        Threads of a block, which are one at most otherwise.
    """

    graphs = False

    def __init__(self, number: int, lanes: int = 1):
        self.number, self.name, self.capability, self.stream = number, "cpu", "", 0
        self.held = self.most = 0
        self.lanes = lanes
        self._memory: dict[int, np.ndarray] = {}

    def allocate(self, size: int) -> int:
        """Return the address of so many bytes."""
        room = np.zeros(max(size, 1) + 256, np.uint8)
        address = -(-room.ctypes.data // 256) * 256
        self._memory[address] = room
        self.held += size
        return address

    def free(self, address: int, size: int, *, seen: bool = False) -> None:
        """Give bytes back."""
        del self._memory[address]
        self.held -= size

    def view(self, x: DeviceArray) -> np.ndarray:
        """Return an array's memory."""
        room: Any = (ctypes.c_char * max(x.nbytes, 1)).from_address(x.pointer)
        return np.frombuffer(room, x.dtype, x.size).reshape(x.shape)

    def put(self, x: np.ndarray) -> DeviceArray:
        """Return a NumPy array's elements on the device."""
        out = DeviceArray(self, x.shape, x.dtype)
        self.view(out)[...] = x
        return out

    def copy(self, to: DeviceArray, source: DeviceArray) -> None:
        """Copy one array of the device into another."""
        self.view(to)[...] = self.view(source)

    bring = copy  # all devices' memory is the host's

    def to_host(self, x: DeviceArray) -> np.ndarray:
        """Return an array's elements as NumPy's."""
        return self.view(x).copy()

    def let_wait(self, stream: int) -> None:
        """Return: calls are done when they return."""

    def wait_for(self, stream: int) -> None:
        """Return: there is one thread of execution."""

    def enter(self) -> Any:
        """Return: there is no driver."""

    def wait(self) -> None:
        """Return: calls are done when they return."""

    def let_go(self) -> None:
        """Return: calls are done when they return."""

    def kernel(self, source: KernelSource) -> Callable[..., None]:
        """Return ``run(blocks, lanes, *args)`` of a kernel."""
        kernel = python_kernel(source)

        def run(blocks: int, lanes: int, *args: Any) -> None:
            given = (self.view(a) if isinstance(a, DeviceArray) else a for a in args)
            _launch(self.lanes, kernel, blocks, lanes, *given)

        return run


#: One block after the other, each of one lane.
ONE_THREAD = Target(
    name="cuda, read by the processor",
    limits=LIMITS,
    loop_order=loop_order,
    is_step=is_step,
    emit=emit,
    build=one_by_one(python_kernel),
    step=step_of,
    key=key,
    names=lambda limits: {"empty": np.empty, "launch": partial(_launch, 1), **CODES},
)
