"""Programs of `programs` beside what one would write by hand in Numba: loops over scalars.

``python asv_bench/by_hand.py [--only NAME ...] [--sizes small large] [--threads 1] [--repeats N]``

Both compute the same results, which is checked; samples alternate, and the fastest of each counts.
A ratio is fnarray's time over the loops'; over 1.2 it is behind. The loops run on one thread, and
so does fnarray, unless it is given more.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportAttributeAccessIssue]

from programs import PROGRAMS
from programs.results import alike

f4, u4 = np.float32, np.uint32
BY_HAND: dict[str, Callable[..., Any]] = {}
#: Work shorter than this is repeated within a sample.
SAMPLE = 2e-3
#: Programs whose loops take the number of turns after the arrays.
WITH_TURNS = ("escape_time_real", "heat_1d", "jacobi_2d", "seidel_2d")


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, under the name of the program that it is.

    Divisions and the order of sums stay as written, which is what fnarray keeps to.
    """
    compiled = njit(error_model="numpy", fastmath={"contract"})(function)
    BY_HAND[function.__name__] = compiled
    return compiled


@by_hand
def floyd_warshall(path):
    """Shortest paths, in place."""
    d = path.copy()
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            first = d[i, k]
            for j in range(n):
                d[i, j] = min(d[i, j], first + d[k, j])
    return d


@by_hand
def nussinov(strand):
    """The table of pairs, its lower triangle zero."""
    n = strand.shape[0]
    table = np.zeros((n, n), np.int32)
    for t in range(n):
        i = n - 1 - t
        for j in range(i + 1, n):
            best = np.int32(0)
            if i < j - 1:
                best = table[i + 1, j - 1] + (strand[i] + strand[j] == 3)
            for k in range(i, j):
                best = max(best, table[i, k] + table[k + 1, j])
            table[i, j] = best
    return table


@njit
def greater(a, b):
    """Return the larger one, or NaN where one is, as the program's maxima do."""
    most = a if a > b else b
    return most if a == a else a


@by_hand
def alignment(a, b):
    """Scores of local alignments, a row at a time.

    With Python's ``max``, whose result is the other number where one is NaN, it takes 0.6 of this.
    """
    row = np.zeros(b.shape[0] + 1, f4)
    best = np.zeros(a.shape[0], f4)
    for i in range(a.shape[0]):
        corner, left, top = f4(0), f4(0), f4(-np.inf)
        for j in range(b.shape[0]):
            up = row[j + 1]
            match = corner + (f4(2) if a[i] == b[j] else f4(-1))
            left = greater(greater(f4(0), match), greater(up, left) - f4(1))
            corner = up
            row[j + 1] = left
            top = greater(top, left)
        best[i] = top
    return row, best


@by_hand
def sparse_product(values, x, rows, columns):
    """Three products with a matrix in coordinates."""
    for _ in range(3):
        y = f4(0.1) * x
        for i in range(values.shape[0]):
            y[rows[i]] += values[i] * x[columns[i]]
        x = y
    return x


@by_hand
def weighted_histogram(x, w):
    """Sums of weights, a bin found by its place."""
    low, high = x[0], x[0]
    for v in x:
        low, high = min(low, v), max(high, v)
    out = np.zeros(16)
    edges = low + (high - low) * np.arange(17).astype(f4) / f4(16)
    for i in range(x.shape[0]):
        k = min(int((x[i] - low) / (high - low) * f4(16)), 15)
        if x[i] < edges[k]:
            k -= 1
        elif k < 15 and x[i] >= edges[k + 1]:
            k += 1
        out[k] += w[i]
    return out.astype(f4)


@by_hand
def escape_time_real(x, y, turns):
    """Counts of turns, a point at a time until it leaves."""
    count = np.empty((y.shape[0], x.shape[0]), np.int32)
    for i in range(y.shape[0]):
        for j in range(x.shape[0]):
            a, b, n = f4(0), f4(0), 0
            while n < turns and a * a + b * b < f4(4):
                a, b = a * a - b * b + x[j], f4(2) * a * b + y[i]
                n += 1
            count[i, j] = n
    return count


@by_hand
def hashing(x):
    """Eight rounds, a word at a time."""
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        h = x[i]
        for k in range(8):
            h = u4(h + u4(0x9E3779B9 * (k + 1) & 0xFFFFFFFF))
            h = u4((h ^ (h >> u4(16))) * u4(0x85EBCA6B))
            h = u4((h ^ (h >> u4(13))) * u4(0xC2B2AE35))
            h = u4(h ^ (h >> u4(16)))
        out[i] = h
    return out


@by_hand
def checksum(message):
    """Eight bits of each byte."""
    c = np.int32(0xFFFF)
    for b in message:
        c ^= b
        for _ in range(8):
            c = (c >> 1) ^ 0x8408 if c & 1 else c >> 1
    return c


@by_hand
def heat_1d(start, turns):
    """Two arrays, from one to the other."""
    a, b = start.copy(), start.copy()
    for _ in range(turns):
        for i in range(1, a.shape[0] - 1):
            b[i] = (a[i - 1] + a[i] + a[i + 1]) / f4(3)
        for i in range(1, a.shape[0] - 1):
            a[i] = (b[i - 1] + b[i] + b[i + 1]) / f4(3)
    return a


