"""coordax: fields with coordinates, mapped over them and differentiated."""

import sys

import coordax as cx
import jax
import jax.numpy as jnp
import numpy as np


def main():
    labels = cx.LabeledAxis("b", np.array([1.0, 2.0, 4.0]))
    f = cx.field(jnp.arange(6.0).reshape(2, 3), cx.SizedAxis("a", 2), labels)

    def total(q):
        return cx.cmap(jnp.sum)((q * q).untag("a", "b")).data

    return {
        "scaled": (f * 2 + 1).data,
        "mean": cx.cmap(jnp.mean)(f.untag("b")).data,
        "gradient": jax.jit(jax.grad(total))(f).data,
        "converted": jax.jit(lambda q: q.astype(jnp.int32))(f).data,
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
