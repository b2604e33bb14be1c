"""Convolutions: windows of one operand contracted with a kernel, in any layout."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.dtypes import as_dtype, canonicalize_dtype
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..core.trace import bind
from ._convolve import conv_general_dilated_p
from .contract import canonical_precision, dot_general
from .conv_layout import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
    inverse,
    transpose_pads,
)
from .shape import transpose
from .slicing import rev
from .window_layout import (
    dilated,
    padtype_to_pads,
)

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
]

Sizes = tuple[int, ...]


def _ints(name: str, sizes: Sequence[int] | None, ndim: int) -> Sizes:
    if sizes is None:
        return (1,) * ndim
    ints = tuple(map(operator.index, sizes))
    if len(ints) != ndim:
        raise ValueError(
            f"lax.conv_general_dilated: {name} must have one entry per spatial axis, {ndim}, "
            f"got {ints}."
        )
    if any(n < 1 for n in ints):
        raise TypeError(f"lax.conv_general_dilated: {name} must be positive, got {ints}.")
    return ints


def _pads(padding: Any, spatial: Sizes, window: Sizes, strides: Sizes, lhs_dilation: Sizes) -> Any:
    if isinstance(padding, str):
        if any(d != 1 for d in lhs_dilation):
            raise ValueError(
                "lax.conv_general_dilated: with lhs_dilation, padding must be explicit pairs, "
                f"got {padding!r}. Use conv_transpose for a named padding."
            )
        return tuple(padtype_to_pads(spatial, window, strides, padding))
    pads = tuple((operator.index(low), operator.index(high)) for low, high in padding)
    if len(pads) != len(spatial):
        raise TypeError(
            f"lax.conv_general_dilated: padding must have one pair per spatial axis, "
            f"{len(spatial)}, got {pads}."
        )
    return pads


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Contract each window of ``lhs`` with the kernel ``rhs`` (which is not flipped).

    Parameters
    ----------
    lhs, rhs : array
        Of one dtype; by default (batch, feature, *spatial) and (out, in, *spatial).
    window_strides : sequence of int
        Step of the window along each spatial axis.
    padding : str or sequence of (int, int)
        ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or (low, high) of each spatial axis; negative
        cuts.
    lhs_dilation, rhs_dilation : sequence of int, optional
        Distance of neighbours in each operand: a fractional stride, and a kernel with holes.
    dimension_numbers : tuple of str, ConvDimensionNumbers, optional
        The layouts, as in `conv_dimension_numbers`.
    feature_group_count : int
        Input and output features split into so many groups that do not mix.
    batch_group_count : int
        The batch splits into so many groups, each for its share of the output features.
    precision : optional
        As in `dot_general`.
    preferred_element_type : dtype-like, optional
        Dtype of sums and result; not narrower than the operands'.

    Raises
    ------
    TypeError
        For operands of different dtypes or ranks, layouts that do not fit, sizes below 1.
    ValueError
        For features, batches and groups that do not divide.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            conv_general_dilated,
            lhs,
            rhs,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision,
            preferred_element_type,
        )
    a, b = aval_of(lhs), aval_of(rhs)
    layout = conv_dimension_numbers(a.shape, b.shape, dimension_numbers)
    spatial = tuple(a.shape[i] for i in layout.lhs_spec[2:])
    strides = _ints("window_strides", window_strides, len(spatial))
    lhs_dilation = _ints("lhs_dilation", lhs_dilation, len(spatial))
    rhs_dilation = _ints("rhs_dilation", rhs_dilation, len(spatial))
    kernel = tuple(b.shape[i] for i in layout.rhs_spec[2:])
    window = tuple(map(dilated, kernel, rhs_dilation))
    if preferred_element_type is not None:
        preferred_element_type = canonicalize_dtype(as_dtype(preferred_element_type))
    return bind(
        conv_general_dilated_p,
        lhs,
        rhs,
        window_strides=strides,
        padding=_pads(padding, spatial, window, strides, lhs_dilation),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=layout,
        feature_group_count=operator.index(feature_group_count),
        batch_group_count=operator.index(batch_group_count),
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
    )


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolve in the default layout with a named padding; see `conv_general_dilated`."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolve in the default layout; see `conv_general_dilated`."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@replayed
def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolve with a fractional stride: the transpose of a strided convolution.

    Parameters
    ----------
    lhs, rhs : array
        By default of layouts ``NHWC`` and ``HWIO`` (``NHC``, ``HIO``; ``NHWDC``, ``HWDIO``).
    strides : sequence of int
        Of the convolution whose transpose is meant.
    padding : str or sequence of (int, int)
        ``"SAME"``, ``"VALID"``, or pairs.
    rhs_dilation, dimension_numbers, precision, preferred_element_type
        As in `conv_general_dilated`.
    transpose_kernel : bool
        Whether to flip the kernel and swap its feature axes, as the gradient of
        `conv_general_dilated` with this kernel does.
    use_consistent_padding : bool
        Whether pairs are the padding of the convolution whose transpose is meant, rather than
        that of ``lhs``.

    Raises
    ------
    TypeError, ValueError
        As `conv_general_dilated`.
    """
    ndim = aval_of(lhs).ndim
    if dimension_numbers is None and 2 <= ndim <= 5:
        letters = "HWD"[: ndim - 2]
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    shape = aval_of(rhs).shape
    layout = conv_dimension_numbers(aval_of(lhs).shape, shape, dimension_numbers)
    strides = _ints("strides", strides, ndim - 2)
    spread = _ints("rhs_dilation", rhs_dilation, ndim - 2)
    windows = [dilated(shape[a], d) for a, d in zip(layout.rhs_spec[2:], spread, strict=True)]
    if isinstance(padding, str) and padding in ("SAME", "VALID"):
        padding = [transpose_pads(w, s, padding) for w, s in zip(windows, strides, strict=True)]
    elif use_consistent_padding:
        if isinstance(padding, str):
            raise ValueError(
                f"lax.conv_transpose: padding must be 'SAME', 'VALID' or pairs, got {padding!r}."
            )
        padding = [
            (w - 1 - low, w - 1 - high) for w, (low, high) in zip(windows, padding, strict=True)
        ]
    if transpose_kernel:
        out, into, *spatial = layout.rhs_spec
        axes = list(range(ndim))
        axes[out], axes[into] = into, out
        rhs = transpose(rev(rhs, spatial), axes)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (ndim - 2),
        padding,
        strides,
        spread,
        layout,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Return the elements under each window along the feature axis, the window's axes innermost.

    Parameters are those of `conv_general_dilated`; ``filter_shape`` is the window's.
    """
    aval = aval_of(lhs)
    filter_shape = tuple(map(operator.index, filter_shape))
    layout = conv_dimension_numbers(aval.shape, (1,) * aval.ndim, dimension_numbers)
    features, size = aval.shape[layout.lhs_spec[1]], prod(filter_shape)
    # A convolution with one output feature per element of the window: bit for bit a gather.
    each = np.tile(np.eye(size, dtype=aval.dtype), (features, 1))
    rhs = each.reshape(features * size, 1, *filter_shape).transpose(inverse(layout.rhs_spec))
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        layout,
        feature_group_count=features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """Convolve with a kernel of its own at each place.

    Parameters are those of `conv_general_dilated`, but that the spatial axes of ``rhs`` are the
    result's, and its input features are those of `conv_general_dilated_patches`.
    """
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        precision,
    )
    layout = conv_dimension_numbers(aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    out, kernel = layout.out_spec, layout.rhs_spec
    product = dot_general(
        patches, rhs, (((out[1],), (kernel[1],)), (out[2:], kernel[2:])), precision
    )
    # Axes are now the spatial ones, batch, feature; bring each to where out_spec has it.
    n = len(out) - 2
    return transpose(product, tuple((n, n + 1, *range(n))[k] for k in inverse(out)))
