"""Object code to a callable, by our own loader where it can; nothing here imports LLVM for it."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ...cache import store
from ...cache.key import object_name
from . import elf
from .call import NAME, TRAMPOLINE, function, named
from .codes import Fallback

if TYPE_CHECKING:
    from .writer import Shared

#: What the names of functions begin with that kernels call and that are compiled on their own.
LIBRARY: Final = "fnarray_math_"
#: Where each of them is, and what else is made of text; their object code; and a lock while one is
#: compiled.
_addresses: Final[dict[str, int]] = {}
_codes: Final[dict[str, bytes]] = {}
_turns: Final[dict[str, threading.Lock]] = {}


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

        return machine.address_of(name, code, _ours)


def missing(code: bytes) -> list[str]:
    """Return the symbols that object code wants and this process does not have."""
    return [symbol for symbol in elf.Object(code).wanted() if _find(symbol) is None]


def _find(symbol: str) -> int | None:
    return _ours(symbol) or elf.in_process(symbol)


def _ours(symbol: str) -> int | None:
    if symbol.startswith(LIBRARY):
        return prepared(symbol)
    found = named(symbol)
    return product(symbol) if found is None and symbol.startswith("fnarray_") else found


@functools.cache
def _trampoline() -> int:
    # Its loop over arguments is as it should be: 6 ms in place of 10.
    return made(NAME, TRAMPOLINE, straight=True)


def made(name: str, text: str, *, straight: bool = False, plain: bool = False) -> int:
    """Return the address of a function of LLVM text, which another process may have compiled.

    `straight` and `plain` are for `machine.compiled`.
    """
    with _turns.setdefault(name, threading.Lock()):
        if name not in _addresses:
            _addresses[name] = _made(name, object_name(text), text, straight, plain=plain)[1]
        return _addresses[name]


@functools.cache
def product(symbol: str) -> int | None:
    """Return where a product of matrices is, by its symbol; None if there is no such product."""
    from . import few, gemm  # which few kernels need

    text = gemm.text(symbol) or few.text(symbol)
    return made(symbol, text, straight=True) if text else None


def _made(
    name: str, key: str, text: str, straight: bool, *, light: bool = False, plain: bool = False
) -> tuple[bytes, int]:
    if (found := _stored(name, key)) is not None:
        return found
    from . import machine

    code = machine.compiled(text, straight=straight, light=light, plain=plain)
    if wanted := missing(code):  # or the cache would hold what cannot be loaded
        raise Fallback(f"the function {wanted[0]}, which this process lacks")
    store.put(key, code)
    return code, address_of(name, code)


def _stored(name: str, key: str) -> tuple[bytes, int] | None:
    code = store.get(key)
    if code is not None:
        try:
            return code, address_of(name, code)
        except (Fallback, LookupError, ValueError, RuntimeError):  # it is made anew
            pass
    return None


# --- functions that kernels call --------------------------------------------------------------


def symbol(text: str) -> str:
    """Return a symbol for the function that LLVM text defines."""
    return LIBRARY + object_name(text)


def prepare(symbol: str, library: Mapping[str, Shared]) -> None:
    """Have a function that kernels call, here and on disk, and those of a library it calls."""
    text, straight, calls, light = library[symbol]
    for called in calls:
        prepare(called, library)
    with _turns.setdefault(symbol, threading.Lock()):
        key = symbol.removeprefix(LIBRARY)
        if symbol not in _codes:
            _enter(symbol, *_made(symbol, key, text, straight, light=light))
        elif store.get(key) is None:  # another directory since then, or emptied
            store.put(key, _codes[symbol])


def prepared(symbol: str) -> int | None:
    """Return where a function is that kernels call, if this or another process has compiled it."""
    if symbol not in _addresses:
        found = _stored(symbol, symbol.removeprefix(LIBRARY))
        if found is not None:
            _enter(symbol, *found)
    return _addresses.get(symbol)


def _enter(symbol: str, code: bytes, address: int) -> None:
    _addresses[symbol] = address
    _codes[symbol] = code


if hasattr(os, "register_at_fork"):
    # A child forked while another thread compiles would wait forever for that thread.
    os.register_at_fork(after_in_child=_turns.clear)
