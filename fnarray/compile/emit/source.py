"""What the emitter hands to the builder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Text of one function ``def kernel(...):`` and the types it is compiled for.

    Attributes
    ----------
    text
        The function, under the placeholder name ``kernel``; it may use the kernel namespace
        (`fnarray.compile.jit.namespace`) and no other global.
    signature
        One code per parameter: ``"i64"`` is a scalar, ``"f32[2]"`` a C-contiguous array of
        rank 2.
    """

    text: str
    signature: tuple[str, ...]
