"""Convolutions and correlations of arrays of any rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import is_complex, to_single
from ..numpy._promote import as_operand, promote_dtypes_inexact

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

_MODES = ("full", "same", "valid")


def _check_mode(name: str, mode: Any) -> None:
    if mode not in _MODES:
        raise ValueError(f"signal.{name}: mode must be one of {', '.join(_MODES)}, got {mode!r}.")


def _operands(name: str, in1: Any, in2: Any) -> tuple[Array, Array]:
    x, y = promote_dtypes_inexact(
        as_operand(f"signal.{name}", in1, 0), as_operand(f"signal.{name}", in2, 1)
    )
    if x.ndim != y.ndim:
        raise ValueError(
            f"signal.{name}: in1 and in2 must have the same number of dimensions, got shapes "
            f"{x.shape} and {y.shape}."
        )
    return x, y


def _larger(name: str, x: Array, y: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Return the two, the one that is larger along every axis first."""
    if all(x.shape[k] >= y.shape[k] for k in axes):
        return x, y
    if all(x.shape[k] <= y.shape[k] for k in axes):
        return y, x
    raise ValueError(
        f"signal.{name}: one input must be at least as large as the other in every dimension, got "
        f"shapes {x.shape} and {y.shape}."
    )


def _slide(name: str, in1: Any, in2: Any, mode: str, precision: Any, *, late: bool) -> Array:
    """Convolve directly; ``late`` centres a "same" result half a step later, for even sizes."""
    x, y = _operands(name, in1, in2)
    _check_mode(name, mode)
    if not x.size or not y.size:
        raise ValueError(
            f"signal.{name}: zero-size arrays not supported, got shapes {x.shape} and {y.shape}."
        )
    if not x.ndim:
        return x * y
    if mode == "valid":
        x, y = _larger(name, x, y, range(x.ndim))
    elif mode == "full" and x.size < y.size:
        x, y = y, x
    first = [
        n - 1 if mode == "full" else 0 if mode == "valid" else (n - late) // 2 for n in y.shape
    ]
    last = [p if mode != "same" else n - 1 - p for n, p in zip(y.shape, first, strict=True)]
    padding = list(zip(first, last, strict=True))
    kernel = jnp.flip(y)[None, None]
    strides = (1,) * x.ndim
    out = lax.conv_general_dilated(x[None, None], kernel, strides, padding, precision=precision)
    return out[0, 0]


def convolve(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """Return the convolution of two arrays of one rank.

    Parameters
    ----------
    in1, in2 : array
        Integers become floats.
    mode : {"full", "same", "valid"}
        Every overlap; as many as ``in1`` has elements, centred; or whole overlaps only.
    method : {"auto", "direct", "fft"}
        "fft" is `fftconvolve`; "auto" is "direct".
    precision : optional
        As of ``lax.conv_general_dilated``.

    Raises
    ------
    ValueError
        For another mode or method, ranks that differ, empty arrays, or in mode "valid" arrays
        neither of which is the larger along every axis.
    """
    _check_method(method)
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    return _slide("convolve", in1, in2, mode, precision, late=False)


def correlate(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """Return the correlation: sums of products of ``in1`` and the conjugate of a moved ``in2``.

    Parameters and errors are as of `convolve`.
    """
    _check_method(method)
    if method == "fft":
        return fftconvolve(in1, jnp.flip(jnp.conj(in2)), mode)
    x, y = _operands("correlate", in1, in2)
    return _slide("correlate", x, jnp.flip(jnp.conj(y)), mode, precision, late=False)


def _check_method(method: Any) -> None:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")


def _matrices(name: str, in1: Any, in2: Any, boundary: Any, fill: Any) -> tuple[Array, Array]:
    if boundary != "fill" or fill != 0:
        raise NotImplementedError(
            f"signal.{name} takes boundary='fill' and fillvalue=0 only, got {boundary!r} and "
            f"{fill!r}. Pad the array, and convolve in mode 'valid'."
        )
    x, y = _operands(name, in1, in2)
    if x.ndim != 2:
        raise ValueError(f"signal.{name}() only supports 2-dimensional inputs, got {x.shape}.")
    return x, y


def convolve2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Return `convolve` of two matrices; beyond the boundary there are zeros."""
    x, y = _matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _slide("convolve2d", x, y, mode, precision, late=False)


def correlate2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Return `correlate` of two matrices; beyond the boundary there are zeros.

    As in SciPy, of matrices of even sizes a "same" result starts one further than `correlate`'s,
    and a "valid" one of a larger ``in2`` is the conjugate.
    """
    x, y = _matrices("correlate2d", in1, in2, boundary, fillvalue)
    out = _slide("correlate2d", x, jnp.flip(jnp.conj(y)), mode, precision, late=True)
    swapped = mode == "valid" and any(m < n for m, n in zip(x.shape, y.shape, strict=True))
    return jnp.conj(out) if swapped else out


def fftconvolve(
    in1: Any, in2: Any, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """Return the convolution of two arrays, by way of their Fourier transforms.

    Parameters
    ----------
    in1, in2 : array
    mode : {"full", "same", "valid"}
        Every overlap; as many as ``in1`` has elements, centred; or whole overlaps only.
    axes : int or sequence of int, optional
        Along which to convolve, all where omitted; the others must be equal, and are kept apart.

    Raises
    ------
    ValueError
        For another mode, ranks or other axes that differ, or in mode "valid" arrays neither of
        which is the larger.
    """
    x, y = _operands("fftconvolve", in1, in2)
    _check_mode("fftconvolve", mode)
    given = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    axes = tuple(sorted(range(x.ndim)[k] for k in given))
    if any(x.shape[k] != y.shape[k] for k in range(x.ndim) if k not in axes):
        raise ValueError(
            "signal.fftconvolve: axes that are not convolved must have the same sizes, got shapes "
            f"{x.shape} and {y.shape}, axes {axes}."
        )
    if mode == "valid":
        x, y = _larger("fftconvolve", x, y, axes)
    if not axes:
        return x * y
    full = tuple(x.shape[k] + y.shape[k] - 1 for k in axes)
    forward, back = jnp.fft.rfftn, jnp.fft.irfftn
    if is_complex(x.dtype):
        forward, back = jnp.fft.fftn, jnp.fft.ifftn
    dtype = x.dtype
    x, y = (v.astype(to_single(dtype)) for v in (x, y))
    out = back(forward(x, full, axes) * forward(y, full, axes), full, axes).astype(dtype)
    for k, n in zip(axes, full, strict=True):
        size = {"full": n, "same": x.shape[k], "valid": x.shape[k] - y.shape[k] + 1}[mode]
        low = (n - size) // 2
        out = lax.slice_in_dim(out, low, low + size, axis=k)
    return out
