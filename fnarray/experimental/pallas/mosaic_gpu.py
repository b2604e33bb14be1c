"""``jax.experimental.pallas.mosaic_gpu``: its names are instructions and memory of NVIDIA GPUs.

Libraries import it beside their other modules, and use it where they find such a GPU. Kernels that
name none of it run by `pallas_call`.
"""

from __future__ import annotations

__all__: list[str] = []
__dir__ = __all__.copy


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}: it is for kernels written for the warps "
        "and memory of an NVIDIA GPU. Write the kernel for blocks alone: pallas.pallas_call."
    )
