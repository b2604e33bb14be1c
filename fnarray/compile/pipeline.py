"""Graph to executable: the stages in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..config import config
from ..core.graph import ClosedGraph, Graph, structure, subgraphs
from ..core.verify import verify
from . import build, report
from .emit.driver import Program, emit_driver
from .launch import launch
from .schedule.plan import Plan, plan_block
from .simplify import simplified


def sizes_of(graph: Graph) -> frozenset[int]:
    """Return the sizes of a graph's arrays and axes: literals equal to one are sizes."""
    sizes: set[int] = set()

    def see(shape: tuple[int, ...]) -> None:
        sizes.update(shape)
        sizes.add(prod(shape))

    def walk(inner: Graph) -> None:
        for var in (*inner.constvars, *inner.invars):
            see(var.aval.shape)
        for eqn in inner.eqns:
            for var in eqn.outvars:
                see(var.aval.shape)
            for sub in subgraphs(eqn.params):
                walk(sub)

    walk(graph)
    return frozenset(sizes | {n - 1 for n in sizes} | {n + 1 for n in sizes})


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """A kernel's name and source, for people."""

    name: str
    text: str


class Executable:
    """A compiled program.

    Attributes
    ----------
    run : callable
        ``run(*arrays)`` takes NumPy arrays for the constants and inputs in order, C-contiguous,
        native and of the declared dtypes, and returns a tuple of fresh ones.
    """

    def __init__(self, graph: ClosedGraph, plan: Plan, program: Program):
        self.graph = graph
        self.plan = plan
        self.program = program
        self._lock = threading.Lock()
        self.run: Callable[..., tuple[np.ndarray, ...]] = self._first

    def _first(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.load()(*arrays)

    def load(self) -> Callable[..., tuple[np.ndarray, ...]]:
        """Build the kernels and bind the driver, once."""
        with self._lock:
            if self.run == self._first:
                self.run = self._bind()
        return self.run

    def _bind(self) -> Callable[..., tuple[np.ndarray, ...]]:
        namespace: dict[str, Any] = {"empty": np.empty, "launch": launch, **_CODES}
        for j, kernel in enumerate(self.program.kernels):
            namespace[f"kernel{j}"] = build.load(kernel.source)
            for k, (_, combine) in enumerate(kernel.folds):
                namespace[f"fold{j}_{k}"] = build.load(combine)
        for j, host in enumerate(self.program.hosts):
            namespace[f"h{j}"] = host
        for j, value in enumerate(self.program.constants):
            namespace[f"k{j}"] = value
        exec(compile(self.program.text, "<fnarray driver>", "exec"), namespace)
        return namespace["main"]

    @property
    def kernels(self) -> tuple[KernelInfo, ...]:
        """The kernels' names and sources."""
        out = []
        for kernel in self.program.kernels:
            name = build.kernel_name(kernel.source)
            out.append(KernelInfo(name, kernel.source.text.replace("def kernel(", f"def {name}(")))
        return tuple(out)

    @property
    def driver_text(self) -> str:
        """Source of the driver."""
        return self.program.text

    @property
    def plan_text(self) -> str:
        """The plan in words, one item a line."""
        return report.plan_text(self.plan)

    def as_text(self) -> str:
        """Return the emitted source: kernels, then the driver."""
        return "\n\n".join([*(k.text for k in self.kernels), self.driver_text])

    @property
    def cost(self) -> dict[str, float]:
        """Estimated operations and bytes moved."""
        return report.cost(self.plan)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of arguments, outputs and temporaries."""
        graph = self.graph.jaxpr

        def total(avals: Sequence[Any]) -> int:
            return sum(a.size * a.dtype.itemsize for a in avals)

        out = total(graph.out_avals)
        return {
            "argument_bytes": total(graph.in_avals),
            "output_bytes": out,
            "temp_bytes": max(self.program.temp_bytes - out, 0),
        }


_CODES = {
    "b1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def _run_of(closed: ClosedGraph) -> Callable[..., tuple[np.ndarray, ...]]:
    executable = compile_graph(closed)
    return lambda *arrays: executable.run(*arrays)


_programs: dict[Any, Executable] = {}


def compile_graph(closed: ClosedGraph) -> Executable:
    """Compile a closed graph.

    Parameters
    ----------
    closed : ClosedGraph
        Its ``constvars`` come before its inputs in ``Executable.run``.

    Returns
    -------
    Executable
        Kernels are built at its first run.
    """
    graph = closed.jaxpr
    try:
        key = structure(graph)
        found = _programs.get(key)
    except TypeError:  # a param without hash: compiled anew each time
        key = found = None
    if found is not None:
        return found
    if config.verify:
        verify(graph)
    block = simplified(graph)
    plan = plan_block(block, in_loop=False)
    executable = Executable(closed, plan, emit_driver(plan, sizes_of(graph), _run_of))
    if key is not None:
        if len(_programs) >= 1024:
            _programs.pop(next(iter(_programs)), None)
        _programs[key] = executable
    return executable
