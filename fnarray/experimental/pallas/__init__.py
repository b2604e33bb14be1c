"""Kernels on blocks of arrays, as in ``jax.experimental.pallas``, compiled for the CPU."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...core.lazy import surface as _surface

if _TYPE_CHECKING:
    from ...core.places import Slice as Slice
    from ...core.places import ds as ds
    from ...core.places import dslice as dslice
    from . import mosaic_gpu as mosaic_gpu
    from . import tpu as tpu
    from . import triton as triton
    from ._blocks import ANY as ANY
    from ._blocks import HOST as HOST
    from ._blocks import BlockDim as BlockDim
    from ._blocks import Blocked as Blocked
    from ._blocks import BlockSpec as BlockSpec
    from ._blocks import BoundedSlice as BoundedSlice
    from ._blocks import Buffered as Buffered
    from ._blocks import CostEstimate as CostEstimate
    from ._blocks import Element as Element
    from ._blocks import GridSpec as GridSpec
    from ._blocks import Indirect as Indirect
    from ._blocks import MemoryRef as MemoryRef
    from ._blocks import MemorySpace as MemorySpace
    from ._blocks import RevisitMode as RevisitMode
    from ._blocks import Squeezed as Squeezed
    from ._blocks import get_block_size as get_block_size
    from ._blocks import no_block_spec as no_block_spec
    from ._blocks import squeezed as squeezed
    from ._call import pallas_call as pallas_call
    from ._cost import estimate_cost as estimate_cost
    from ._grid import empty as empty
    from ._grid import num_programs as num_programs
    from ._grid import program_id as program_id
    from ._inside import DeviceIdType as DeviceIdType
    from ._inside import align_to as align_to
    from ._inside import broadcast_to as broadcast_to
    from ._inside import cdiv as cdiv
    from ._inside import debug_print as debug_print
    from ._inside import delay as delay
    from ._inside import dot as dot
    from ._inside import empty_like as empty_like
    from ._inside import empty_ref_like as empty_ref_like
    from ._inside import loop as loop
    from ._inside import max_contiguous as max_contiguous
    from ._inside import multiple_of as multiple_of
    from ._inside import next_power_of_2 as next_power_of_2
    from ._inside import reciprocal as reciprocal
    from ._inside import run_scoped as run_scoped
    from ._inside import run_state as run_state
    from ._inside import semaphore_read as semaphore_read
    from ._inside import semaphore_signal as semaphore_signal
    from ._inside import semaphore_wait as semaphore_wait
    from ._inside import strides_from_shape as strides_from_shape
    from ._inside import when as when
    from ._inside import with_scoped as with_scoped
    from ._parts import atomic_add as atomic_add
    from ._parts import atomic_and as atomic_and
    from ._parts import atomic_cas as atomic_cas
    from ._parts import atomic_max as atomic_max
    from ._parts import atomic_min as atomic_min
    from ._parts import atomic_or as atomic_or
    from ._parts import atomic_xchg as atomic_xchg
    from ._parts import atomic_xor as atomic_xor
    from ._parts import load as load
    from ._parts import store as store
    from ._parts import swap as swap

#: Public names by the module they come from.
_HOMES = {
    "...core.places": "Slice ds dslice",
    "._blocks": """
        ANY BlockDim BlockSpec Blocked BoundedSlice Buffered CostEstimate Element GridSpec
        HOST Indirect MemoryRef MemorySpace RevisitMode Squeezed get_block_size
        no_block_spec squeezed
    """,
    "._call": "pallas_call",
    "._cost": "estimate_cost",
    "._grid": "empty num_programs program_id",
    "._inside": """
        DeviceIdType align_to broadcast_to cdiv debug_print delay dot empty_like
        empty_ref_like loop max_contiguous multiple_of next_power_of_2 reciprocal
        run_scoped run_state semaphore_read semaphore_signal semaphore_wait
        strides_from_shape when with_scoped
    """,
    "._parts": """
        atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg
        atomic_xor load store swap
    """,
}
#: Names of JAX's that are not here, by the reason.
_MISSING = {
    "a call is traced as the loop that it is: there is no primitive of it": """
    pallas_call_p
""",
    "there are no meshes of cores: a kernel runs on one, turn by turn; use pallas_call": """
    core_map kernel
""",
    "there is no MLIR: lower(...).as_text() gives what is compiled": """
    lower_as_mlir pallas_export_experimental
""",
    "checks are fnarray.experimental.checkify's, which work in kernels": """
    debug_check debug_checks_enabled enable_debug_checks enable_poison_buffers
""",
    "a Ref is chosen while the kernel is traced: read each, and choose by lax.select": """
    select_ref
""",
    "memory of a kernel lives as long as its call: ask for scratch_shapes": """
    get_global
""",
    "semaphores are int16: pltpu.SemaphoreType asks for them": "semaphore",
    "parameters of compilers are those of tpu and triton": "CompilerParams",
}
__getattr__, __dir__, __all__ = _surface(  # pyright: ignore[reportUnsupportedDunderAll]
    __name__, _HOMES, "mosaic_gpu tpu triton", _MISSING
)
