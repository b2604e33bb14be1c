"""Trends, and spectra of segments of signals."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from operator import index
from typing import Any, cast

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import is_complex, to_complex, to_real
from ..numpy._promote import as_operand, promote_dtypes_inexact

__all__ = ["csd", "detrend", "istft", "stft", "welch"]


# ---- trends --------------------------------------------------------------------------------------


def _without_line(x: Array) -> Array:
    """Subtract the line of least squares along the last axis."""
    n = x.shape[-1]
    t = (np.arange(n) - (n - 1) / 2).astype(to_real(x.dtype))
    x = x - jnp.mean(x, -1, keepdims=True)
    slope = jnp.sum(x * t, -1, keepdims=True) / max(float(np.sum(t * t)), 1e-30)
    return x - slope * t


def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: None = None
) -> Array:
    """Subtract the mean, or lines of least squares, along an axis.

    Parameters
    ----------
    data : array
    axis : int
    type : {"linear", "constant"}
    bp : int or sequence of int
        Where one line ends and the next begins.
    overwrite_data : None
        Arrays are immutable.

    Raises
    ------
    ValueError
        For another type, ``overwrite_data``, or breaks outside the axis.
    """
    if overwrite_data is not None:
        raise ValueError("signal.detrend: overwrite_data must be None, as arrays are immutable.")
    if type not in ("linear", "constant"):
        raise ValueError(f"Trend type must be 'linear' or 'constant', got {type!r}.")
    (x,) = promote_dtypes_inexact(as_operand("signal.detrend", data))
    x = lax.convert_element_type(x, x.dtype)
    axis = range(x.ndim)[axis]
    if type == "constant":
        return x - jnp.mean(x, axis, keepdims=True)
    n = x.shape[axis]
    breaks = sorted({0, n, *map(int, np.atleast_1d(np.asarray(bp)))})
    if breaks[0] < 0 or breaks[-1] > n:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along given axis, got "
            f"{bp} of {n}."
        )
    x = jnp.moveaxis(x, axis, -1)
    parts = [_without_line(x[..., a:b]) for a, b in pairwise(breaks)]
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


_TRENDS: dict[Any, Callable[[Array], Array]] = {
    False: lambda x: x,
    "constant": lambda x: detrend(x, type="constant"),
    "linear": detrend,
}


# ---- segments ------------------------------------------------------------------------------------


#: Windows that are sums of cosines of multiples of an angle: their coefficients. SciPy has all of
#: them, and takes 0.7 s of the processor to import.
_COSINES = {"boxcar": (1.0,), "hann": (0.5, 0.5), "hamming": (0.54, 1 - 0.54)}


def _window(window: Any, size: int) -> np.ndarray:
    """Return a periodic window by its name, and what SciPy takes beside it."""
    terms = _COSINES.get(window) if isinstance(window, str) else None
    if terms is None:
        from scipy.signal import get_window  # which few programs need

        return cast("Any", get_window(window, size))
    if size == 1:
        return np.ones(1)
    angles = np.linspace(-np.pi, np.pi, size + 1)[:-1]
    return sum((a * np.cos(k * angles) for k, a in enumerate(terms)), np.zeros(size))


def _window_of(name: str, window: Any, nperseg: Any, longest: int, dtype: Any) -> tuple[Any, int]:
    """Return a window and its size: by name, or the array given."""
    if isinstance(window, str | tuple):
        size = longest if nperseg is None else min(index(nperseg), longest)
        if size < 1:
            raise ValueError(f"signal.{name}: nperseg must be a positive integer, got {nperseg}.")
        return jnp.asarray(_window(window, size).astype(dtype)), size
    window = jnp.asarray(window)
    if window.ndim != 1 or window.size > longest:
        raise ValueError(
            f"signal.{name}: window must be 1-D and no longer than the signal, got shape "
            f"{window.shape} for {longest} samples."
        )
    if nperseg is not None and index(nperseg) != window.size:
        raise ValueError(
            f"signal.{name}: nperseg is {nperseg}, but the window has length {window.size}."
        )
    return window.astype(dtype), window.size


def _overlap(name: str, noverlap: Any, nfft: Any, size: int) -> tuple[int, int]:
    noverlap = size // 2 if noverlap is None else index(noverlap)
    nfft = size if nfft is None else index(nfft)
    if not 0 <= noverlap < size:
        raise ValueError(
            f"signal.{name}: noverlap must be less than nperseg, got {noverlap} and {size}."
        )
    if nfft < size:
        raise ValueError(
            f"signal.{name}: nfft must be greater than or equal to nperseg, got {nfft} and {size}."
        )
    return noverlap, nfft


def _segments(x: Array, size: int, step: int) -> Array:
    """Return segments along a new axis before the last."""
    starts = np.arange(0, x.shape[-1] - size + 1, step)
    return x[..., starts[:, None] + np.arange(size)]


def _extended(x: Array, boundary: Any, n: int) -> Array:
    """Continue the last axis by ``n`` samples at both ends."""
    if boundary is None or not n:
        return x
    widths = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if boundary == "zeros":
        return jnp.pad(x, widths)
    how = {
        "even": ("reflect", {}),
        "odd": ("reflect", {"reflect_type": "odd"}),
        "constant": ("edge", {}),
    }
    mode, more = how[boundary]
    return jnp.pad(x, widths, mode, **more)


def _trend(name: str, kind: Any) -> Callable[[Array], Array]:
    if callable(kind):
        return cast("Callable[[Array], Array]", kind)
    if not isinstance(kind, str | bool) or kind not in _TRENDS:
        raise ValueError(
            f"signal.{name}: detrend must be False, 'constant', 'linear' or a function, got "
            f"{kind!r}."
        )
    return _TRENDS[kind]


def _transforms(
    name: str,
    signals: list[Array],
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    trend: Any,
    onesided: bool,
    boundary: Any = None,
    padded: bool = False,
) -> tuple[Array, list[Array], Array, int, int, bool, int]:
    """Return frequencies and the transforms of windowed segments, frequencies last."""
    dtype = to_real(signals[0].dtype)
    window, size = _window_of(name, window, nperseg, signals[0].shape[-1], dtype)
    noverlap, nfft = _overlap(name, noverlap, nfft, size)
    step = size - noverlap
    half = onesided and not any(is_complex(x.dtype) for x in signals)
    spectra = []
    for x in signals:
        x = _extended(x, boundary, size // 2)
        if padded and (extra := -(x.shape[-1] - size) % step):
            x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, extra)])
        x = _trend(name, trend)(_segments(x, size, step)) * window
        spectra.append((jnp.fft.rfft if half else jnp.fft.fft)(x, nfft))
    freqs = (jnp.fft.rfftfreq if half else jnp.fft.fftfreq)(nfft, 1 / fs, dtype=dtype)
    return freqs, spectra, window, size, step, half, nfft


def _signals(name: str, *xs: Any, axis: int) -> list[Array]:
    """Return signals in one dtype, time last."""
    same = promote_dtypes_inexact(*(as_operand(f"signal.{name}", x, k) for k, x in enumerate(xs)))
    return [jnp.moveaxis(lax.convert_element_type(x, x.dtype), axis, -1) for x in same]


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Return Fourier transforms of short segments of a signal.

    Parameters
    ----------
    x : array
    fs : scalar
        Samples per unit of time.
    window : str, tuple or array
        Name (and parameters) as SciPy knows it, or the window itself.
    nperseg : int
        Size of segments; at most the signal's.
    noverlap : int, optional
        How many samples neighbours share: half a segment where omitted.
    nfft : int, optional
        Size of transforms: segments are extended by zeros.
    detrend : False, "constant", "linear" or callable
        What is subtracted from each segment.
    return_onesided : bool
        Whether to leave out negative frequencies of real signals.
    boundary : {"zeros", "even", "odd", "constant", None}
        How the signal goes on at both ends, for half a segment.
    padded : bool
        Whether to append zeros until there are whole segments.
    axis : int
        Of time.

    Returns
    -------
    f : array
        Frequencies.
    t : array
        Times of the segments' middles.
    Zxx : complex array
        ``axis`` holds the frequencies, a last axis the segments; scaled so that a sine's peak is
        its amplitude.

    Raises
    ------
    ValueError
        For sizes that do not fit together, or an unknown name.
    """
    if boundary not in ("zeros", "even", "odd", "constant", None):
        raise ValueError(f"Unknown boundary option {boundary!r}.")
    x = jnp.asarray(x)
    axis = range(x.ndim)[axis]
    xs = _signals("stft", x, axis=axis)
    freqs, (z,), window, size, step, _, _ = _transforms(
        "stft", xs, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, boundary, padded
    )
    z = z / jnp.sum(window)
    middle = 0 if boundary is not None else size / 2
    times = (jnp.arange(z.shape[-2], dtype=freqs.dtype) * step + middle) / fs
    return freqs, times, jnp.moveaxis(jnp.swapaxes(z, -1, -2), -2, axis)


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Return the cross-spectral density of two signals, by Welch's method.

    Parameters
    ----------
    x, y : array
        Signals, of as many samples; the shorter is extended by zeros. None stands for ``x`` again.
    fs, window, noverlap, nfft, detrend, return_onesided, axis
        As of `stft`.
    nperseg : int, optional
        Size of segments; the window's, or all samples, where omitted (SciPy takes 256).
    scaling : {"density", "spectrum"}
        Power per unit of frequency, or power.
    average : {"mean", "median"}
        Of the segments' spectra; the median is corrected for its bias.

    Returns
    -------
    f : array
        Frequencies.
    Pxy : array
        ``axis`` holds the frequencies; real where ``y`` is None.

    Raises
    ------
    ValueError
        For sizes that do not fit together, or an unknown name.

    Notes
    -----
    Welch, "The use of the fast Fourier transform for the estimation of power spectra" (1967).
    """
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling!r}. Use 'density' or 'spectrum'.")
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    x = jnp.asarray(x)
    axis = range(x.ndim)[axis]
    signals = _signals("csd", *([x] if y is None or y is x else [x, y]), axis=axis)
    longest = max(s.shape[-1] for s in signals)
    signals = [jnp.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, longest - s.shape[-1])]) for s in signals]
    freqs, spectra, window, _, _, half, nfft = _transforms(
        "csd", signals, fs, window, nperseg, noverlap, nfft, detrend, return_onesided
    )
    power = jnp.conj(spectra[0]) * spectra[-1]
    if y is None:
        power = jnp.real(power)
    density = scaling == "density"
    power = power / (fs * jnp.sum(window * window) if density else jnp.sum(window) ** 2)
    if half:
        # Negative frequencies are left out: the others but the first (and the middle) count twice.
        twice = np.full(power.shape[-1], 2, freqs.dtype)
        twice[0] = 1
        if nfft % 2 == 0:
            twice[-1] = 1
        power = power * twice
    return freqs, jnp.moveaxis(_averaged(power, average), -1, axis)


def _averaged(power: Array, average: str) -> Array:
    """Average over the axis before the last."""
    n = power.shape[-2]
    if average == "mean":
        return jnp.mean(power, -2)
    # The median of n exponentially distributed numbers over their mean, for odd n.
    bias = 1 + np.sum(1 / np.arange(3, n + 1, 2) - 1 / np.arange(2, n, 2)[: (n - 1) // 2])
    if is_complex(power.dtype):
        parts = (jnp.median(part, -2) for part in (jnp.real(power), jnp.imag(power)))
        return lax.complex(*parts) / bias
    return jnp.median(power, -2) / bias


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Return the power spectral density of a signal, by Welch's method. As `csd`."""
    return csd(
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Return the signal whose transforms of short segments are given: the inverse of `stft`.

    Parameters
    ----------
    Zxx : array
        Transforms.
    fs, window, noverlap, nfft
        As of `stft`.
    nperseg : int, optional
        Size of segments; what the transforms' size tells where omitted.
    input_onesided, boundary : bool
        Whether `stft` left out negative frequencies, and continued the signal.
    time_axis, freq_axis : int

    Returns
    -------
    t, x : array
        Times of the samples, and samples: the least-squares estimate (Griffin and Lim 1984).

    Raises
    ------
    ValueError
        For a vector, equal axes, or sizes that do not fit together.
    """
    z = jnp.asarray(Zxx)
    if z.ndim < 2:
        raise ValueError(f"Input stft must be at least 2d, got shape {z.shape}.")
    axes = range(z.ndim)[freq_axis], range(z.ndim)[time_axis]
    if axes[0] == axes[1]:
        raise ValueError(f"Must specify differing time and frequency axes, got {axes}.")
    z = z.astype(to_complex(z.dtype))
    z = jnp.moveaxis(z, axes, (-1, -2))
    count = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    size = count if nperseg is None else index(nperseg)
    if nfft is None and input_onesided and size == count + 1:
        nfft = size  # an odd size, which the number of coefficients does not tell
    nfft = count if nfft is None else index(nfft)
    window, size = _window_of("istft", window, size, max(size, 1), to_real(z.dtype))
    noverlap, nfft = _overlap("istft", noverlap, nfft, size)
    step = size - noverlap
    back = jnp.fft.irfft(z, nfft) if input_onesided else jnp.fft.ifft(z, nfft)
    parts = back[..., :size] * window * jnp.sum(window)
    segments = parts.shape[-2]
    places = (np.arange(segments)[:, None] * step + np.arange(size)).ravel()
    length = size + (segments - 1) * step
    x = jnp.zeros((*parts.shape[:-2], length), parts.dtype)
    x = x.at[..., places].add(parts.reshape(*parts.shape[:-2], -1))
    weight = jnp.zeros(length, window.dtype).at[places].add(jnp.tile(window**2, segments))
    if boundary:
        x, weight = (v[..., size // 2 : length - size // 2] for v in (x, weight))
    x = x / jnp.where(weight > 1e-10, weight, 1)
    times = jnp.arange(x.shape[-1], dtype=window.dtype) / fs
    # The axis of frequencies is gone.
    frequency, time = axes
    return times, jnp.moveaxis(x, -1, time - (frequency < time))