@by_hand
def jacobi_2d(start, turns):
    """Two arrays, from one to the other."""
    a, b = start.copy(), start.copy()
    n = a.shape[0]
    for _ in range(turns):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                row = a[i, j] + a[i, j - 1] + a[i, j + 1]
                b[i, j] = f4(0.2) * (row + a[i + 1, j] + a[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                row = b[i, j] + b[i, j - 1] + b[i, j + 1]
                a[i, j] = f4(0.2) * (row + b[i + 1, j] + b[i - 1, j])
    return a


@by_hand
def fdtd_2d(ex0, ey0, hz0, drive):
    """Fields in place."""
    ex, ey, hz = ex0.copy(), ey0.copy(), hz0.copy()
    n, k = hz.shape
    for t in range(drive.shape[0]):
        for j in range(k):
            ey[0, j] = drive[t]
        for i in range(1, n):
            for j in range(k):
                ey[i, j] -= f4(0.5) * (hz[i, j] - hz[i - 1, j])
        for i in range(n):
            for j in range(1, k):
                ex[i, j] -= f4(0.5) * (hz[i, j] - hz[i, j - 1])
        for i in range(n - 1):
            for j in range(k - 1):
                curl = ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j]
                hz[i, j] -= f4(0.7) * curl
    return ex, ey, hz


@by_hand
def seidel_2d(start, turns):
    """Means in place; additions in the order that lets the last wait for its neighbour alone."""
    a = start.copy()
    n = a.shape[0]
    for _ in range(turns):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                above = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                below = a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                a[i, j] = (above + below + a[i, j] + a[i, j + 1] + a[i, j - 1]) / f4(9)
    return a


@by_hand
def great_circle(a, b, c, d):
    """Functions of scalars."""
    out = np.empty_like(a)
    for i in range(a.shape[0]):
        x, y = math.sin((c[i] - a[i]) / f4(2)), math.sin((d[i] - b[i]) / f4(2))
        h = x * x + math.cos(a[i]) * math.cos(c[i]) * y * y
        out[i] = f4(2) * math.atan2(math.sqrt(h), math.sqrt(f4(1) - h))
    return out


@by_hand
def trace_of_tanh(a):
    """A sum along the diagonal."""
    total = f4(0)
    for i in range(a.shape[0]):
        total += math.tanh(a[i, i])
    return a + total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BY_HAND, default=list(BY_HAND))
    parser.add_argument("--sizes", nargs="+", default=["small", "large"])
    parser.add_argument("--threads", type=int, default=1, help="of fnarray's")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    os.environ["FNARRAY_NUM_THREADS"] = str(options.threads)
    print("| program | size | fnarray us | by hand us | ratio | |\n|---|---|---:|---:|---:|---|")
    behind = 0
    for name in options.only:
        for size in options.sizes:
            ours, theirs, same = times(name, size, options.repeats)
            ratio = ours / theirs
            verdict = ("" if same else "differs") or ("behind" if ratio > 1.2 else "")
            behind += bool(verdict)
            cells = f"{name} | {size} | {ours * 1e6:.1f} | {theirs * 1e6:.1f} | {ratio:.2f}"
            print(f"| {cells} | {verdict} |", flush=True)
    count = len(options.only) * len(options.sizes)
    print(f"\n{count} lines, {behind} behind by over 1.2; load {os.getloadavg()[0]:.1f}")


def call(name: str, size: str) -> Callable[[], Any]:
    """Return the loops of a program as a call without arguments."""
    import fnarray  # whose arrays say what type the numbers have
    import fnarray.numpy

    program = PROGRAMS[name]
    _, arrays = program.build(fnarray, **program.sizes[size])
    plain = [np.asarray(fnarray.numpy.asarray(x)) for x in arrays]
    turns = [program.sizes[size]["turns"]] if name in WITH_TURNS else []
    return partial(BY_HAND[name], *plain, *turns)


def times(name: str, size: str, repeats: int) -> tuple[float, float, bool]:
    """Return the least seconds of fnarray and of the loops, and whether the results agree."""
    import fnarray
    import fnarray.numpy

    program = PROGRAMS[name]
    function, arrays = program.build(fnarray, **program.sizes[size])
    placed = [fnarray.numpy.asarray(x) for x in arrays]
    theirs = call(name, size)
    jitted = fnarray.jit(function)

    def ours() -> Any:
        return fnarray.block_until_ready(jitted(*placed))

    # A number at an edge of the histogram falls to either side of it, as edges are rounded.
    rtol = 0.05 if name == "weighted_histogram" else program.rtol
    same = alike((list_of(ours()), list_of(theirs())), rtol)
    start = time.perf_counter()
    theirs()
    number = max(1, int(SAMPLE / (time.perf_counter() - start)))
    best = [math.inf, math.inf]
    for _ in range(repeats):
        for k, run in enumerate((ours, theirs)):
            start = time.perf_counter()
            for _ in range(number):
                run()
            best[k] = min(best[k], (time.perf_counter() - start) / number)
    return best[0], best[1], same


def list_of(result: Any) -> list[Any]:
    """Return a program's arrays."""
    return list(result) if isinstance(result, tuple) else [result]


if __name__ == "__main__":
    main()
