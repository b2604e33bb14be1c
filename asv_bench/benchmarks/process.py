"""Cases that need a process of their own: warm starts and peak memory.

``python -m benchmarks.process MODULE CASE`` runs one case and prints the bytes of memory its call
added at its peak.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parents[1]
STATUS = Path("/proc/self/status")


def environment(cache: str) -> dict[str, str]:
    """Both modules' disk caches in one folder; JAX's set to keep everything, its best case.

    Byte code is written, as JAX is installed with its own: a source tree has it from the first
    process on.
    """
    return {
        **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH")))),
        "FNARRAY_CACHE_DIR": f"{cache}/fnarray",
        "JAX_COMPILATION_CACHE_DIR": f"{cache}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu",
    }


def spawn(module: str, case: str, env: Mapping[str, str]) -> tuple[float, int]:
    """Run one case in a new process; its seconds from start to exit, and its peak bytes."""
    command = [sys.executable, "-m", "benchmarks.process", module, case]
    start = time.perf_counter()
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if run.returncode:
        raise RuntimeError(f"{module} {case}: " + (run.stderr.strip().splitlines() or ["died"])[-1])
    return seconds, int(run.stdout)


def memory(field: str) -> int:
    """Read one memory field of this process, in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def peak_added(call) -> int:
    """Bytes the process grew by at the peak of ``call``, above what it held before.

    Linux only. The high-water mark is reset first: ``ru_maxrss`` would also count what building
    the inputs took, and even what the parent process held when it started this one.
    """
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    call().block_until_ready()
    return memory("VmHWM") - before


def main() -> None:
    """Build the case named on the command line and run it once."""
    from benchmarks.cases import CASES

    module, name = sys.argv[1:]
    print(peak_added(CASES[name].build(importlib.import_module(module))))


if __name__ == "__main__":
    main()
