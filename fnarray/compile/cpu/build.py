"""From kernel source to a callable: memory, then disk, then Numba."""

from __future__ import annotations

import linecache
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...config import config
from ...core.dtypes import bfloat16
from ..cache import store
from ..cache.key import KernelSource, kernel_name

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KernelSource", "forget", "kernel_name", "load", "source", "stats"]

Kernel = Callable[..., None]

stats: Final[dict[str, Any]] = {"memory": 0, "disk": 0, "compiled": 0, "compile_seconds": 0.0}

_HALVES: Final = (np.dtype(np.float16), bfloat16)
_log: Final = logging.getLogger("fnarray.compile")
_kernels: Final[dict[tuple[str, bool], Kernel]] = {}
_turns: Final[dict[tuple[str, bool], threading.Lock]] = {}


def load(src: KernelSource) -> Kernel:
    """Return a kernel ready to call, made at most once per process.

    The callable is the compiled entry point.  It trusts its caller: arrays must be
    C-contiguous and aligned, of the rank and dtype that the signature names.  It releases the
    GIL, and returns None.  Under ``NUMBA_DISABLE_JIT=1`` it is the Python function itself.

    Raises
    ------
    ValueError
        The text does not define ``kernel``, or a signature code is unknown.
    numba.core.errors.NumbaError
        Numba rejects the text; a note names the file that holds it.
    """
    # Numba takes 0.3 s to import: a program that runs op by op never pays for it.
    from . import jit

    slot = kernel_name(src), jit.disabled()
    kernel = _kernels.get(slot)
    if kernel is None:
        # One lock per kernel: two threads never compile the same one.
        with _turns.setdefault(slot, threading.Lock()):
            kernel = _kernels.get(slot)
            if kernel is None:
                kernel = _kernels[slot] = _make(slot[0], src)
                return kernel
    stats["memory"] += 1
    return kernel


def source(src: KernelSource) -> str:
    """Return the text of a kernel as its file in the cache shows it."""
    from . import jit

    return jit.spell(kernel_name(src), src)


def forget() -> None:
    """Drop all kernels from memory, so that the next `load` asks the disk."""
    _kernels.clear()
    _turns.clear()


def _make(name: str, src: KernelSource) -> Kernel:
    from . import jit

    text = jit.spell(name, src)
    if jit.disabled():
        return _on_bits(jit.python_function(name, text, _place(name, text)))
    payload = store.get(name)
    if payload is not None:
        start = time.perf_counter()
        try:
            kernel = jit.rebuild(payload)
        except Exception as error:  # whatever is wrong with an entry, it can be made again
            _log.warning("cached kernel %s cannot be used and is compiled again: %r", name, error)
        else:
            stats["disk"] += 1
            _report("loaded %s in %.1f ms", name, 1e3 * (time.perf_counter() - start))
            return kernel
    return _compile(name, src, text)


def _on_bits(function: Kernel) -> Kernel:
    """Hand half-precision arrays over as their bits, as which kernels read and write them."""

    def kernel(*args: Any) -> None:
        function(*(a.view("u2") if getattr(a, "dtype", None) in _HALVES else a for a in args))

    return kernel


def _compile(name: str, src: KernelSource, text: str) -> Kernel:
    from . import jit

    place = _place(name, text)
    start = time.perf_counter()
    try:
        result = jit.compile_kernel(jit.python_function(name, text, place), src.signature)
    except Exception as error:
        error.add_note(f"while compiling {place}, with signature ({', '.join(src.signature)})")
        raise
    payload = jit.dump(result)
    if payload is not None:
        store.put(name, payload)
    elapsed = time.perf_counter() - start
    stats["compiled"] += 1
    stats["compile_seconds"] += elapsed
    _report("compiled %s in %.1f ms", name, 1e3 * elapsed)
    return result.entry_point


def _place(name: str, text: str) -> Path | str:
    """Keep the text where tracebacks and debuggers find it: a file, or failing that, memory."""
    path = store.put_source(name, text)
    if path is not None:
        return path
    place = f"<fnarray {name}>"
    # No modification time: linecache then never looks for a file.
    linecache.cache[place] = len(text), None, text.splitlines(keepends=True), place
    return place


def _report(message: str, *args: object) -> None:
    _log.log(logging.WARNING if config.log_compiles else logging.DEBUG, message, *args)


if hasattr(os, "register_at_fork"):
    # A child forked while another thread compiles would wait forever for that thread.
    os.register_at_fork(after_in_child=_turns.clear)
