"""``scipy.signal`` beside JAX's and SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import fnarray
from fnarray import numpy as jnp
from fnarray.scipy import _spectra
from fnarray.scipy import signal as ours

from ..oracle import in_one

theirs = pytest.importorskip("jax.scipy.signal")

RNG = np.random.default_rng(3)
WIDE = RNG.standard_normal((7, 9)).astype("f4")
SMALL = RNG.standard_normal((3, 4)).astype("f4")
COMPLEX = WIDE[:5, :6] + 1j * WIDE[1:6, :6]
PAIRS = {"larger": (WIDE, SMALL), "smaller": (SMALL, WIDE), "complex": (SMALL, COMPLEX)}
LONG = RNG.standard_normal((2, 500)).astype("f4")
OTHER = RNG.standard_normal((2, 500)).astype("f4")


def compare(name, *args, oracle=theirs, **settings):
    """Assert that all results are those of another module."""
    got = getattr(ours, name)(*args, **settings)
    evaluate = in_one if oracle is theirs else lambda f: f()
    want = evaluate(lambda: getattr(oracle, name)(*args, **settings))
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        assert oracle is scipy.signal or g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5 * max(1, np.abs(w).max()))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate", "convolve2d", "correlate2d"])
@pytest.mark.parametrize("pair", PAIRS)
def test_convolutions(name, mode, pair):
    """Values are SciPy's, dtypes JAX's."""
    compare(name, *PAIRS[pair], mode=mode, oracle=scipy.signal)
    if pair == "larger":
        compare(name, *PAIRS[pair], mode=mode)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_fast_convolutions(mode):
    """By Fourier transforms, of all axes or some, values are SciPy's."""
    for pair in PAIRS.values():
        compare("fftconvolve", *pair, mode=mode, oracle=scipy.signal)
        compare("correlate", *pair, mode=mode, method="fft", oracle=scipy.signal)
    compare("fftconvolve", WIDE[:3], SMALL, mode=mode, axes=1, oracle=scipy.signal)


@pytest.mark.parametrize("settings", [{}, {"type": "constant"}, {"bp": [3, 5]}, {"axis": 0}])
def test_detrend(settings):
    """Values are JAX's."""
    compare("detrend", WIDE, **settings)


STFT = [
    {},
    {"fs": 10.0, "nperseg": 63, "noverlap": 20},
    {"nfft": 300},
    {"window": "hamming", "nperseg": 50, "detrend": "linear"},
    {"boundary": None, "padded": False},
    {"boundary": "even"},
    {"boundary": "odd"},
    {"boundary": "constant"},
    {"return_onesided": False},
]


@pytest.mark.parametrize("settings", STFT)
def test_short_transforms(settings):
    """Values are SciPy's, and JAX's where the signal goes on by zeros."""
    compare("stft", LONG, oracle=scipy.signal, **settings)
    if "boundary" not in settings:
        compare("stft", LONG, **settings)


@pytest.mark.parametrize("name", ["boxcar", "hann", "hamming"])
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_windows_are_scipys(name, size):
    """Those that take no import of SciPy are its own, but for a rounding."""
    want = scipy.signal.get_window(name, size)
    np.testing.assert_allclose(_spectra._window(name, size), want, rtol=1e-13, atol=1e-16)


def test_axis_of_time():
    """Time may be along any axis."""
    compare("stft", LONG.T, axis=0, nperseg=64, oracle=scipy.signal)
    compare("welch", LONG.T, axis=0, nperseg=32, oracle=scipy.signal)


@pytest.mark.parametrize("settings", [{}, {"nperseg": 64}, {"nperseg": 63, "noverlap": 40}])
def test_short_transforms_and_back(settings):
    """The inverse gives the signal again."""
    _, _, z = ours.stft(LONG, **settings)
    _, back = ours.istft(z, **settings)
    np.testing.assert_allclose(back[:, : LONG.shape[1]], LONG, atol=1e-5)
    _, back = ours.istft(z.transpose(2, 0, 1), time_axis=0, freq_axis=-1, **settings)
    np.testing.assert_allclose(back[: LONG.shape[1]].T, LONG, atol=1e-5)


SPECTRA = [
    {},
    {"fs": 10.0, "nperseg": 63},
    {"scaling": "spectrum", "nperseg": 64, "nfft": 100},
    {"average": "median", "nperseg": 64},
    {"average": "median", "nperseg": 80, "detrend": "linear"},
    {"detrend": False, "window": "boxcar"},
    {"return_onesided": False, "nperseg": 64},
]


@pytest.mark.parametrize("settings", SPECTRA)
def test_power_spectra(settings):
    """Values are JAX's, of one signal and of two."""
    compare("welch", LONG, **settings)
    compare("csd", LONG, OTHER, **settings)


def test_spectra_are_compiled_and_differentiated():
    """The power of all frequencies has the gradient that differences say."""
    power = lambda x: ours.welch(x, nperseg=16)[1].sum()  # noqa: E731
    x = jnp.asarray(LONG[0, :64])
    slope = fnarray.jit(fnarray.grad(power))(x) @ jnp.ones(64)
    want = (power(x + 0.05) - power(x - 0.05)) / 0.1
    np.testing.assert_allclose(slope, want, atol=1e-3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ours.convolve(WIDE, SMALL, "most"), "mode"),
        (lambda: ours.convolve(WIDE, SMALL, method="slow"), "method"),
        (lambda: ours.convolve(WIDE, SMALL[0]), "dimensions"),
        (lambda: ours.convolve(WIDE, SMALL.T[:, :0]), "zero-size"),
        (lambda: ours.convolve(WIDE, np.ones((9, 1)), "valid"), "at least as large"),
        (lambda: ours.convolve2d(WIDE[0], SMALL[0]), "2-dimensional"),
        (lambda: ours.fftconvolve(WIDE, SMALL, axes=1), "same sizes"),
        (lambda: ours.detrend(WIDE, type="cubic"), "Trend type"),
        (lambda: ours.detrend(WIDE, bp=99), "Breakpoints"),
        (lambda: ours.stft(LONG, nperseg=64, noverlap=64), "noverlap"),
        (lambda: ours.stft(LONG, nperseg=64, nfft=32), "nfft"),
        (lambda: ours.stft(LONG, boundary="torus"), "boundary"),
        (lambda: ours.stft(LONG, window=np.ones((2, 2))), "window"),
        (lambda: ours.welch(LONG, scaling="loud"), "scaling"),
        (lambda: ours.welch(LONG, average="mode"), "average"),
        (lambda: ours.welch(LONG, detrend="cubic"), "detrend"),
        (lambda: ours.istft(LONG[0]), "2d"),
        (lambda: ours.istft(LONG, time_axis=0, freq_axis=0), "axes"),
    ],
)
def test_errors(call, text):
    """What does not fit is refused by name."""
    with pytest.raises(ValueError, match=text):
        call()


def test_boundaries_are_zeros():
    """Other boundaries are not there, which JAX says by this class of error too."""
    with pytest.raises(NotImplementedError, match="boundary"):
        ours.convolve2d(WIDE, SMALL, boundary="wrap")
