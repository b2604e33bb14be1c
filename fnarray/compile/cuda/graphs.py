"""Programs of many small kernels as CUDA graphs: recorded once, launched as one.

A program that has run a few times runs once more without the device: its launches are written down,
its arrays are numbers that stand for addresses. What lives shortly shares memory that the graph
keeps; arguments and results get their addresses at each launch, where they changed. Loops whose
number of turns is known are part of it; whatever asks the host is launched kernel by kernel.
"""

from __future__ import annotations

import bisect
import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from ctypes import byref, c_size_t, c_uint, c_void_p
from typing import Any, Final

from ...core.hooks import binders
from .device import DeviceArray, Gpu
from .launching import BUFFER, SIZE
from .libcuda import DriverError
from .recording import FAKE, NotRecorded, Recorder, recording

_log: Final = logging.getLogger("fnarray.compile")
#: Programs of so many launches are worth a graph, and of more are not one.
LEAST, MOST = 8, 1 << 12
#: Calls before a program is recorded: two of those that are called at all are called again.
CALLS: Final = 2
#: Bytes that a graph keeps at most; a program that wants more takes them from the pool each time.
KEPT: Final = 1 << 28
_LINE: Final = 256


class KernelNode(ctypes.Structure):
    """What the driver wants to know of a kernel in a graph: ``CUDA_KERNEL_NODE_PARAMS_v2``."""

    _fields_ = (
        ("function", c_void_p),
        ("grid_x", c_uint), ("grid_y", c_uint), ("grid_z", c_uint),
        ("block_x", c_uint), ("block_y", c_uint), ("block_z", c_uint),
        ("shared", c_uint),
        ("params", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )  # fmt: skip


class _Node:
    """A launch in a graph, with its arguments where the driver reads them.

    Attributes
    ----------
    moves : list of (int, int, int)
        Arguments whose addresses differ from call to call: which, in which of the program's own
        arguments and results they are, and how far.
    """

    def __init__(self, launch: Any):
        self.source, function, blocks, lanes, pack, arrays, given = launch
        self.pack, self.arrays, self.given = pack, arrays, list(given)
        self.moves: list[tuple[int, int, int]] = []
        self.buffer = ctypes.create_string_buffer(pack.size)
        self.size = c_size_t(pack.size)
        self.extra = (c_void_p * 5)(
            BUFFER, ctypes.addressof(self.buffer), SIZE, ctypes.addressof(self.size), None
        )
        self.params = KernelNode(
            function, blocks, 1, 1, lanes, 1, 1, 0, None, ctypes.addressof(self.extra), None, None
        )
        self.handle = c_void_p()

    def fill(self, now: Sequence[int]) -> None:
        """Write the arguments, addresses as they are now."""
        for k, whose, far in self.moves:
            self.given[k] = now[whose] + far
        self.pack.pack_into(self.buffer, 0, *self.given)


class Graph:
    """A recorded program.

    Parameters
    ----------
    where : Gpu
    recorder : Recorder
        What it launched.
    ins, outs : sequence of DeviceArray
        Its arguments and results, at addresses that stand for them.
    """

    def __init__(
        self,
        where: Gpu,
        recorder: Recorder,
        ins: Sequence[DeviceArray],
        outs: Sequence[DeviceArray],
    ):
        self.where = where
        self._kept = recorder.kept
        self._outs = [(x.shape, x.dtype) for x in outs]
        self._lock = threading.Lock()
        lasting = {x.pointer for x in outs}
        size, self._places = _planned(recorder, lasting)
        self._room = where.empty(size, "u1") if size else None
        #: Where arguments and results begin, in the order of the addresses that stand for them.
        self._ends = [*ins, *outs]
        order = sorted(range(len(self._ends)), key=lambda k: self._ends[k].pointer)
        self._starts = [self._ends[k].pointer for k in order]
        self._order = order
        self._now: list[int] = []
        self._nodes = [_Node(launch) for launch in recorder.launches]
        self._last = [n.source for n in self._nodes[-8:]]
        for node in self._nodes:
            for k in node.arrays:
                if (found := self._whose(node.given[k])) is not None:
                    node.moves.append((k, *found))
                else:
                    node.given[k] = self._place(node.given[k])
        #: Nodes by the arguments and results that they read or write.
        self._using = [
            [n for n in self._nodes if any(j == whose for _, j, _ in n.moves)]
            for whose in range(len(self._ends))
        ]
        self._made = False
        self._graph, self._ready = c_void_p(), c_void_p()

    def _whose(self, address: int) -> tuple[int, int] | None:
        """Return which argument or result an address is in, and how far."""
        if address < FAKE:
            return None
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        k = self._order[at]
        base = self._ends[k].pointer
        return (k, address - base) if address < base + max(self._ends[k].nbytes, 1) else None

    def _place(self, address: int) -> int:
        """Return the address that one stands for, of what the program holds or the graph keeps."""
        if address < FAKE:
            return address  # what the program holds
        starts, offsets = self._places
        at = bisect.bisect_right(starts, address) - 1
        assert self._room is not None
        return self._room.pointer + offsets[at] + address - starts[at]

    def __call__(self, *args: DeviceArray) -> tuple[DeviceArray, ...]:
        """Launch all of it; return the results, which are under way."""
        outs = tuple(self.where.empty(shape, dtype) for shape, dtype in self._outs)
        driver = self.where.enter()
        with self._lock:
            now = [x.pointer for x in (*args, *outs)]
            if not self._made:
                self._make(driver, now)
            elif now != self._now:
                self._move(driver, now)
            self.where.started.extend(self._last)
            driver.cuGraphLaunch(self._ready, self.where.stream)
        return outs

    def _move(self, driver: Any, now: list[int]) -> None:
        """Tell the driver of arguments and results that lie elsewhere than in the last call."""
        changed = [k for k, (a, b) in enumerate(zip(now, self._now, strict=True)) if a != b]
        for node in {id(n): n for k in changed for n in self._using[k]}.values():
            node.fill(now)
            driver.cuGraphExecKernelNodeSetParams_v2(self._ready, node.handle, byref(node.params))
        self._now = now

    def _make(self, driver: Any, now: list[int]) -> None:
        """Make the driver's graph, a chain: each kernel may read what the last one wrote."""
        self._now = now
        driver.cuGraphCreate(byref(self._graph), 0)
        last: Any = None
        for node in self._nodes:
            node.fill(now)
            before, count = (None, 0) if last is None else (byref(last), 1)
            driver.cuGraphAddKernelNode_v2(
                byref(node.handle), self._graph, before, count, byref(node.params)
            )
            last = node.handle
        driver.cuGraphInstantiateWithFlags(byref(self._ready), self._graph, 0)
        self._made = True

    def __del__(self) -> None:
        if self._made and sys and not sys.is_finalizing():
            self.where.forget(self._graph, self._ready)


def _planned(recorder: Recorder, lasting: set[int]) -> tuple[int, tuple[list[int], list[int]]]:
    """Share memory out among what is not alive at once.

    Returns
    -------
    size : int
    places : two lists of int
        Addresses that stand for arrays, ascending, and where each lies in the memory.
    """
    free: list[tuple[int, int]] = []  # (size, offset) of what was given back
    used: dict[int, tuple[int, int]] = {}
    offsets: dict[int, int] = {}
    total = 0
    for made, address, size in recorder.moves:
        if address in lasting:
            continue
        if not made:
            free.append(used.pop(address))
            continue
        fitting = sorted(f for f in free if size <= f[0] <= 4 * size)
        if fitting:
            free.remove(fitting[0])
            used[address] = fitting[0]
        else:
            room = -(-max(size, 1) // _LINE) * _LINE
            used[address] = room, total
            total += room
        offsets[address] = used[address][1]
    starts = sorted(offsets)
    return total, (starts, [offsets[a] for a in starts])


class Replayed:
    """A program that becomes a graph after some calls, if it can."""

    def __init__(self, main: Callable[..., Any], where: Callable[[], Gpu]):
        self._main = main
        self._where = where
        self._calls = 0
        self._graph: Graph | None = None

    def __call__(self, *args: Any) -> Any:
        """Run it."""
        if binders:  # who measures wants to see each kernel
            return self._main(*args)
        if self._graph is not None and not recording():
            return self._launched(self._graph, args)
        if self._calls > CALLS or recording() or not self._where().graphs:
            return self._main(*args)
        self._calls += 1
        if self._calls > CALLS and all(isinstance(x, DeviceArray) for x in args):
            self._graph = recorded(self._main, self._where(), args)
            if self._graph is not None:
                return self._launched(self._graph, args)
        return self._main(*args)

    def _launched(self, graph: Graph, args: Sequence[DeviceArray]) -> Any:
        """Launch a graph; kernel by kernel from now on, if the driver refuses it."""
        try:
            return graph(*args)
        except DriverError as error:
            _log.warning("a program is launched kernel by kernel: %s", error)
            self._graph = None
            return self._main(*args)


def recorded(main: Callable[..., Any], where: Gpu, args: Sequence[DeviceArray]) -> Graph | None:
    """Return a program as a graph; None where it asks the host, or is not worth one."""
    with Recorder(MOST) as recorder:
        ins = [DeviceArray(where, x.shape, x.dtype) for x in args]
        try:
            outs = main(*ins)
        except NotRecorded:
            return None
        same = {id(x) for x in ins}
        whole = all(isinstance(x, DeviceArray) and id(x) not in same for x in outs)
        if not whole or len({x.pointer for x in outs}) < len(outs):
            return None
        if len(recorder.launches) < LEAST or any(x.base is not None for x in outs):
            return None
        # Arguments and results are not the graph's to keep.
        apart = {x.pointer for x in (*ins, *outs)}
        recorder.moves[:] = [m for m in recorder.moves if m[1] not in apart]
        if _planned(recorder, set())[0] > KEPT:
            return None
        return Graph(where, recorder.done(), ins, outs)
