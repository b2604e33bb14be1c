"""``python asv_bench/gpu.py [--small]``: bytes a second of the workloads that a GPU is to prove.

Each program moves its arguments and results once; 10 warm-ups, then calls of 100 ms in all with one
wait, the median of 5. Beside each, JAX's time where it is installed with a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Row = tuple[str, Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]


def rows(scale: int) -> Iterator[Row]:
    """Yield name, program over a module that is ``fnarray`` or ``jax``, and arguments."""
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    n = (1 << 28) // scale
    yield "axpy", lambda m: lambda x, y: 2 * x + y, (floats(n), floats(n))
    yield "gelu", lambda m: m.nn.gelu, (floats(n),)
    yield "sum", lambda m: m.numpy.sum, (floats(n),)
    for k, wide in ((65536, 1024), (4096, 32768)):
        shape = k // min(scale, 64), wide
        yield f"softmax {wide}", lambda m: lambda x: m.nn.softmax(x, -1), (floats(*shape),)
    yield (
        "column mean and variance",
        lambda m: lambda x: (x.mean(0), x.var(0)),
        (floats(max((1 << 20) // scale, 1), 256),),
    )
    side = 16384 // int(scale**0.5)
    square = floats(side, side)
    yield "transpose and add", lambda m: lambda x, y: x.T + y, (square, square)
    index = rng.integers(0, 256, n // 4).astype(np.int32)
    yield (
        "scatter-add into 256",
        lambda m: lambda x, i, v: x.at[i].add(v),
        (floats(256), index, floats(n // 4)),
    )
    yield "cumsum", lambda m: m.numpy.cumsum, (floats(n // 4),)
    steps, lanes = 1024, max((1 << 20) // scale, 64)

    def recurrence(m: Any) -> Callable[..., Any]:
        def turn(c: Any, t: Any) -> Any:
            return 0.99 * c + t, None

        return lambda c, ts: m.lax.scan(turn, c, ts)[0]

    yield "scan of 1024 steps", recurrence, (floats(lanes), floats(steps))
    yield "a call of 1K elements", lambda m: lambda x: x + 1, (floats(1024),)


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
            leaves = out if isinstance(out, (tuple, list)) else [out]
            for leaf in leaves:
                leaf.block_until_ready()
            spent = time.perf_counter() - start
            count *= 2
        found.append(spent / (count // 2))
    return statistics.median(found)


def measured(m: Any, build: Callable[[Any], Any], args: tuple[np.ndarray, ...]) -> float:
    """Return the time of a program of a module on its first GPU."""
    where = m.devices("gpu")[0]
    f, there = m.jit(build(m)), [m.device_put(a, where) for a in args]
    return seconds(lambda: f(*there))


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a thousandth of the sizes")
    args = parser.parse_args()
    import fnarray

    try:
        import jax

        jax.devices("gpu")
    except (ImportError, RuntimeError):
        jax = None
    for name, build, given in rows(1024 if args.small else 1):
        ours = measured(fnarray, build, given)
        moved = sum(a.nbytes for a in given)
        other = f"{measured(jax, build, given) / ours:6.2f} of JAX's speed" if jax else ""
        print(f"{name:28} {1e6 * ours:12.1f} us {moved / ours / 1e9:8.1f} GB/s read {other}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
