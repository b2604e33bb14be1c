"""Time and memory of programs from 100 to 100,000,000 elements, on one thread and on two.

``python asv_bench/scaling.py [--only NAME ...] [--largest 1e8] [--threads 1 2] [--all]``

A line is a program at a size: nanoseconds for each element, and the bytes that a call adds at its
peak. The trend is what neighbours say: an element costs no more than one of the next smaller size,
and a call no more than the smaller size's or the larger one's share, whichever is more. Where a
copy by NumPy costs more for each element than at the smaller size, because arrays leave a cache or
the allocator asks the system, the trend may rise as much: ``memory``. On several threads a point
that takes no longer than on one, on whose trend it is, is none of theirs. A point over twice the
trend is a cliff, and so is memory over twice; they are printed, with ``--all`` the others too, and
the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.process import peak_added

#: Elements, seconds, bytes added, and seconds of a copy by NumPy.
Point = tuple[int, float, int, float]
#: Seconds that a size is measured for at least, and calls.
SECONDS, CALLS = 0.15, 5
#: Bytes that the process may grow by whatever it computes: the pool's stacks, machine code.
ROOM = 1 << 22
#: Two measurements of the same agree so well.
TIED = 1.1


def programs(m: Any) -> dict[str, tuple[Callable[..., Any], Callable[[int], tuple[int, ...]]]]:
    """Return functions of an array, and the shapes that have so many elements."""
    n = m.numpy

    def vector(size: int) -> tuple[int, ...]:
        return (size,)

    def rows(size: int) -> tuple[int, ...]:
        return (size // 100, 100)

    def columns(size: int) -> tuple[int, ...]:
        return (100, size // 100)

    def heat(x: Any) -> Any:
        def turn(_: Any, u: Any) -> Any:
            return u.at[1:-1].add(np.float32(0.1) * (u[2:] - 2 * u[1:-1] + u[:-2]))

        return m.lax.fori_loop(0, 4, turn, x)

    def normalised(x: Any) -> Any:
        return (x - n.mean(x, 0)) / (n.std(x, 0) + 1)

    bins = np.arange(1000, dtype=np.int32)
    return {
        "map": (lambda x: n.tanh(x) * x + 1, vector),
        "copy": (lambda x: x + 1, vector),
        "sum": (n.sum, vector),
        "sums of columns": (lambda x: n.sum(x, 0), rows),
        "sums of rows": (lambda x: n.sum(x, 1), columns),
        "softmax": (m.nn.softmax, rows),
        "normalise": (normalised, rows),
        "transpose": (lambda x: x.T + 1, rows),
        "cumsum": (n.cumsum, vector),
        "gradient": (m.grad(lambda x: n.sum(n.sin(x) * x)), vector),
        "heat": (heat, vector),
        "gather": (lambda x: x[::-1] * 2, vector),
        "bins": (
            lambda x: n.zeros(1000, np.float32).at[(x * 999).astype(bins.dtype)].add(x),
            vector,
        ),
        "sort": (n.sort, vector),
        "product": (lambda x: x @ x.T[:, :8], rows),
    }


def sizes(largest: float) -> list[int]:
    """Return two sizes in each decade, multiples of 100."""
    found = [round(10 ** (k / 2) / 100) * 100 for k in range(4, 17)]
    return [size for size in found if size <= largest]


def least(once: Callable[[], Any]) -> float:
    """Return the seconds of the fastest of many calls."""
    best, end, calls = np.inf, time.perf_counter() + SECONDS, 0
    while calls < CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        once()
        best, calls = min(best, time.perf_counter() - start), calls + 1
    return float(best)


def measure(name: str, largest: float) -> list[Point]:
    """Return the points, measured in this process."""
    import fnarray
    import fnarray.numpy

    function, shape = programs(fnarray)[name]
    call = fnarray.jit(function, effects="off")
    points = []
    for size in sizes(largest):
        drawn = np.random.default_rng(0).random(shape(size), np.float32)
        x = fnarray.numpy.asarray(drawn)

        def once(x: Any = x) -> Any:
            return call(x).block_until_ready()

        once()
        peak = peak_added(once)
        copied = drawn.T if name == "transpose" else drawn
        points.append((size, least(once), peak, least(partial(np.array, copied, order="C"))))
    return points


def child(name: str, largest: float, threads: int) -> list[Point]:
    """Measure a program in a process of its own."""
    command = [sys.executable, __file__, "--child", name, "--largest", str(largest)]
    env = os.environ | {"FNARRAY_NUM_THREADS": str(threads)}
    run = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return [tuple(point) for point in json.loads(run.stdout)]


def over(points: list[Point], k: int) -> tuple[float, float, float]:
    """Return a point's time and bytes over the trend, and how much memory lets it rise.

    The smallest has no trend.
    """
    if not k:
        return 0.0, 0.0, 1.0
    (small, before, low, copied), (size, now, peak, copying) = points[k - 1 : k + 1]
    large, after, high, _ = points[min(k + 1, len(points) - 1)]
    memory = max(copying / size / (copied / small), 1.0)
    steeper = now / size / (before / small) / memory
    aside = now / max(before * memory, after * size / large)
    fat = peak / (max(low * size / small, high * size / large) + ROOM)
    return max(steeper, aside), fat, memory


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="programs whose names hold a word")
    parser.add_argument("--largest", type=float, default=1e8, help="elements (default 1e8)")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--all", action="store_true", help="points on the trend, too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child, options.largest)))
        return 0
    import fnarray

    names = [p for p in programs(fnarray) if not options.only or any(w in p for w in options.only)]
    print("| program | threads | elements | ns each | over trend | memory | MB | |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    count = cliffs = 0
    for name in names:
        alone: list[tuple[float, bool]] = []
        for threads in options.threads:
            points = child(name, options.largest, threads)
            found = []
            for k, (size, seconds, peak, _) in enumerate(points):
                slow, fat, memory = over(points, k)
                cliff = max(slow, fat) > 2
                if alone and fat <= 2:  # what one thread takes is on the trend of one
                    cliff = cliff and (alone[k][1] or seconds > TIED * alone[k][0])
                found.append((seconds, cliff))
                count, cliffs = count + 1, cliffs + cliff
                if cliff or options.all:
                    cells = f"{size} | {seconds / size * 1e9:.3g} | {slow:.2f} | {memory:.2f}"
                    mark = "cliff" if cliff else ""
                    line = f"| {name} | {threads} | {cells} | {peak / 1e6:.1f} | {mark} |"
                    print(line, flush=True)
            alone = found if threads == 1 else alone
    print(f"\n{count} points, {cliffs} over twice the trend; load {os.getloadavg()[0]:.1f}")
    return 1 if cliffs else 0


if __name__ == "__main__":
    sys.exit(main())
