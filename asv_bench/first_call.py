"""First calls in fresh processes with cold caches, fnarray beside JAX, as a table of ratios.

``python asv_bench/first_call.py [--only NAME ...] [--repeats N] [--phases]``

Each sample is a process of its own: it imports the module, compiles ``x + 1``, builds the arguments
of the program, and measures from there to the first result the CPU time (of all threads) and the
time on the wall, with an empty ``FNARRAY_CACHE_DIR`` and without JAX's persistent cache. What a
process does once, such as importing a compiler, is thus in one row, ``process``: that of ``x + 1``,
and of the import of the module, since one of the two imports its compiler there. The two modules
take turns; the table shows the least of each.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

#: A builder takes the module and returns a function, to be compiled, and its arguments.
PROGRAMS: dict[str, Callable[[Any], tuple[Callable, tuple]]] = {}


def program(build: Callable[[Any], tuple[Callable, tuple]]) -> Callable:
    """Register a builder under its own name."""
    PROGRAMS[build.__name__] = build
    return build


def normal(*shape: int) -> np.ndarray:
    """Float32 normal numbers, the same on every call."""
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@program
def process(m):
    """The import of the module and a first program, which pays for what is imported late."""
    return (lambda x: x + 1), (normal(7),)


# --- straight programs ---------------------------------------------------------------------------
def operations(m: Any, count: int, tanh: bool) -> tuple[Callable, tuple]:
    """A chain of sums, products and more, drawn; with ``tanh``, a quarter of it is that.

    As suits XLA: each value is used once, by the next, and every 50 steps a mean is taken off,
    which bounds its fusions. Without it XLA takes over a minute and 4 GB for 3,000 operations, and
    it computes values of several uses several times (3 s for 1,000).
    """
    draw = random.Random(count)
    forms = (
        (1, lambda a, b, c: a * b),
        (1, lambda a, b, c: m.numpy.maximum(a, b)),
        (2, lambda a, b, c: b - a * c),
        (2, lambda a, b, c: (a + b) * c),
    )
    steps, left = [], count
    while left > 0:
        size, form = draw.choice(forms)
        steps.append((form, draw.randrange(2), draw.uniform(0, 1), bool(tanh and len(steps) % 2)))
        left -= size + (tanh and len(steps) % 2 == 0)
    drawn = tuple(steps)

    def f(x, y):
        a = x
        for done, (form, which, c, bent) in enumerate(drawn, 1):
            a = form(a, (x, y)[which], c)
            a = m.numpy.tanh(a) if bent else a
            if done % 50 == 0:
                a = a - m.numpy.mean(a)
        return a

    return f, (m.numpy.tanh(normal(1000)), m.numpy.tanh(normal(1000)[::-1]))


def _register(count: int, tanh: bool) -> None:
    name = f"ops_{count}{'_tanh' if tanh else ''}"
    PROGRAMS[name] = lambda m: operations(m, count, tanh)


for _count in (10, 100, 300, 1000, 3000):
    _register(_count, tanh=False)
    _register(_count, tanh=True)


# --- derivatives ---------------------------------------------------------------------------------
@program
def mlp_gradient(m):
    """Three layers, cross entropy; the gradient with respect to all parameters."""
    sizes = (64, 128, 128, 10)
    params = [(normal(a, b) / 8, np.zeros(b, np.float32)) for a, b in pairwise(sizes)]
    labels = np.eye(10, dtype=np.float32)[np.arange(32) % 10]

    def loss(params, x, y):
        for w, b in params[:-1]:
            x = m.numpy.tanh(x @ w + b)
        w, b = params[-1]
        z = x @ w + b
        return -m.numpy.mean(m.numpy.sum(y * (z - m.nn.logsumexp(z, 1, keepdims=True)), 1))

    return m.value_and_grad(loss), (params, normal(32, 64), labels)


@program
def scan_gradient(m):
    """A recurrent network of 16 units over 50 steps."""

    def loss(w, u, xs):
        def step(h, x):
            h = m.numpy.tanh(w @ h + u * x)
            return h, m.numpy.sum(h)

        _, ys = m.lax.scan(step, m.numpy.zeros(16), xs)
        return m.numpy.mean(ys**2)

    return m.value_and_grad(loss, (0, 1)), (normal(16, 16) / 4, normal(16), normal(50))


@program
def convnet_gradient(m):
    """Two convolutions with relu, mean pooling, a dense layer; images of 16 x 16."""
    params = normal(8, 1, 3, 3) / 3, normal(16, 8, 3, 3) / 8, normal(16, 10) / 4

    def loss(params, x, labels):
        for k in params[:2]:
            x = m.lax.conv_general_dilated(x, k, (2, 2), "SAME")
            x = m.numpy.maximum(x, 0)
        z = m.numpy.mean(x, (2, 3)) @ params[2]
        return -m.numpy.mean(m.numpy.sum(labels * m.nn.log_softmax(z), 1))

    labels = np.eye(10, dtype=np.float32)[np.arange(8)]
    return m.value_and_grad(loss), (params, normal(8, 1, 16, 16), labels)


@program
def hessian_10(m):
    """Rosenbrock's function and a sum of exponentials of ten variables."""

    def f(x):
        valley = m.numpy.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        return valley + m.numpy.sum(m.numpy.exp(-(x**2)) * m.numpy.sin(x))

    return m.hessian(f), (normal(10),)


