"""Object code to a callable, by our own loader where it can; nothing here imports LLVM for it."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...cache import store
from ...cache.key import object_name
from . import elf
from .call import NAME, TRAMPOLINE, function, named


def rebuild(name: str, signature: tuple[str, ...], code: bytes) -> Callable[..., None]:
    """Return object code as a callable.

    Raises
    ------
    LookupError
        The code calls a function that this process does not have.
    ValueError, Fallback
        The bytes are no object code.
    """
    return function(name, _trampoline(), address_of(name, code), signature)


def address_of(name: str, code: bytes) -> int:
    """Load object code; return the address of one of its functions. Raises what `rebuild` does."""
    try:
        return elf.place(code, name, _find)
    except elf.Unknown:
        from . import machine

        return machine.address_of(name, code)


def missing(code: bytes) -> list[str]:
    """Return the symbols that object code wants and this process does not have."""
    return [symbol for symbol in elf.Object(code).wanted() if _find(symbol) is None]


def _find(symbol: str) -> int | None:
    return named(symbol) or elf.in_process(symbol)


@functools.cache
def _trampoline() -> int:
    return made(NAME, TRAMPOLINE)


def made(name: str, text: str) -> int:
    """Return the address of a function of LLVM text, which another process may have compiled."""
    key = object_name(text)
    code = store.get(key)
    if code is not None:
        try:
            return address_of(name, code)
        except (LookupError, ValueError, RuntimeError):
            code = None
    from . import machine

    code = machine.compiled(text)
    store.put(key, code)
    return address_of(name, code)
