"""What a kernel's machine code depends on beside its text: both compilers, and the processor."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

from ...config import config
from ..cache import key as keys
from ..text import KernelSource

# The default error model keeps loops with a division from vectorising.
OPTIONS: Final = (
    ("boundscheck", False),
    ("error_model", "numpy"),
    ("fastmath", False),
    ("no_cfunc_wrapper", True),
    ("nogil", True),
    ("nopython", True),
)
_COMPILERS: Final = ("jit", "namespace", "processor")


def kernel_name(src: KernelSource) -> str:
    """Name a kernel for this processor."""
    return keys.kernel_name(src, key())


def key() -> keys.Key:
    """Return versions, settings, processor, kernels and compilers."""
    return (*_standing(), config.compiler)


def compilers() -> list[Path]:
    """List the sources that make machine code of texts."""
    here = Path(__file__).parent
    own = (here / f"{name}.py" for name in _COMPILERS)
    return [*own, *sorted((here / "native").glob("*.py"))]


@functools.cache
def makers() -> tuple[str, ...]:
    """List all sources that the names of kernels stand for."""
    return (*(path for _, path in keys.sources("fnarray_kernels")), *map(str, compilers()))


@functools.cache
def _standing() -> keys.Key:
    return (
        "cpu",
        OPTIONS,
        *keys.machine(),
        keys.fingerprint("fnarray_kernels"),
        keys.hashed(compilers()),
    )
