"""Linear regression with the rows spread over devices: ``pmap``, and ``pmean`` of the gradients.

Each CPU device is a share of the cores; ``FNARRAY_NUM_CPU_DEVICES`` says how many there are. Every
device holds the coefficients and its own rows, and all take the same steps, because they step along
the mean of their gradients. One program per device runs all the steps. NumPy solves the same
least squares at once.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.datasets import load_diabetes

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

STEPS, RATE = 1000, 0.9


def loss(w, x, y):
    """Half the mean squared error."""
    return 0.5 * jnp.mean((x @ w - y) ** 2)


@partial(fa.pmap, axis_name="devices", in_axes=(None, 0, 0), out_axes=(None, 0))
def descend(w, x, y):
    """Descend along the mean gradient of all devices; also each device's own last loss."""

    def step(_, w):
        return w - RATE * lax.pmean(fa.grad(loss)(w, x, y), "devices")

    w = lax.fori_loop(0, STEPS, step, w)
    return w, loss(w, x, y)


def whitened_diabetes(devices):
    """Diabetes data with uncorrelated features of variance one, a multiple of ``devices`` rows."""
    x, y = load_diabetes(return_X_y=True)
    rows = len(x) // devices * devices
    x, y = x[:rows], y[:rows]
    u = np.linalg.svd(x - x.mean(0), full_matrices=False)[0]
    x = np.hstack([u * np.sqrt(rows), np.ones((rows, 1))])
    return x.astype(np.float32), ((y - y.mean()) / y.std()).astype(np.float32)


def main():
    """Descend on all devices, and solve in NumPy."""
    devices = fa.local_device_count()
    x, y = whitened_diabetes(devices)
    shards = x.reshape(devices, -1, x.shape[1]), y.reshape(devices, -1)
    w, losses = descend(jnp.zeros(x.shape[1]), *shards)
    reference, (squares,), *_ = np.linalg.lstsq(x.astype(float), y.astype(float))
    gap = np.abs(np.asarray(w) - reference).max()
    print(f"{devices} devices, {shards[0].shape[1]} rows each; after {STEPS} steps")
    print(f"  loss {float(losses.mean()):.6f}, NumPy {0.5 * squares / len(y):.6f}")
    print(f"  largest difference of a coefficient {gap:.1e}")
    assert gap < 1e-5
    assert np.isclose(losses.mean(), 0.5 * squares / len(y), rtol=1e-5)


if __name__ == "__main__":
    main()
