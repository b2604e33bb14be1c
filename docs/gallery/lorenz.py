"""Two starts that differ in the fifth digit.

The equations of Lorenz by the method of Runge and Kutta, 4000 steps in one native loop; the
distance of the two grows as fast as `jvp` through the loop says.
"""

import numpy as np
from matplotlib.figure import Figure

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

STEP = 0.01


def flow(s):
    """The equations of Lorenz."""
    x, y, z = s
    return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])


def advance(s, _):
    """Take one step of Runge and Kutta."""
    a = flow(s)
    b = flow(s + 0.5 * STEP * a)
    c = flow(s + 0.5 * STEP * b)
    d = flow(s + STEP * c)
    s = s + STEP / 6.0 * (a + 2.0 * b + 2.0 * c + d)
    return s, s


@fa.jit
def path(start):
    """Return where a start goes."""
    return lax.scan(advance, start, length=4000)[1]


def main():
    """Run both, compare the early distance with the derivative's, draw."""
    start, apart = jnp.array([1.0, 1.0, 20.0]), jnp.array([1e-4, 0.0, 0.0])
    one, other = np.asarray(path(start)), np.asarray(path(start + apart))
    _, tangent = fa.jvp(path, (start,), (apart,))
    early = slice(0, 100)
    np.testing.assert_allclose((other - one)[early], np.asarray(tangent)[early], atol=2e-4)
    figure = Figure(figsize=(7.2, 3.2))
    left, right = figure.subplots(1, 2)
    left.plot(one[:, 0], one[:, 2], lw=0.5)
    left.set_xlabel("x")
    left.set_ylabel("z")
    right.semilogy(STEP * np.arange(4000), np.linalg.norm(one - other, axis=1), lw=0.8)
    right.set_xlabel("time")
    right.set_ylabel("distance")
    return figure
