"""Figures in words, as pages and terminals show them."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Facts, Failure, Kernel


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
        if x >= 0.9995 * least:
            return f"{_figures(x / least)} {unit}"
    return f"{_figures(x * 1e9)} ns"


def count(n: int, what: str) -> str:
    """Return a number of things."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def operations(kernel: Kernel) -> str:
    """Return how many operations a kernel does, as far as that is known."""
    if kernel.is_counted:
        return number(kernel.flops)
    return f"{number(kernel.flops)} or more" if kernel.flops else "–"


def all_operations(facts: Facts) -> str:
    """Return how many operations a program does, as far as that is known."""
    total = number(facts.flops)
    return total if all(k.is_counted for k in facts.kernels if k.times) else f"{total} or more"


def vectors(kernel: Kernel) -> str:
    """Return what a kernel computes on, in a word or two."""
    if kernel.is_step:
        return "–" if kernel.label == "view" else "the library's"
    if not kernel.threads:
        return "–"
    if kernel.vector_bits is None:
        return "not known"
    if not kernel.vector_bits:
        return "scalar" if kernel.flops or not kernel.is_counted else "it moves"
    return f"{kernel.vector_bits} bits"


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


def offence(failure: Failure) -> str:
    """Return which error it is, and at which of the user's lines if it is at one."""
    return f"{failure.kind} at {failure.place}" if failure.place.line else failure.kind


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
        if n < step - 0.5:
            return f"{_figures(n)} {unit}"
        n /= step
    return f"{_figures(n)} {last}"


def _figures(n: float) -> str:
    """Return three figures, or as many as stand before the point."""
    return f"{n:.3g}" if n < 999.5 else f"{n:.0f}"
