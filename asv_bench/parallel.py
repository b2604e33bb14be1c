"""Speed of ``pmap`` over two devices against one, of functions that compute and touch no memory.

``python asv_bench/parallel.py``: work per second on two devices over that on one; 2 is perfect.
"""

from __future__ import annotations

import os
import statistics
import time

import numpy as np

os.environ["FNARRAY_NUM_CPU_DEVICES"] = "2"

import fnarray as fa
import fnarray.numpy as jnp


def recurrence(x):
    """200,000 turns of a scalar loop."""
    return fa.lax.fori_loop(0, 200_000, lambda i, c: jnp.tanh(1.1 * c + 0.1), x)


def sines(x):
    """300 turns over 4,096 elements."""
    return fa.lax.fori_loop(0, 300, lambda i, c: 1.01 * jnp.sin(c), x)


def seconds(call, x):
    """Time of one call."""
    start = time.perf_counter()
    call(x).block_until_ready()
    return time.perf_counter() - start


def main():
    """Alternate calls on one device and on two; print the ratios of the least and median times."""
    for fun, rows in (
        (recurrence, np.ones(2, np.float32)),
        (sines, np.ones((2, 4096), np.float32)),
    ):
        calls = fa.pmap(fun, devices=fa.devices()[:1]), fa.pmap(fun)
        xs = jnp.asarray(rows[:1]), jnp.asarray(rows)
        samples = [[seconds(c, x) for c, x in zip(calls, xs, strict=True)] for _ in range(26)][1:]
        one, two = zip(*samples, strict=True)
        least, median = (2 * f(one) / f(two) for f in (min, statistics.median))
        print(f"{fun.__name__:12s} least {least:.2f} median {median:.2f}")


if __name__ == "__main__":
    main()