@program
def vmap_of_jacobian(m):
    """Jacobians of a small network at 32 points."""
    w, v = m.numpy.asarray(normal(3, 20)), m.numpy.asarray(normal(20, 3) / 5)

    def f(x):
        return m.numpy.tanh(x @ w) @ v + m.numpy.sin(x)

    return m.vmap(m.jacrev(f)), (normal(32, 3),)


# --- functions that are code of their own --------------------------------------------------------
@program
def zeta(m):
    """Hurwitz's zeta function: the longest text of a number."""
    special = importlib.import_module(f"{m.__name__}.scipy.special")
    return (lambda x: special.zeta(x, x + 1)), (np.linspace(1.5, 9, 500, dtype=np.float32),)


@program
def polygamma(m):
    """A derivative of digamma, which is zeta and a gamma function."""
    special = importlib.import_module(f"{m.__name__}.scipy.special")
    return (lambda x: special.polygamma(2, x)), (np.linspace(1.5, 9, 500, dtype=np.float32),)


@program
def density(m):
    """A density whose parameter is a number: a gamma function of it."""
    stats = importlib.import_module(f"{m.__name__}.scipy.stats")
    return (lambda x: stats.gamma.logpdf(x, 2.0)), (np.linspace(0.5, 9, 500, dtype=np.float32),)


@program
def product(m):
    """A product of small matrices."""
    return (lambda x, y: x @ y), (normal(20, 30), normal(30, 20))


@program
def rfft(m):
    """Fourier transforms of forty lines."""
    return m.numpy.fft.rfft, (normal(40, 64),)


@program
def top_k(m):
    """The five largest of 500 numbers."""
    return (lambda x: m.lax.top_k(x, 5)), (normal(500),)


@program
def svd(m):
    """Singular values and vectors of a small matrix."""
    return m.numpy.linalg.svd, (normal(6, 5),)


# --- loops and updates ---------------------------------------------------------------------------
@program
def lu_masked(m):
    """LU of a 60 x 60 matrix by three nested loops with masks."""
    n = 60

    def lu(a):
        i = m.numpy.arange(n)

        def column(k, a):
            def row(r, a):
                factor = m.numpy.where(r > k, a[r, k] / a[k, k], 0.0)

                def entry(c, a):
                    new = m.numpy.where(c > k, a[r, c] - factor * a[k, c], a[r, c])
                    return a.at[r, c].set(new)

                a = m.lax.fori_loop(0, n, entry, a)
                return a.at[r].set(m.numpy.where((i == k) & (r > k), factor, a[r]))

            return m.lax.fori_loop(0, n, row, a)

        return m.lax.fori_loop(0, n, column, a)

    return lu, (normal(n, n) + 60 * np.eye(n, dtype=np.float32),)


@program
def slice_updates(m):
    """Twenty updates of inner parts of an array, sets and sums in turn."""

    def f(x, y):
        for k in range(10):
            x = x.at[1:-1, 2:-2].set(y[1:-1, 2:-2] * (k + 0.5) + x[:-2, 2:-2])
            x = x.at[1:-1, 2:-2].add(x[2:, 2:-2] * 0.25)
        return x

    return f, (normal(40, 60), normal(40, 60))


# --- one sample ----------------------------------------------------------------------------------
#: What is timed by ``--phases``: a name, and the functions that take it, by module.
PHASES = {
    "simplify": ("fnarray.compile.pipeline:simplified",),
    "schedule": ("fnarray.compile.pipeline:schedule",),
    "emit": ("fnarray.compile.emit.driver:Driver.write",),
    "read": ("fnarray.compile.cpu.native.kernel:written",),
    "llvm": ("fnarray.compile.cpu.native.compiler:emitted",),
    "link": ("fnarray.compile.cpu.native.machine:address_of",),
    "files": ("fnarray.compile.cache.store:put", "fnarray.compile.cache.store:put_source"),
    "compile": ("fnarray.compile.pipeline:compile_graph",),
    "load": ("fnarray.compile.pipeline:Executable.load",),
}


