"""Compiling for a named processor: what the machine that runs the tests has does not matter."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from numba.core import codegen
from numba.core import config as numba_config

from fnarray.compile.cpu import jit
from fnarray.compile.cpu.native import compiler, machine
from fnarray.compile.cpu.processor import Processor

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


def assembly_for(processor: str | None, text: str, *, straight: bool = False) -> str:
    """Return what the native compiler makes of LLVM text for an x86 processor; else the host's."""
    if not X86:
        return machine.assembly(text, straight)
    named = Processor(processor or "", "", wide=False, note="")
    with mock.patch.object(compiler, "processor", return_value=named):
        return machine.assembly(text, straight)
