"""Run the programs under fnarray and JAX; print the ratios of first and of later calls as a table.

``python asv_bench/programs_compare.py [--only NAME ...] [--sizes small large] [--gradients]
[--repeats N] [--clock cpu] [--json FILE]``

A first call is that of a new process with empty caches, imports not counted; later calls alternate
in this process. Shown is the fastest of each; ratios are fnarray's time over JAX's, lower is
better. The table is sorted by the ratio of later calls, the worst first.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.cases import Case
from benchmarks.process import environment
from compare import sampler, show
from programs import PROGRAMS
from programs.process import CLOCKS, first_call, prepared
from programs.results import alike

MODULES = ("fnarray", "jax")


def firsts(words: tuple[str, str, str], repeats: int, clock: str) -> list[float]:
    """Seconds of the first call under each module, the fastest of interleaved processes."""
    samples = []
    for _ in range(repeats):
        pair = []
        for module in MODULES:
            with tempfile.TemporaryDirectory() as cache:
                env = environment(cache)
                pair.append(first_call(env, clock, module, *words))
        samples.append(pair)
    return [min(times) for times in zip(*samples, strict=True)]


def laters(words: tuple[str, str, str], repeats: int, clock: str) -> tuple[list[float], bool]:
    """Seconds of a later call under each module, and whether the results agree."""
    build = lambda m: prepared(m.__name__, *words)  # noqa: E731
    case = Case(words[0], build, target=1.0, rtol=PROGRAMS[words[0]].rtol)
    both = (sampler(case, module, "", CLOCKS[clock]) for module in MODULES)
    takes, results = zip(*both, strict=True)
    samples = [[take() for take in takes] for _ in range(repeats)]
    return [min(times) for times in zip(*samples, strict=True)], alike(results, case.rtol)


def row(words: tuple[str, str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Measure one program; a failure is recorded, not raised."""
    out: dict[str, Any] = dict(zip(("program", "size", "what"), words, strict=True))
    try:
        if options.processes:
            out["first"] = firsts(words, options.processes, options.clock)
        out["each"], out["agree"] = laters(words, options.repeats, options.clock)
    except Exception as error:  # the other programs still run; the row says what went wrong
        first_line = (str(error).splitlines() or [""])[0]
        out |= {"agree": False, "error": f"{type(error).__name__}: {first_line}"}
    return out


def ratio(row: dict[str, Any], which: str) -> float:
    """Time of fnarray over JAX's; infinite where there is none."""
    ours, theirs = row.get(which, (math.inf, 1.0))
    return ours / theirs


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    cells = [row["program"] + (" gradient" if row["what"] == "gradient" else ""), row["size"]]
    for which in ("first", "each"):
        times = [show(t, "steady") for t in row.get(which, ())] or ["-", "-"]
        cells += [*times, f"{ratio(row, which):.2f}"]
    cells.append("yes" if row["agree"] else f"**no** {row.get('error', '')}".strip())
    return f"| {' | '.join(cells)} |"


def means(rows: list[dict[str, Any]]) -> str:
    """Geometric means of the ratios, and how many programs are ahead."""
    words = []
    for which in ("first", "each"):
        ratios = [ratio(r, which) for r in rows if which in r]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            ahead = sum(r < 1 for r in ratios)
            words.append(f"{which}: mean {mean:.2f}, ahead in {ahead} of {len(ratios)}")
    return "; ".join(words)


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--sizes", nargs="+", default=["small"], help="test, small, large")
    parser.add_argument("--gradients", action="store_true", help="of those that have one, instead")
    parser.add_argument("--repeats", type=int, default=7, help="samples of later calls (7)")
    parser.add_argument("--processes", type=int, default=1, help="samples of first calls (1)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: on a busy machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the times here")
    options = parser.parse_args()

    what = "gradient" if options.gradients else "value"
    names = [n for n in options.only if PROGRAMS[n].grad or not options.gradients]
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("FNARRAY_CACHE_DIR", cache)
        for size in options.sizes:
            for name in names:
                rows.append(row((name, size, what), options))
                print(line(rows[-1]), flush=True)
    print(
        "\n| program | size | first: fnarray | JAX | ratio | each: fnarray | JAX | ratio | agree |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---|")
    for r in sorted(rows, key=lambda r: -ratio(r, "each")):
        print(line(r))
    print("\n" + means(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
