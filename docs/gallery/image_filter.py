"""Edges of an image: a blur and two differences, in one kernel each.

Convolutions by small kernels become loops over the image, in which the small kernel is unrolled.
The result is `scipy.ndimage`'s.
"""

import numpy as np
from matplotlib.figure import Figure
from scipy import ndimage

import fnarray as fa
import fnarray.numpy as jnp
from fnarray.scipy.signal import convolve2d

BLUR = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]).astype(np.float32) / 256
SOBEL = np.outer([1, 2, 1], [1, 0, -1]).astype(np.float32)


@fa.jit
def edges(image):
    """Return the blurred image and the strength of its edges."""
    soft = convolve2d(image, BLUR, mode="same")
    return soft, jnp.hypot(
        convolve2d(soft, SOBEL, mode="same"), convolve2d(soft, SOBEL.T, mode="same")
    )


def picture(size=160):
    """Return disks, a ring and noise."""
    y, x = np.mgrid[:size, :size] / size
    disks = (np.hypot(x - 0.35, y - 0.4) < 0.22) + 0.6 * (np.hypot(x - 0.7, y - 0.65) < 0.18)
    ring = 0.8 * (np.abs(np.hypot(x - 0.5, y - 0.5) - 0.45) < 0.02)
    noise = np.random.default_rng(0).normal(0, 0.15, (size, size))
    return (disks + ring + noise).astype(np.float32)


def main():
    """Filter, compare, draw."""
    image = picture()
    soft, strength = map(np.asarray, edges(image))
    reference = ndimage.convolve(image, BLUR, mode="constant")
    np.testing.assert_allclose(soft, reference, atol=1e-5)
    figure = Figure(figsize=(7.2, 2.6))
    shown = {"image": image, "blurred": soft, "strength of edges": strength}
    for axes, (title, pixels) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        axes.imshow(pixels, cmap="magma")
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
    return figure
