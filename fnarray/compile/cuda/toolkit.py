"""PTX to machine code: the one file that knows who does it.

nvJitLink by `cuda-bindings`, from the package index, where they are installed; else PTX is kept as
it is, and the driver of the machine that runs it compiles it as it loads it.
"""

from __future__ import annotations

import functools
import importlib
import logging
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ...errors import UnsupportedOnTarget

_log: Final = logging.getLogger("fnarray.compile")
_importing: Final = threading.Lock()
_BINDINGS: Final = "cuda.bindings.nvjitlink"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kernel takes of a multiprocessor.

    Attributes
    ----------
    registers : int
        Of each thread.
    spills : int
        Bytes that a thread writes to memory for want of registers.
    shared : int
        Bytes of a block's shared memory.
    """

    registers: int
    spills: int
    shared: int


@functools.cache
def linker() -> str:
    """Return the name and version of what makes machine code of PTX; empty without one."""
    try:
        link = importlib.import_module(_BINDINGS)
    except ImportError:  # or an older package of that name, which has no linker
        return ""
    try:
        major, minor = link.version()
    except (OSError, RuntimeError, link.nvJitLinkError) as error:  # its library is not there
        _log.warning("nvJitLink cannot be loaded, so the driver links what it loads: %s", error)
        return ""
    return f"nvJitLink {major}.{minor}"


def links(capability: str) -> bool:
    """Whether machine code for a capability can be made here: newer linkers drop older GPUs."""
    return bool(linker()) and _knows(capability)


@functools.cache
def _knows(capability: str) -> bool:
    link: Any = importlib.import_module(_BINDINGS)
    try:
        link.destroy(link.create(1, [f"-arch={capability}"]))
    except link.nvJitLinkError as error:
        _log.warning("%s has no code for %s, so the driver links: %s", linker(), capability, error)
        return False
    return True


def cubin(ptx: str, capability: str) -> tuple[bytes, Cost]:
    """Return PTX as machine code, and what it takes.

    Raises
    ------
    UnsupportedOnTarget
        The kernel asks for more than a multiprocessor has.
    """
    with _importing:  # shards build at the same time, and its parts import each other
        link: Any = importlib.import_module(_BINDINGS)
    options = [f"-arch={capability}", "-verbose"]
    handle, text = link.create(len(options), options), ptx.encode()
    try:
        link.add_data(handle, link.InputType.PTX, text, len(text), "kernel.ptx")
        link.complete(handle)
        code = bytearray(link.get_linked_cubin_size(handle))
        link.get_linked_cubin(handle, code)
        log = _said(handle, link.get_info_log_size, link.get_info_log)
    except link.nvJitLinkError as error:
        said = _said(handle, link.get_error_log_size, link.get_error_log)
        raise UnsupportedOnTarget(
            f"no machine code for {capability}: {error}\n{said}\n{ptx}"
        ) from error
    finally:
        link.destroy(handle)
    return bytes(code), Cost(*(_figure(p, log) for p in _FIGURES))


def _said(handle: int, size: Callable[[int], int], get: Callable[[int, bytearray], None]) -> str:
    """Return a log of the linker's."""
    room = bytearray(max(size(handle), 1))
    get(handle, room)
    return room.rstrip(b"\0").decode(errors="replace")


_FIGURES = (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"Used .* (\d+) bytes smem")


def _figure(pattern: str, log: str) -> int:
    found = re.search(pattern, log)
    return int(found[1]) if found else 0
