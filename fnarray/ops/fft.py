"""Discrete Fourier transforms along the last axes.

NumPy's pocketfft evaluates small ones and few real lines, SciPy's others, in single precision too.
Compiled programs have kernels for large sizes that are products of small primes, and in loops for
all of these; they call pocketfft for others (decisions 0165, 0185).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from importlib import import_module
from math import log2, prod
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import is_complex, to_complex, to_inexact, to_real
from ..core.forms import HOST, KernelRef, Library
from ..core.libraries import library
from ..core.tangents import Undefined
from ..core.trace import bind
from .kit.calls import conj, convert, mul, real
from .kit.canonical import as_array, canonical_ints
from .kit.declare import kernel_call
from .kit.matrix import extend
from .kit.rules import LINEAR, one_more_axis

__all__ = ["FftType", "fft"]


class FftType(IntEnum):
    """Kinds of transform."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def _aval(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    rank = len(fft_lengths)
    if rank > x.ndim:
        raise ValueError(
            f"lax.fft: {fft_type.name} input shape {x.shape} must have at least as many input "
            f"dimensions as fft_lengths {fft_lengths}."
        )
    if not rank:
        return x
    lead, sizes, wanted = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :], fft_lengths
    half = (*wanted[:-1], wanted[-1] // 2 + 1)
    inverse = fft_type == FftType.IRFFT
    if sizes != (half if inverse else wanted):
        raise ValueError(
            f"lax.fft: {fft_type.name} with fft_lengths {fft_lengths} takes an operand whose last "
            f"axes are {half if inverse else wanted}, got shape {x.shape}. Slice or pad it, or use "
            "fnarray.numpy.fft."
        )
    if inverse:
        return ShapedArray((*lead, *wanted), to_real(x.dtype))
    out = half if fft_type == FftType.RFFT else sizes
    return ShapedArray((*lead, *out), to_complex(x.dtype))


def _eval(x: np.ndarray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> np.ndarray:
    rank = len(fft_lengths)
    if not rank:
        return x
    if not x.size:
        aval = _aval(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(aval.shape, aval.dtype)
    if x.size <= _SMALL or _is_few_real(fft_type, prod(x.shape[:-1]), fft_lengths, x.dtype):
        for loop, scale, axis, kept, dtype in _loops(fft_type, fft_lengths, x.dtype):
            if axis == -1:
                x = loop(x, scale, out=np.empty((*x.shape[:-1], kept), dtype))
            else:
                x = loop(x, scale, axes=[(axis,), (), (axis,)], out=np.empty_like(x))
        return x
    scipy_fft = library("scipy.fft")
    names = {FftType.FFT: "fftn", FftType.IFFT: "ifftn", FftType.RFFT: "rfftn"}
    transform = getattr(scipy_fft, names.get(fft_type, "irfftn"))
    sizes = fft_lengths if fft_type == FftType.IRFFT else None
    return np.ascontiguousarray(transform(x, sizes, axes=tuple(range(-rank, 0))))


#: Arrays of up to so many elements are transformed by NumPy, whose import takes 1 ms where SciPy's
#: takes 160. More lines SciPy transforms in vectors, in 0.6 of the time.
_SMALL = 1 << 12


def _is_few_real(
    fft_type: FftType, count: int, fft_lengths: tuple[int, ...], dtype: np.dtype
) -> bool:
    """Whether lines of real numbers, or what they come from, are too few for kernels.

    These take one or two as complex ones, where pocketfft takes half of one: 16 lines of 4,096 150
    us and 73 (JAX 118), 5 of 1,000 20 and 10 (14). In single precision two long ones take 0.6 to
    0.85 of its time: what a first call takes, 240 ms and 8, is not made up for by short ones.
    """
    if len(fft_lengths) != 1 or count >= _MANY or fft_type not in _KERNELS:
        return False
    long = count <= _PAIR and count * fft_lengths[-1] > _ALONE
    return fft_type == FftType.IRFFT or dtype != np.float32 or not long


@lru_cache(maxsize=256)
def _loops(fft_type: FftType, fft_lengths: tuple[int, ...], dtype: np.dtype) -> list[Any]:
    """Return NumPy's loops, each with its scale, axis, and what that has of which dtype after it.

    What its functions ask before they call one takes 4 us of 5.
    """
    numpys: Any = import_module("numpy.fft._pocketfft_umath")
    n, one = fft_lengths[-1], to_real(dtype).type(1)
    forward = fft_type in (FftType.FFT, FftType.RFFT)
    loop = numpys.fft if forward else numpys.ifft
    found: list[Any] = [
        (loop, one if forward else one / one.dtype.type(size), axis, size, to_complex(dtype))
        for axis, size in zip(range(-len(fft_lengths), 0), fft_lengths, strict=True)
    ]
    if fft_type == FftType.IRFFT:
        found[-1] = numpys.irfft, found[-1][1], -1, n, one.dtype
        return found
    if fft_type == FftType.RFFT:
        loop = numpys.rfft_n_odd if n % 2 else numpys.rfft_n_even
        found[-1] = loop, one, -1, n // 2 + 1, to_complex(dtype)
    return found[::-1]


#: Factors that kernels take sizes apart by; of those over 5 they know no more than the definition.
_PRIMES = (2, 3, 5, 7, 11, 13)
#: The longest line, as one that is alone has a table of its size; and the most axes.
_LINE, _AXES = 1 << 16, 3
#: The longest line of those that are transformed side by side.
_TOGETHER = 4096
#: Fewer lines than these are transformed one by one, as matrices.
_FEW = 8
#: So are fewer real ones, of which two are the parts of a complex one.
_MANY = 32
#: One or two long lines: how many, and of more elements than this.
_PAIR, _ALONE = 2, 1 << 13
#: Names of kernels.
_KERNELS = {FftType.RFFT: "forward", FftType.IRFFT: "back"}


def _call(ins: Any, outs: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Library:
    (x,), (out,) = ins, outs
    rank = len(fft_lengths)
    real = to_real(out.dtype)
    if not rank or rank > _AXES or not out.size or real.name not in ("float32", "float64"):
        return HOST
    if max(fft_lengths) > _LINE or not all(map(_is_smooth, fft_lengths)):
        return HOST
    sizes = (prod(x.shape[: x.ndim - rank]), *(1,) * (_AXES - rank), *fft_lengths)
    beside = _are_beside(fft_type, sizes)
    way = ("_twos" if all(map(_is_power, fft_lengths)) else "_beside") if beside else ""
    kernel = KernelRef("fft", f"{_KERNELS.get(fft_type, 'full')}{way}_{real.name}")
    statics = sizes if fft_type in _KERNELS else (*sizes, fft_type == FftType.IFFT)
    flops = int(5 * prod(sizes) * log2(max(prod(fft_lengths), 2)))
    passes = _passes(fft_type, sizes, real.name)
    many = sizes[0] >= (_MANY if fft_type == FftType.RFFT else _FEW)
    if beside and passes and many and prod(sizes[1:]) == fft_lengths[-1]:
        # Of one axis nothing else is compiled than what a thread does of it.
        ((kernel, statics),) = passes
        statics = (*statics, 0, 1)
    few = _is_few_real(fft_type, sizes[0], fft_lengths, x.dtype)
    return Library(kernel, statics, 0 if few else prod(sizes), flops=flops, passes=passes)


def _are_beside(fft_type: FftType, sizes: Sequence[int]) -> bool:
    """Whether no line is transformed as a matrix, which is a third of what is to be compiled."""
    outer, *axes = sizes
    kept = (*axes[:-1], axes[-1] // 2 + 1 if fft_type in _KERNELS else axes[-1])
    counts = (outer * prod(kept[:k] + kept[k + 1 :]) for k in range(_AXES))
    return max(axes) <= _TOGETHER and all(
        count >= _FEW or n < _FEW for n, count in zip(axes, counts, strict=True)
    )


def _passes(fft_type: FftType, sizes: Sequence[int], real: str) -> Any:
    """Return the transforms along each axis, of lines that threads share."""
    outer, *axes = sizes
    inner, passes = prod(axes), []
    last = outer * inner // axes[-1]
    # A line that is long is transformed as a matrix. An inverse to real numbers has an array of its
    # own between the axes.
    if fft_type == FftType.IRFFT or max(axes) > _TOGETHER:
        return ()
    inverse = fft_type == FftType.IFFT

    def of(n: int, kind: str = "lines") -> KernelRef:
        return KernelRef("fft", f"{kind}{'_twos' if _is_power(n) else ''}_{real}")

    if fft_type == FftType.RFFT:
        passes.append((of(axes[-1], "real_lines"), (last, axes[-1])))
    else:
        size = inner if inverse else 1
        passes.append((of(axes[-1]), (last, axes[-1], 1, inverse, size)))
    beside = axes[-1] // 2 + 1 if fft_type == FftType.RFFT else axes[-1]
    for k in (1, 0):
        if axes[k] > 1:
            passes.append((of(axes[k]), (outer * prod(axes[:k]), axes[k], beside, inverse, 1)))
        beside *= axes[k]
    return tuple(passes)


def _is_power(n: int) -> bool:
    """Whether a size is a power of two, which two radices of five are enough for."""
    return n & (n - 1) == 0


def _is_smooth(n: int) -> bool:
    """Whether a size is a product of factors that kernels know."""
    for p in _PRIMES:
        while n % p == 0:
            n //= p
    return n == 1


def _transpose(
    ct: Any, x: Undefined, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> list[Any]:
    """The matrix of a full transform is symmetric; those of real ones are parts of it."""
    params = {"fft_type": fft_type, "fft_lengths": fft_lengths}
    if not fft_lengths or fft_type in (FftType.FFT, FftType.IFFT):
        return [bind(fft_p, ct, **params)]
    n = fft_lengths[-1]
    if fft_type == FftType.RFFT:
        padded = extend(ct, ct.ndim - 1, n - ct.shape[-1])
        return [real(bind(fft_p, padded, fft_type=FftType.FFT, fft_lengths=fft_lengths))]
    # Coefficients but the first and the middle one stand for their conjugates too.
    weights = np.full(n // 2 + 1, 2 / prod(fft_lengths), ct.dtype)
    weights[0] /= 2
    if n % 2 == 0:
        weights[-1] /= 2
    half = bind(fft_p, ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
    scale = convert(as_array(weights.reshape((1,) * (ct.ndim - 1) + weights.shape)), half.dtype)
    return [conj(mul(half, scale))]


fft_p = kernel_call(
    "fft",
    aval=_aval,
    eval=_eval,
    call=_call,
    jvp=LINEAR,
    transpose=_transpose,
    # Transforms are along the last axes: one more in front is none of their business.
    batch=one_more_axis(),
    print_params=lambda params: {**params, "fft_type": int(params["fft_type"])},
)


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Transform an array along its last axes.

    Parameters
    ----------
    x : array
        Real numbers become complex, but for ``RFFT``, which takes single and double precision.
    fft_type : FftType or str
        ``FFT`` and ``IFFT`` of complex numbers, the inverse divided by the number of elements;
        ``RFFT`` of real ones, of which the last axis keeps coefficients up to the middle; ``IRFFT``
        its inverse.
    fft_lengths : sequence of int
        Sizes of the last axes of the (of ``IRFFT``: resulting) array.

    Raises
    ------
    ValueError
        For sizes that are not the operand's, complex or half-precision numbers to ``RFFT``, or
        another type.

    Notes
    -----
    Cooley and Tukey (1965), as pocketfft implements it; sizes need not be powers of 2.
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(
                f"lax.fft: unknown FFT type {fft_type!r}. Use one of "
                f"{', '.join(FftType.__members__)}."
            )
        fft_type = FftType[fft_type.upper()]
    kind, lengths = FftType(fft_type), canonical_ints("fft", "fft_lengths", fft_lengths)
    x = as_array(x)
    dtype = to_inexact(x.dtype)
    if kind == FftType.RFFT and is_complex(dtype):
        raise ValueError(
            f"only real valued inputs supported for rfft, got {x.aval.str_short()}. "
            "Use FFT, or take its real part."
        )
    if kind == FftType.RFFT and dtype.itemsize < 4:
        raise ValueError(f"RFFT input must be float32 or float64, got {dtype}. Convert it.")
    x = convert(x, dtype if kind == FftType.RFFT else to_complex(dtype))
    return bind(fft_p, x, fft_type=kind, fft_lengths=lengths)
