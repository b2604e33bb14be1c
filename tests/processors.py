"""Compiling for a named processor: what the machine that runs the tests has does not matter."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import codegen
from numba.core import config as numba_config

from fnarray.compile import jit

#: Whether registers are x86's, which all compilers for that architecture know by name.
X86 = platform.machine() in ("x86_64", "AMD64")


@contextmanager
def compiling_for(processor: str | None) -> Iterator[None]:
    """Let `jit.compile_kernel` write code for an x86 processor, to be read and not to be run."""
    if not X86:
        yield  # the host's own, whatever that is
        return
    target = jit.cpu_target.target_context
    before = target._internal_codegen, numba_config.CPU_NAME, numba_config.CPU_FEATURES
    numba_config.CPU_NAME, numba_config.CPU_FEATURES = processor, ""
    try:
        target._internal_codegen = codegen.JITCPUCodegen(f"tests for {processor}")
        yield
    finally:
        target._internal_codegen, numba_config.CPU_NAME, numba_config.CPU_FEATURES = before
