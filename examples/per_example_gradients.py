"""Gradients of each example apart, and training that clips them: ``vmap`` of ``grad``.

Gradients of single examples are what differential privacy needs (Abadi et al., "Deep learning with
differential privacy", 2016): each is cut to a greatest norm before they are averaged, and noise
drowns what is left of any one of them. One ``vmap`` turns the gradient of one example into that of
all, and the compiled program never loops over examples in Python.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import fnarray as fa
import fnarray.numpy as jnp
from fnarray import lax, nn, random

GREATEST_NORM, NOISE, RATE, BATCH, STEPS = 1.0, 1.0, 0.5, 128, 400


def loss(w, x, y):
    """Negative log likelihood of the label ``y``, -1 or 1, of one example ``x``."""
    return nn.softplus(-y * (x @ w["slope"] + w["level"]))


def clipped(gradient):
    """Scale a gradient down to a norm of at most ``GREATEST_NORM``; return its norm as well."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in fa.tree.leaves(gradient)))
    scale = jnp.minimum(1.0, GREATEST_NORM / norm)
    return fa.tree.map(lambda g: g * scale, gradient), norm


@fa.jit
def each_gradient(w, x, y):
    """Gradients of all examples: a tree like ``w`` with one more axis in front."""
    return fa.vmap(fa.grad(loss), in_axes=(None, 0, 0))(w, x, y)


@fa.jit
def train(key, w, x, y):
    """Descend along noisy means of clipped gradients of random batches."""

    def step(w, key):
        rows_key, *noise_keys = random.split(key, 3)
        rows = random.choice(rows_key, x.shape[0], (BATCH,))
        gradients, norms = fa.vmap(clipped)(each_gradient(w, x[rows], y[rows]))
        noise = dict(zip(w, noise_keys, strict=True))

        def move(w, g, key):
            spread = NOISE * GREATEST_NORM * random.normal(key, w.shape)
            return w - RATE * (g.sum(0) + spread) / BATCH

        return fa.tree.map(move, w, gradients, noise), (norms > GREATEST_NORM).mean()

    return lax.scan(step, w, random.split(key, STEPS))


def main():
    """Compare with the formula, one example at a time; train, and compare with scikit-learn."""
    x, y = load_breast_cancer(return_X_y=True)
    x, y = ((x - x.mean(0)) / x.std(0)).astype(np.float32), np.where(y, 1.0, -1.0).astype("f")
    w = {"level": jnp.zeros(()), "slope": jnp.linspace(-1, 1, x.shape[1])}

    gradients = each_gradient(w, x, y)
    weight = -y / (1 + np.exp(y * (x @ np.asarray(w["slope"]))))
    gap = np.abs(np.asarray(gradients["slope"]) - weight[:, None] * x).max()
    print(f"{len(x)} gradients at once, off the formula by at most {gap:.1e}")

    w, cut = train(random.key(0), fa.tree.map(jnp.zeros_like, w), x, y)
    score = float(jnp.mean(jnp.sign(x @ w["slope"] + w["level"]) == y))
    reference = LogisticRegression().fit(x, y).score(x, y)
    print(f"clipped at first {float(cut[0]):.0%}, at last {float(cut[-1]):.0%}")
    print(f"accuracy with privacy {score:.4f}, scikit-learn without {reference:.4f}")
    assert gap < 1e-5
    assert score > reference - 0.03


if __name__ == "__main__":
    main()
