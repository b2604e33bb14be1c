"""Figures in words, as pages and terminals show them."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Facts, Kernel


def size(n: float) -> str:
    """Return bytes with a unit."""
    return _scaled(n, 1024, "B KiB MiB GiB TiB")


def number(n: float) -> str:
    """Return a count in thousands, millions, ..."""
    return _scaled(n, 1000, " k M G T").strip()


def seconds(x: float | None) -> str:
    """Return a time with a unit; a dash where it is not known."""
    if x is None:
        return "–"
    for unit, least in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if x >= least:
            return f"{x / least:.3g} {unit}"
    return f"{x * 1e9:.3g} ns"


def count(n: int, what: str) -> str:
    """Return a number of things."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def vectors(kernel: Kernel) -> str:
    """Return what a kernel computes on, in a word or two."""
    if kernel.is_step:
        return "the library's"
    if not kernel.threads:
        return "–"
    if kernel.vector_bits is None:
        return "not looked at"
    return f"{kernel.vector_bits} bits" if kernel.vector_bits else "scalar"


def roofline(kernel: Kernel) -> str:
    """Return the part of a kernel's time that the roofline of the machine accounts for."""
    if kernel.seconds is None or not kernel.bound:
        return "–"
    share = kernel.bound / kernel.seconds
    return f"{100 * share:.0f} %" if share <= 1 else "at it"


def made(kernel: Kernel) -> str:
    """Return where a kernel's machine code is from."""
    how = {
        "disk": "from the cache",
        "native": "compiled",
        "numba": "compiled by Numba",
        "memory": "had before",
    }.get(kernel.made, kernel.made or "–")
    return how if kernel.made_seconds is None else f"{how}, {seconds(kernel.made_seconds)}"


def where(facts: Facts, n: int) -> str:
    """Return which operation a number stands for, and at which line it is."""
    if n < 0:
        return "an array"
    op = facts.operations[n]
    return f"{op.name} at {op.place}"


def grouped(facts: Facts, notes: Iterable[tuple[int, str]]) -> list[tuple[tuple[int, ...], str]]:
    """Return what is said of operations, each sentence once, with the operations it is said of."""
    found: dict[str, list[int]] = {}
    for n, told in notes:
        found.setdefault(f"{where(facts, n)} {told}".rstrip(), []).append(n)
    return [
        (tuple(ns), text if len(ns) == 1 else f"{text} ({len(ns):,} times)")
        for text, ns in found.items()
    ]


def _scaled(n: float, step: int, units: str) -> str:
    *rest, last = units.split(" ")
    for unit in rest:
        if n < step:
            return f"{n:.3g} {unit}"
        n /= step
    return f"{n:.3g} {last}"
