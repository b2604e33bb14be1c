"""Names made from content: whatever could change the machine code is in the hash.

Numba is not imported here.  A process that finds its program in the cache learns the names
of its kernels before it pays for a compiler.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy

from ...core.store import digest
from ..text import KernelSource

__all__ = [
    "KernelSource",
    "fingerprint",
    "hashed",
    "kernel_name",
    "machine",
    "object_name",
    "program_name",
    "sources",
    "version",
    "versions",
]

Key = tuple[Hashable, ...]
# Settings of Numba that never reach the machine code of a serial kernel.
_HARMLESS: Final = frozenset(
    {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"}
)


def kernel_name(src: KernelSource, key: Key) -> str:
    """Name a kernel ``k_<16 hex digits>`` by all that its machine code depends on.

    Parameters
    ----------
    src : KernelSource
    key : tuple
        What the code depends on beside the text: `Target.key`.
    """
    known = _begun(key).copy()
    # The repr of nested tuples of strings and plain values is injective; joining text is not.
    known.update(repr((_code(src.text), src.signature)).encode())
    return "k_" + known.hexdigest()[:16]


@functools.lru_cache(maxsize=64)
def _begun(key: Key) -> Any:
    return digest(repr(key).encode())


def _code(text: str) -> str:
    """Drop comment lines: they name the user's lines, which move without changing the code."""
    return "\n".join(x for x in text.splitlines() if not x.lstrip().startswith("#"))


def program_name(key: str, place: str) -> str:
    """Name a program ``p_<32 hex digits>``, and the place of the package that keeps it."""
    return "p_" + digest(repr((machine(), key, place)).encode()).hexdigest()[:32]


def object_name(text: str) -> str:
    """Name object code that is compiled of LLVM text, whatever the kernels are."""
    return "k_" + digest(repr((machine(), text)).encode()).hexdigest()[:16]


@functools.cache
def machine() -> tuple[str, ...]:
    """Versions, processor and settings: what is the same for all that this process compiles."""
    settings = (f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_"))
    return (
        *versions(),
        *_model(),
        *sorted(s for s in settings if s.partition("=")[0] not in _HARMLESS),
    )


def hashed(paths: Iterable[Path | str]) -> str:
    """Hash the contents of files, in order."""
    return digest(b"".join(_digest(str(path)) for path in paths)).hexdigest()


@functools.cache
def _digest(path: str) -> bytes:
    """Hash a source, which a process reads once, in whatever sets it is.

    What is loaded differs between a process's first programs: to read all of it for each took 11 ms
    of 42 that a program of ten operations takes. To spell sources for it took 60, and pathlib 20.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - in a first call
        return digest(file.readall()).digest()


#: What the system says of a processor that matters; and what begins with ``CPU``.
_MODEL: Final = frozenset(
    (b"vendor_id", b"cpu family", b"model", b"model name", b"stepping", b"flags", b"Features")
)


def _tells(name: bytes) -> bool:
    return name in _MODEL or name.startswith(b"CPU ")


@functools.cache
def _model() -> tuple[str, ...]:
    """Name the processor and what it can do.

    By the system's words where it has any: LLVM's follow from the same registers, and cost 50 ms.
    """
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:  # noqa: PTH123 - at every start
            first = file.read(1 << 14).partition(b"\n\n")[0]
    except OSError:
        first = b""
    lines = [line.partition(b":") for line in first.splitlines()]
    words = [b":".join((x, y)) for name, _, y in lines if _tells(x := name.strip())]
    if any(word.startswith((b"flags", b"Features")) for word in words):
        return sys.platform, os.uname().machine, b"; ".join(words).decode(errors="replace")
    import llvmlite.binding as llvm

    return (
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )


@functools.cache
def versions() -> tuple[str, ...]:
    """List the versions that cached code is tied to, as words for a header."""
    return (
        f"fnarray {sys.modules['fnarray'].__version__}",
        *(f"{name} {version(name)}" for name in ("numba", "llvmlite")),
        f"numpy {numpy.__version__}",
        f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}",
    )


@functools.cache
def version(package: str) -> str:
    """Return a package's version without importing it: Numba takes 0.3 s, all metadata 20 ms."""
    spec = find_spec(package)
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).with_name("_version.py")
        if path.is_file() and (found := _stated(path.read_text(encoding="utf-8"))):
            return found
    from importlib import metadata

    return metadata.version(package)


def _stated(text: str) -> str | None:
    """Return the version that a file of versioneer's states: ``version_x = '1.2'``, or in JSON."""
    for line in text.splitlines():  # the first regular expression of a process takes 1.5 ms
        name, _, value = line.replace(":", "=", 1).partition("=")
        name, value = name.strip(' "'), value.strip(" ,\"'")
        if name.startswith("version") and name.isidentifier() and value[:1].isdigit():
            return value
    return None


@functools.cache
def fingerprint(package: str) -> str:
    """Hash the sources of an installed package; contents, since times lie in copies."""
    found = sources(package)
    names = "\n".join(name for name, _ in found)
    return digest(f"{names}\n{hashed(path for _, path in found)}".encode()).hexdigest()


def sources(package: str) -> list[tuple[str, str]]:
    """List the sources of an installed package: names below its folder, in order, and paths."""
    return sorted((e.path[len(root) :], e.path) for root in _roots(package) for e in _below(root))


def _roots(package: str) -> Sequence[str]:
    """Return the folders of an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            f"compile.cache: the sources of {package!r} cannot be found, so cached code cannot be "
            f"tied to them. Install fnarray with pip.",
            name=package,
        )
    return spec.submodule_search_locations


def _below(folder: str) -> Iterator[os.DirEntry[str]]:
    folders = [folder]
    for folder in folders:  # which grows meanwhile
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    yield entry
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
