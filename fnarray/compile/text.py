"""What is known of a kernel's text where nothing is emitted: all that a program on disk needs."""

from __future__ import annotations

from typing import Final

from ..core.frozen import frozen

#: What a driver hands to a kernel as the number of threads that may share its loops.
CORES: Final = "cores()"


@frozen
class KernelSource:
    """Text of one function ``def kernel(...):`` and the types it is compiled for.

    Attributes
    ----------
    text
        The function, under the placeholder name ``kernel``; it may use the kernel namespace
        (`fnarray.compile.cpu.namespace`) and no other global.
    signature
        One code per parameter: ``"i64"`` is a scalar, ``"f32[2]"`` a C-contiguous array of
        rank 2.
    """

    text: str
    signature: tuple[str, ...]
