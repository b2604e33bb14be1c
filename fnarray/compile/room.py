"""Is there memory to compile a program? Answered before a compiler is started that cannot end."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from ..core.graph import Eqn, Graph, subgraphs
from ..core.source import UNKNOWN
from ..errors import ProgramSizeError
from .ir import Block

#: Bytes that compiling a statement takes: 9,000 of arithmetic, 34,000 with a tanh in each fourth
#: (bodies of 1,000 to 16,000 operations; LLVM 22).
STATEMENT: Final = 40_000
#: Fewer statements are not worth asking the system.
SMALL: Final = 5_000
#: Address space that LLVM takes before it compiles, and with the first kernels. Where there is no
#: more of it LLVM ends the process, so that a limit (``ulimit -v``) is asked after beforehand.
LIBRARY: Final = 160_000_000
WORK: Final = 48_000_000
#: Address space of a thread: its stack, and an arena of malloc's, cut out of twice its 64 MB.
THREAD: Final = 144_000_000


def check_room(block: Block, lengths: Sequence[int], abreast: int) -> None:
    """Raise unless kernels can be compiled in the memory there is.

    Parameters
    ----------
    lengths : sequence of int
        How many statements each has.
    abreast : int
        How many are compiled at once.

    Raises
    ------
    ProgramSizeError
        It names the largest part of the program.
    """
    statements = sum(sorted(lengths)[-abreast:])
    if statements <= SMALL:
        return
    need, free = statements * STATEMENT, available()
    if free is None or need <= free:
        return
    takes = (
        f", and compiling its {statements:,} statements takes about {need / 1e6:,.0f} MB, of which "
        f"{free / 1e6:,.0f} are free"
    )
    raise _too_large(_parts(block), takes)


def check_compiler(statements: int) -> None:
    """Raise where a limit of address space leaves too little for LLVM, and so many statements.

    Raises
    ------
    MemoryError
        It says how much is needed, and is there; who knows the program says what is large.
    """
    free = _limit()
    if free is None:
        return
    need = WORK + statements * STATEMENT + (0 if _has_compiler() else LIBRARY)
    if need > free:
        raise MemoryError(
            f"to compile {statements:,} statements takes about {need / 1e6:,.0f} MB of address "
            f"space, of which a limit (ulimit -v) leaves {max(free, 0) / 1e6:,.0f}"
        )


def has_room(threads: int) -> bool:
    """Say whether a limit of address space leaves some for so many threads, and their work."""
    free = _limit()
    return free is None or free > (threads + 1) * THREAD


def _has_compiler() -> bool:
    try:
        return "llvmlite" in Path("/proc/self/maps").read_text()
    except OSError:
        return False


def ran_out(graph: Graph, why: BaseException) -> ProgramSizeError:
    """Return the error of a program for which there was no memory left."""
    return _too_large(_graphs(graph), f"; {why}" if why.args else "")


def _too_large(parts: Iterable[tuple[str, Sequence[Eqn]]], takes: str) -> ProgramSizeError:
    where, eqns = max(parts, key=lambda part: len(part[1]))
    sources = Counter(eqn.source for eqn in eqns)
    source, count = max(sources.items(), key=lambda item: (item[0] != UNKNOWN, item[1]))
    return ProgramSizeError(
        f"compile: the program is too large for the memory there is: {where} has {len(eqns):,} "
        f"operations, {count:,} of them from {source}{takes}. Write what "
        f"repeats as a loop (lax.scan, lax.fori_loop) in place of Python's, or compile parts of "
        f"the program by a jit of their own."
    )


def _parts(block: Block, where: str = "the program") -> Iterator[tuple[str, Sequence[Eqn]]]:
    """Yield the program and the bodies of its loops, each with the operations it has itself."""
    yield where, [node.eqn for node in block.nodes]
    for node in block.nodes:
        for body in node.bodies:
            yield from _parts(body, _inside(node.eqn))


def _graphs(graph: Graph, where: str = "the program") -> Iterator[tuple[str, Sequence[Eqn]]]:
    """Yield the same of what was traced."""
    yield where, graph.eqns
    for eqn in graph.eqns:
        for inner in subgraphs(eqn.params):
            yield from _graphs(inner, _inside(eqn))


def _inside(eqn: Eqn) -> str:
    return f"the body of the {eqn.primitive.name} at {eqn.source}"


def available() -> int | None:
    """Return how many bytes this process may still use; None where the system does not say."""
    limits = [x for x in (_system(), _group(), _limit()) if x is not None]
    return max(min(limits), 0) if limits else None


def _system() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(x.split()[1]) for x in lines if x.startswith("MemAvailable")), None)


def _group() -> int | None:
    """Return what the control group leaves."""
    root = Path("/sys/fs/cgroup")
    try:
        most = (root / "memory.max").read_text().strip()
        return None if most == "max" else int(most) - int((root / "memory.current").read_text())
    except (OSError, ValueError):
        return None


def _limit() -> int | None:
    """Return what a limit of address space leaves."""
    if os.name != "posix":
        return None
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return None
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        used = 0
    return most - used
