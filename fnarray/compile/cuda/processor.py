"""The kernels of a GPU as the processor reads them: for tests, on machines without one."""

from __future__ import annotations

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
from ..target import Limits, Target
from .driver import emit
from .library import is_step
from .target import LIMITS, loop_order, no_region


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


#: One block after the other, each of one lane.
ONE_THREAD = Target(
    name="cuda, read by the processor",
    limits=LIMITS,
    loop_order=loop_order,
    is_step=is_step,
    emit=no_region,
    build=python_kernel,
    step=step_of,
    names=lambda limits: {"empty": np.empty, "launch": partial(_launch, 1), **CODES},
    write=emit,
)
