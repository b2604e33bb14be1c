"""Where the logistic map goes, for a thousand rates.

One `scan` for all rates at once: the first turns are forgotten, the last are drawn.
"""

import numpy as np
from matplotlib.figure import Figure

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax


@fa.jit
def visited(rates):
    """Return the last 120 of 600 states, for each rate."""

    def turn(x, _):
        x = rates * x * (1 - x)
        return x, x

    settled, _ = lax.scan(turn, 0.5 * jnp.ones_like(rates), length=480)
    return lax.scan(turn, settled, length=120)[1]


def main():
    """Iterate, check the fixed points, draw."""
    rates = np.linspace(2.5, 4.0, 1000, dtype=np.float32)
    states = np.asarray(visited(rates))
    steady = rates < 2.95
    fixed = 1 - 1 / rates[steady]
    np.testing.assert_allclose(states[-1, steady], fixed, atol=1e-3)
    figure = Figure(figsize=(6.8, 3.6))
    axes = figure.subplots()
    axes.plot(np.broadcast_to(rates, states.shape).ravel(), states.ravel(), ",", alpha=0.25)
    axes.set_xlabel("rate")
    axes.set_ylabel("population")
    return figure
