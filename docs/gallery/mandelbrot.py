"""Mandelbrot's set: a loop for each point, each as long as it takes.

`vmap` of a `while_loop` is a native loop for each point. None waits for the slowest.
"""

import numpy as np
from matplotlib.figure import Figure

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

MOST = 120


def turns(x, y):
    """Return after how many turns a point escapes."""

    def inside(state):
        n, a, b = state
        return (n < MOST) & (a * a + b * b <= 4.0)

    def turn(state):
        n, a, b = state
        return n + 1, a * a - b * b + x, 2.0 * a * b + y

    return lax.while_loop(inside, turn, (0, 0.0, 0.0))[0]


@fa.jit
def escape(x, y):
    """Return the turns of every point of a grid."""
    return fa.vmap(fa.vmap(turns, (0, None)), (None, 0))(x, y)


def main():
    """Draw; the set is symmetric about the real axis."""
    picture = np.asarray(escape(jnp.linspace(-2.1, 0.7, 420), jnp.linspace(-1.15, 1.15, 345)))
    assert np.mean(picture != picture[::-1]) < 0.01
    figure = Figure(figsize=(6.0, 4.6))
    axes = figure.subplots()
    axes.imshow(np.log1p(picture), cmap="twilight_shifted", extent=(-2.1, 0.7, -1.15, 1.15))
    axes.set_xlabel("real part")
    axes.set_ylabel("imaginary part")
    return figure
