"""Discrete Fourier transforms as ``jax.numpy.fft`` names them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from operator import index
from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import canonicalize_dtype, finfo, is_complex, to_inexact
from ..core.eager import replayed
from ..lax import FftType
from ..ops.kit.calls import const
from ._ranges import arange
from ._shape import array_of, axes_of, axis_of, moveaxis, roll

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
__dir__ = __all__.copy

# ---- the transform -------------------------------------------------------------------------------

#: What the other convention of the inverse's factor is called, by each.
_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _check_norm(name: str, norm: Any) -> None:
    if norm not in _SWAPPED:
        raise ValueError(
            f'numpy.fft.{name}: invalid norm value {norm}; should be "backward", "ortho" or '
            '"forward".'
        )


def _factor(norm: str | None, kind: FftType, count: int) -> float:
    """Return the factor of a result: the inverse has already been divided by the count."""
    if norm in (None, "backward"):
        return 1.0
    share = 1 / (sqrt(count) if norm == "ortho" else count)
    return 1 / share if kind in (FftType.IFFT, FftType.IRFFT) else share


def _sizes(name: str, s: Any, axes: Any) -> tuple[int, ...] | None:
    if s is None:
        return None
    s = tuple(map(index, s))
    if any(n <= 0 for n in s):
        raise ValueError(f"numpy.fft.{name}: Shape should be positive, got {s}.")
    if axes is not None and len(axes) != len(s):
        raise ValueError(
            f"numpy.fft.{name}: Shape and axes have different lengths, got {s} and {axes}."
        )
    return s


def _fitted(x: Array, sizes: Sequence[int]) -> Array:
    """Crop the last axes, or append zeros to them."""
    given = x.shape[x.ndim - len(sizes) :]
    if given == tuple(sizes):
        return x
    edges = [(0, n - m, 0) for n, m in zip(sizes, given, strict=True)]
    return lax.pad(x, const(x, 0), [(0, 0, 0)] * (x.ndim - len(sizes)) + edges)


def _transform(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Array:
    x = array_of(f"fft.{name}", a)
    s = _sizes(name, s, axes)
    _check_norm(name, norm)
    if axes is None:
        axes = range(x.ndim - len(s), x.ndim) if s is not None else range(x.ndim)
    axes = axes_of(f"fft.{name}", tuple(axes), x.ndim)
    last = tuple(range(x.ndim - len(axes), x.ndim))
    x = moveaxis(x, axes, last)
    half = kind == FftType.IRFFT
    if s is None:
        s = x.shape[x.ndim - len(axes) :]
        if half and s:
            s = (*s[:-1], max(0, 2 * (s[-1] - 1)))
        if half and s and not s[-1]:
            raise ValueError(
                f"numpy.fft.{name}: Invalid number of data points ({s[-1]}) of the result along "
                f"the last axis, from shape {x.shape}. Give its size."
            )
    elif s:
        x = _fitted(x, (*s[:-1], s[-1] // 2 + 1) if half else s)
    out = lax.fft(x, kind, s)
    factor = _factor(norm, kind, prod(s))
    if factor != 1:
        out = lax.mul(out, const(out, factor))
    return moveaxis(out, last, axes)


def _along(name: str, kind: FftType, a: Any, n: Any, axis: Any, norm: str | None) -> Array:
    if np.iterable(axis):
        raise ValueError(
            f"numpy.fft.{name} does not support multiple axes. Use numpy.fft.{name}n. "
            f"Got axis = {axis}."
        )
    return _transform(name, kind, a, None if n is None else (n,), (axis,), norm)


def _two(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None) -> Array:
    if len(axes) != 2:
        raise ValueError(f"numpy.fft.{name} only supports 2 axes. Got axes = {axes}.")
    return _transform(name, kind, a, s, axes, norm)


# ---- one axis ------------------------------------------------------------------------------------


@replayed
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    a : array
        Real numbers are taken as complex.
    n : int, optional
        Size of the result: ``a`` is cropped, or zeros are appended to it.
    axis : int
    norm : {None, "backward", "ortho", "forward"}
        Whether the inverse, both or the forward transform carries the factor.

    Returns
    -------
    array
        complex64, or complex128 for 64-bit operands.

    Raises
    ------
    ValueError
        For a size that is not positive, an axis out of range, several axes, or another norm.
    """
    return _along("fft", FftType.FFT, a, n, axis, norm)


