"""LLVM text to object code, on as many threads at once as ask for it.

llvmlite lets one thread at a time into LLVM, which itself asks only that no two share a context
(https://llvm.org/docs/ProgrammersManual.html#threads-and-llvm). What a call makes here is its own,
a context, a machine and all between; it is disposed of before the call returns, and no object of
Python's stands for it that a collector could drop on another thread.
"""

from __future__ import annotations

import ctypes
import platform
import re
from contextlib import ExitStack
from typing import Any, Final

from ..processor import processor
from . import llvm
from .codes import Fallback

#: How much LLVM's passes, and its code generation, are worth.
LEVEL: Final = 3
#: What they are worth where all innermost loops are vectors already, and loops surround those (sums
#: of squares of rows: 21 ms and 10, at the same speed).
LIGHT: Final = 1
#: How code is addressed: where it lies is known when it is loaded.
RELOCATIONS: Final = (
    "static" if platform.machine().lower() in ("x86_64", "amd64", "i386", "i686") else "default"
)
CODE_MODEL: Final = "jitdefault"

#: What LLVM is told beside the processor's features. Stores to places that lie apart take longer as
#: one instruction than one by one (Jacobians of 20,000 lanes on a Zen 5: 763 us and 665).
TUNING: Final = ",+prefer-no-scatter" if platform.machine().lower() in ("x86_64", "amd64") else ""

#: What begins the blocks of loops, and what counts their turns.
_PHIS: Final = re.compile(r"^(?:[ \t]*%\S+ = phi .*\n)+", re.MULTILINE)
_PHI: Final = re.compile(r"(%\S+) = phi i64 ")
_NEXT: Final = re.compile(r" = add nuw nsw i64 (%[^\s,]+), ")


def counted(text: str) -> str:
    """Return a text whose loops count by numbers of which LLVM knows nothing.

    Addresses stay as they are written, where *loop strength reduction* would look for better ones:
    it finds none for loops around vectors, in a third to a half of code generation's time (radices
    of Fourier transforms: 121 ms with it and 70 without).
    """
    counters = set(_NEXT.findall(text))

    def hidden(phis: re.Match[str]) -> str:
        lines, names = phis[0], counters.intersection(_PHI.findall(phis[0]))
        for name in sorted(names):
            lines = lines.replace(f"{name} = phi", f"{name}.count = phi")
            lines += f'{name} = call i64 asm "", "=r,0"(i64 {name}.count)\n'
        return lines

    return _PHIS.sub(hidden, text) if counters else text


def emitted(
    text: str,
    scalar: bool,
    *,
    code: bool,
    straight: bool = False,
    light: bool = False,
    plain: bool = False,
) -> bytes:
    """Optimise LLVM text; return its object code, or its assembly.

    Parameters
    ----------
    scalar : bool
        Whether operations outside of loops are vectorised as well.
    code : bool
        Whether object code is wanted.
    straight : bool
        Whether there is nothing to improve before code is generated.
    light : bool
        Whether there is little to improve.
    plain : bool
        Whether instructions are chosen one by one, in a third of the time.

    Raises
    ------
    Fallback
        LLVM refuses the text.
    """
    do = llvm.functions()
    if straight and not plain:
        text = counted(text)
    with ExitStack() as stack:

        def made(value: Any, dispose: str) -> Any:
            if not value:
                raise MemoryError("LLVM has made nothing")
            stack.callback(do[dispose], value)
            return value

        words = ctypes.c_char_p()
        context = made(do["ContextCreate"](), "ContextDispose")
        module = do["ParseAssembly"](context, text.encode(), ctypes.byref(words))
        if not module:  # a mistake of ours, which costs the user a fallback
            raise Fallback(f"text that LLVM refuses: {llvm.said(do, words)}")
        made(module, "DisposeModule")
        machine = made(_machine(do, 0 if plain else LEVEL), "DisposeTargetMachine")
        if not straight or "alwaysinline" in text:  # as the pipeline that improves nothing does
            tuning = made(do["CreatePipelineTuningOptions"](), "DisposePipelineTuningOptions")
            do["PTOSetLoopVectorization"](tuning, True)
            do["PTOSetSLPVectorization"](tuning, scalar)
            builder = made(do["CreatePassBuilder"](machine, tuning), "DisposePassBuilder")
            level = 0 if straight else LIGHT if light else LEVEL
            passes = do["buildPerModuleDefaultPipeline"](builder, level)
            made(passes, "DisposeNewModulePassManger")
            do["RunNewModulePassManager"](passes, module, builder)
        buffer = do["TargetMachineEmitToMemory"](machine, module, int(code), ctypes.byref(words))
        if not buffer:
            raise Fallback(f"text that LLVM cannot emit: {llvm.said(do, words)}")
        made(buffer, "DisposeMemoryBuffer")
        return ctypes.string_at(do["GetBufferStart"](buffer), do["GetBufferSize"](buffer))


def _machine(do: llvm.Do, level: int) -> Any:
    features = processor().features + TUNING
    names = (llvm.triple(), processor().name, features, RELOCATIONS, CODE_MODEL)
    words = [x.encode() for x in names]
    return do["CreateTargetMachine"](llvm.target(), *words[:3], level, *words[3:], 0, 1, b"")
