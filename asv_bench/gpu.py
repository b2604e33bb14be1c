"""``python asv_bench/gpu.py [--small] [--only NAME ...]``: the workloads that a GPU is to prove.

Each program is checked against float64 at a thousandth of its size, then timed: 10 warm-ups, calls
of 100 ms in all with one wait, the median of 5. Ours and JAX's (where it is installed with a GPU)
run in processes of their own, one after the other, twice. Bytes are those of arguments and results,
which a program moves at least once; an H200 copies 4.3 TB/s.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

#: What results may differ by from float64, of the largest: sums of float32 by parts, and bfloat16.
CLOSE, CLOSE_HALF = 1e-3, 3e-2
#: Builds a program over a module that is ``fnarray`` or ``jax``.
Build = Callable[[Any], Callable[..., Any]]
Row = tuple[Build, Callable[[int], tuple[np.ndarray, ...]]]
_rng = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    """Return normal numbers; a GiB repeats 16 MiB of them, which takes a tenth of the time."""
    count = math.prod(shape)
    some = _rng.standard_normal(min(count, 1 << 22), np.float32)
    return some.reshape(shape) if some.size == count else np.resize(some, shape)


def flat(scale: int, count: int = 1, power: int = 28) -> tuple[np.ndarray, ...]:
    """Return vectors, a GiB each at scale 1."""
    return tuple(floats((1 << power) // scale) for _ in range(count))


def chain(m: Any) -> Any:
    """Eight operations, in bfloat16."""

    def run(x: Any) -> Any:
        x = x.astype(m.numpy.bfloat16)
        y = m.numpy.tanh(x * 2 + 1) * x
        return m.numpy.maximum(y - x * x, 0) / (1 + m.numpy.abs(y))

    return run


def layer_norm(m: Any) -> Any:
    """A loss over a layer norm, and its gradient."""

    def loss(x: Any, g: Any, b: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (((x - mean) / m.numpy.sqrt(var + 1e-5) * g + b) ** 2).mean()

    return m.value_and_grad(loss)


def scatter(m: Any) -> Any:
    """Sums by number."""
    return lambda x, i, v: x.at[i].add(v)


def scattered(bins: int) -> Callable[[int], tuple[np.ndarray, ...]]:
    """Return arguments of `scatter`."""

    def make(scale: int) -> tuple[np.ndarray, ...]:
        n = (1 << 26) // scale
        return floats(bins), _rng.integers(0, bins, n).astype(np.int32), floats(n)

    return make


def recurrence(m: Any) -> Any:
    """A scan of many steps over many lanes."""

    def turn(c: Any, t: Any) -> Any:
        return 0.99 * c + t, None

    return lambda c, ts: m.lax.scan(turn, c, ts)[0]


def adam(m: Any) -> Any:
    """A step of Adam."""

    def step(w: Any, g: Any, mean: Any, square: Any) -> Any:
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        return w - 1e-3 * mean / (m.numpy.sqrt(square) + 1e-8), mean, square

    return step


def convolution(m: Any) -> Any:
    """A loss over a convolution by 3 x 3, and its gradients."""
    layout = ("NHWC", "HWIO", "NHWC")

    def loss(x: Any, w: Any) -> Any:
        y = m.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)
        return (y * y).mean()

    return m.value_and_grad(loss, (0, 1))


def stencil(m: Any) -> Any:
    """Five points."""
    roll = m.numpy.roll
    return lambda x: (
        x + 0.2 * (roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1) - 4 * x)
    )


def perceptron(m: Any) -> Any:
    """A gradient step of a small network, of many small kernels."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in zip(params[::2], params[1::2], strict=True):
            x = m.numpy.tanh(x @ w + b)
        return ((x - y) ** 2).mean()

    def step(x: Any, y: Any, *params: Any) -> Any:
        slopes = m.grad(loss)(params, x, y)
        return tuple(p - 0.1 * g for p, g in zip(params, slopes, strict=True))

    return step


def layers(scale: int) -> tuple[np.ndarray, ...]:
    """Return arguments of `perceptron`."""
    pairs = itertools.pairwise([64] * 6)
    params = [p for n, k in pairs for p in (floats(n, k), floats(k))]
    return (floats(32, 64), floats(32, 64), *params)


def side(scale: int) -> int:
    """Return the side of a square of a GiB."""
    return 16384 // int(scale**0.5)


