"""Names of ``jax.experimental.pallas.tpu`` that have a meaning on a CPU.

There is one memory, one core, and nothing runs at once: memory spaces and semantics of axes are
names, a copy is done when it is started, and a pipeline is the loop that it hides.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...control.signature import fun_name
from ...core import tree
from ...core.array import Array
from ...core.lazy import absent as _absent
from ...core.ref import new_ref
from ._blocks import HOST as HOST
from ._blocks import GridSpec, MemoryRef, Spaces, memory, no_block_spec, spec_of
from ._grid import program_id, run_grid, window_of
from ._inside import DeviceIdType as DeviceIdType
from ._inside import semaphore_read as semaphore_read
from ._inside import semaphore_signal as semaphore_signal
from ._inside import semaphore_wait as semaphore_wait
from ._parts import load as _load
from ._parts import store as _store

__all__ = [
    "ARBITRARY",
    "CMEM",
    "CORE_PARALLEL",
    "HBM",
    "HOST",
    "PARALLEL",
    "SEMAPHORE",
    "SMEM",
    "SUBCORE_PARALLEL",
    "VMEM",
    "VMEM_SHARED",
    "AsyncCopyDescriptor",
    "CompilerParams",
    "CoreType",
    "DeviceIdType",
    "GridDimensionSemantics",
    "InterpretParams",
    "LoweringException",
    "MemorySpace",
    "PrefetchScalarGridSpec",
    "SemaphoreType",
    "SideEffectType",
    "async_copy",
    "bitcast",
    "emit_pipeline",
    "force_tpu_interpret_mode",
    "is_tpu_device",
    "load",
    "make_async_copy",
    "reset_tpu_interpret_mode_state",
    "roll",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "set_tpu_interpret_mode",
    "store",
    "sync_copy",
    "touch",
    "trace_value",
    "with_memory_space_constraint",
]
__dir__ = __all__.copy


class MemorySpace(Spaces):
    """Kinds of memory of a TPU. They are names: there is one memory, the host's."""

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"


VMEM = MemorySpace.VMEM
VMEM_SHARED = MemorySpace.VMEM_SHARED
SMEM = MemorySpace.SMEM
CMEM = MemorySpace.CMEM
SEMAPHORE = MemorySpace.SEMAPHORE
HBM = MemorySpace.HBM


class SemaphoreType(enum.Enum):
    """Kinds of semaphores: each is an int16 that begins as 0."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        """Return what asks for an array of them."""
        return memory(SEMAPHORE, shape, np.int16)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one."""
        return ()

    @property
    def dtype(self) -> np.dtype:
        """Of one."""
        return np.dtype(np.int16)


class GridDimensionSemantics(enum.Enum):
    """Whether turns along an axis may run at once; here they run one by one."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL = GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY


class CoreType(enum.Enum):
    """Kinds of cores of a TPU, by name."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


class SideEffectType(enum.Enum):
    """Whether a kernel may be left out, or called once for two calls, by name."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class LoweringException(Exception):
    """What a compiler for TPUs raises; nothing does here."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerParams:
    """Parameters of a compiler for TPUs: accepted, and not used."""

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: dict[str, Any] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False


@dataclasses.dataclass(frozen=True)
class InterpretParams:
    """How a TPU is simulated: accepted, and not used; kernels are compiled all the same."""

    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[..., None] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"
    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None


@contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """Let kernels run without a TPU for the duration of the block, as they always do."""
    yield


def set_tpu_interpret_mode(params: InterpretParams | None = None) -> None:
    """Let kernels run without a TPU, as they always do."""


def reset_tpu_interpret_mode_state() -> None:
    """Forget what a simulated TPU holds: nothing is simulated."""


def is_tpu_device() -> bool:
    """Say whether there is a TPU: False."""
    return False


class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps may read arguments.

    Parameters
    ----------
    num_scalar_prefetch : int
        How many leading arguments are Refs that index maps take after the indices, and the kernel
        before all others.
    grid, in_specs, out_specs, scratch_shapes
        As of `GridSpec`, of the other arguments.
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


# ---- copies --------------------------------------------------------------------------------------


