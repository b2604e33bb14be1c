"""Run every case under fnarray and JAX in one session and print the ratios as a table.

``python asv_bench/compare.py [--only NAME ...] [--repeats N] [--json FILE]``

Samples of the two alternate, so that a change of clock speed or a busy neighbour meets both; the
table shows the fastest sample of each (the least disturbed), the file the medians too. A result
that differs from JAX's beyond the case's tolerance, or a case that fails, counts as missed. The
exit status is 1 when a case is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks.derivatives  # noqa: F401 - registers its cases
from benchmarks.cases import CASES, Case
from benchmarks.process import environment, spawn

SAMPLE_SECONDS = 0.02  # long enough for the clock, short enough to interleave


def flat(result: Any) -> list[Any]:
    """Arrays of nested tuples, lists and dictionaries."""
    if isinstance(result, dict):
        result = [result[k] for k in sorted(result)]
    return [x for r in result for x in flat(r)] if isinstance(result, tuple | list) else [result]


def block(result: Any) -> Any:
    """Wait for every array."""
    for x in flat(result):
        x.block_until_ready()
    return result


def seconds(
    call: Callable[[], Any],
    number: int,
    every: bool,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Mean time of ``number`` calls, waiting after every one or only at the end."""
    start = clock()
    for _ in range(number):
        result = call()
        if every:
            block(result)
    block(result)
    return (clock() - start) / number


def sampler(
    case: Case, module: str, cache: str, clock: Callable[[], float] = time.perf_counter
) -> tuple[Callable[[], float], Any]:
    """Prepare one case for one module: a function that takes a sample, and the case's result."""
    if case.kind in {"start", "memory"}:
        env = environment(cache)
        spawn(module, case.name, env)  # fills the disk cache
        which = ["start", "memory"].index(case.kind)
        return lambda: spawn(module, case.name, env)[which], None
    built = case.build(importlib.import_module(module))
    if case.kind == "fresh":
        result = built()()  # the first compilation of a process pays for imports, not measured here
        return lambda: seconds(built(), 1, every=True), result
    result = block(built())
    once = seconds(built, 3, every=True)
    number = max(1, int(SAMPLE_SECONDS / once))
    return lambda: seconds(built, number, case.kind == "steady", clock), result


def agree(results: list[Any], rtol: float) -> bool:
    """Say whether the modules computed the same numbers."""
    ours, theirs = (flat(r) for r in results)
    return all(
        np.allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol, equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
        if b is not None
    )


def run(case: Case, modules: list[str], repeats: int, cache: str) -> dict[str, Any]:
    """Measure one case; a failure is recorded in its row, not raised."""
    row: dict[str, Any] = {"case": case.name, "target": case.target}
    try:
        prepared = [sampler(case, module, cache) for module in modules]
        samples = [[take() for take, _ in prepared] for _ in range(repeats)]
        same = agree([result for _, result in prepared], case.rtol)
    except Exception as error:  # the other cases still run; the row says what went wrong
        first_line = (str(error).splitlines() or [""])[0]
        return row | {"ok": False, "error": f"{type(error).__name__}: {first_line}"}
    ours, theirs = zip(*samples, strict=True)
    row |= {"min": [min(ours), min(theirs)]}
    row |= {"median": [statistics.median(ours), statistics.median(theirs)]}
    row["ratio"] = min(theirs) / max(min(ours), 1e-12)
    row["ok"] = same and row["ratio"] >= case.target
    return row if same else row | {"error": "results differ"}


def show(value: float, kind: str) -> str:
    """Write a time or a size with a fitting unit."""
    units = (
        ((1e6, "MB"), (1e3, "kB"), (1, "B"))
        if kind == "memory"
        else ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
    )
    scale, unit = next((u for u in units if value >= u[0]), units[-1])
    return f"{value / scale:.3g} {unit}"


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    ok = "yes" if row["ok"] else f"**no** {row.get('error', '')}".strip()
    if "ratio" not in row:
        return f"| {row['case']} | - | - | - | {row['target']} | {ok} |"
    ours, theirs = (show(v, CASES[row["case"]].kind) for v in row["min"])
    return f"| {row['case']} | {ours} | {theirs} | {row['ratio']:.2f} | {row['target']} | {ok} |"


def main() -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="NAME", default=list(CASES))
    parser.add_argument("--repeats", type=int, default=11, help="samples of each (default 11)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write times and medians here")
    parser.add_argument("--modules", nargs=2, default=["fnarray", "jax"], help="ours, theirs")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="gpu: see gpu.py")
    options = parser.parse_args()
    if options.device == "gpu":
        return importlib.import_module("gpu").main([])

    names = " | ".join(options.modules)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(f"| case | {names} | ratio | target | ok |\n|---|---:|---:|---:|---:|---|")
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("FNARRAY_CACHE_DIR", f"{cache}/session")
        for name in options.only:
            few = CASES[name].kind in {"start", "memory"}
            repeats = min(options.repeats, 5) if few else options.repeats
            rows.append(run(CASES[name], options.modules, repeats, cache))
            print(line(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
