"""einops: rearranged, reduced, repeated and packed arrays, alone and compiled."""

import sys

import einops
import jax
import jax.numpy as jnp
import numpy as np


def main():
    x = jnp.arange(48.0).reshape(2, 4, 6)
    packed, shapes = einops.pack([x, x[:, :, 0]], "b *")
    patches = jax.jit(lambda x: einops.rearrange(x, "b (h i) (w j) -> b h w (i j)", i=2, j=3))
    return {
        "rearranged": einops.rearrange(x, "b h w -> w (b h)"),
        "patches": patches(x),
        "reduced": jax.jit(lambda x: einops.reduce(x, "b (h 2) w -> b h", "max"))(x),
        "mean": einops.reduce(x, "b h w -> b", "mean"),
        "repeated": einops.repeat(x[0, 0], "w -> h w", h=3),
        "packed": packed,
        "unpacked": einops.unpack(packed, shapes, "b *")[0],
        "product": einops.einsum(x, x, "b h w, b k w -> b h k"),
        "grad": jax.grad(lambda x: einops.reduce(x**2, "b h w -> ", "sum"))(x),
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
