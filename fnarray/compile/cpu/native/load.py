"""Object code to a callable, by our own loader where it can; nothing here imports LLVM for it."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Final

from ...cache import store
from ...cache.key import object_name
from . import elf
from .call import NAME, TRAMPOLINE, function, named
from .types import Fallback

#: What the names of functions begin with that kernels call and that are compiled on their own.
LIBRARY: Final = "fnarray_math_"
#: Where each of them is, and what else is made of text; their object code by the name of both
#: versions; and a lock while one is compiled.
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


def made(name: str, text: str, *, straight: bool = False) -> int:
    """Return the address of a function of LLVM text, which another process may have compiled."""
    with _turns.setdefault(name, threading.Lock()):
        if name not in _addresses:
            _addresses[name] = _made((name,), object_name(text), text, straight=straight)[1][0]
        return _addresses[name]


@functools.cache
def product(symbol: str) -> int | None:
    """Return where a product of matrices is, by its symbol; None if there is no such product."""
    from . import gemm  # which few kernels need

    text = gemm.text(symbol)
    return made(symbol, text, straight=True) if text else None


def _made(
    names: tuple[str, ...], key: str, text: str, *, straight: bool = False
) -> tuple[bytes, list[int]]:
    if (found := _stored(names, key)) is not None:
        return found
    from . import machine

    code = machine.compiled(text, straight=straight)
    if wanted := missing(code):  # or the cache would hold what cannot be loaded
        raise Fallback(f"the function {wanted[0]}, which this process lacks")
    store.put(key, code)
    return code, [address_of(name, code) for name in names]


def _stored(names: tuple[str, ...], key: str) -> tuple[bytes, list[int]] | None:
    code = store.get(key)
    if code is not None:
        try:
            return code, [address_of(name, code) for name in names]
        except (Fallback, LookupError, ValueError, RuntimeError):  # it is made anew
            pass
    return None


# --- functions that kernels call --------------------------------------------------------------


def library(text: str) -> str:
    """Return a name for what LLVM text defines: a function, or that of numbers and of vectors."""
    return LIBRARY + object_name(text)


def versions(name: str) -> tuple[str, str]:
    """Return the names of the function, or of that of numbers, and of that of vectors."""
    return f"{name}_1", f"{name}_n"


def prepare(name: str, text: str, *, straight: bool) -> None:
    """Have functions that kernels call, here and on disk; `straight` if LLVM has little to do."""
    with _turns.setdefault(name, threading.Lock()):
        key = name.removeprefix(LIBRARY)
        if name not in _codes:
            names = tuple(x for x in versions(name) if f"@{x}(" in text)
            _enter(name, names, *_made(names, key, text, straight=straight))
        elif store.get(key) is None:  # another directory since then, or emptied
            store.put(key, _codes[name])


def prepared(symbol: str) -> int | None:
    """Return where a function is that kernels call, if this or another process has compiled it."""
    if symbol not in _addresses:
        name = symbol[: symbol.rindex("_")]
        found = _stored((symbol,), name.removeprefix(LIBRARY))
        if found is not None:
            _addresses[symbol] = found[1][0]
    return _addresses.get(symbol)


def _enter(name: str, names: tuple[str, ...], code: bytes, addresses: list[int]) -> None:
    _addresses.update(zip(names, addresses, strict=True))
    _codes[name] = code


if hasattr(os, "register_at_fork"):
    # A child forked while another thread compiles would wait forever for that thread.
    os.register_at_fork(after_in_child=_turns.clear)
