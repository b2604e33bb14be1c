"""How arrays are cut into blocks, and what memory is asked for: descriptions, which do nothing."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ...core.avals import ShapedArray
from ...core.dtypes import canonicalize_dtype

__all__: list[str] = []

# ---- axes of blocks ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Blocked:
    """An axis cut into blocks of a size, which the index map numbers: what an int means."""

    block_size: int

    def __str__(self) -> str:
        return f"Blocked({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Element:
    """An axis of which the index map says the first element of a block.

    Parameters
    ----------
    block_size : int
    padding : pair of int
        How many elements the array is thought to have before its first and after its last.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        padded = f", padding={self.padding}" if any(self.padding) else ""
        return f"Element({self.block_size}{padded})"


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """An axis of which a block has one element, and the kernel's Ref no axis: what None means."""


squeezed = Squeezed()


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """An axis of which the index map says start and size, by `ds`; ``block_size`` is the most."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """An axis of which the index map gives each element's place, in an array."""

    block_size: int


#: What describes an axis of a block: any of these, besides an int and None.
BlockDim = Blocked | Element | Squeezed | BoundedSlice | Indirect


def block_dim(dim: Any) -> BlockDim:
    """Return an axis of a block in full.

    Raises
    ------
    ValueError
        It is none.
    """
    if dim is None:
        return squeezed
    if isinstance(dim, BlockDim):
        return dim
    try:
        return Blocked(int(dim))
    except (TypeError, ValueError):
        raise ValueError(
            f"Unsupported block dimension type: {type(dim)}. Allowed types: `pl.Squeezed`, "
            "`pl.Blocked`, `pl.Element`, `pl.BoundedSlice`, `int`, `None`."
        ) from None


def get_block_size(dim: Any) -> int:
    """Return how many elements of an axis a block has."""
    full = block_dim(dim)
    return 1 if isinstance(full, Squeezed) else full.block_size


# ---- memory --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """Shape, dtype and space of memory that a kernel asks for.

    Parameters
    ----------
    inner_aval : ShapedArray
    memory_space
        A name: there is one memory.
    """

    inner_aval: ShapedArray
    memory_space: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.inner_aval.dtype


def memory(space: Any, shape: Sequence[int], dtype: Any) -> MemoryRef:
    """Return what a call of a memory space means: memory of a shape and a dtype in it."""
    dtype = canonicalize_dtype(np.dtype(dtype))
    return MemoryRef(ShapedArray(tuple(map(int, shape)), dtype), space)


class Spaces(enum.Enum):
    """Kinds of memory, each of which is called for memory in it."""

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        """Return what asks for memory of a shape and dtype."""
        return memory(self, shape, dtype)

    def __str__(self) -> str:
        return self.value


class MemorySpace(Spaces):
    """Kinds of memory. They are names: there is one memory, the host's."""

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


ANY = MemorySpace.ANY
HOST = MemorySpace.HOST


class RevisitMode(enum.Enum):
    """When an output's block may be visited again; here it may be at any turn."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How often a block is buffered by a pipeline: accepted, and there is one buffer."""

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


# ---- specs ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class BlockSpec:
    """How an array is cut, and which block a turn of the grid works on.

    Parameters
    ----------
    block_shape : sequence of int, None or a block dimension, optional
        One for each axis of the array: its size in a block; None for an axis of one element that
        the kernel does not see. By default a block is the whole array.
    index_map : callable, optional
        From the indices of the grid, and the Refs of scalars that are fetched first, to the block's
        number along each axis. By default it gives zeros.
    memory_space, pipeline_mode
        Accepted: there is one memory, and nothing is fetched ahead.
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    memory_space: Any = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    def __post_init__(self) -> None:
        if callable(self.block_shape):
            raise TypeError(
                "BlockSpec: block_shape must be a sequence of sizes, got a function. The shape "
                "comes first, and the index map after it: BlockSpec((8, 128), lambda i: (i, 0))."
            )

    def replace(self, **changes: Any) -> BlockSpec:
        """Return one with other values of some fields."""
        return dataclasses.replace(self, **changes)


class NoBlockSpec:
    """Stands for a spec that is not given: the array is one block."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


def spec_of(spec: Any, where: str) -> BlockSpec:
    """Return a spec in full.

    Raises
    ------
    TypeError
        It is none.
    """
    if isinstance(spec, NoBlockSpec):
        return BlockSpec()
    if not isinstance(spec, BlockSpec):
        raise TypeError(f"{where} must be a BlockSpec, got {spec!r} of type {type(spec)}.")
    return spec


class GridSpec:
    """A grid, and how arguments and results are cut along it.

    Parameters
    ----------
    grid : int, or tuple of int, of traced integers, or of pairs of a name and a size
        How often the kernel runs along each axis; the last one turns fastest.
    in_specs, out_specs : tree of BlockSpec
        Of the structure that the arguments, and ``out_shape``, have.
    scratch_shapes : sequence or dict of MemoryRef
        Memory that the kernel's last parameters, or its keywords, are Refs of.

    Raises
    ------
    ValueError
        A size of the grid is no integer.
    """

    num_scalar_prefetch = 0

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        if not isinstance(in_specs, NoBlockSpec | Sequence):
            raise ValueError(f"`in_specs` must be a tuple or a list. Found: {in_specs}")
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = scratch_shapes
        names: tuple[Hashable, ...] | None = None
        if not isinstance(grid, Sequence):
            grid = (grid,)
        elif grid and isinstance(grid[0], tuple):
            names, grid = zip(*grid, strict=True)
        if not all(map(_is_size, grid)):
            raise ValueError(
                f"Grid must be a tuple of integers or arrays of one integer, got {grid}."
            )
        self.grid: tuple[Any, ...] = tuple(grid)
        self.grid_names = names

    def __repr__(self) -> str:
        return f"{type(self).__name__}(grid={self.grid})"


def _is_size(size: Any) -> bool:
    if isinstance(size, int | np.integer):
        return bool(size >= 0)
    return getattr(size, "shape", None) == () and np.dtype(size.dtype).kind in "iu"


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """What a call costs, as whoever schedules it is told.

    Raises
    ------
    ValueError
        A field is no int.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise ValueError(
                    f"All fields in CostEstimate must be ints. {name} is not an int: "
                    f"{type(value)}({value})"
                )
