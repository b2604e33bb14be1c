"""Names of ``jax.experimental.pallas.triton`` that have a meaning on a CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...core.lazy import absent as _absent
from ._inside import dot as dot
from ._inside import max_contiguous as max_contiguous
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

__all__ = [
    "CompilerParams",
    "approx_tanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "debug_barrier",
    "dot",
    "load",
    "max_contiguous",
    "store",
]
__dir__ = __all__.copy


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerParams:
    """Parameters of Triton: accepted, and not used."""

    num_warps: int | None = None
    num_stages: int | None = None


def approx_tanh(x: Any) -> Array:
    """Return the hyperbolic tangent, as exact as any."""
    return jnp.tanh(x)


def debug_barrier() -> None:
    """Wait for the other threads of a program: there are none."""


__getattr__ = _absent(
    __name__,
    {"there is no PTX on a CPU: use the functions of fnarray.numpy": "elementwise_inline_asm"},
)
