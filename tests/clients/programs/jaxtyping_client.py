"""jaxtyping: shapes and dtypes checked while functions run, are traced, and fit a mixture."""

# ruff: noqa: F722 - shapes are strings
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, jaxtyped


def matches(value, annotation):
    return isinstance(value, annotation)


@jaxtyped(typechecker=None)
def product(x: Float[Array, "n m"], y: Float[Array, " m"]) -> Float[Array, " n"]:
    assert isinstance(x, Float[Array, "n m"])
    assert isinstance(y, Float[Array, " m"])
    out = x @ y
    assert isinstance(out, Float[Array, " n"])
    return out


class Mixture(NamedTuple):
    means: Float[Array, "k d"]
    logits: Float[Array, " k"]


@jaxtyped(typechecker=None)
def surprise(model: Mixture, x: Float[Array, "n d"]) -> Float[Array, ""]:
    """Score points, with the sizes that names stand for agreeing from line to line."""
    assert isinstance(x, Float[Array, "n d"])
    assert isinstance(model.means, Float[Array, "k d"])
    assert isinstance(model.logits, Float[Array, " k"])
    squares = jnp.sum((x[:, None] - model.means) ** 2, -1)
    assert isinstance(squares, Float[Array, "n k"])
    return -jnp.mean(jax.nn.logsumexp(jax.nn.log_softmax(model.logits) - squares, axis=1))


def trained():
    """Fit a mixture of three blobs, and be refused where shapes do not agree."""
    keys = jax.random.split(jax.random.key(0), 2)
    centers = jnp.array([[0.0, 3.0], [3.0, 0.0], [-3.0, -1.0]])
    x = jnp.repeat(centers, 20, 0) + 0.5 * jax.random.normal(keys[0], (60, 2))

    def step(model, _):
        value, grads = jax.value_and_grad(surprise)(model, x)
        assert isinstance(grads, PyTree[Float[Array, "..."], "T"])
        return jax.tree.map(lambda p, g: p - 0.3 * g, model, grads), value

    model = Mixture(jax.random.normal(keys[1], (3, 2)), jnp.zeros(3))
    model, losses = jax.jit(lambda model: jax.lax.scan(step, model, length=80))(model)
    refused = False
    try:
        jax.jit(surprise)(model, x.T)
    except AssertionError:
        refused = True
    return {
        "means": model.means,
        "logits": model.logits,
        "losses": losses,
        "exact_refused": np.array(refused),
    }


def main():
    x, y = jnp.ones((3, 4)), jnp.arange(4.0)
    traced = []

    def seen(x):
        traced.append(matches(x, Float[Array, "3 4"]))
        traced.append(matches(x, Int[Array, "3 4"]))
        return x.sum()

    jax.jit(seen)(x)
    return {
        "product": product(x, y),
        "jit": jax.jit(product)(x, y),
        "vmap": jax.vmap(product, (None, 0))(x, jnp.eye(4)),
        "exact_matches": np.array(
            [
                matches(x, Float[Array, "a b"]),
                matches(x, Float[Array, "a a"]),
                matches(x, Int[Array, "..."]),
                matches(y.astype(int), Int[Array, "4"]),
                matches(jax.random.key(0), PRNGKeyArray),
                matches({"a": x}, PyTree[Float[Array, "..."]]),
                matches({"a": "b"}, PyTree[Float[Array, "..."]]),
                *traced,
            ]
        ),
        **trained(),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
