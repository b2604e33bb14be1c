"""Names made from content: whatever could change the machine code is in the hash.

Numba is not imported here.  A process that finds its program in the cache learns the names
of its kernels before it pays for a compiler.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from ...config import config
from ..emit.source import KernelSource
from .processor import processor

__all__ = [
    "OPTIONS",
    "KernelSource",
    "environment",
    "fingerprint",
    "kernel_name",
    "program_name",
    "versions",
]

TARGET: Final = "cpu"
# The default error model keeps loops with a division from vectorising.
OPTIONS: Final = (
    ("boundscheck", False),
    ("error_model", "numpy"),
    ("fastmath", False),
    ("no_cfunc_wrapper", True),
    ("nogil", True),
    ("nopython", True),
)
# Settings of Numba that never reach the machine code of a serial kernel.
_HARMLESS: Final = frozenset(
    {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"}
)


def kernel_name(src: KernelSource) -> str:
    """Name a kernel ``k_<16 hex digits>`` by all that its machine code depends on."""
    return "k_" + _digest(_code(src.text), src.signature, config.compiler)[:16]


def _code(text: str) -> str:
    """Drop comment lines: they name the user's lines, which move without changing the code."""
    return "\n".join(x for x in text.splitlines() if not x.lstrip().startswith("#"))


def program_name(key: str) -> str:
    """Name a program ``p_<32 hex digits>``; any change to the package gives a new name."""
    return "p_" + _digest(key, fingerprint("fnarray"))[:32]


@functools.cache
def environment() -> tuple[str, ...]:
    """Everything outside the text that can change the code: versions, kernels, CPU, settings."""
    import llvmlite.binding as llvm

    settings = (f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_"))
    return (
        *versions(),
        "kernels " + fingerprint("fnarray_kernels"),
        "compilers " + _hashed_compilers(),
        llvm.get_process_triple(),
        processor().name,
        processor().features,
        *sorted(s for s in settings if s.partition("=")[0] not in _HARMLESS),
    )


def _hashed_compilers() -> str:
    folder = Path(__file__).parents[1] / "cpu"
    paths = [folder / "jit.py", folder / "namespace.py", *sorted((folder / "native").glob("*.py"))]
    return sha256(repr([p.read_bytes() for p in paths]).encode()).hexdigest()


@functools.cache
def versions() -> tuple[str, ...]:
    """List the versions that cached code is tied to, as words for a header."""
    packages = ("numba", "llvmlite", "numpy")
    return (
        f"fnarray {sys.modules['fnarray'].__version__}",
        *(f"{name} {version(name)}" for name in packages),
        f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
    )


@functools.cache
def fingerprint(package: str) -> str:
    """Hash the sources of an installed package; contents, since times lie in copies."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            f"compile.cache: the sources of {package!r} cannot be found, so cached code cannot be "
            f"tied to them. Install fnarray with pip.",
            name=package,
        )
    digest = sha256()
    for root in map(Path, spec.submodule_search_locations):
        for path in sorted(root.rglob("*.py")):
            text = path.read_bytes()
            digest.update(f"{path.relative_to(root)} {len(text)}\n".encode())
            digest.update(text)
    return digest.hexdigest()


def _digest(*parts: object) -> str:
    # The repr of nested tuples of strings and plain values is injective; joining text is not.
    digest = _hashed_environment().copy()
    digest.update(repr(parts).encode())
    return digest.hexdigest()


@functools.cache
def _hashed_environment() -> Any:
    return sha256(repr((TARGET, OPTIONS, environment())).encode())
