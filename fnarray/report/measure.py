"""What is measured for a report: runs of a program's kernels, and what this machine reaches."""

from __future__ import annotations

import json
import re
import time
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import numpy as jnp
from ..api.jit import jit
from ..compile.cache import store
from ..compile.cpu.launch import threads
from ..compile.cpu.native import kernel as native
from ..compile.cpu.native.types import Fallback
from ..compile.cpu.processor import processor
from ..config import scoped
from .files import written
from .model import Machine

#: Runs of a program, within this many seconds but for the first two.
RUNS, PATIENCE = 30, 1.0


def run_times(
    executable: Any, arrays: Sequence[Any], held: Mapping[str, Any] | None = None
) -> tuple[float, dict[str, float]]:
    """Run a program some times; return the fastest run, and that of each kernel and step.

    The driver runs in a copy of its namespace, in which what it calls is timed.

    Parameters
    ----------
    held : mapping of str to Executable, optional
        Programs that steps run, by the labels of these: timed as well, on whichever device is the
        fastest.
    """
    main = executable.load()
    best: dict[str, float] = {}
    fastest = float("inf")
    timed = _timed_driver(executable, best)
    inside = [(p, p.load(), _timed_driver(p, best, f"{at}.")) for at, p in (held or {}).items()]
    begin = time.perf_counter()
    for run in range(RUNS):
        start = time.perf_counter()
        main(*arrays)
        end = time.perf_counter()
        fastest = min(fastest, end - start)
        try:
            for program, _, watched in inside:
                program.run = watched
            timed(*arrays)
        finally:
            for program, plain, _ in inside:
                program.run = plain
        if run and time.perf_counter() - begin > PATIENCE:
            break
    return fastest, best


def _timed_driver(executable: Any, best: dict[str, float], at: str = "") -> Callable[..., Any]:
    """Return a program's driver, which notes the best time of ``at`` and each label of its own."""
    main = executable.load()
    names = dict(main.__globals__)
    launched = set(re.findall(r"launch\((kernel\d+),", executable.source.text))

    def timed(label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            start = time.perf_counter()
            out = call(*args)
            took = time.perf_counter() - start
            best[at + label] = min(took, best.get(at + label, took))
            return out

        return run

    # Equal kernels are one object: what is handed to `launch` is told apart by a name of its own.
    launches: dict[Any, Callable[..., Any]] = {}
    for name, called in main.__globals__.items():
        if name in launched:
            names[name] = name
            launches[name] = timed(name, partial(names["launch"], called))
        elif re.fullmatch(r"(kernel|h)\d+", name):
            names[name] = timed(name, called)
    if launched:
        names["launch"] = lambda name, *args: launches[name](*args)
    return types.FunctionType(main.__code__, names)


# ---- vectors -------------------------------------------------------------------------------------

_WORK = r"\bv?(?:add|sub|mul|div|sqrt|max|min|fn?m(?:add|sub)\d+)"
_INTEGER = r"\bv?p(?:add|sub|mull|min|max|cmp|sll|srl|sra)\w*\b"
_PACKED = re.compile(rf"(?:{_WORK}p[sdh]\b|{_INTEGER})[^\n]*%([xyz])mm")
_ARM = re.compile(r"\bf?(?:add|sub|mul|div|mla|sqrt|max|min)\w*\s+v\d+\.")
_ROUTINES = re.compile(r"\bfk\.(?:gemm|lapack)\.")
_SVE = re.compile(r"\bf?(?:add|sub|mul|div|mla|sqrt|max|min)\w*\s+z\d+\.")


def vector_bits(name: str, source: Any) -> int | None:
    """Return the width of the widest registers that a kernel computes on; 0 where it is scalar.

    None where it is not known: of a kernel that leaves all to BLAS or LAPACK, or is Numba's.
    """
    try:
        text = native.assembly_of(name, source)
    except Fallback:
        return None
    widths = {"x": 128, "y": 256, "z": 512}
    found = [widths[m] for m in _PACKED.findall(text)]
    found += [128] * bool(_ARM.search(text)) + [256] * bool(_SVE.search(text))
    return max(found, default=None if _ROUTINES.search(source.text) else 0)


# ---- the roofline --------------------------------------------------------------------------------

#: Kernels that move no more bytes than this are taken to find them in a near cache.
CACHED = 1 << 20


#: A machine that was busy when it was measured is measured again, in at most so many processes.
_TRIES = 5
_beaten: list[bool] = []


def machine(*, beaten: bool = False) -> Machine:
    """Return what this machine reaches: measured in half a second, and kept in the cache.

    Parameters
    ----------
    beaten : bool
        Whether a kernel was faster than what was found: the machine may have done something else
        then. It is measured again, once a process, and the better rates are kept.
    """
    name, count = processor().name, threads()
    directory = store.info().directory
    path = Path(directory) / f"machine-{name}-{count}.json" if directory is not None else None
    kept, tries = _kept(path, name, count)
    if kept is not None and not (beaten and not _beaten and tries < _TRIES):
        return kept
    found = _measured(name, count)
    if kept is not None:
        _beaten.append(True)
        found = _better(kept, found)
    if path is not None:
        rates = {key: getattr(found, key) for key in _RATES}
        with suppress(OSError):  # a cache that cannot be written to
            written(
                path, json.dumps({**rates, "tries": tries + 1}), "explain: rates of this machine"
            )
    return found


_RATES = ("bandwidth", "cache", "flops", "product")


def _kept(path: Path | None, name: str, count: int) -> tuple[Machine | None, int]:
    """Return what was measured before, None if nothing is readable, and how often it was."""
    if path is not None:
        with suppress(OSError, ValueError, KeyError, TypeError):  # to be measured again
            kept = json.loads(path.read_text())
            one, two, three = (tuple(kept[key]) for key in _RATES[:3])
            return Machine(name, count, one, two, three, kept["product"]), int(kept["tries"])
    return None, 0


def _better(a: Machine, b: Machine) -> Machine:
    pairs = [tuple(map(max, getattr(a, key), getattr(b, key))) for key in _RATES[:3]]
    return Machine(a.name, a.threads, *pairs, product=max(a.product, b.product))


def _measured(name: str, count: int) -> Machine:
    many, few = 1 << 23, 1 << 15
    both = _rate(8 * many, _dot, many)
    with scoped("num_threads", 1):
        alone = _rate(8 * many, _dot, many)
    near = _rate(8 * few, _dot, few)
    flops = _rate(2 * _DEGREE * few, _polynomial, few)
    n = 384
    product = _rate(2 * n**3, _square, n, n)
    return Machine(
        name, count, (alone, max(alone, both)), (near, near * count), (flops, flops * count),
        product,
    )  # fmt: skip


#: Of a polynomial that one loop computes.
_DEGREE = 20


def _dot(x: Any) -> Any:
    return (x * x[::-1]).sum()  # which reads alone: fresh memory for a result costs page faults


def _polynomial(x: Any) -> Any:
    y = x
    for k in range(_DEGREE):
        y = y * x + k
    return y


def _square(x: Any) -> Any:
    return x @ x


def _rate(work: int, function: Any, *shape: int) -> float:
    """Return how much work a second the kernels of a program do on an array."""
    executable = jit(function).lower(jnp.ones(shape)).compile().runtime_executable()
    return work / sum(run_times(executable, [np.ones(shape, np.float32)])[1].values())
