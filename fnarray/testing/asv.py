"""Benchmarks for airspeed velocity of a function given in one line.

``Loss = benchmark(loss, arguments)`` in a file of benchmarks gives a class that asv finds; it needs
nothing of asv itself.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from ..api.arrays import block_until_ready, clear_caches
from ..api.jit import jit
from ..config import scoped
from ..core.graph import Graph, subgraphs

__all__ = ["benchmark"]
__dir__ = __all__.copy

#: Seconds of calls before the one that is timed: asv sets up before each, and a call right after
#: that is cold. One of 3 us took 20 to 180.
WARM = 0.05


def benchmark(
    fun: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], *, name: str | None = None
) -> type:
    """Return a class of benchmarks of a function, for asv.

    Its benchmarks are ``time_first_call`` (traced, compiled and run, nothing from a cache),
    ``time_steady`` (a call after that), ``track_peak_bytes`` (of the program's arrays),
    ``peakmem_call`` (of the process), ``track_equations`` and ``track_kernels``.

    Parameters
    ----------
    fun : callable
        PjitFunction or not; a decorator such as `grad` may have made it.
    arguments : callable
        Called before each measurement, to give the arguments as a tuple.
    name : str, optional
        Of the class, which must be the name that it is bound to; if omitted, that of the function
        in CamelCase: ``train_step`` gives ``TrainStep``.

    Raises
    ------
    TypeError
        ``fun`` or ``arguments`` is not callable.
    ValueError
        ``name`` is no name of a class, or none can be made.
    """
    for what, value in (("fun", fun), ("arguments", arguments)):
        if not callable(value):
            raise TypeError(f"testing.asv.benchmark: {what} must be callable, got {value!r}.")
    own = getattr(fun, "__name__", "")
    title = name or "".join(part[:1].upper() + part[1:] for part in own.split("_"))
    if not title.isidentifier():
        raise ValueError(
            f"testing.asv.benchmark: no name for a class can be made of {own!r}; pass name=, the "
            f"name that it is bound to. Got name={name!r}."
        )
    jitted = staticmethod(fun if hasattr(fun, "lower") else jit(fun))
    space = {"_jitted": jitted, "_arguments": staticmethod(arguments), "__doc__": fun.__doc__}
    return type(title, (_Benchmark,), {**space, "__module__": arguments.__module__})


class _Benchmark:
    """The benchmarks; asv skips it for its underscore."""

    _jitted: Any
    _arguments: Any
    timeout = 300

    def setup(self) -> None:
        """Make the arguments, and what the benchmarks must not measure."""
        self._args = self._arguments()
        self._stack = ExitStack()
        self._scratch = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="fnarray-"))
        block_until_ready(self._jitted(*self._args))
        # The first call is of a process that has compiled something, but never this function.
        self._stack.enter_context(scoped("cache_dir", self._scratch))
        begin = time.perf_counter()
        while time.perf_counter() < begin + WARM:
            block_until_ready(self._jitted(*self._args))

    def teardown(self) -> None:
        """Remove what `setup` made."""
        self._stack.close()

    def time_first_call(self) -> None:
        """Trace, compile and run."""
        from ..compile.cpu import build

        clear_caches()
        build.forget()
        block_until_ready(self._jitted(*self._args))

    def time_steady(self) -> None:
        """Run what is compiled."""
        block_until_ready(self._jitted(*self._args))

    def peakmem_call(self) -> None:
        """Run what is compiled, for the memory of the process."""
        block_until_ready(self._jitted(*self._args))

    def track_peak_bytes(self) -> int:
        """Return the bytes of arguments, results and temporaries."""
        memory = self._jitted.lower(*self._args).compile().memory_analysis()
        return (
            memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
        )

    def track_equations(self) -> int:
        """Return the size of the graph, those that it holds included."""
        return _equations(self._jitted.trace(*self._args).jaxpr.jaxpr)

    def track_kernels(self) -> int:
        """Return how many kernels and steps the function runs as."""
        executable = self._jitted.lower(*self._args).compile().runtime_executable()
        return len(executable.plan.regions)


# One call a sample, with a new setup before it.
_Benchmark.time_first_call.number = 1  # type: ignore[attr-defined]
_Benchmark.time_first_call.warmup_time = 0  # type: ignore[attr-defined]
_Benchmark.track_peak_bytes.unit = "bytes"  # type: ignore[attr-defined]
_Benchmark.track_equations.unit = "equations"  # type: ignore[attr-defined]
_Benchmark.track_kernels.unit = "kernels and steps"  # type: ignore[attr-defined]


def _equations(graph: Graph) -> int:
    return sum(1 + sum(map(_equations, subgraphs(e.params))) for e in graph.eqns)
