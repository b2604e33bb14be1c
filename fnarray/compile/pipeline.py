"""Graph to executable: the stages in order.

```
Graph --simplified--> Block --schedule--> Plan --emit--> Source --Executable--> arrays
```

Each stage hands the next a frozen value, with a check that runs in all tests and under
``FNARRAY_VERIFY=1``.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import prod
from time import monotonic
from typing import Any, Final

import numpy as np

from ..config import config
from ..core.forms import Contract
from ..core.frozen import frozen
from ..core.graph import ClosedGraph, structure
from ..core.hooks import bound, span
from ..core.keep import forgotten
from ..core.source import unlabelled
from ..core.surgery import erased
from ..core.uncollected import uncollected
from ..core.verify import verify
from ..errors import ProgramSizeError
from . import report
from .cache.key import kernel_name
from .cpu.launch import threads
from .cpu.processor import processor
from .cpu.target import CPU
from .emit.source import KernelSource, Source
from .ir import Block
from .room import check_room, has_room, ran_out
from .schedule.check import check_plan
from .schedule.plan import Plan
from .schedule.schedule import schedule
from .simplify import simplified
from .target import Target


def sizes_of(block: Block) -> frozenset[int]:
    """Return the sizes of a program's arrays and axes: literals equal to one are sizes."""
    sizes: set[int] = set()

    def walk(inner: Block) -> None:
        for var in (*inner.inputs, *(v for node in inner.nodes for v in node.outs)):
            sizes.update(var.aval.shape)
            sizes.add(prod(var.aval.shape))
        for node in inner.nodes:
            for body in node.bodies:
                walk(body)

    walk(block)
    return frozenset(sizes | {n - 1 for n in sizes} | {n + 1 for n in sizes})


@frozen
class KernelInfo:
    """A kernel's name and source, for people."""

    name: str
    text: str


#: Seconds after which something is said of a compilation.
PATIENCE: Final = 1.0


