"""PTX to machine code: the one file that knows who does it.

`cuda-core` with nvJitLink, from the package index, where they are installed; else PTX is kept as it
is, and the driver of the machine that runs it compiles it as it loads it.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import re
import threading
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from ...errors import UnsupportedOnTarget

_log: Final = logging.getLogger("fnarray.compile")
_importing: Final = threading.Lock()


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
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None:
        return ""
    try:
        importlib.import_module("cuda.bindings.nvjitlink").version()
    except (ImportError, OSError, RuntimeError) as error:  # the package is there, its library not
        _log.warning("nvJitLink cannot be loaded, so the driver links what it loads: %s", error)
        return ""
    for package in ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12"):
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
    return ""


def cubin(ptx: str, capability: str) -> tuple[bytes, Cost]:
    """Return PTX as machine code, and what it takes.

    Raises
    ------
    UnsupportedOnTarget
        The kernel asks for more than a multiprocessor has.
    """
    with _importing:  # shards build at the same time, and its parts import each other
        core: Any = importlib.import_module("cuda.core")
    options = core.LinkerOptions(arch=capability, verbose=True)
    made = core.Linker(core.ObjectCode.from_ptx(ptx.encode()), options=options)
    try:
        code = made.link("cubin").code
    except Exception as error:
        raise UnsupportedOnTarget(f"no machine code for {capability}: {error}\n{ptx}") from error
    log = made.get_info_log()
    return bytes(code), Cost(*(_figure(p, log) for p in _FIGURES))


_FIGURES = (r"Used (\d+) registers", r"(\d+) bytes spill stores", r"Used .* (\d+) bytes smem")


def _figure(pattern: str, log: str) -> int:
    found = re.search(pattern, log)
    return int(found[1]) if found else 0
