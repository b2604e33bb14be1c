"""From kernel source to a callable: memory, then disk, then a compiler."""

from __future__ import annotations

import linecache
import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ...config import config
from ...core.fork import holding_through_forks
from ...core.hooks import span
from ...core.logs import DEBUG, WARNING, Log
from ..cache import store
from ..cache.key import KernelSource
from .key import kernel_name
from .namespace import disabled, python_function, spell
from .native import load as native

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KernelSource", "forget", "kernel_name", "load", "made", "source", "stats"]

Kernel = Callable[..., None]


class Making:
    """How this process came by a kernel: from the disk or by which compiler, and in how long."""

    __slots__ = ("how", "seconds")

    def __init__(self, how: str, seconds: float) -> None:
        self.how, self.seconds = how, seconds


stats: Final[dict[str, Any]] = {"memory": 0, "disk": 0, "compiled": 0, "compile_seconds": 0.0}
#: How each kernel of this process was made, by name.
made: Final[dict[str, Making]] = {}
#: Kernels of this process that were left to Numba because nothing else can read them, by reason.
fallbacks: Final[Counter[str]] = Counter()

#: What object code begins with; what Numba's kernels are kept in begins otherwise.
OBJECT: Final = b"\x7fELF"
_log: Final = Log("fnarray.compile")
_kernels: Final[dict[tuple[str, bool], Kernel]] = {}
_counting: Final = threading.RLock()
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
    NotImplementedError
        Only the native compiler is allowed, and it cannot read the text.
    numba.core.errors.NumbaError
        Numba rejects the text; a note names the file that holds it.
    """
    slot = kernel_name(src), disabled()
    kernel = _kernels.get(slot)
    if kernel is None:
        # One lock per kernel: two threads never compile the same one.
        with _turns.setdefault(slot, threading.Lock()):
            kernel = _kernels.get(slot)
            if kernel is None:
                kernel = _kernels[slot] = _make(slot[0], src)
                return kernel
    _count("memory")
    return kernel


def find(name: str, signature: tuple[str, ...]) -> Kernel:
    """Return a kernel that this process or another one has compiled, by name.

    Raises
    ------
    LookupError
        There is none, or it cannot be used.
    """
    slot = name, disabled()
    kernel = _kernels.get(slot)
    if kernel is not None:
        _count("memory")
        return kernel
    kernel = None if slot[1] else _stored(name, signature)
    if kernel is None:
        raise LookupError(f"compile.cpu.build: kernel {name} is not on disk")
    return _kernels.setdefault(slot, kernel)


def load_all(sources: Sequence[KernelSource], tell: Callable[[int], None]) -> list[Kernel]:
    """Return kernels ready to call, in order; those that nobody has compiled are, at once.

    Parameters
    ----------
    tell : callable
        Told how many are there, whenever one has come.

    Raises
    ------
    Exception
        The first that `load` raised; no other kernel is begun after that.
    """
    kernels: dict[KernelSource, Kernel] = {}
    for src in dict.fromkeys(sources):
        with suppress(LookupError):
            kernels[src] = find(kernel_name(src), src.signature)

    def make(src: KernelSource) -> None:
        kernels[src] = load(src)
        tell(len(kernels))

    # The longest first, so that no thread begins one when the others have ended.
    wanted = sorted({*sources} - {*kernels}, key=lambda src: (-len(src.text), src.text))
    if wanted:
        from ..room import check_compiler  # which a program that is found needs not

        check_compiler(max(src.text.count("\n") for src in wanted))
    if len(wanted) > 1:
        from .together import share

        share(make, wanted)
    else:
        for src in wanted:
            make(src)
    return [kernels[src] for src in sources]


def source(src: KernelSource) -> str:
    """Return the text of a kernel as its file in the cache shows it."""
    return spell(kernel_name(src), src)


def forget() -> None:
    """Drop all kernels from memory, so that the next `load` asks the disk."""
    _kernels.clear()
    _turns.clear()


def _count(what: str, more: float = 1) -> None:
    with _counting:  # threads compile at once
        stats[what] += more


def _make(name: str, src: KernelSource) -> Kernel:
    text = spell(name, src)
    if disabled():
        return _on_bits(python_function(name, text, _place(name, text)))
    return _stored(name, src.signature) or _compile(name, src, text)


def _stored(name: str, signature: tuple[str, ...]) -> Kernel | None:
    """Return a kernel made of what is on disk, or None."""
    payload = store.get(name)
    if payload is None:
        return None
    try:
        with span("load", name) as took:
            kernel = _rebuilt(name, signature, payload)
    except Exception as error:  # whatever is wrong with an entry, it can be made again
        _log.warning("cached kernel %s cannot be used and is compiled again: %r", name, error)
        return None
    _count("disk")
    made[name] = Making("disk", took.seconds)
    _report("loaded %s in %.1f ms", name, 1e3 * took.seconds)
    return kernel


def _rebuilt(name: str, signature: tuple[str, ...], payload: bytes) -> Kernel:
    # Compilers are imported here and below: Numba takes 0.3 s, and a program that runs op by op
    # needs none.
    if payload[:4] == OBJECT:
        return native.rebuild(name, signature, payload)
    from . import jit

    return jit.rebuild(payload)


def _on_bits(function: Kernel) -> Kernel:
    """Hand half-precision arrays over as their bits, as which kernels read and write them."""
    from .halves import words  # with it comes emission, which a kernel that is there needs not

    def kernel(*args: Any) -> None:
        function(*map(words, args))

    return kernel


def _compile(name: str, src: KernelSource, text: str) -> Kernel:
    place = _place(name, text)
    try:
        with span("compile", name) as took:
            compiled = None if config.compiler == "numba" else _natively(name, src)
            kernel, payload = compiled or _by_numba(name, src, text, place)
    except Exception as error:
        error.add_note(f"while compiling {place}, with signature ({', '.join(src.signature)})")
        raise
    if payload is not None:
        store.put(name, payload)
    _count("compiled")
    _count("compile_seconds", took.seconds)
    made[name] = Making("native" if compiled else "numba", took.seconds)
    _report("compiled %s in %.1f ms", name, 1e3 * took.seconds)
    return kernel


def _natively(name: str, src: KernelSource) -> tuple[Kernel, bytes] | None:
    """Compile without Numba; None, and the reason counted, for what only Numba can."""
    from .native import kernel
    from .native.types import Fallback

    try:
        payload = kernel.compile_kernel(name, src)
    except Fallback as reason:
        if config.compiler == "native":
            raise NotImplementedError(
                f"compile.cpu.build: the native compiler does not know {reason}. "
                f"Set config.compiler to 'auto', which leaves such kernels to Numba."
            ) from reason
        fallbacks[str(reason)] += 1
        _report("%s is left to Numba: %s", name, reason)
        return None
    return native.rebuild(name, src.signature, payload), payload


def _by_numba(
    name: str, src: KernelSource, text: str, place: Path | str
) -> tuple[Kernel, bytes | None]:
    from . import jit

    result = jit.compile_kernel(python_function(name, text, place), src.signature)
    return result.entry_point, jit.dump(result)


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
    _log.log(WARNING if config.log_compiles else DEBUG, message, *args)


holding_through_forks(_counting.acquire, _counting.release)
if hasattr(os, "register_at_fork"):
    # A child forked while another thread compiles would wait forever for that thread.
    os.register_at_fork(after_in_child=_turns.clear)
