"""LLVM through llvmlite alone: text to object code, object code to addresses."""

from __future__ import annotations

import functools
import threading
from typing import Any, Final

import llvmlite.binding as llvm

from ....core.fork import holding_through_forks
from ..processor import processor
from .call import named
from .elf import Object
from .types import Fallback

#: A fork waits for LLVM: the child would inherit its locks, and itself half-way through.
lock: Final = threading.RLock()

holding_through_forks(lock.acquire, lock.release)


def wide_vectors() -> bool:
    """Whether kernels should use 512-bit registers."""
    return processor().wide


def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.get_process_triple()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor().name,
        features=processor().features,
        opt=3,
        reloc="static" if triple.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


_target: Final = functools.cache(_machine)


@functools.cache
def _engine() -> Any:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())  # which it then owns


def compiled(text: str, scalar: bool = False) -> bytes:
    """Return the object code of LLVM text.

    Parameters
    ----------
    scalar : bool
        Whether operations outside of loops are vectorised as well.
    """
    with lock:
        return _compiled(text, scalar)


def _compiled(text: str, scalar: bool) -> bytes:
    # Functions of their own, so that what LLVM made is disposed of under the lock as well.
    return _target().emit_object(_optimised(text, scalar))


def assembly(text: str, scalar: bool = False) -> str:
    """Return the assembly of LLVM text, for people and tests; see `compiled`."""
    with lock:
        return _target().emit_assembly(_optimised(text, scalar))


def _optimised(text: str, scalar: bool = False) -> Any:
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:  # a mistake of ours, which costs the user a fallback
        raise Fallback(f"text that LLVM refuses: {error}") from error
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = True
    options.slp_vectorization = scalar
    builder = llvm.create_pass_builder(_target(), options)
    builder.getModulePassManager().run(module, builder)
    return module


def address_of(name: str, code: bytes) -> int:
    """Load object code; return the address of one of its functions.

    Raises
    ------
    LookupError
        The code calls a function that this process does not have.
    """
    with lock:
        return _address_of(name, code)


def _address_of(name: str, code: bytes) -> int:
    engine = _engine()
    if names := missing(code):
        # LLVM ends the process when it meets a symbol it cannot resolve.
        raise LookupError(f"object code calls {', '.join(names)}, which cannot be found")
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(name)


def missing(code: bytes) -> list[str]:
    """Return the symbols that object code wants and this process does not have."""
    with lock:
        _engine()  # which makes LLVM look into the process
        return [x for x in Object(code).wanted() if not _known(x)]


def _known(symbol: str) -> bool:
    """Whether LLVM finds a symbol, which it is told of where it is ours."""
    if llvm.address_of_symbol(symbol) is not None:
        return True
    address = named(symbol)
    if address is not None:
        llvm.add_symbol(symbol, address)
    return address is not None
