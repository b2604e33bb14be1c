"""The processor's treatment of subnormal numbers, for the length of a kernel.

A recurrence that decays passes through subnormal numbers, and with rounding to nearest may stay at
the least of them for ever: each operation on one costs over a hundred cycles. Sequential loops
therefore run with subnormal operands and results taken as zero, which is what XLA does everywhere
on a CPU. Without compilation, and on processors other than x86-64 and AArch64, nothing changes.
"""

from __future__ import annotations

import platform

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

#: By machine: read and set the control register, and its bits for flushing results and operands.
_X86 = platform.machine().lower() in {"x86_64", "amd64"}
_ARM = platform.machine().lower() in {"aarch64", "arm64"}
_X86_FLUSH = 1 << 15 | 1 << 6
_ARM_FLUSH = 1 << 24


def flush_subnormal():
    """Take subnormal numbers as zero from here on; return the mode that was in force."""
    return 0


def restore(mode):
    """Bring back a mode that `flush_subnormal` returned."""


def _read(builder):
    if _X86:
        slot = builder.alloca(ir.IntType(32))
        _call(builder, "llvm.x86.sse.stmxcsr", slot)
        return builder.zext(builder.load(slot), ir.IntType(64))
    kind = ir.FunctionType(ir.IntType(64), [])
    return builder.asm(kind, "mrs $0, fpcr", "=r", [], side_effect=True)


def _write(builder, mode):
    if _X86:
        slot = builder.alloca(ir.IntType(32))
        builder.store(builder.trunc(mode, ir.IntType(32)), slot)
        _call(builder, "llvm.x86.sse.ldmxcsr", slot)
    else:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
        builder.asm(kind, "msr fpcr, $0", "r", [mode], side_effect=True)


def _call(builder, name, slot):
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer])
    module = builder.module
    function = module.globals.get(name) or ir.Function(module, kind, name)
    builder.call(function, [builder.bitcast(slot, pointer)])


@intrinsic
def _flush(typingctx):
    def codegen(context, builder, signature, args):
        mode = _read(builder)
        bits = _X86_FLUSH if _X86 else _ARM_FLUSH
        _write(builder, builder.or_(mode, ir.Constant(ir.IntType(64), bits)))
        return mode

    return types.int64(), codegen


@intrinsic
def _restore(typingctx, mode):
    def codegen(context, builder, signature, args):
        _write(builder, args[0])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


if _X86 or _ARM:

    @overload(flush_subnormal, inline="never")
    def _flush_overload():
        return lambda: _flush()

    @overload(restore, inline="never")
    def _restore_overload(mode):
        return lambda mode: _restore(mode)

else:

    @overload(flush_subnormal)
    def _flush_nothing():
        return lambda: 0

    @overload(restore)
    def _restore_nothing(mode):
        return lambda mode: None
