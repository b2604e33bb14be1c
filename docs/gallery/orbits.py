"""Predators and prey, by an adaptive solver of differential equations.

`odeint` chooses its own steps; here eight starts are solved as one batch. Each orbit keeps a
quantity that the equations conserve.
"""

import numpy as np
from matplotlib.figure import Figure

import fnarray as fa
import fnarray.numpy as jnp
from fnarray.experimental.ode import odeint


def flow(state, t):
    """The equations of Lotka and Volterra."""
    prey, predators = state
    return jnp.stack([prey * (1.0 - predators), predators * (prey - 1.0)])


def conserved(state):
    """What does not change along an orbit."""
    return jnp.sum(state - jnp.log(state), axis=-1)


@fa.jit
def solve(starts, times):
    """Return the orbits of all starts."""
    return fa.vmap(lambda start: odeint(flow, start, times, rtol=1e-6, atol=1e-6))(starts)


def main():
    """Solve, check what is conserved, draw."""
    starts = jnp.stack([jnp.linspace(0.2, 0.9, 8), jnp.ones(8)], axis=1)
    orbits = solve(starts, jnp.linspace(0.0, 8.0, 200))
    kept = np.asarray(conserved(orbits))
    np.testing.assert_allclose(kept, np.broadcast_to(kept[:, :1], kept.shape), rtol=1e-3)
    figure = Figure(figsize=(6.4, 3.6))
    axes = figure.subplots()
    for orbit in np.asarray(orbits):
        axes.plot(*orbit.T)
    axes.set_xlabel("prey")
    axes.set_ylabel("predators")
    return figure
