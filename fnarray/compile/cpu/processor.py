"""What is known of the processor: the machine code, and its name in the cache, depend on it."""

from __future__ import annotations

import functools

from ...core.frozen import frozen
from .native import llvm


@frozen
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
    name, features, note = llvm.host_name(), llvm.host_features(), ""
    if not features:
        note = "LLVM cannot tell the processor's features"
        name = "generic"
    if name in ("", "generic"):
        note = note or "LLVM does not know this processor's model"
        name = "x86-64" if llvm.triple().startswith("x86_64") else "generic"
        note += f"; code is for {name}" + (" and the features it reports" if features else "")
    has = set(features.split(","))
    return Processor(name, features, {"+avx512vl", "+avx512vbmi"} <= has, note)
