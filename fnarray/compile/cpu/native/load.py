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


def _find(symbol: str) -> int | None:
    return named(symbol) or elf.in_process(symbol)


@functools.cache
def _trampoline() -> int:
    """Return the address of the trampoline, which another process may have compiled."""
    name = object_name(TRAMPOLINE)
    code = store.get(name)
    if code is not None:
        try:
            return address_of(NAME, code)
        except (LookupError, ValueError, RuntimeError):
            code = None
    from . import machine

    code = machine.compiled(TRAMPOLINE)
    store.put(name, code)
    return address_of(NAME, code)
