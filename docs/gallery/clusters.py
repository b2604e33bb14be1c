"""k-means, until nothing moves.

The loop ends when the centres are where they were: a `while_loop` whose number of turns is found
as it runs. scikit-learn ends at the same centres.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax


def nearest(x, centres):
    """Return the number of each row's nearest centre."""
    return jnp.argmin(jnp.sum((x[:, None] - centres) ** 2, -1), -1)


@fa.jit
def cluster(x, centres):
    """Return the centres at which the algorithm of Lloyd stays."""

    def move(state):
        _, centres = state
        member = nearest(x, centres)[:, None] == jnp.arange(len(centres))
        return centres, (member.T @ x) / jnp.sum(member, 0)[:, None]

    def moved(state):
        return jnp.any(state[0] != state[1])

    return lax.while_loop(moved, move, (centres + 1, centres))[1]


def main():
    """Cluster, compare, draw."""
    x, _ = make_blobs(400, centers=4, cluster_std=0.9, random_state=0)
    x = x.astype(np.float32)
    start = x[[0, 1, 2, 5]]
    centres = cluster(x, jnp.asarray(start))
    reference = KMeans(4, init=start, n_init=1, tol=0).fit(x)
    np.testing.assert_allclose(centres, reference.cluster_centers_, rtol=1e-3)
    figure = Figure(figsize=(5.6, 3.6))
    axes = figure.subplots()
    axes.scatter(*x.T, c=np.asarray(nearest(x, centres)), s=10, cmap="tab10", vmax=9)
    axes.plot(*np.asarray(centres).T, "w+", ms=14, mew=4)
    axes.plot(*np.asarray(centres).T, "k+", ms=13, mew=2, label="centre")
    axes.set_xlabel("first feature")
    axes.set_ylabel("second feature")
    axes.legend()
    return figure
