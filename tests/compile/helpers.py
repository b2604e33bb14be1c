"""Compiling a function over ``lax`` straight through the compile wing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnarray.compile.cpu.target import CPU
from fnarray.compile.pipeline import Executable, compile_graph
from fnarray.compile.target import Target
from fnarray.core.avals import ShapedArray
from fnarray.core.trace import trace_graph


def compiled(fun: Callable[..., Any], *args: np.ndarray, target: Target = CPU) -> Executable:
    """Return the executable of a function for arguments like these."""

    def flat(*tracers: Any) -> list[Any]:
        out = fun(*tracers)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    closed = trace_graph(flat, [ShapedArray(np.shape(a), a.dtype) for a in args], fun.__name__)
    assert not closed.consts
    return compile_graph(closed, target)


def run(fun: Callable[..., Any], *args: np.ndarray, target: Target = CPU) -> tuple[np.ndarray, ...]:
    """Compile and run a function."""
    return compiled(fun, *args, target=target).run(*args)


def code(executable: Executable) -> str:
    """Return the kernels' text without comments and names."""
    lines = []
    for kernel in executable.kernels:
        text = kernel.text.replace(kernel.name, "kernel")
        lines += [x for x in text.splitlines() if not x.lstrip().startswith("#")]
    return "\n".join(lines)


def loops(text: str) -> int:
    """Count the loops of emitted code."""
    return text.count("for i")
