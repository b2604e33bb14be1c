"""The LLVM text of kernels for a GPU, run by the processor: one lane, a block after the other.

What `lower` writes is what a GPU gets, but for the instructions that ask which thread runs, wait,
or exchange: those are defined here for a block of one lane. So the rules of the words, memory and
types of the real lowering are tested, at the speed of machine code.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from fnarray.compile.cpu.halves import words
from fnarray.compile.cpu.namespace import CODES
from fnarray.compile.cpu.native import machine
from fnarray.compile.cpu.native.types import I64, Array, part
from fnarray.compile.cpu.native.writer import memory
from fnarray.compile.cuda.lower import lower
from fnarray.compile.cuda.processor import ONE_THREAD
from fnarray.compile.cuda.words import HALVES, WORDS
from fnarray.compile.emit.source import KernelSource
from fnarray.compile.target import one_by_one
from fnarray.config import config
from fnarray_kernels import grid

_NVVM = re.compile(r"@llvm\.nvvm\.([\w.]+)\(")
_DEFINED = {
    "read.ptx.sreg.tid.x": "define internal i32 @{}() {{ ret i32 0 }}",
    "read.ptx.sreg.ntid.x": "define internal i32 @{}() {{ ret i32 1 }}",
    "read.ptx.sreg.ctaid.x": "define internal i32 @{}() {{ %x = load i32, ptr @here ret i32 %x }}",
    "read.ptx.sreg.nctaid.x": (
        "define internal i32 @{}() {{ %a = getelementptr i32, ptr @here, i64 1\n"
        "%x = load i32, ptr %a ret i32 %x }}"
    ),
    "barrier.cta.sync.aligned.all": "define internal void @{}(i32 %x) {{ ret void }}",
}
_TYPES = {
    "b1": ctypes.c_bool, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
    "i64": ctypes.c_int64, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64, "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip


def host_text(text: str) -> str:
    """Return a kernel's LLVM text for the processor."""
    used = sorted(set(_NVVM.findall(text)))
    text = re.sub(r"(?m)^declare .*@llvm\.nvvm\..*\n", "", text)
    text = _NVVM.sub(lambda m: f"@gpu.{m[1]}(", text)
    text = text.replace("define ptx_kernel void", "define void").replace(
        'target triple = "nvptx64-nvidia-cuda"', f'target triple = "{llvm.get_process_triple()}"'
    )
    # Room for arrays is aligned as NumPy aligns it, which may be less than what a GPU's is.
    text = text.replace("noalias align 16 ", "noalias ").replace("align 16", "align 1")
    text = re.sub(r"(load|store) (<.*), align \d+", r"\1 \2, align 1", text)
    here = "@here = global [2 x i32] zeroinitializer\n" if "ctaid" in text else ""
    return text + "\n" + here + "\n".join(_DEFINED[n].format(f"gpu.{n}") for n in used)


_kept: list[Any] = []


def _held(to: Any, args: list[Any]) -> Array:
    x, n = args[0], to.cast(args[1], I64).ir
    kind = memory(part(x.dtype) if x.dtype.kind == "c" else x.dtype)
    count = to.new(f"mul i64 {n}, {2 if x.dtype.kind == 'c' else 1}")
    return Array(x.dtype, to.new(f"alloca {kind}, i64 {count}"))


#: Words as one lane has them: a warp has 32, and sums over it are tested by themselves; all of a
#: row is its own; the processor may have no instruction for halves. Threads lower at the same time,
#: so that nothing of a GPU's rules is changed for a while.
ALONE: dict[Any, Any] = {
    **{word: rule for word, rule in WORDS.items() if word not in HALVES},
    **dict.fromkeys((grid.block_sum, grid.block_max, grid.block_min), lambda to, args: args[0]),
    grid.share: lambda to, args: to.cast(args[0], I64),
    grid.held: _held,
}


@functools.cache
def _built(source: KernelSource, fma: bool) -> tuple[Any, Any]:
    text = host_text(lower("k", source, fma=fma, words=ALONE))
    code = machine.compiled(text)
    with machine.lock:
        engine = machine._engine.__wrapped__()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address("k")
        here = engine.get_global_value_address("here") if "@here" in text else 0
    _kept.append(engine)
    kinds = [_TYPES.get(c, ctypes.c_void_p) for c in source.signature]
    at = (ctypes.c_int32 * 2).from_address(here) if here else [0, 0]
    return ctypes.CFUNCTYPE(None, *kinds)(address), at


def host_kernel(source: KernelSource) -> Callable[..., None]:
    """Return ``run(blocks, *args)`` of a kernel."""
    function, here = _built(source, config.cuda_fma)

    def run(blocks: int, *args: Any) -> None:
        given = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in args]
        here[1] = blocks
        for block in range(blocks):
            here[0] = block
            function(*given)

    return run


def _launch(kernel: Callable[..., None], blocks: int, lanes: int, *args: Any) -> None:
    kernel(blocks, *(words(a) if isinstance(a, np.ndarray) else a for a in args))


HOST = replace(
    ONE_THREAD,
    name="cuda, lowered for the processor",
    build=one_by_one(host_kernel),
    names=lambda limits: {"empty": np.empty, "launch": _launch, **CODES},
)
