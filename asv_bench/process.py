"""Whole processes, from their start to their exit, fnarray beside JAX, as a table of ratios.

``python asv_bench/process.py [--repeats N]``

Each process imports the module, compiles one small program, calls it, indexes the result and
prints it. Cold caches are empty; warm ones are those that the cold process left. JAX is shown as it
comes, without its persistent cache, which by default keeps nothing that was compiled in under a
second; `kept` is JAX with a warm one that keeps all. Byte code is there for both, as pip leaves it.
CPU time is that of all threads. The processes take turns; the table shows the least of each.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

#: What follows the imports. Each prints one number, which must be the same for both.
PROGRAMS = {
    "arithmetic": """
f = m.jit(lambda x: m.numpy.tanh(x) * 2 + m.numpy.sin(x).sum())
print(f(m.numpy.ones(100))[0])
""",
    "gradient": """
def loss(w, x, y):
    return m.numpy.mean((m.numpy.tanh(x @ w) - y) ** 2)
x, y, w = m.numpy.ones((100, 3)), m.numpy.zeros(100), m.numpy.array([0.1, 0.2, 0.3])
print(m.jit(m.grad(loss))(w, x, y)[0])
""",
    "scan": """
def step(carry, x):
    carry = 0.9 * carry + m.numpy.sin(x)
    return carry, carry ** 2
print(m.jit(lambda xs: m.lax.scan(step, 0.0, xs)[1])(m.numpy.arange(50.0))[-1])
""",
}  # fmt: skip
KINDS = ("cold", "warm", "jax", "kept")


class Spent(NamedTuple):
    """Milliseconds of one process, and the number it printed."""

    cpu: float
    wall: float
    printed: float


def run(module: str, program: str, **env: str) -> Spent:
    """Run a program in a new process."""
    names = f"import {module} as m, {module}.numpy, {module}.lax"
    env = {**os.environ, "JAX_PLATFORMS": "cpu", **env}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", f"{names}\n{PROGRAMS[program]}"],
        env=env, check=True, capture_output=True, text=True,
    )  # fmt: skip
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(1e3 * cpu, 1e3 * wall, float(done.stdout))


def turn(program: str, kept: str) -> dict[str, Spent]:
    """Run one process of each kind."""
    with tempfile.TemporaryDirectory() as cache:
        ours = [run("fnarray", program, FNARRAY_CACHE_DIR=cache) for _ in range(2)]
    theirs = run("jax", program)
    settings = {
        "JAX_COMPILATION_CACHE_DIR": kept,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return dict(zip(KINDS, (*ours, theirs, run("jax", program, **settings)), strict=True))


def main() -> int:
    """Parse the command line, run, print; 1 if a median is over what must be reached."""
    parser = argparse.ArgumentParser(description="Whole processes, fnarray beside JAX.")
    parser.add_argument("--repeats", type=int, default=5, help="turns (default 5)")
    repeats = parser.parse_args().repeats
    print("| process | time | cold | warm | jax | kept | cold/jax | warm/jax | warm/kept |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    ratios: dict[str, list[float]] = {"cold": [], "warm": []}
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as kept:
            turn(program, kept)  # byte code, the files of the system's cache, JAX's cache
            turns = [turn(program, kept) for _ in range(repeats)]
        printed = [spent.printed for each in turns for spent in each.values()]
        if max(printed) - min(printed) > 1e-5 * abs(printed[0]):
            raise RuntimeError(f"{program}: results differ: {sorted(set(printed))}")
        for time_ in ("cpu", "wall"):
            least = {kind: min(getattr(each[kind], time_) for each in turns) for kind in KINDS}
            for kind, found in ratios.items():
                found.append(least[kind] / least["jax"])
            print(
                f"| {program} | {time_} | "
                + " | ".join(f"{least[kind]:.0f}" for kind in KINDS)
                + "".join(
                    f" | {least[a] / least[b]:.2f}"
                    for a, b in (("cold", "jax"), ("warm", "jax"), ("warm", "kept"))
                )
                + " |",
                flush=True,
            )
    means = {kind: statistics.geometric_mean(found) for kind, found in ratios.items()}
    print(f"\ngeometric means: cold {means['cold']:.2f} (at most 1.0, aim 0.6), "
          f"warm {means['warm']:.2f} (at most 0.6, aim 0.4)")  # fmt: skip
    return int(means["cold"] > 1.0 or means["warm"] > 0.6)


if __name__ == "__main__":
    sys.exit(main())
