"""What emission hands to the builder: text, and how to call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.frozen import frozen
from ..text import CORES as CORES
from ..text import KernelSource as KernelSource

if TYPE_CHECKING:
    from ...core.graph import Var
    from ..ir import Node


@frozen
class Scratch:
    """A working array that a kernel wants: NumPy dtype name and length."""

    code: str
    length: int


@frozen
class Kernel:
    """A kernel and how to call it: arrays in, arrays out, scratch, then scalars.

    ``folds`` are the kernels that add up the parts of the outputs that chunks fold; ``product`` is
    how many multiplications the largest product takes that the kernel leaves to BLAS. ``origins``
    are the nodes that each line of the text is for.
    """

    source: KernelSource
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    scratch: tuple[Scratch, ...]
    scalars: tuple[Any, ...]
    folds: tuple[KernelSource, ...] = ()
    product: int = 0
    origins: tuple[tuple[Node, ...], ...] = ()


@frozen
class Source:
    """A program as text: the driver, the kernels that it calls, and what else it names.

    Attributes
    ----------
    text : str
        ``def main(...)``: allocates, and calls kernels and steps in order.
    kernels : tuple of Kernel
        ``kernel0``, ``kernel1``, ... in the driver.
    steps : tuple of Node
        ``h0``, ``h1``, ...: what the driver leaves to the target's library or the host.
    constants : tuple
        ``k0``, ``k1``, ...
    allocated : int
        Bytes of the arrays that the driver makes.
    """

    text: str
    kernels: tuple[Kernel, ...]
    steps: tuple[Node, ...]
    constants: tuple[Any, ...]
    allocated: int
