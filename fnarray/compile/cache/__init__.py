"""What compilation leaves on disk: kernels by content, programs by the function they came from."""

from __future__ import annotations

from . import index as programs
from . import store as store
from .key import KernelSource as KernelSource

__all__ = ["KernelSource", "programs", "store"]