@replayed
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `fft`, which has its parameters."""
    return _along("ifft", FftType.IFFT, a, n, axis, norm)


@replayed
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the transform of real numbers: coefficients 0 to ``n // 2``, the rest follow.

    Parameters are as of `fft`; complex numbers raise `ValueError`.
    """
    return _along("rfft", FftType.RFFT, a, n, axis, norm)


@replayed
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `rfft`: real numbers, ``n`` of them (by default an even number).

    Parameters are as of `fft`.
    """
    return _along("irfft", FftType.IRFFT, a, n, axis, norm)


@replayed
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the real transform of numbers whose negative half is the conjugate of the positive.

    Parameters are as of `fft`; ``n`` is the size of the result.
    """
    x = array_of("fft.hfft", a)
    _check_norm("hfft", norm)
    conj = lax.conj(x) if is_complex(x.dtype) else x
    return _along("hfft", FftType.IRFFT, conj, n, axis, _SWAPPED[norm])


@replayed
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Return the inverse of `hfft`, of real numbers. Parameters are as of `fft`."""
    _check_norm("ihfft", norm)
    return lax.conj(_along("ihfft", FftType.RFFT, a, n, axis, _SWAPPED[norm]))


# ---- several axes --------------------------------------------------------------------------------


@replayed
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return the discrete Fourier transform along several axes.

    Parameters
    ----------
    a : array
    s : sequence of int, optional
        Sizes of the result along them.
    axes : sequence of int, optional
        The last as many as there are sizes; all, where these are omitted too.
    norm : {None, "backward", "ortho", "forward"}
        As of `fft`.

    Raises
    ------
    ValueError
        For sizes that are not positive or not as many as axes, or axes out of range or repeated.
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm)


@replayed
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return the inverse of `fftn`, which has its parameters."""
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm)


@replayed
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return `rfft` along the last of several axes, `fft` along the others. As `fftn`."""
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm)


@replayed
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Array:
    """Return the inverse of `rfftn`: real numbers. Parameters are as of `fftn`."""
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm)


@replayed
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return `fftn` along two axes."""
    return _two("fft2", FftType.FFT, a, s, axes, norm)


@replayed
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return `ifftn` along two axes."""
    return _two("ifft2", FftType.IFFT, a, s, axes, norm)


@replayed
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return `rfftn` along two axes."""
    return _two("rfft2", FftType.RFFT, a, s, axes, norm)


@replayed
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Array:
    """Return `irfftn` along two axes."""
    return _two("irfft2", FftType.IRFFT, a, s, axes, norm)


# ---- frequencies ---------------------------------------------------------------------------------


def _frequencies(name: str, n: Any, d: Any, dtype: Any, low: int, count: int) -> Array:
    for what, value in (("n", n), ("d", d)):
        if isinstance(value, list | tuple):
            raise ValueError(f"numpy.fft.{name}: {what} must be a single value, got {value}.")
    out = canonicalize_dtype(float if dtype is None else dtype)
    working = finfo(to_inexact(out)).dtype
    steps = lax.convert_element_type(arange(low, low + count), working)
    span = lax.convert_element_type(lax.convert_element_type(d, working) * n, working)
    freqs = lax.div(steps, lax.broadcast(span, steps.shape))
    return lax.convert_element_type(freqs, out)


def fftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of the coefficients of `fft`, in cycles per unit of ``d``.

    Parameters
    ----------
    n : int
        Size of the transform.
    d : scalar
        Distance of samples.
    dtype : dtype-like, optional
        The default float where omitted.
    device : optional
        Accepted for compatibility.

    Raises
    ------
    ValueError
        ``n`` or ``d`` is a sequence.
    """
    if isinstance(n, list | tuple):
        return _frequencies("fftfreq", n, d, dtype, 0, 0)
    n = index(n)
    return roll(_frequencies("fftfreq", n, d, dtype, -(n // 2), n), -(n // 2))


def rfftfreq(n: int, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of the coefficients of `rfft`. Parameters are as of `fftfreq`."""
    if isinstance(n, list | tuple):
        return _frequencies("rfftfreq", n, d, dtype, 0, 0)
    return _frequencies("rfftfreq", index(n), d, dtype, 0, index(n) // 2 + 1)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Array:
    x = array_of(f"fft.{name}", x)
    if axes is None:
        axes = range(x.ndim)
    axes = tuple(
        axis_of(f"fft.{name}", a, x.ndim) for a in (axes if np.iterable(axes) else (axes,))
    )
    halves = tuple(x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in axes)
    return roll(x, halves, axes)


def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Array:
    """Move frequency 0 from the front to the middle, along one, several or all axes."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Array:
    """Undo `fftshift`."""
    return _shifted("ifftshift", x, axes, -1)
