"""What is known of the processor: the machine code, and its name in the cache, depend on it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor as LLVM knows it.

    Attributes
    ----------
    name : str
    features : str
        What it has beyond its architecture's baseline, as LLVM spells it.
    wide : bool
        Whether kernels should use 512-bit registers. LLVM keeps to 256 bits on every processor
        whose clock might drop. Those made since Ice Lake drop little or nothing: exp over 1M
        float32 took 446 us in place of 581.
    note : str
        What a user should know: that code is for a baseline, and why. Mostly empty.
    """

    name: str
    features: str
    wide: bool
    note: str


@functools.cache
def processor() -> Processor:
    """Return this machine's processor; the architecture's baseline where LLVM does not know it."""
    import llvmlite.binding as llvm

    features: Any = {}
    name, note = llvm.get_host_cpu_name(), ""
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError as error:
        name, note = "generic", f"LLVM cannot tell the processor's features ({error})"
    if name in ("", "generic"):
        note = note or "LLVM does not know this processor's model"
        name = "x86-64" if llvm.get_process_triple().startswith("x86_64") else "generic"
        note += f"; code is for {name}" + (" and the features it reports" if features else "")
    text = features.flatten() if features else ""
    wide = bool(features.get("avx512vl") and features.get("avx512vbmi"))
    return Processor(name, text, wide, note)
