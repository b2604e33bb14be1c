"""``python -m tests.cuda [--every N] [--lanes N | --ptx | --launch]``: a GPU's kernels, checked.

Every program of the corpus of `tests.replay` runs by the processor's target, and by the kernels for
a GPU as the processor reads them, with one lane or several, or as PTX, with all lanes of a grid;
those over large arrays by the LLVM text that a GPU gets. Exit status 1 where results differ, or
nothing ran.
``--only random --seed 7 --count 300`` runs random programs that no test runs,
``--only wider`` others with updates, windows, sorts, keys and linear algebra.
With ``--launch``: the host's time for a launch, against a driver that does nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import fnarray
from fnarray.compile.cuda.processor import ONE_THREAD, simulated
from fnarray.compile.target import Target
from fnarray.config import config, scoped

from .compare import Report, both
from .host import HOST
from .machine import launch_time, loaded
from .ptx import PTX

sys.path.append(str(Path(__file__).parents[2] / "asv_bench"))
from tests.replay import corpus

from . import wider


def compare(every: int, target: Target, part: Iterable[tuple[str, str]], report: Report) -> None:
    """Run the programs of a part of the corpus, each ``every``-th, by both targets."""
    names = iter(range(1 << 30))
    current = [""]

    def run(f: Any, *args: Any) -> str:
        if next(names) % every == 0:
            before = len(report.differences)
            try:
                fnarray.jit(f)(*fnarray.tree.map(_filled, args))
            except (TypeError, ValueError, NotImplementedError, fnarray.errors.FnarrayError):
                return "error"
            finally:
                for k in range(before, len(report.differences)):
                    report.differences[k] = f"after {current[0]}: {report.differences[k]}"
                    print(report.differences[k], flush=True)
        return ""

    with (
        both(report, target),
        mock.patch.object(corpus, "text_of", run),
        scoped("effects", "off"),
        scoped("cuda_fma", False),  # recurrences of 10,000 steps make much of a rounding
    ):
        for current[0], _ in part:
            pass


def _filled(x: Any) -> Any:
    """Return numbers for an argument of which the shape alone is said."""
    if not isinstance(x, fnarray.ShapeDtypeStruct):
        return x
    numbers = np.random.default_rng(0).standard_normal(x.shape)
    return (abs(numbers) * 8 if x.dtype.kind in "iu" else numbers).astype(x.dtype)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.cuda", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="run each N-th program only")
    parser.add_argument("--lanes", type=int, default=1, help="threads of a block")
    parser.add_argument("--seed", type=int, default=0, help="of random programs")
    parser.add_argument("--count", type=int, default=corpus.RANDOM, help="of random programs")
    parser.add_argument("--only", default="", help="a part of the corpus")
    parser.add_argument("--ptx", action="store_true", help="run PTX, all lanes of a grid")
    parser.add_argument("--launch", action="store_true", help="print the host's time for a launch")
    args = parser.parse_args()
    if args.launch:
        with tempfile.TemporaryDirectory() as folder:
            loaded(Path(folder))
            print(f"a launch takes {launch_time() * 1e6:.2f} us of the host's time")
        return 0
    with tempfile.TemporaryDirectory() as cache:
        config.update("cache_dir", cache)
        report = Report()
        read = simulated(args.lanes) if args.lanes > 1 else PTX if args.ptx else ONE_THREAD
        random = partial(corpus.random_programs, args.seed, args.count)
        # Python takes hours for the elements of the last two.
        for name, part, target in (
            ("operations", corpus.operations, read),
            ("random", random, read),
            ("wider", partial(wider.programs, args.seed, args.count), read),
            ("benchmarks", corpus.benchmarks, HOST),
            ("larger", corpus.larger, HOST),
        ):
            if args.only in name:
                compare(args.every, target, part(), report)
                print(f"{name}: {report.programs} programs so far", flush=True)
    print(f"{report.programs} programs, {report.kernels} kernels")
    print(f"{sum(report.steps.values())} steps: {dict(report.steps.most_common())}")
    print(f"{len(report.differences)} differences")
    return int(bool(report.differences) or not report.programs)


if __name__ == "__main__":
    sys.exit(main())
