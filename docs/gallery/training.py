"""A small network learns two moons.

Parameters are a list of pairs; the whole training, gradients included, is one `scan`, so that no
step of it returns to Python.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, nn, random, tree

SIZES = (2, 16, 16, 1)


def initial(key):
    """Return weights and biases of each layer."""
    keys = random.split(key, len(SIZES) - 1)
    return [
        (random.normal(k, (m, n)) / jnp.sqrt(m), jnp.zeros(n))
        for k, m, n in zip(keys, SIZES[:-1], SIZES[1:], strict=True)
    ]


def network(layers, x):
    """Return the logit of each row."""
    *hidden, (w, b) = layers
    for v, c in hidden:
        x = nn.relu(x @ v + c)
    return (x @ w + b)[:, 0]


def loss(layers, x, y):
    """Mean cross entropy."""
    logits = network(layers, x)
    return jnp.mean(nn.softplus(logits) - y * logits)


@fa.jit
def train(layers, x, y):
    """Return the trained layers and the loss of each step."""

    def step(layers, _):
        value, slopes = fa.value_and_grad(loss)(layers, x, y)
        return tree.map(lambda p, g: p - 0.5 * g, layers, slopes), value

    return lax.scan(step, layers, length=1500)


def main():
    """Train, check, draw the loss and the boundary."""
    x, y = make_moons(300, noise=0.15, random_state=0)
    x, y = x.astype(np.float32), y.astype(np.float32)
    layers, losses = train(initial(random.key(0)), x, y)
    assert np.mean((np.asarray(network(layers, x)) > 0) == y) > 0.97
    figure = Figure(figsize=(7.2, 3.0))
    left, right = figure.subplots(1, 2)
    left.semilogy(losses)
    left.set_xlabel("step")
    left.set_ylabel("loss")
    a, b = np.meshgrid(np.linspace(-1.6, 2.6, 90), np.linspace(-1.1, 1.6, 90))
    grid = np.stack([a.ravel(), b.ravel()], 1).astype(np.float32)
    chance = np.asarray(nn.sigmoid(network(layers, grid))).reshape(a.shape)
    right.contourf(a, b, chance, 12, cmap="coolwarm", alpha=0.7)
    right.scatter(*x.T, c=y, s=11, cmap="coolwarm", edgecolors="w", linewidths=0.5)
    right.set_xlabel("first feature")
    right.set_ylabel("second feature")
    return figure
