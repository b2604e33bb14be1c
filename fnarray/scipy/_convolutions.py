"""Convolutions and correlations of arrays of any rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import is_complex, lattice_result_type, to_inexact
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


def _slide(name: str, in1: Any, in2: Any, mode: str, precision: Any, mirror: bool) -> Array:
    """Convolve; with ``mirror``, correlate: ``in2`` is conjugated and reversed first."""
    x, y = _operands(name, in1, in2)
    _check_mode(name, mode)
    if not x.size or not y.size:
        raise ValueError(
            f"signal.{name}: zero-size arrays not supported, got shapes {x.shape} and {y.shape}."
        )
    if mirror:
        y = jnp.flip(jnp.conj(y))
    if not x.ndim:
        return x * y
    x, y = _larger(name, x, y, range(x.ndim))
    sizes = y.shape
    padding = {
        "full": [(n - 1, n - 1) for n in sizes],
        "same": [(n // 2, n - n // 2 - 1) for n in sizes],
        "valid": [(0, 0)] * x.ndim,
    }[mode]
    out = lax.conv_general_dilated(
        x[None, None], jnp.flip(y)[None, None], (1,) * x.ndim, padding, precision=precision
    )
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
        Every overlap; as many as the larger array has elements, centred; or whole overlaps only.
    method : {"auto", "direct", "fft"}
        "fft" is `fftconvolve`, in which a "same" result is as large as ``in1``; "auto" is "direct".
    precision : optional
        As of ``lax.conv_general_dilated``.

    Raises
    ------
    ValueError
        For another mode or method, ranks that differ, empty arrays, or arrays neither of which is
        the larger along every axis.
    """
    return _either("convolve", in1, in2, mode, method, precision, mirror=False)


def correlate(
    in1: Any, in2: Any, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """Return the correlation: sums of products of ``in1`` and the conjugate of a moved ``in2``.

    Parameters and errors are as of `convolve`.
    """
    return _either("correlate", in1, in2, mode, method, precision, mirror=True)


def _either(
    name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any, *, mirror: bool
) -> Array:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")
    if method != "fft":
        return _slide(name, in1, in2, mode, precision, mirror)
    return fftconvolve(in1, jnp.flip(jnp.conj(in2)) if mirror else in2, mode)


def _plane(name: str, in1: Any, in2: Any, mode: str, boundary: Any, fill: Any, **how: Any) -> Array:
    if boundary != "fill" or fill != 0:
        raise ValueError(
            f"signal.{name} takes boundary='fill' and fillvalue=0 only, got {boundary!r} and "
            f"{fill!r}. Pad the array, and convolve in mode 'valid'."
        )
    if jnp.ndim(in1) != 2 or jnp.ndim(in2) != 2:
        raise ValueError(f"signal.{name}() only supports 2-dimensional inputs.")
    return _slide(name, in1, in2, mode, **how)


def convolve2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Return `convolve` of two matrices; beyond the boundary there are zeros."""
    return _plane(
        "convolve2d", in1, in2, mode, boundary, fillvalue, precision=precision, mirror=False
    )


def correlate2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Return `correlate` of two matrices; beyond the boundary there are zeros."""
    return _plane(
        "correlate2d", in1, in2, mode, boundary, fillvalue, precision=precision, mirror=True
    )


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
    dtype = to_inexact(lattice_result_type([(x.dtype, False)])[0])
    wide = jnp.float32 if dtype.itemsize < 4 else dtype
    x, y = (v.astype(wide) for v in (x, y))
    out = back(forward(x, full, axes) * forward(y, full, axes), full, axes).astype(dtype)
    for k, n in zip(axes, full, strict=True):
        size = {"full": n, "same": x.shape[k], "valid": x.shape[k] - y.shape[k] + 1}[mode]
        low = (n - size) // 2
        out = lax.slice_in_dim(out, low, low + size, axis=k)
    return out