class Executable:
    """A compiled program.

    Attributes
    ----------
    seconds : dict
        What each stage took: ``simplify``, ``schedule``, ``emit``, and ``build`` once it is run.
    run : callable
        ``run(*arrays)`` takes NumPy arrays for the constants and inputs in order, C-contiguous,
        native and of the declared dtypes, and returns a tuple of fresh ones.
    """

    def __init__(self, graph: ClosedGraph, plan: Plan, source: Source, target: Target):
        self.graph = graph
        self.plan = plan
        self.source = source
        self.target = target
        self.seconds: dict[str, float] = {}
        self._built = 0
        self._lock = threading.Lock()
        self.run: Callable[..., tuple[np.ndarray, ...]] = self._first

    def _first(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.load()(*arrays)

    def load(self) -> Callable[..., tuple[np.ndarray, ...]]:
        """Build the kernels and bind the driver, once; raise `ProgramSizeError` for no memory."""
        with self._lock:
            if self.run == self._first:
                with span("build", self.graph.jaxpr.debug_name) as took, self._watched():
                    try:
                        self.run = self._bind()
                    except ProgramSizeError:
                        raise
                    except MemoryError as error:
                        raise ran_out(self.graph.jaxpr, error) from error
                self.seconds["build"] = took.seconds
        return self.run

    def unlocked(self) -> None:
        """Forget, in a child, that another thread of its parent was loading."""
        self._lock = threading.Lock()

    @contextmanager
    def _watched(self) -> Generator[None, None, None]:
        """Say how far the kernels are, should they take longer than `PATIENCE`."""
        ended, since = threading.Event(), monotonic()
        if not has_room(1):  # the memory is the compiler's
            yield
            return

        def show() -> None:
            from .progress import show  # asked for by compilations that take long

            count = len({k for x in self.source.kernels for k in (x.source, *x.folds)})
            show(self.graph.jaxpr.debug_name, count, lambda: self._built, ended, since)

        # A thread waits, since LLVM does not come back before a kernel is done; to start it takes
        # 50 us, and the smallest kernel 20 ms.
        timer = threading.Timer(PATIENCE, show)
        timer.name, timer.daemon = "fnarray progress", True
        timer.start()
        try:
            yield
        finally:
            ended.set()
            timer.cancel()
            timer.join()

    def _bind(self) -> Callable[..., tuple[np.ndarray, ...]]:
        target, source = self.target, self.source
        sources: dict[str, KernelSource] = {}
        for j, kernel in enumerate(source.kernels):
            sources[f"kernel{j}"] = kernel.source
            sources.update((f"fold{j}_{k}", fold) for k, fold in enumerate(kernel.folds))
        check_room(self.plan.block, [x.text.count("\n") for x in sources.values()], threads())
        namespace = target.names(target.limits)
        built = target.build(tuple(sources.values()), partial(setattr, self, "_built"))
        namespace.update(zip(sources, built, strict=True))
        for j, node in enumerate(source.steps):
            namespace[f"h{j}"] = target.step(node, target.limits, self._run_of)
        for j, value in enumerate(source.constants):
            namespace[f"k{j}"] = value
        exec(compile(source.text, "<fnarray driver>", "exec"), namespace)
        main = namespace["main"]
        bound(main, partial(_labels, weakref.ref(self)))
        return target.finish(main)

    def _run_of(
        self,
        graph: ClosedGraph,
        target: Target | None = None,
        given: tuple[tuple[int, int], ...] = (),
    ) -> Callable[..., tuple[np.ndarray, ...]]:
        executable = compile_graph(graph, target or self.target, given)
        return lambda *arrays: executable.run(*arrays)

    @property
    def kernels(self) -> tuple[KernelInfo, ...]:
        """The kernels' names and sources."""
        out: list[KernelInfo] = []
        for kernel in self.source.kernels:
            name = kernel_name(kernel.source, self.target.key())
            out.append(KernelInfo(name, kernel.source.text.replace("def kernel(", f"def {name}(")))
        return tuple(out)

    @property
    def labels(self) -> dict[str, str]:
        """What each kernel and step that the driver calls does, in a few words."""
        bodies = (r.body for r in self.plan.regions if r.body is not None)
        kernels = zip(self.kernels, bodies, strict=False)
        steps = enumerate(self.source.steps)
        return {
            **{f"kernel{j}": f"{k.name} {report.label(b)}" for j, (k, b) in enumerate(kernels)},
            **{f"h{j}": f"{n.eqn.primitive} in {n.eqn.source.function}" for j, n in steps},
        }

    @property
    def driver_text(self) -> str:
        """Source of the driver."""
        return self.source.text

    @property
    def plan_text(self) -> str:
        """The plan in words, one item a line; and what is to be known of the processor."""
        note = processor().note
        return report.plan_text(self.plan) + (f"\nprocessor: {note}" if note else "")

    def as_text(self) -> str:
        """Return the emitted source: kernels, then the driver."""
        return "\n\n".join([*(k.text for k in self.kernels), self.driver_text])

    @property
    def cost(self) -> dict[str, float]:
        """Estimated operations and bytes moved."""
        return report.cost(self.plan)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of arguments, outputs and temporaries, and of the last two at a time."""
        graph = self.graph.jaxpr

        def total(avals: Sequence[Any]) -> int:
            return sum(a.size * a.dtype.itemsize for a in avals)

        out = total(graph.out_avals)
        return {
            "argument_bytes": total(graph.in_avals),
            "output_bytes": out,
            "temp_bytes": max(self.source.allocated - out, 0),
            "peak_bytes": max(report.peak_bytes(self.plan), out),
        }


def _labels(alive: Callable[[], Executable | None]) -> dict[str, str]:
    """Return labels of what a driver calls, while its program is alive."""
    executable = alive()
    return {} if executable is None else executable.labels


_executables: dict[Any, Executable] = {}
forgotten(_executables.clear)


def _unlocked() -> None:
    for executable in _executables.values():
        executable.unlocked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlocked)


def compile_graph(
    closed: ClosedGraph,
    target: Target = CPU,
    given: tuple[tuple[int, int], ...] = (),
    *,
    shown: bool = False,
) -> Executable:
    """Compile a closed graph.

    Parameters
    ----------
    closed : ClosedGraph
        Its ``constvars`` come before its inputs in ``Executable.run``.
    target : Target
    given : tuple of (int, int)
        Inputs that belong to the program, and the result that each is for: it may be written over
        the input, and is that very array where the program leaves it as it is.
    shown : bool
        Whether people look at it: its lines and scopes are those of this graph, where otherwise an
        equal graph, of another function, may have been compiled before.

    Returns
    -------
    Executable
        Kernels are built at its first run.

    Raises
    ------
    ProgramSizeError
        There is no memory left for the plan or the text.
    """
    closed = erased(closed)
    graph = closed.jaxpr
    try:
        key = target, structure(graph), given, config.trace_token
        found = _executables.get(key)
    except TypeError:  # a param without hash: compiled anew each time
        key = found = None
    if found is not None and (found.graph is closed or not shown):
        return found
    try:
        with uncollected():
            executable = _compiled(closed, target, given)
    except ProgramSizeError:
        raise
    except MemoryError as error:
        raise ran_out(graph, error) from error
    if key is not None and found is None:
        if len(_executables) >= 1024:
            _executables.pop(next(iter(_executables)), None)
        _executables[key] = executable
    return executable


def _summed(block: Block, target: Target) -> Block:
    """Return a program whose products of boxes are read where they lie."""
    if sum(isinstance(node.form, Contract) for node in block.nodes) < 2:
        return block
    from .summands import sum_products  # which few programs need

    return sum_products(block, target)


def _compiled(
    closed: ClosedGraph, target: Target, given: tuple[tuple[int, int], ...]
) -> Executable:
    graph = closed.jaxpr
    if config.verify:
        verify(graph)
    name = graph.debug_name
    with span("simplify", name) as simplifying, unlabelled():
        block = replace(_summed(simplified(graph, target), target), given=given)
    with span("schedule", name) as scheduling:
        plan = schedule(block, sizes_of(block), target)
    if config.verify:
        check_plan(plan)
    with span("emit", name) as emitting:
        source = target.emit(plan)
    executable = Executable(closed, plan, source, target)
    executable.seconds.update((s.kind, s.seconds) for s in (simplifying, scheduling, emitting))
    return executable
