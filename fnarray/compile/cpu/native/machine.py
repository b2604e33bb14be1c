"""LLVM through llvmlite alone: text to object code, object code to addresses."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from ....core.fork import holding_through_forks
from ..processor import processor
from . import compiler, llvm
from .elf import Object

#: Of all that goes through llvmlite's own objects, which lets in one thread at a time.
lock: Final = threading.RLock()
#: The threads that are in LLVM beside that lock, each as often as it entered.
_inside: Final[list[int]] = []
_changed: Final = threading.Condition(lock)


def _hold() -> None:
    """Wait until no other thread is in LLVM, and let none in: a child would inherit its locks."""
    lock.acquire()
    own = threading.get_ident()
    _changed.wait_for(lambda: all(thread == own for thread in _inside))


holding_through_forks(_hold, lock.release)


@contextmanager
def _entered() -> Generator[None, None, None]:
    own = threading.get_ident()
    try:
        with lock:
            llvm.target()
            _inside.append(own)
        yield
    finally:
        with lock:
            if own in _inside:
                _inside.remove(own)
            _changed.notify_all()


def wide_vectors() -> bool:
    """Whether kernels should use 512-bit registers."""
    return processor().wide


def unmasked() -> str:
    """Return the processor's features but for AVX-512; nothing where it has none.

    A comparison and the choice that follows take six cycles by way of a mask, and two without. A
    table of dynamic time warping took 273 us and takes 102.
    """
    features = processor().features.split(",")
    kept = [x for x in features if not x.startswith("+avx512")]
    return ",".join([*kept, "-avx512f"]) if "+avx512f" in features else ""


@functools.cache
def _engine() -> Any:
    import llvmlite.binding as llvmlite  # asked for by code that we cannot load ourselves

    llvm.target()
    machine = llvmlite.Target.from_triple(llvm.triple()).create_target_machine(
        cpu=processor().name,
        features=processor().features,
        opt=compiler.LEVEL,
        reloc=compiler.RELOCATIONS,
        codemodel=compiler.CODE_MODEL,
        jit=True,
    )
    return llvmlite.create_mcjit_compiler(
        llvmlite.parse_assembly(""), machine
    )  # which it then owns


def compiled(
    text: str,
    scalar: bool = False,
    *,
    straight: bool = False,
    light: bool = False,
    plain: bool = False,
) -> bytes:
    """Return the object code of LLVM text; threads do not wait for each other.

    Parameters
    ----------
    scalar : bool
        Whether operations outside of loops are vectorised as well.
    straight : bool
        Whether there is nothing to improve: no loops, no calls, no memory.
    light : bool
        Whether there is little, as what loops innermost is vectors already.
    plain : bool
        Whether it hardly matters how fast the code is.

    Raises
    ------
    Fallback
        LLVM refuses the text, or llvmlite's library is none that is known.
    """
    with _entered():
        return compiler.emitted(
            text, scalar, code=True, straight=straight, light=light, plain=plain
        )


def assembly(
    text: str, straight: bool = False, *, scalar: bool = False, light: bool = False
) -> str:
    """Return the assembly of LLVM text, for people and tests; see `compiled`."""
    with _entered():
        code = compiler.emitted(text, scalar, code=False, straight=straight, light=light)
    return code.decode()


def address_of(name: str, code: bytes, find: Callable[[str], int | None]) -> int:
    """Load object code; return the address of one of its functions.

    Parameters
    ----------
    find : callable
        Gives the address of what LLVM does not know; None if nobody has it.

    Raises
    ------
    LookupError
        The code calls a function that this process does not have.
    """
    with lock:
        return _address_of(name, code, find)


def _address_of(name: str, code: bytes, find: Callable[[str], int | None]) -> int:
    import llvmlite.binding as llvmlite

    engine = _engine()
    for symbol in Object(code).wanted():
        # LLVM ends the process when it meets a symbol it cannot resolve.
        if llvmlite.address_of_symbol(symbol) is None:
            address = find(symbol)
            if address is None:
                raise LookupError(f"object code calls {symbol}, which cannot be found")
            llvmlite.add_symbol(symbol, address)
    engine.add_object_file(llvmlite.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(name)
