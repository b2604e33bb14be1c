"""Transforms and filters of signals and images."""

from __future__ import annotations

import cmath
import math

import numpy

from .registry import numbers, program


def radix_transform(np, x, radix):
    """Transform the first axis of ``radix ** k`` elements: decimation in time (Stockham's order).

    Each turn multiplies by twiddle factors, transforms the blocks of ``radix`` by a small product
    and lets a transpose do what bit reversal does elsewhere.
    """
    n = x.shape[0]
    turns = round(math.log(n, radix))
    small = np.exp(-2j * np.pi / radix * np.outer(np.arange(radix), np.arange(radix)))
    y = x.astype(small.dtype)
    for turn in range(turns):
        done = radix**turn
        rest = n // done // radix
        angles = np.outer(np.arange(radix), np.arange(done)) * (-2 * cmath.pi / (done * radix))
        twiddle = np.exp(1j * angles)[:, None, :]
        blocks = np.reshape(y, (radix, rest, done)) * twiddle
        mixed = np.reshape(small @ np.reshape(blocks, (radix, rest * done)), (radix, rest, done))
        y = np.reshape(np.transpose(mixed, (1, 0, 2)), (n,))
    return y


@program(test={"k": 4}, small={"k": 10}, large={"k": 16})
def fft_radix_2(m, k):
    """Transform of ``2 ** k`` complex numbers."""

    def run(re, im):
        out = radix_transform(m.numpy, re + 1j * im, 2)
        return out.real, out.imag

    return run, (numbers(2**k), numbers(2**k, seed=1))


@program(test={"k": 2}, small={"k": 5}, large={"k": 8})
def fft_radix_4(m, k):
    """Transform of ``4 ** k`` complex numbers."""

    def run(re, im):
        out = radix_transform(m.numpy, re + 1j * im, 4)
        return out.real, out.imag

    return run, (numbers(4**k), numbers(4**k, seed=1))


@program(test={"k": 3}, small={"k": 6}, large={"k": 12})
def fft_in_loop(m, k):
    """The same in a ``fori_loop``: shapes may not change, so each turn has all the angles."""
    np, loop = m.numpy, m.lax.fori_loop
    n = 2**k

    def run(re, im):
        x = re + 1j * im
        j = np.arange(n // 2)

        def turn(t, y):
            done = 2**t
            angle = np.exp(-1j * np.pi * (j % done) / done)
            upper, lower = y[: n // 2], y[n // 2 :] * angle
            # Results go to 2 * (j - j % done) + j % done, and done after it.
            place = 2 * j - j % done
            return y.at[place].set(upper + lower).at[place + done].set(upper - lower)

        out = loop(0, k, turn, x)
        return out.real, out.imag

    return run, (numbers(n), numbers(n, seed=1))


@program(test={"n": 12, "k": 7}, small={"n": 96, "k": 64}, large={"n": 720, "k": 480}, grad=True)
def recursive_filter(m, n, k):
    """Smooth an image by a recursion of second order along both axes, forth and back.

    Deriche (1990), Fast algorithms for low-level vision: the smoothing filter.
    """
    np, scan = m.numpy, m.lax.scan
    alpha = 0.25
    e = math.exp(-alpha)
    gain = (1 - e) ** 2 / (1 + 2 * alpha * e - e * e)
    a = gain, gain * e * (alpha - 1), gain * e * (alpha + 1), -gain * e * e
    b1, b2 = 2 * e, -e * e

    def rows(x):
        zero = np.zeros_like(x[0])

        def forth(carry, x):
            before, y1, y2 = carry
            y = a[0] * x + a[1] * before + b1 * y1 + b2 * y2
            return (x, y, y1), y

        def back(carry, x):
            x1, x2, y1, y2 = carry
            y = a[2] * x1 + a[3] * x2 + b1 * y1 + b2 * y2
            return (x, x1, y, y1), y

        _, down = scan(forth, (zero,) * 3, x)
        _, up = scan(back, (zero,) * 4, x, reverse=True)
        return down + up

    return (lambda x: rows(rows(x).T).T), (numbers(n, k),)


@program(test={"n": 30, "c": 3}, small={"n": 1000, "c": 8}, large={"n": 20_000, "c": 16}, grad=True)
def biquad_cascade(m, n, c):
    """Four sections of second order, one after another, on several channels (direct form II)."""
    np, scan = m.numpy, m.lax.scan

    def run(x, sections):
        def step(state, x):
            rows = []
            for (b0, b1, b2, a1, a2), (s1, s2) in zip(sections, state, strict=True):
                y = b0 * x + s1
                rows.append((b1 * x - a1 * y + s2, b2 * x - a2 * y))
                x = y
            return tuple(rows), x

        zero = np.zeros_like(x[0])
        return scan(step, ((zero, zero),) * 4, x)[1]

    poles = numpy.array([[0.2, 0.4, 0.2, -0.5, 0.1 * i] for i in range(4)])
    return run, (numbers(n, c), poles)


@program(test={"n": 40}, small={"n": 4000}, large={"n": 400_000}, grad=True)
def moving_windows(m, n):
    """Mean, deviation and largest value of a sliding window of 9 samples, by shifts."""
    np = m.numpy
    width = 9

    def run(x):
        views = np.stack([x[i : n - width + 1 + i] for i in range(width)])
        mean = views.mean(0)
        return mean, np.sqrt(((views - mean) ** 2).mean(0)), views.max(0)

    return run, (numbers(n),)


@program(
    test={"n": 16, "k": 14}, small={"n": 128, "k": 128}, large={"n": 1024, "k": 1024}, grad=True
)
def edges(m, n, k):
    """Sobel's gradient of an image, its size and direction, thinned along four directions."""
    np = m.numpy

    def run(x):
        at = lambda i, j: x[1 + i : n - 1 + i, 1 + j : k - 1 + j]  # noqa: E731
        gx = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1)
        gy = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)
        size = np.sqrt(gx * gx + gy * gy + 1e-12)
        octant = np.arctan2(gy, gx) * (4 / np.pi)
        flat = np.abs(np.abs(octant) - 2) > 1
        inner = size[1:-1, 1:-1]
        across = np.maximum(size[1:-1, 2:], size[1:-1, :-2])
        along = np.maximum(size[2:, 1:-1], size[:-2, 1:-1])
        return np.where(inner >= np.where(flat[1:-1, 1:-1], across, along), inner, 0.0)

    return run, (numbers(n, k),)


@program(test={"n": 5, "k": 4}, small={"n": 64, "k": 48}, large={"n": 720, "k": 480}, grad=True)
def smoothed_image(m, n, k):
    """Recursive smoothing forwards and backwards along both axes (Deriche, 1990)."""
    np, scan = m.numpy, m.lax.scan
    rate = 0.25
    e = math.exp(-rate)
    gain = (1 - e) ** 2 / (1 + 2 * rate * e - e * e)
    a = (gain, gain * e * (rate - 1), gain * e * (rate + 1), -gain * e * e)

    def along(x):
        zero = np.zeros_like(x[0])

        def down(state, x):
            last, y1, y2 = state
            y = a[0] * x + a[1] * last + 2 * e * y1 - e * e * y2
            return (x, y, y1), y

        def up(state, x):
            x1, x2, y1, y2 = state
            y = a[2] * x1 + a[3] * x2 + 2 * e * y1 - e * e * y2
            return (x, x1, y, y1), y

        forward = scan(down, (zero,) * 3, x)[1]
        return forward + scan(up, (zero,) * 4, x[::-1])[1][::-1]

    return (lambda x: along(along(x).T).T), (numbers(n, k),)
