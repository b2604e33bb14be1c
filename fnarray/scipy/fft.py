"""Cosine transforms as ``jax.scipy.fft`` names them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import is_complex
from ..nn._args import inexact_operands

__all__ = ["dct", "dctn", "idct", "idctn"]
__dir__ = __all__.copy


def _operand(name: str, x: Any, type: Any, norm: Any) -> Array:
    if type != 2:
        raise ValueError(f"scipy.fft.{name}: type must be 2, got {type}.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"scipy.fft.{name}: norm must be None or 'ortho', got {norm!r}.")
    (x,) = inexact_operands(name, x)
    return lax.convert_element_type(x, x.dtype)


def _sized(name: str, x: Array, n: Any, axis: int) -> Array:
    """Crop an axis, or append zeros to it."""
    n = x.shape[axis] if n is None else index(n)
    if n <= 0:
        raise ValueError(f"scipy.fft.{name}: sizes must be positive, got {n} along axis {axis}.")
    edges = [(0, 0, 0)] * x.ndim
    edges[axis] = (0, n - x.shape[axis], 0)
    return x if n == x.shape[axis] else lax.pad(x, x.dtype.type(0), edges)


def _quarter_turns(x: Array, sign: float) -> Array:
    """``exp(sign * i * pi * k / 2n)`` along the last axis."""
    n = x.shape[-1]
    kind = np.complex128 if x.dtype == np.float64 else np.complex64
    return jnp.asarray(np.exp(sign * 0.5j * np.pi * np.arange(n) / n).astype(kind))


def _lengths(x: Array) -> Array:
    """Lengths of the transform's rows, which orthonormal ones are divided by."""
    n = x.shape[-1]
    lengths = np.full(n, np.sqrt(2 * n))
    lengths[0] = np.sqrt(4 * n)
    return jnp.asarray(lengths.astype(x.dtype))


def _dct(x: Array, norm: Any) -> Array:
    """By one transform of the even places and, backwards, the odd ones (Makhoul 1980)."""
    v = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    out = 2 * jnp.real(jnp.fft.fft(v) * _quarter_turns(x, -1))
    return out / _lengths(x) if norm == "ortho" else out


def _idct(x: Array, norm: Any) -> Array:
    n = x.shape[-1]
    if norm == "ortho":
        x = x * _lengths(x)
    # The last coefficients, backwards, are the imaginary parts: zero for the first.
    backwards = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :0:-1]], -1)
    v = jnp.real(jnp.fft.ifft(lax.complex(x, -backwards) * _quarter_turns(x, 1))) / 2
    half = (n + 1) // 2
    odd = jnp.concatenate([v[..., half:][..., ::-1], jnp.zeros_like(v[..., : n % 2])], -1)
    return jnp.stack([v[..., :half], odd], -1).reshape(*x.shape[:-1], 2 * half)[..., :n]


def _along(transform: Any, x: Array, axis: int, norm: Any) -> Array:
    x = jnp.moveaxis(x, axis, -1)
    if is_complex(x.dtype):
        out = lax.complex(transform(jnp.real(x), norm), transform(jnp.imag(x), norm))
    else:
        out = transform(x, norm)
    return jnp.moveaxis(out, -1, axis)


def _one(name: str, transform: Any, x: Any, type: int, n: Any, axis: int, norm: Any) -> Array:
    x = _operand(name, x, type, norm)
    axis = range(x.ndim)[axis]
    return _along(transform, _sized(name, x, n, axis), axis, norm)


def _several(name: str, transform: Any, x: Any, type: int, s: Any, axes: Any, norm: Any) -> Array:
    x = _operand(name, x, type, norm)
    sizes = None if s is None else tuple(s) if np.iterable(s) else (s,)
    if axes is None:
        axes = range(x.ndim)[x.ndim - len(sizes) :] if sizes is not None else range(x.ndim)
    axes = [range(x.ndim)[a] for a in (axes if np.iterable(axes) else (axes,))]
    if len(set(axes)) != len(axes) or (sizes is not None and len(sizes) != len(axes)):
        raise ValueError(
            f"scipy.fft.{name}: axes must be distinct, and as many as sizes; got {axes}, {sizes}."
        )
    for axis, n in zip(axes, sizes or [None] * len(axes), strict=True):
        x = _sized(name, x, n, axis)
    for axis in axes:
        x = _along(transform, x, axis, norm)
    return x


def dct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the discrete cosine transform of type 2 along an axis.

    Parameters
    ----------
    x : array
        Parts of complex numbers are transformed apart.
    type : {2}
    n : int, optional
        Size: ``x`` is cropped, or zeros are appended to it.
    axis : int
    norm : {None, "backward", "ortho"}
        Whether the transform is made orthonormal.

    Raises
    ------
    ValueError
        For another type or norm, or a size that is not positive.
    IndexError
        For an axis out of range.
    """
    return _one("dct", _dct, x, type, n, axis, norm)


def idct(
    x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the inverse of `dct`, which has its parameters."""
    return _one("idct", _idct, x, type, n, axis, norm)


def dctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return `dct` along several axes: those given, else the last ones that have sizes, else all.

    ``s`` are sizes along the axes; other parameters are as of `dct`.
    """
    return _several("dctn", _dct, x, type, s, axes, norm)


def idctn(
    x: Any,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the inverse of `dctn`, which has its parameters."""
    return _several("idctn", _idct, x, type, s, axes, norm)
