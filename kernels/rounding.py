"""The processor's treatment of subnormal numbers, for the length of a kernel.

A recurrence that decays passes through subnormal numbers, and with rounding to nearest may stay at
the least of them for ever: each operation on one costs over a hundred cycles. Sequential loops
therefore run with subnormal operands and results taken as zero, which is what XLA does everywhere
on a CPU. Without compilation, and on processors other than x86-64 and AArch64, nothing changes.
"""

from __future__ import annotations

import platform

import numpy as np

from fnarray_kernels._ir import Template
from fnarray_kernels.registry import compiled, tell

_MACHINE = platform.machine().lower()
_X86 = _MACHINE in {"x86_64", "amd64"}
_ARM = _MACHINE in {"aarch64", "arm64"}


def flush_subnormal():
    """Take subnormal numbers as zero from here on; return the mode that was in force."""
    return 0


def restore(mode):
    """Bring back a mode that `flush_subnormal` returned."""


def _text(lines, result=""):
    names = "llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr"
    declared = {name: ("void", ("ptr",)) for name in names if any(name in x for x in lines)}
    return Template("\n".join(lines), result, np.dtype(np.int64), declared, {})


if _X86:
    #: Reads the control register, and sets its bits for flushing results and operands.
    FLUSH = _text(
        (
            "%~slot = alloca i32",
            "call void @llvm.x86.sse.stmxcsr(ptr %~slot)",
            "%~0 = load i32, ptr %~slot",
            f"%~1 = or i32 %~0, {1 << 15 | 1 << 6}",
            "store i32 %~1, ptr %~slot",
            "call void @llvm.x86.sse.ldmxcsr(ptr %~slot)",
            "%~2 = zext i32 %~0 to i64",
        ),
        "%~2",
    )
    RESTORE = _text(
        (
            "%~slot = alloca i32",
            "%~0 = trunc i64 %~a to i32",
            "store i32 %~0, ptr %~slot",
            "call void @llvm.x86.sse.ldmxcsr(ptr %~slot)",
        )
    )
elif _ARM:
    FLUSH = _text(
        (
            '%~0 = call i64 asm sideeffect "mrs $0, fpcr", "=r"()',
            f"%~1 = or i64 %~0, {1 << 24}",
            'call void asm sideeffect "msr fpcr, $0", "r"(i64 %~1)',
        ),
        "%~0",
    )
    RESTORE = _text(('call void asm sideeffect "msr fpcr, $0", "r"(i64 %~a)',))

if _X86 or _ARM:
    tell("mode", flush_subnormal, FLUSH)
    tell("mode", restore, RESTORE)
else:
    compiled(flush_subnormal)
    compiled(restore)
