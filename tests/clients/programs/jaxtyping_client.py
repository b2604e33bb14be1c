"""jaxtyping: shapes and dtypes of arguments checked while functions run and are traced."""

# ruff: noqa: F722 - shapes are strings
import sys

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
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
