"""einops: arrays rearranged, reduced and packed, and a network of patches that learns by them."""

import sys

import einops
import jax
import jax.numpy as jnp
import numpy as np


def operations():
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


def predicted(params, images):
    """Mix an image's patches by attention of two heads, and pool what they say."""
    patches = einops.rearrange(images, "b (h i) (w j) -> b (h w) (i j)", i=4, j=4)
    tokens = einops.einsum(patches, params["embed"], "b n p, p d -> b n d") + params["place"]
    split = "b n (three h d) -> three b h n d"
    q, k, v = einops.rearrange(tokens @ params["qkv"], split, three=3, h=2)
    scores = einops.einsum(q, k, "b h i d, b h j d -> b h i j") / 2
    mixed = einops.einsum(jax.nn.softmax(scores), v, "b h i j, b h j d -> b h i d")
    tokens = tokens + jnp.tanh(einops.rearrange(mixed, "b h n d -> b n (h d)"))
    return einops.reduce(tokens, "b n d -> b d", "mean") @ params["out"]


def trained():
    """Fit in which quarter of an image a spot lies."""
    keys = jax.random.split(jax.random.key(0), 6)
    labels = jax.random.randint(keys[0], (32,), 0, 4)
    quarters = einops.rearrange(jax.nn.one_hot(labels, 4), "b (h w) -> b h w", h=2)
    images = einops.repeat(quarters, "b h w -> b (h i) (w j)", i=4, j=4)
    images = images + 0.3 * jax.random.normal(keys[1], images.shape)
    params = {
        "embed": 0.3 * jax.random.normal(keys[2], (16, 8)),
        "place": 0.3 * jax.random.normal(keys[3], (4, 8)),
        "qkv": 0.3 * jax.random.normal(keys[4], (8, 24)),
        "out": 0.3 * jax.random.normal(keys[5], (8, 4)),
    }

    def loss(params):
        scores = jax.nn.log_softmax(predicted(params, images))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))

    @jax.jit
    def step(params, _):
        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.3 * g, params, grads), value

    params, losses = jax.lax.scan(step, params, length=60)
    right = jnp.mean(predicted(params, images).argmax(1) == labels)
    return {**params, "losses": losses, "right": right}


def main():
    return {**operations(), **trained()}


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: np.asarray(value) for name, value in main().items()})
