"""What is measured for a report: runs of a program's kernels, and what this machine reaches."""

from __future__ import annotations

import json
import re
import time
import types
from collections.abc import Callable, Sequence
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


def run_times(executable: Any, arrays: Sequence[Any]) -> tuple[float, dict[str, float]]:
    """Run a program some times; return the fastest run, and that of each kernel and step.

    The driver runs in a copy of its namespace, in which what it calls is timed.
    """
    main = executable.load()
    best: dict[str, float] = {}
    fastest = float("inf")
    launched = set(re.findall(r"launch\((kernel\d+),", executable.source.text))
    timed = _timed_driver(main, launched, best)
    begin = time.perf_counter()
    for run in range(RUNS):
        start = time.perf_counter()
        main(*arrays)
        end = time.perf_counter()
        fastest = min(fastest, end - start)
        timed(*arrays)
        if run and time.perf_counter() - begin > PATIENCE:
            break
    return fastest, best


def _timed_driver(main: Any, launched: set[str], best: dict[str, float]) -> Callable[..., Any]:
    names = dict(main.__globals__)

    def timed(label: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            start = time.perf_counter()
            out = call(*args)
            took = time.perf_counter() - start
            best[label] = min(took, best.get(label, took))
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
_SVE = re.compile(r"\bf?(?:add|sub|mul|div|mla|sqrt|max|min)\w*\s+z\d+\.")


def vector_bits(name: str, source: Any) -> int | None:
    """Return the width of the widest registers that a kernel computes on; 0 where it is scalar."""
    try:
        text = native.assembly_of(name, source)
    except Fallback:
        return None
    widths = {"x": 128, "y": 256, "z": 512}
    found = [widths[m] for m in _PACKED.findall(text)]
    found += [128] * bool(_ARM.search(text)) + [256] * bool(_SVE.search(text))
    return max(found, default=0)


# ---- the roofline --------------------------------------------------------------------------------

#: Kernels that move no more bytes than this are taken to find them in a near cache.
CACHED = 1 << 20


def machine() -> Machine:
    """Return what this machine reaches: measured once, in half a second, and kept in the cache."""
    name, count = processor().name, threads()
    directory = store.info().directory
    if directory is None:
        return _measured(name, count)
    path = Path(directory) / f"machine-{name}-{count}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):  # to be measured again
        kept = json.loads(path.read_text())
        one, two, three = (tuple(kept[k]) for k in ("bandwidth", "cache", "flops"))
        return Machine(name, count, one, two, three, kept["product"])
    found = _measured(name, count)
    kept = {k: getattr(found, k) for k in ("bandwidth", "cache", "flops", "product")}
    with suppress(OSError):  # a cache that cannot be written to
        written(path, json.dumps(kept), "explain: rates of this machine")
    return found


def _measured(name: str, count: int) -> Machine:
    many, few = 1 << 23, 1 << 15
    both = _rate(8 * many, _dot, many)
    with scoped("num_threads", 1):
        alone = _rate(8 * many, _dot, many)
    near = _rate(8 * few, _dot, few)
    flops = _rate(2 * _DEGREE * few, _polynomial, few)
    n = 384
    square, product = np.ones((n, n), np.float32), float("inf")
    for _ in range(40):
        begin = time.perf_counter()
        np.matmul(square, square)
        product = min(product, time.perf_counter() - begin)
    return Machine(
        name, count, (alone, max(alone, both)), (near, near * count), (flops, flops * count),
        2 * n**3 / product,
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


def _rate(work: int, function: Any, size: int) -> float:
    """Return how much work a second the kernels of a program do on an array."""
    executable = jit(function).lower(jnp.ones(size)).compile().runtime_executable()
    return work / sum(run_times(executable, [np.ones(size, np.float32)])[1].values())
