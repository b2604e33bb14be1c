"""Object code as LLVM writes it: what it leaves to be found, and how it is put in memory.

Loading an object takes a tenth of a millisecond here, and 100 ms where LLVM has to be loaded for
it. All that LLVM emits for kernels on x86-64 is known: code and constants in sections that nobody
writes to, tied by absolute 64-bit addresses. Anything else is left to LLVM (decision 0017).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from .codes import Fallback

_X86_64: Final = 62
_ABSOLUTE: Final = 1  # R_X86_64_64
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITE, _ALLOC, _THREAD = 1, 2, 0x400
_ABS: Final = 0xFFF1


class Unknown(Exception):
    """Object code holds something that is left to LLVM."""


# Named tuples would take 0.2 ms of every process that finds its program on disk.
class Section:
    """What a section header says."""

    __slots__ = ("alignment", "flags", "info", "kind", "link", "offset", "size")

    def __init__(self, code: bytes, at: int) -> None:
        words = struct.unpack_from("<IIQQQQIIQQ", code, at)
        _, self.kind, self.flags, _, self.offset, self.size, *rest = words
        self.link, self.info, self.alignment, _ = rest


class Symbol:
    """A symbol: its name, the section it is in, 0 where it is to be found, and where there."""

    __slots__ = ("name", "section", "value")

    def __init__(self, name: str, section: int, value: int) -> None:
        self.name, self.section, self.value = name, section, value


class Object:
    """The tables of an object file.

    Raises
    ------
    Fallback
        The bytes are no object code of this format.
    ValueError
        They are damaged.
    """

    def __init__(self, code: bytes) -> None:
        if code[:6] != b"\x7fELF\x02\x01":
            raise Fallback("object code of another format than ELF")
        self.code = code
        try:
            (self.machine,) = struct.unpack_from("<H", code, 18)
            (table,) = struct.unpack_from("<Q", code, 40)
            size, count = struct.unpack_from("<HH", code, 58)
            self.sections = [Section(code, table + k * size) for k in range(count)]
            self.symbols = list(self._symbols())
        except (struct.error, IndexError, OverflowError, ValueError) as error:
            raise ValueError("damaged object code") from error

    def _symbols(self) -> Iterator[Symbol]:
        for table in self.sections:
            if table.kind != _SYMTAB:
                continue
            names = self.sections[table.link]
            strings = self.code[names.offset : names.offset + names.size]
            for at in range(table.offset, table.offset + table.size, 24):
                name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.code, at)
                text = strings[name : strings.index(b"\0", name)].decode() if name else ""
                yield Symbol(text, section, value)

    def wanted(self) -> list[str]:
        """Return the symbols that are left to be found."""
        return [s.name for s in self.symbols if not s.section and s.name]


def place(code: bytes, name: str, find: Callable[[str], int | None]) -> int:
    """Put object code in memory; return the address of one of its functions.

    Parameters
    ----------
    find : callable
        Gives the address of what the code leaves to be found; None if nobody has it.

    Raises
    ------
    Unknown
        LLVM has to load it.
    ValueError
        It is damaged.
    """
    found = Object(code)
    if os.name != "posix" or found.machine != _X86_64:
        raise Unknown("another processor")
    try:
        return _place(found, name, find)
    except (struct.error, LookupError, OverflowError) as error:
        raise ValueError("damaged object code") from error
    except OSError as error:
        raise Unknown("no memory of its own") from error


def _place(found: Object, name: str, find: Callable[[str], int | None]) -> int:
    offsets, size = _layout(found)
    memory, base = pages(size)
    for k, offset in offsets.items():
        section = found.sections[k]
        end = section.offset + section.size
        memory[offset : offset + section.size] = found.code[section.offset : end]

    def address(symbol: Symbol) -> int:
        if symbol.section == _ABS:
            return symbol.value
        if symbol.section:
            return base + offsets[symbol.section] + symbol.value
        if (known := find(symbol.name)) is None:
            raise Unknown(symbol.name)
        return known

    for section in found.sections:
        if section.kind != _RELA or section.info not in offsets:
            continue
        for at in range(section.offset, section.offset + section.size, 24):
            where, info, addend = struct.unpack_from("<QQq", found.code, at)
            if info & 0xFFFFFFFF != _ABSOLUTE:
                raise Unknown(f"relocation {info & 0xFFFFFFFF}")
            if where > found.sections[section.info].size - 8:
                raise ValueError("damaged object code")
            value = address(found.symbols[info >> 32]) + addend
            struct.pack_into("<Q", memory, offsets[section.info] + where, value & (1 << 64) - 1)
    entry = next((s for s in found.symbols if s.name == name and s.section), None)
    if entry is None or not 0 <= entry.value < found.sections[entry.section].size:
        raise ValueError(f"object code without {name}")
    # Written or run, never both: hardened kernels refuse memory that is.
    if _protect(base, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
        raise Unknown("memory that may not be run")
    keep(memory)
    return address(entry)


def pages(size: int) -> tuple[mmap.mmap, int]:
    """Return zeros and their address."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, max(size, 1), private, mmap.PROT_READ | mmap.PROT_WRITE)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def keep(memory: mmap.mmap) -> None:
    """Never free it: threads that outlive Python may need it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))


def _layout(found: Object) -> tuple[dict[int, int], int]:
    """Return where each section that is needed at run time begins, and the bytes they take."""
    offsets: dict[int, int] = {}
    size = 0
    for k, section in enumerate(found.sections):
        if section.kind == _REL:
            raise Unknown("relocations without addends")
        # Of other kinds: tables for unwinding, which code that never throws has no use for.
        if not section.flags & _ALLOC or section.kind not in (_PROGBITS, _NOBITS):
            continue
        if section.flags & (_WRITE | _THREAD) or section.kind == _NOBITS:
            raise Unknown("data that is written")
        if section.offset + section.size > len(found.code):  # before so much memory is asked for
            raise ValueError("damaged object code")
        alignment = max(section.alignment, 1)
        if alignment > mmap.PAGESIZE:
            raise Unknown("alignment beyond a page")
        offsets[k] = -(-size // alignment) * alignment
        size = offsets[k] + section.size
    return offsets, size


def _protect(address: int, size: int, kind: int) -> int:
    protect = _process().mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return protect(address, size, kind)


@functools.cache
def _process() -> Any:
    return ctypes.CDLL(None)  # which makes a class: 30 us


def in_process(name: str) -> int | None:
    """Return the address of a function that this process has."""
    try:
        return ctypes.cast(_process()[name], ctypes.c_void_p).value
    except AttributeError:
        return None