ROWS: dict[str, Row] = {
    "axpy": (lambda m: lambda x, y: 2 * x + y, lambda s: flat(s, 2)),
    "gelu": (lambda m: m.nn.gelu, flat),
    "chain of 8 in bfloat16": (chain, flat),
    "sum": (lambda m: m.numpy.sum, flat),
    "softmax 65536 x 1024": (
        lambda m: lambda x: m.nn.softmax(x, -1),
        lambda s: (floats(65536 // s, 1024),),
    ),
    "softmax 4096 x 32768": (
        lambda m: lambda x: m.nn.softmax(x, -1),
        lambda s: (floats(4096 // s, 32768),),
    ),
    "layer norm and gradient": (
        layer_norm,
        lambda s: (floats(max(32768 // s, 1), 4096), floats(4096), floats(4096)),
    ),
    "column mean and variance": (
        lambda m: lambda x: (x.mean(0), x.var(0)),
        lambda s: (floats((1 << 20) // s, 256),),
    ),
    "transpose and add": (
        lambda m: lambda x, y: x.T + y,
        lambda s: (floats(side(s), side(s)), floats(side(s), side(s))),
    ),
    "scatter-add into 256": (scatter, scattered(256)),
    "scatter-add into 1M": (scatter, scattered(1 << 20)),
    "cumsum": (lambda m: m.numpy.cumsum, flat),
    "scan of 1024 steps": (recurrence, lambda s: (floats((1 << 20) // s), floats(1024))),
    "Adam": (adam, lambda s: tuple(abs(floats(100_000_000 // s)) for _ in range(4))),
    "stencil of 5 points": (stencil, lambda s: (floats(side(s), side(s)),)),
    "product 8192": (
        lambda m: lambda x, y: x @ y,
        lambda s: (floats(8192 // int(s**0.5), 8192 // int(s**0.5)),) * 2,
    ),
    "convolution and gradient": (
        convolution,
        lambda s: (floats(max(256 // s, 1), 56, 56, 64), floats(3, 3, 64, 64) / 24),
    ),
    "sort": (lambda m: m.numpy.sort, lambda s: flat(s, power=26)),
    "a call of 1K elements": (lambda m: lambda x: x + 1, lambda s: (floats(1024),)),
    "a step of 50 kernels": (perceptron, layers),
}


def leaves(x: Any) -> list[Any]:
    """Return the arrays of nested tuples."""
    return [y for part in x for y in leaves(part)] if isinstance(x, (tuple, list)) else [x]


def seconds(call: Callable[[], Any]) -> float:
    """Return the median time of a call."""
    for _ in range(10):
        call()
    found: list[float] = []
    for _ in range(5):
        count, spent = 1, 0.0
        while spent < 0.1:
            start = time.perf_counter()
            for _ in range(count):
                out = call()
            for leaf in leaves(out):
                leaf.block_until_ready()
            spent = time.perf_counter() - start
            count *= 2
        found.append(spent / (count // 2))
    return statistics.median(found)


def check(m: Any, name: str) -> float:
    """Return by how much a small run on the GPU differs from float64 on the processor."""
    build, make = ROWS[name]
    args, where = make(1024), m.devices("gpu")[0]
    there = [m.device_put(a, where) for a in args]
    got = [np.asarray(x, np.float64) for x in leaves(m.jit(build(m))(*there))]
    with m.enable_x64(True):
        wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in args]
        here = [m.device_put(a, m.devices("cpu")[0]) for a in wide]
        want = [np.asarray(x, np.float64) for x in leaves(m.jit(build(m))(*here))]
    return max(
        float(abs(g - w).max() / max(abs(w).max(), 1e-30)) for g, w in zip(got, want, strict=True)
    )


def work(module: str, name: str, scale: int) -> dict[str, float]:
    """Measure one program of one module in this process."""
    m = __import__(module)
    build, make = ROWS[name]
    error = check(m, name) if module == "fnarray" else 0.0
    args, where = make(scale), m.devices("gpu")[0]
    f, there = m.jit(build(m)), [m.device_put(a, where) for a in args]
    out = leaves(f(*there))
    moved = sum(a.nbytes for a in args) + sum(x.nbytes for x in out)
    return {"seconds": seconds(lambda: f(*there)), "bytes": float(moved), "error": error}


def asked(module: str, name: str, scale: int) -> dict[str, float] | None:
    """Measure in a process of its own; None where that fails, which says why."""
    command = [sys.executable, __file__, "--work", module, name, str(scale)]
    env = {**os.environ, "FNARRAY_PLATFORMS": "gpu,cpu"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        print(f"{module}: {name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 1 where a program of ours fails, or has wrong results, or no GPU is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a thousandth of the sizes")
    parser.add_argument("--only", nargs="+", choices=ROWS, metavar="NAME", default=list(ROWS))
    parser.add_argument("--work", nargs=3, metavar=("MODULE", "NAME", "SCALE"))
    options = parser.parse_args(arguments)
    if options.work:
        module, name, scale = options.work
        print(json.dumps(work(module, name, int(scale))))
        return 0
    try:
        importlib.import_module("fnarray").devices("gpu")
    except RuntimeError as error:
        print(f"compare.py --device gpu needs a GPU. {error}", file=sys.stderr)
        return 1
    scale, failed = 1024 if options.small else 1, 0
    print("| workload | us | GB/s | JAX's us | JAX / ours | error |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    for name in options.only:
        runs = [(asked("fnarray", name, scale), asked("jax", name, scale)) for _ in range(2)]
        ours, theirs = (
            min((r[k] for r in runs if r[k]), key=lambda r: r["seconds"], default=None)
            for k in (0, 1)
        )
        if ours is None:
            failed += 1
            continue
        if not ours["error"] <= (CLOSE_HALF if "bfloat16" in name else CLOSE):  # a NaN fails too
            failed += 1
            print(f"fnarray: {name}: results are wrong by {ours['error']:.1e}", file=sys.stderr)
        took = ours["seconds"]
        other = theirs["seconds"] if theirs else float("nan")
        beside = f"{1e6 * other:.1f} | {other / took:.2f}"
        rate = ours["bytes"] / took / 1e9
        row = f"| {name} | {1e6 * took:.1f} | {rate:.0f} | {beside} | {ours['error']:.1e} |"
        print(row, flush=True)  # a run may be cut off
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