def timed(spent: dict[str, float]) -> None:
    """Wrap the functions of `PHASES`, so that they add up CPU milliseconds of all threads."""

    def wrap(phase: str, owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def outer(*args: Any, **kwargs: Any) -> Any:
            start = time.thread_time()
            try:
                return inner(*args, **kwargs)
            finally:
                spent[phase] = spent.get(phase, 0) + 1e3 * (time.thread_time() - start)

        setattr(owner, name, outer)

    for phase, places in PHASES.items():
        for place in places:
            module, _, path = place.partition(":")
            owner: Any = importlib.import_module(module)
            *outer, name = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            wrap(phase, owner, name)


def sample(module: str, name: str, phases: bool) -> dict[str, Any]:
    """Run one program in this process; its CPU milliseconds, and megabytes added at the peak."""
    start, wall = time.process_time(), time.perf_counter()
    m = importlib.import_module(module)
    for part in ("numpy", "lax", "nn"):
        importlib.import_module(f"{module}.{part}")
    f, args = PROGRAMS[name](m)
    if name != "process":
        f0, args0 = PROGRAMS["process"](m)
        m.jit(f0)(*args0).block_until_ready()
    args = m.tree.map(m.numpy.asarray, args)
    spent: dict[str, float] = {}
    if phases and module == "fnarray":
        timed(spent)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name != "process":
        start, wall = time.process_time(), time.perf_counter()
    result = m.jit(f)(*args)
    leaves = [x.block_until_ready() for x in m.tree.leaves(result)]
    cpu, wall = time.process_time() - start, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    total = sum(float(np.abs(np.asarray(x)).astype(np.float64).sum()) for x in leaves)
    return {"cpu": 1e3 * cpu, "wall": 1e3 * wall, "mb": peak / 1024, "sum": total, "phases": spent}


def spawn(module: str, name: str, phases: bool = False) -> dict[str, Any]:
    """Take one sample in a new process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "FNARRAY_CACHE_DIR": cache, "JAX_PLATFORMS": "cpu"}
        env.pop("JAX_COMPILATION_CACHE_DIR", None)
        # JAX is installed with its byte code; without, a first call would compile our sources too.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, __file__, "--sample", module, name]
        done = subprocess.run(
            [*command, *(["--phases"] if phases else [])],
            env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(
            f"{module} {name}: {done.stderr.strip().splitlines()[-1:]} {done.returncode}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description="First calls, fnarray beside JAX.")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3, help="samples of each (default 3)")
    parser.add_argument("--phases", action="store_true", help="where the time of fnarray goes")
    parser.add_argument("--sample", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sample:
        print(json.dumps(sample(options.sample[0], options.sample[1], options.phases)))
        return 0
    print("| first call | cpu ms | jax | ratio | wall ms | jax | ratio | MB | jax |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    ratios = {"cpu": [], "wall": []}
    for name in options.only or PROGRAMS:
        taken = [
            [spawn(module, name) for module in ("fnarray", "jax")] for _ in range(options.repeats)
        ]
        cells = []
        for kind, found in ratios.items():
            ours, theirs = (min(s[kind] for s in side) for side in zip(*taken, strict=True))
            found.append(ours / theirs)
            cells.append(f"{ours:.0f} | {theirs:.0f} | {found[-1]:.2f}")
        mb = [max(s["mb"] for s in side) for side in zip(*taken, strict=True)]
        same = math.isclose(taken[0][0]["sum"], taken[0][1]["sum"], rel_tol=1e-3)
        note = "" if same else " **results differ**"
        print(
            f"| {name}{note} | {' | '.join(cells)} | {mb[0]:.0f} | {mb[1]:.0f} |",
            flush=True,
        )
        if options.phases:
            spent = spawn("fnarray", name, phases=True)["phases"]
            print("    " + ", ".join(f"{k} {v:.0f}" for k, v in spent.items()), flush=True)
    means = (f"{kind} {statistics.geometric_mean(found):.2f}" for kind, found in ratios.items())
    print(f"\ngeometric means of ratios: {', '.join(means)}")
    return int(max(ratios["wall"]) > 1)


if __name__ == "__main__":
    sys.exit(main())
