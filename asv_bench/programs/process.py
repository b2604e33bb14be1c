"""One program in a process of its own: ``python -m programs.process CLOCK MODULE PROGRAM ...``.

Prints the seconds of its first call: trace, compilation, run; imports and inputs are there before.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from . import PROGRAMS

#: Wall time, and the processor's: of all threads, and untouched by other processes' demands.
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def prepared(module: str, name: str, size: str, what: str) -> Callable[[], Any]:
    """Return a call without arguments: the ``value`` of a program, or its ``gradient``."""
    m, program = importlib.import_module(module), PROGRAMS[name]
    build = program.build if what == "value" else program.gradient
    function, arrays = build(m, **program.sizes[size])
    return partial(m.jit(function), *(m.numpy.asarray(x).block_until_ready() for x in arrays))


def blocked(m: Any, result: Any) -> None:
    """Wait for every array."""
    for x in m.tree.leaves(result):
        x.block_until_ready()


def first_call(env: Mapping[str, str], *words: str) -> float:
    """Seconds of the first call, in a new process."""
    command = [sys.executable, "-m", "programs.process", *words]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{words}: " + (run.stderr.strip().splitlines() or ["died"])[-1])
    return float(run.stdout)


def main() -> None:
    """Time the first call of the program named on the command line."""
    clock, module, *words = sys.argv[1:]
    call, now = prepared(module, *words), CLOCKS[clock]
    start = now()
    blocked(importlib.import_module(module), call())
    print(now() - start)


if __name__ == "__main__":
    main()
