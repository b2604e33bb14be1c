"""From kernel text to what a driver loads: memory, then disk, then the compiler.

Nothing here asks for a GPU: kernels are built for a capability, on any machine.
"""

from __future__ import annotations

import functools
import json
import logging
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ...config import config
from ...core import store
from ..cache.key import KernelSource, fingerprint, hashed, kernel_name, version
from ..cpu.namespace import spell
from . import toolkit
from .lower import check_capability, lower, ptx

_log: Final = logging.getLogger("fnarray.compile")
_binaries: Final[dict[str, Binary]] = {}
#: Entries are of no Python and no NumPy, as their names are.
_MARK: Final = "cuda"


@dataclass(frozen=True, slots=True)
class Binary:
    """A kernel for one capability.

    Attributes
    ----------
    name : str
        Of its function.
    capability : str
    kind : {"cubin", "ptx"}
    code : bytes
        Machine code, or text that a driver compiles.
    cost : Cost or None
        What it takes, where that is known.
    """

    name: str
    capability: str
    kind: str
    code: bytes
    cost: toolkit.Cost | None


@functools.cache
def key() -> tuple[str, ...]:
    """Return what a kernel's code depends on beside its text, its capability and its rounding.

    Nothing here is of this machine, or of its Python: kernels are built on one and run on another.
    """
    here = Path(__file__).parent
    compilers = (here, here.parent / "cpu" / "native")
    return (
        "cuda",
        f"fnarray {sys.modules['fnarray'].__version__}",
        f"llvmlite {version('llvmlite')}",
        fingerprint("fnarray_kernels"),
        hashed(path for folder in compilers for path in sorted(folder.glob("*.py"))),
    )


def name_of(source: KernelSource, capability: str) -> str:
    """Return the name of a kernel for a capability."""
    return kernel_name(source, (*key(), capability, config.cuda_fma))


def build(source: KernelSource, capability: str) -> Binary:
    """Return a kernel for a capability, made at most once per cache.

    Raises
    ------
    UnsupportedOnTarget
        The text holds something that kernels on a GPU have not.
    ValueError
        No capability of that name is known.
    """
    name = name_of(source, check_capability(capability))
    found = _binaries.get(name)
    if found is None:
        payload = store.get(name, _MARK)
        found = None if payload is None else _read(name, capability, payload)
        if found is None or (
            found.kind == "ptx" and toolkit.links(capability)
        ):  # made where none was
            found = _made(name, source, capability)
            store.put(name, _written(found), _MARK)
            store.put_source(name, spell(name, source))
        _binaries[name] = found
    return found


def assembly(source: KernelSource, capability: str) -> str:
    """Return a kernel as PTX."""
    name = name_of(source, check_capability(capability))
    return ptx(lower(name, source, fma=config.cuda_fma), capability)


def forget() -> None:
    """Drop all kernels from memory, so that the next `build` asks the disk."""
    _binaries.clear()


def _made(name: str, source: KernelSource, capability: str) -> Binary:
    text = assembly(source, capability)
    if not toolkit.links(capability):
        return Binary(name, capability, "ptx", text.encode() + b"\0", None)
    return Binary(name, capability, "cubin", *toolkit.cubin(text, capability))


def _written(binary: Binary) -> bytes:
    cost = None if binary.cost is None else asdict(binary.cost)
    head = json.dumps({"kind": binary.kind, "capability": binary.capability, "cost": cost})
    return head.encode() + b"\n" + binary.code


def _read(name: str, capability: str, payload: bytes) -> Binary | None:
    """Return a stored kernel; None for bytes that are none."""
    try:
        head, _, code = payload.partition(b"\n")
        row = json.loads(head)
        cost = None if row["cost"] is None else toolkit.Cost(**row["cost"])
        kind = {"cubin": b"\x7fELF", "ptx": b"//"}[row["kind"]]
        if row["capability"] != capability or not code.startswith(kind):
            raise ValueError("the code is another kernel's")
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("cached kernel %s cannot be used and is compiled again: %r", name, error)
        return None
    return Binary(name, capability, row["kind"], code, cost)
