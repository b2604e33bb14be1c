"""A chirp and a tone, taken apart by short Fourier transforms."""

import numpy as np
from matplotlib.figure import Figure
from scipy import signal

import fnarray as fa
import fnarray.numpy as jnp
from fnarray.scipy.signal import stft

RATE = 2000


@fa.jit
def power(x):
    """Return decibels by frequency and time."""
    spectrum = stft(x, fs=RATE, nperseg=128)[2]
    return 20 * jnp.log10(jnp.abs(spectrum) + 1e-4)


def main():
    """Transform, compare, draw."""
    t = np.arange(2 * RATE, dtype=np.float32) / RATE
    x = np.sin(2 * np.pi * (50 * t + 175 * t**2)) + 0.3 * np.sin(2 * np.pi * 700 * t)
    x = x.astype(np.float32)
    shown = np.asarray(power(x))
    reference = signal.stft(x, fs=RATE, nperseg=128)[2]
    np.testing.assert_allclose(shown, 20 * np.log10(np.abs(reference) + 1e-4), atol=0.2)
    figure = Figure(figsize=(6.8, 3.2))
    axes = figure.subplots()
    axes.imshow(shown, origin="lower", aspect="auto", extent=(0, 2, 0, RATE / 2), cmap="magma")
    axes.set_xlabel("seconds")
    axes.set_ylabel("hertz")
    return figure
