"""A regression on more data than one worker may hold: each worker makes, and keeps, its own part.

Three workers with a limit of 700 MB each share 645 MB of rows. One program runs on all of them: a
step adds up gradients from worker to worker, and nothing but the weights comes to this process. On
a part of the data the result must be, bit for bit, that of the same program on local devices, and
on all of it the weights that the data was made with.
"""

from __future__ import annotations

import sys

import dask
import numpy as np

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import NamedSharding, P, distributed, lax

WORKERS, ROWS, FEATURES, STEPS = 3, 840_000, 64, 12
WEIGHTS = np.linspace(-1, 1, FEATURES).astype(np.float32)


def rows_of(count):
    """What makes the rows of one worker, wherever it runs: they follow from where they begin."""

    def rows(index):
        start = index[0].start or 0
        block = np.random.default_rng(start).random((count, FEATURES), np.float32)
        block -= np.float32(0.5)  # in place: a worker has room for one block
        return block

    return rows


def fit(x):
    """Weights of a linear model by gradient descent with momentum, on this device's rows."""
    y = x @ WEIGHTS
    total = lax.psum(x.shape[0], "rows")

    def step(state, _):
        w, velocity = state
        gradient = lax.psum((x @ w - y) @ x, "rows") / total
        velocity = 0.3 * velocity - 8.0 * gradient
        return (w + velocity, velocity), lax.psum(jnp.sum((x @ w - y) ** 2), "rows") / total

    zero = jnp.zeros(FEATURES)
    (w, _), losses = lax.scan(step, (zero, zero), None, length=STEPS)
    return w, losses


def fitted(devices, count):
    """Fit on so many rows a device."""
    mesh = fa.make_mesh((WORKERS,), ("rows",), devices=devices)
    x = fa.make_array_from_callback(
        (WORKERS * count, FEATURES), NamedSharding(mesh, P("rows")), rows_of(count)
    )
    program = fa.shard_map(fit, mesh=mesh, in_specs=P("rows"), out_specs=P())
    w, losses = program(x)
    return np.asarray(w), np.asarray(losses), x.nbytes


def main() -> None:
    """Fit on workers, compare with this process and with what the data was made with."""
    # Workers begin as copies of one process that has imported everything.
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    before = fa.config.num_cpu_devices
    with distributed.connect(processes=WORKERS, memory_limit="700MB", timeout=300) as cluster:
        print("dashboard:", cluster.dashboard_link)
        part, _, _ = fitted(cluster.devices, 1000)
        w, losses, nbytes = fitted(cluster.devices, ROWS)
    fa.config.update("num_cpu_devices", WORKERS)
    alone, _, _ = fitted(fa.devices("cpu"), 1000)
    fa.config.update("num_cpu_devices", before)
    np.testing.assert_array_equal(part, alone)
    assert nbytes > 600e6, nbytes
    np.testing.assert_allclose(w, WEIGHTS, atol=0.02)
    print(f"{nbytes / 1e6:.0f} MB on {WORKERS} workers of 700; mean square error by step:")
    print(np.array2string(losses, precision=4))


if __name__ == "__main__":
    sys.exit(main())