class AsyncCopyDescriptor:
    """A copy between Refs, which is done when it is started.

    Parameters
    ----------
    src_ref, dst_ref : Ref
    sem : Ref
        Accepted: nothing is waited for.
    """

    def __init__(self, src_ref: Any, dst_ref: Any, sem: Any = None):
        self.src_ref, self.dst_ref, self.sem = src_ref, dst_ref, sem

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copy, or add."""
        if add:
            self.dst_ref.addupdate(self.src_ref[...], ...)
        else:
            self.dst_ref[...] = self.src_ref[...]

    def wait(self) -> None:
        """Wait for what is done already."""

    wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """Return a copy between Refs that is to be started."""
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """Copy from a Ref to another, or add; return what may be waited for."""
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copy from a tree of Refs to another, or add."""
    tree.map(lambda src, dst: async_copy(src, dst, None, add=add) and None, src_ref, dst_ref)


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: tuple[Any, ...],
    in_specs: Any = (),
    out_specs: Any = (),
    tiling: Any = None,
    core_axis: Any = None,
    core_axis_name: Any = None,
    dimension_semantics: Any = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """Return a function of Refs that runs a body on blocks of them, inside of a kernel.

    Parameters
    ----------
    body : callable
        Of a Ref for each block, and the scratch memory that the call hands on.
    grid : tuple of int
        The last axis turns fastest.
    in_specs, out_specs : sequence of BlockSpec
        How the Refs are cut.
    tiling, core_axis, core_axis_name, dimension_semantics, trace_scopes, no_pipelining
        Accepted: blocks are worked on one by one.

    Returns
    -------
    callable
        Of the Refs that are read, and of those that are written; ``scratches=`` are handed on.
    """
    ins, outs = (list(s) if isinstance(s, tuple | list) else [s] for s in (in_specs, out_specs))

    def pipeline(*refs: Any, scratches: Any = None, **_: Any) -> None:
        windows = [
            window_of(spec_of(spec, f"Ref {k} of the pipeline"), f"Ref {k} of the pipeline",
                      ref.shape, len(grid), 0)
            for k, (spec, ref) in enumerate(zip((*ins, *outs), refs, strict=True))
        ]  # fmt: skip
        padded = [w if any(map(any, w.pads)) else None for w in windows]
        buffers = [
            ref if w is None else new_ref(w.filled(ref[...]))
            for w, ref in zip(padded, refs, strict=True)
        ]

        def kernel(blocks: list[Any]) -> None:
            before = (tuple(map(program_id, range(len(grid)))),) if _explicit_indices else ()
            body(*before, *blocks, *(scratches or ()))

        run_grid(fun_name(body), grid, windows, buffers, (), kernel)
        for w, ref, buffer in list(zip(padded, refs, buffers, strict=True))[len(ins) :]:
            if w is not None:
                ref[...] = w.cropped(buffer[...])

    return pipeline


# ---- values --------------------------------------------------------------------------------------


def load(ref: Any, *, mask: Any = None) -> Array:
    """Return the value of a Ref; where ``mask`` is False it is nobody's concern."""
    return _load(ref, None, mask=mask)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Write a Ref; where ``mask`` is False nothing is written."""
    _store(ref, None, val, mask=mask)


def roll(
    x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None
) -> Array:
    """Return an array rolled along an axis, by ``stride`` more for each place of another axis.

    Parameters
    ----------
    x : Array
    shift : int or Array
        Not negative.
    axis : int
    stride, stride_axis : int, optional
        Both or none.

    Raises
    ------
    ValueError
        An axis is out of range, ``shift`` or ``stride`` negative, or one of two is missing.
    """
    if isinstance(shift, int) and shift < 0:
        raise ValueError(f"pltpu.roll: shift must be non-negative, got {shift}.")
    if not 0 <= axis < x.ndim:
        raise ValueError(f"pltpu.roll: axis {axis} is out of range of {x.ndim} axes.")
    if stride is None and stride_axis is None:
        return jnp.roll(x, shift, axis)
    if stride is None or stride_axis is None:
        raise ValueError("pltpu.roll: stride and stride_axis must be both specified or not.")
    if stride < 0 or not 0 <= stride_axis < x.ndim or axis == stride_axis:
        raise ValueError(
            f"pltpu.roll: stride must be non-negative and stride_axis another axis than {axis}, "
            f"got {stride} and {stride_axis}."
        )
    at, along = (lax.broadcasted_iota(np.int32, x.shape, k) for k in (axis, stride_axis))
    return jnp.take_along_axis(x, (at - shift - stride * along) % x.shape[axis], axis)


def bitcast(x: Any, ty: Any) -> Array:
    """Return the bits of an array as another dtype of the same width.

    Raises
    ------
    NotImplementedError
        The width is another one: TPUs pack along the last axis but one.
    """
    if np.dtype(ty).itemsize != x.dtype.itemsize:
        raise NotImplementedError(
            f"pltpu.bitcast: {x.dtype} and {np.dtype(ty)} have different widths, which a TPU packs "
            "along the last axis but one. Use lax.bitcast_convert_type, along a new last axis."
        )
    return lax.bitcast_convert_type(x, ty)


def touch(ref: Any) -> None:
    """Say that a Ref is used: nothing is made of it."""


def trace_value(label: str, value: Any) -> None:
    """Show a value in a profile of a TPU: nothing is made of it."""


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """Return ``x``: there is one memory."""
    return x


__getattr__ = _absent(
    __name__,
    {
        "a kernel runs on one device: use fnarray.shard_map with collectives": """
        async_remote_copy core_barrier get_barrier_semaphore make_async_remote_copy
    """,
        "there is one core: use pallas_call, whose turns run one by one": """
        create_tensorcore_mesh run_on_first_core
    """,
        "it is an instruction of a TPU: use the functions of fnarray.numpy and lax": """
        einshape matmul_acc_lhs matmul_pop matmul_push_rhs pack_elementwise stochastic_round
        unpack_elementwise
    """,
        "TPUs have a generator of their own: pass bits, or a key, of fnarray.random": """
        prng_random_bits prng_seed sample_block stateful_bernoulli stateful_bits stateful_normal
        stateful_uniform to_pallas_key
    """,
        "there is no TPU to ask": """
        ChipVersion Tiling TpuInfo get_tpu_info get_tpu_info_for_chip
    """,
        "nothing is buffered: emit_pipeline is the loop that it hides": """
        BufferType BufferedRef BufferedRefBase emit_pipeline_with_allocations
    """,
        "semaphores are int16: SemaphoreType asks for them": "dma_semaphore semaphore",
        "its names are those of this module": "core",
    },
)
