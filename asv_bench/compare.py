"""Run every case under fnarray and JAX in one session and print the ratios as a table.

``python asv_bench/compare.py [--only NAME ...] [--repeats N] [--json FILE]``

The cases are small programs that measure one thing, and those of `programs` at two sizes. Where
`by_hand` has loops for one that are written by hand in Numba, they are measured beside it: the last
ratio is theirs, on one thread, and the case is missed where fnarray takes over 1.2 times as long.

Samples of the two alternate, so that a change of clock speed or a busy neighbour meets both; the
table shows the fastest sample of each (the least disturbed), the file the medians too. A result
that differs from JAX's beyond the case's tolerance, or a case that fails, counts as missed. The
exit status is 1 when a case is missed; what was, and the mean ratio, are said at the end.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import by_hand

import benchmarks.derivatives  # noqa: F401 - registers its cases
from benchmarks.cases import CASES, Call, Case
from benchmarks.process import environment, spawn
from programs import PROGRAMS
from programs.process import prepared
from programs.results import alike, flat

#: How many times as long as loops by hand a program may take.
BY_HAND = 1.2
SAMPLE_SECONDS = 0.02  # long enough for the clock, short enough to interleave


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


def whole(name: str, size: str) -> Case:
    """Return a program of `programs` as a case, with its loops by hand if there are any."""
    build = lambda m: prepared(m.__name__, name, size, "value")  # noqa: E731
    hand = partial(by_hand.call, name, size) if name in by_hand.BY_HAND else None
    rtol = PROGRAMS[name].rtol
    return Case(f"{name}-{size}", build, target=1.0, rtol=rtol, scaled=True, hand=hand)


def every_case() -> dict[str, Case]:
    """Return all cases by name."""
    sizes = ("small", "large")
    return CASES | {f"{p}-{size}": whole(p, size) for p in PROGRAMS for size in sizes}


def agree(results: Sequence[Any], case: Case) -> bool:
    """Say whether the modules computed the same numbers."""
    rtol = case.rtol
    if case.scaled:
        return alike(results, rtol)
    ours, theirs = (flat(r) for r in results)
    return all(
        np.allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol, equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
        if b is not None
    )


def by_hand_sampler(loops: Call) -> Callable[[], float]:
    """Return a function that takes a sample of loops written by hand."""
    loops()  # compiled now
    start = time.perf_counter()
    loops()
    number = max(1, int(SAMPLE_SECONDS / max(time.perf_counter() - start, 1e-7)))

    def take() -> float:
        start = time.perf_counter()
        for _ in range(number):
            loops()
        return (time.perf_counter() - start) / number

    return take


def run(case: Case, modules: list[str], repeats: int, cache: str) -> dict[str, Any]:
    """Measure one case; a failure is recorded in its row, not raised."""
    row: dict[str, Any] = {"case": case.name, "target": case.target}
    try:
        takes, results = zip(*(sampler(case, module, cache) for module in modules), strict=True)
        if case.hand is not None:
            takes = (*takes, by_hand_sampler(case.hand()))
        samples = [[take() for take in takes] for _ in range(repeats)]
        same = agree(results, case)
    except Exception as error:  # the other cases still run; the row says what went wrong
        first_line = (str(error).splitlines() or [""])[0]
        return row | {"ok": False, "error": f"{type(error).__name__}: {first_line}"}
    columns = list(zip(*samples, strict=True))
    row |= {"min": [min(c) for c in columns]}
    row |= {"median": [statistics.median(c) for c in columns]}
    ours, *others = row["min"]
    row["ratio"], *hand = [x / max(ours, 1e-12) for x in others]
    if hand:
        row["by hand"] = hand[0]
    row["ok"] = same and row["ratio"] >= case.target and all(BY_HAND * r >= 1 for r in hand)
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


def line(row: dict[str, Any], kind: str) -> str:
    """One row of the table."""
    ok = "yes" if row["ok"] else f"**no** {row.get('error', '')}".strip()
    if "ratio" not in row:
        return f"| {row['case']} | - | - | - | - | {row['target']} | {ok} |"
    ours, theirs = (show(v, kind) for v in row["min"][:2])
    hand = f"{row['by hand']:.2f}" if "by hand" in row else ""
    ratio = f"{row['ratio']:.2f} | {hand}"
    return f"| {row['case']} | {ours} | {theirs} | {ratio} | {row['target']} | {ok} |"


def summary(rows: list[dict[str, Any]]) -> str:
    """Say the mean of the ratios of programs, and which cases are missed."""
    ratios = [r["ratio"] for r in rows if "ratio" in r and r["case"] not in CASES]
    words = []
    if ratios:
        mean, ahead = math.exp(statistics.fmean(map(math.log, ratios))), sum(r > 1 for r in ratios)
        words.append(f"programs: mean ratio {mean:.2f}, ahead in {ahead} of {len(ratios)}")
    missed = [r["case"] for r in rows if not r["ok"]]
    return "; ".join([*words, f"missed: {', '.join(missed) or 'none'}"])


def main() -> int:
    """Parse the command line, run, print."""
    cases = every_case()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=cases, metavar="NAME", default=list(cases))
    parser.add_argument("--repeats", type=int, default=11, help="samples of each (default 11)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write times and medians here")
    parser.add_argument("--modules", nargs=2, default=["fnarray", "jax"], help="ours, theirs")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="gpu: see gpu.py")
    if {"gpu", "--device=gpu"} & set(sys.argv[1:]):  # other workloads, and options of its own
        rest = [a for a in sys.argv[1:] if a not in ("--device", "--device=gpu", "gpu")]
        return importlib.import_module("gpu").main(rest)
    options = parser.parse_args()

    names = " | ".join(options.modules)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(f"| case | {names} | ratio | by hand | target | ok |")
    print("|---|---:|---:|---:|---:|---:|---|")
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("FNARRAY_CACHE_DIR", f"{cache}/session")
        for name in options.only:
            few = cases[name].kind in {"start", "memory"}
            repeats = min(options.repeats, 5) if few else options.repeats
            rows.append(run(cases[name], options.modules, repeats, cache))
            print(line(rows[-1], cases[name].kind), flush=True)
    print("\n" + summary(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
