"""LLVM's functions, from llvmlite's library but beside its modules and its lock.

llvmlite's modules take 20 ms to import, and let one thread at a time into LLVM.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

from ...cache.key import version
from .codes import Fallback

#: Releases of llvmlite whose functions are those below; another one is asked what it declares.
KNOWN: Final = ("0.50.",)
#: The functions: what they return, what they take, and whether Python runs meanwhile. To get the
#: GIL back can take 5 ms, so short functions keep it.
FUNCTIONS: Final = {
    "InitializeNativeTarget": ("", "", False),
    "InitializeNativeAsmPrinter": ("", "", False),
    "GetProcessTriple": ("", "o", False),
    "GetHostCPUName": ("", "o", False),
    "GetHostCPUFeatures": ("i", "o", False),
    "GetTargetFromTriple": ("p", "so", False),
    "ContextCreate": ("p", "", False),
    "ContextDispose": ("", "p", True),
    "ParseAssembly": ("p", "pso", True),
    "DisposeModule": ("", "p", True),
    "CreateTargetMachine": ("p", "psssissiis", False),
    "DisposeTargetMachine": ("", "p", False),
    "CreatePipelineTuningOptions": ("p", "", False),
    "DisposePipelineTuningOptions": ("", "p", False),
    "PTOSetLoopVectorization": ("", "pb", False),
    "PTOSetSLPVectorization": ("", "pb", False),
    "CreatePassBuilder": ("p", "pp", False),
    "DisposePassBuilder": ("", "p", False),
    "buildPerModuleDefaultPipeline": ("p", "pi", False),
    "RunNewModulePassManager": ("", "ppp", True),
    "DisposeNewModulePassManger": ("", "p", False),
    "TargetMachineEmitToMemory": ("p", "ppio", True),
    "GetBufferStart": ("p", "p", False),
    "GetBufferSize": ("n", "p", False),
    "DisposeMemoryBuffer": ("", "p", False),
    "DisposeString": ("", "s", False),
}
#: Letters for types: a pointer, text, where to put text, integers, a truth.
TYPES: Final = {
    "p": ctypes.c_void_p,
    "s": ctypes.c_char_p,
    "o": ctypes.POINTER(ctypes.c_char_p),
    "i": ctypes.c_int,
    "n": ctypes.c_size_t,
    "b": ctypes.c_bool,
}
_FILES: Final = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}

Do = dict[str, Callable[..., Any]]


@functools.cache
def functions() -> Do:
    """Return the functions by name; raise `Fallback` where llvmlite has others."""
    known = _path() if version("llvmlite").startswith(KNOWN) else None
    path, handle = (known, None) if known else _asked()
    try:
        waits = ctypes.PyDLL(path, handle=handle)
    except OSError as error:
        if "map segment" in str(error) or "allocate memory" in str(error):
            raise MemoryError(f"LLVM's library finds no room: {error}") from error
        raise
    runs = ctypes.CDLL(path, handle=waits._handle)
    found: Do = {}
    for name, (result, takes, long) in FUNCTIONS.items():
        found[name] = function = (runs if long else waits)[f"LLVMPY_{name}"]
        function.restype = TYPES[result] if result else None
        function.argtypes = [TYPES[letter] for letter in takes]
    return found


def _path() -> str | None:
    """Return where llvmlite's library is, without importing llvmlite."""
    spec = find_spec("llvmlite")
    file = _FILES.get(sys.platform, "libllvmlite.so")
    folders = (spec.submodule_search_locations if spec else None) or ()
    paths = (f"{folder}{os.sep}binding{os.sep}{file}" for folder in folders)
    return next((p for p in paths if os.path.exists(p)), None)  # noqa: PTH110 - in a first call


def _asked() -> tuple[str, int]:
    """Return llvmlite's library, its functions compared with ours as far as it declares them."""
    from llvmlite.binding import ffi

    for name, (_, takes, _) in FUNCTIONS.items():
        declared = getattr(ffi.lib, f"LLVMPY_{name}", None)
        if declared is None:
            raise Fallback(f"an llvmlite without {name}")
        if declared.argtypes and len(declared.argtypes) != len(takes):
            raise Fallback(f"an llvmlite whose {name} takes other arguments")
    return ffi.lib._name, ffi.lib._handle


def said(do: Do, words: ctypes.c_char_p) -> str:
    """Return a text that LLVM has put somewhere, which is then disposed of."""
    text = (words.value or b"").decode(errors="replace")
    do["DisposeString"](words)
    return text


def _asking(name: str) -> str:
    do, words = functions(), ctypes.c_char_p()
    do[name](ctypes.byref(words))
    return said(do, words)


@functools.cache
def triple() -> str:
    """Return what kind of machine this process runs on: ``x86_64-unknown-linux-gnu``."""
    return _asking("GetProcessTriple")


def host_name() -> str:
    """Return the processor's name; ``"generic"`` or nothing where LLVM does not know it."""
    return _asking("GetHostCPUName")


def host_features() -> str:
    """Return what the processor has and lacks: ``+avx2,-sse4a``; nothing where LLVM cannot tell."""
    return ",".join(sorted(_asking("GetHostCPUFeatures").split(","), key=lambda x: x[1:]))


@functools.cache
def target() -> int:
    """Return what makes machines for this kind of processor."""
    do, words = functions(), ctypes.c_char_p()
    do["InitializeNativeTarget"]()
    do["InitializeNativeAsmPrinter"]()
    found = do["GetTargetFromTriple"](triple().encode(), ctypes.byref(words))
    if not found:
        raise Fallback(f"a processor that LLVM does not know: {said(do, words)}")
    return found
