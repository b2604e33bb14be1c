"""Two substances that react and spread: a film in six pictures.

The model of Gray and Scott, thousands of steps on a torus. `scan` keeps a picture each 500 steps,
and the inner `fori_loop` updates both fields in registers and in place.
"""

import numpy as np
from matplotlib.figure import Figure

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax

FEED, KILL = 0.035, 0.062


def spread(u):
    """Return the discrete Laplacian on a torus."""
    return sum(jnp.roll(u, shift, axis) for axis in (0, 1) for shift in (-1, 1)) - 4 * u


def step(_, fields):
    """Advance both substances by one step."""
    u, v = fields
    reaction = u * v * v
    return (
        u + 0.16 * spread(u) - reaction + FEED * (1 - u),
        v + 0.08 * spread(v) + reaction - (FEED + KILL) * v,
    )


@fa.jit
def film(u, v):
    """Return six pictures of the second substance."""

    def part(fields, _):
        fields = lax.fori_loop(0, 500, step, fields)
        return fields, fields[1]

    return lax.scan(part, (u, v), length=6)[1]


def main():
    """Run, check bounds and change, draw."""
    n = 96
    v = np.zeros((n, n), np.float32)
    for i, j in np.random.default_rng(3).integers(0, n - 8, (12, 2)):
        v[i : i + 6, j : j + 6] = 0.5
    pictures = np.asarray(film(jnp.asarray(1 - v), jnp.asarray(v)))
    assert (pictures >= 0).all()
    assert (pictures <= 1).all()
    assert pictures[-1].std() > 0.05  # a pattern has grown
    figure = Figure(figsize=(7.6, 1.7))
    for k, (axes, shown) in enumerate(zip(figure.subplots(1, 6), pictures, strict=True)):
        axes.imshow(shown, cmap="viridis")
        axes.set_title(f"step {500 * (k + 1):,}", fontsize=8)
        axes.set_axis_off()
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.89, 0.05)
    return figure
