"""A two-layer perceptron on handwritten digits, trained by Adam to over 96 % on unseen ones.

Parameters are a pytree of named tuples; an epoch is one ``scan`` over shuffled batches whose body
holds forward pass, backward pass and update.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, nn, random, tree

SIZES = (64, 64, 64, 10)
RATE, DECAY_MEAN, DECAY_SQUARE, TINY = 2e-3, 0.9, 0.999, 1e-8
BATCH, EPOCHS = 32, 40


class Layer(NamedTuple):
    """Weights of one affine map."""

    w: fa.Array
    b: fa.Array


class Adam(NamedTuple):
    """Running means of the gradient and of its square (Kingma and Ba, 2015), and the step count."""

    mean: list[Layer]
    square: list[Layer]
    count: fa.Array


def init(key):
    """Draw layers scaled as He et al. (2015) advise for rectifiers."""
    initializer = zip(random.split(key, len(SIZES) - 1), SIZES[:-1], SIZES[1:], strict=True)
    return [
        Layer(random.normal(k, (n, m)) * np.sqrt(2 / n).astype(np.float32), jnp.zeros(m))
        for k, n, m in initializer
    ]


def log_odds(layers, x):
    """Apply the layers, with a rectifier between them."""
    *hidden, last = layers
    for layer in hidden:
        x = nn.relu(x @ layer.w + layer.b)
    return x @ last.w + last.b


def loss(layers, x, y):
    """Mean cross entropy."""
    return -jnp.mean(jnp.sum(nn.one_hot(y, SIZES[-1]) * nn.log_softmax(log_odds(layers, x)), 1))


def update(layers, state, gradient):
    """One step of Adam."""
    count = state.count + 1
    mean = tree.map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, state.mean, gradient)
    square = tree.map(
        lambda s, g: DECAY_SQUARE * s + (1 - DECAY_SQUARE) * g**2, state.square, gradient
    )
    rate = RATE * jnp.sqrt(1 - DECAY_SQUARE**count) / (1 - DECAY_MEAN**count)
    layers = tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + TINY), layers, mean, square)
    return layers, Adam(mean, square, count)


@fa.jit
def epoch(key, layers, state, x, y):
    """Go once through the shuffled data; return the mean loss as well."""
    batches = x.shape[0] // BATCH

    def step(carry, rows):
        layers, state = carry
        value, gradient = fa.value_and_grad(loss)(layers, x[rows], y[rows])
        return update(layers, state, gradient), value

    order = random.permutation(key, x.shape[0])[: batches * BATCH].reshape(batches, BATCH)
    (layers, state), losses = lax.scan(step, (layers, state), order)
    return layers, state, losses.mean()


def train(key, x, y):
    """Return layers after ``EPOCHS``, and the loss of each epoch."""
    key, start = random.split(key)
    layers, losses = init(start), []
    zeros = tree.map(jnp.zeros_like, layers)
    state = Adam(zeros, zeros, jnp.zeros((), jnp.float32))
    for k in random.split(key, EPOCHS):
        layers, state, value = epoch(k, layers, state, x, y)
        losses.append(float(value))
    return layers, losses


def digits():
    """Pixels in [0, 1] and labels: of training and test images, of training and test labels."""
    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int32)
    return train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)


def accuracy(layers, x, y):
    """Share of images whose largest log odds stand at the label."""
    return float(jnp.mean(jnp.argmax(log_odds(layers, x), axis=1) == y))


def main():
    """Train here and in scikit-learn."""
    x, x_test, y, y_test = digits()
    layers, losses = train(random.key(0), x, y)
    correct = accuracy(layers, x_test, y_test)
    peer = MLPClassifier(SIZES[1:-1], alpha=0, batch_size=BATCH, learning_rate_init=RATE)
    peer.set_params(max_iter=EPOCHS, n_iter_no_change=EPOCHS, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        reference = peer.fit(x, y).score(x_test, y_test)
    print(f"loss {losses[0]:.3f} after one epoch, {losses[-1]:.5f} after {EPOCHS}")
    print(f"test accuracy {correct:.4f}, scikit-learn {reference:.4f}")
    assert correct > 0.96
    assert correct > reference - 0.015


if __name__ == "__main__":
    main()
