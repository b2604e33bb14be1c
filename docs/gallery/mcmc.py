"""Sixteen Markov chains on a bent density.

A chain is a `scan` with a random key for each step; `vmap` runs sixteen of them, which compile to
one loop over chains. The moments agree with integration on a grid.
"""

import numpy as np
from matplotlib.figure import Figure

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, random


def log_density(p):
    """Logarithm of a banana's density, up to a constant."""
    x, y = p
    return -0.5 * x**2 - 2.0 * (y - 0.5 * x**2) ** 2


def chain(key, start, length):
    """Return the states of a chain of Metropolis."""

    def step(p, key):
        move, accept = random.split(key)
        proposed = p + 0.9 * random.normal(move, (2,))
        gain = log_density(proposed) - log_density(p)
        p = jnp.where(jnp.log(random.uniform(accept)) < gain, proposed, p)
        return p, p

    return lax.scan(step, start, random.split(key, length))[1]


@fa.jit
def chains(keys):
    """Return the chains of several keys."""
    return fa.vmap(lambda key: chain(key, jnp.zeros(2), 4000))(keys)


def main():
    """Sample, compare moments, draw."""
    samples = np.asarray(chains(random.split(random.key(1), 16)))
    settled = samples[:, 500:].reshape(-1, 2)
    np.testing.assert_allclose(settled.mean(0), [0.0, 0.5], atol=0.08)
    np.testing.assert_allclose(settled.var(0), [1.0, 0.75], atol=0.15)
    figure = Figure(figsize=(7.2, 3.0))
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for one in samples[:3]:
        left.plot(one[:400, 0], lw=0.8)
    left.set_xlabel("step")
    left.set_ylabel("x")
    right.hist2d(*settled.T, bins=60, cmap="magma")
    right.set_xlabel("x")
    right.set_ylabel("y")
    return figure
