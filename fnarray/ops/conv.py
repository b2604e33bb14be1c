"""Convolutions: windows of one operand contracted with a kernel, in any layout."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import as_dtype, canonicalize_dtype, is_complex, is_float, is_integer
from ..core.forms import Call
from ..core.trace import bind
from ._rules import check_same_dtypes, kernel_call
from .contract import canonical_precision, dot_general, matmul, narrow, working_dtype
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
from .reduce import HALVES
from .shape import transpose
from .slicing import rev
from .window import dilated, padtype_to_pads, reduce_window_shape_tuple, spread_out

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

#: Bytes of window elements gathered at a time: a quarter of a large cache.
_PATCH_BYTES = 1 << 23


# --- shape and dtype ----------------------------------------------------------------------------


def _check_groups(lhs: Sizes, rhs: Sizes, feature_groups: int, batch_groups: int) -> None:
    """Check group counts against shapes in (batch, feature, ...) order."""

    def refuse(text: str) -> None:
        raise ValueError(f"lax.conv_general_dilated: {text}.")

    for what, count in (("feature", feature_groups), ("batch", batch_groups)):
        if count < 1:
            refuse(f"{what}_group_count must be positive, got {count}")
        if rhs[0] % count:
            refuse(f"{what}_group_count {count} must divide the {rhs[0]} output features of rhs")
    if feature_groups > 1 and batch_groups > 1:
        refuse(
            "only one of feature_group_count and batch_group_count may be above 1, "
            f"got {feature_groups} and {batch_groups}"
        )
    if lhs[1] % feature_groups:
        refuse(f"feature_group_count {feature_groups} must divide the {lhs[1]} features of lhs")
    if lhs[0] % batch_groups:
        refuse(f"batch_group_count {batch_groups} must divide the batch size {lhs[0]} of lhs")
    if lhs[1] // feature_groups != rhs[1]:
        refuse(
            f"rhs must have {lhs[1]} // {feature_groups} = {lhs[1] // feature_groups} input "
            f"features, the features of lhs by feature_group_count, got {rhs[1]}"
        )


def _result_dtype(dtype: np.dtype, preferred: np.dtype | None) -> np.dtype:
    if preferred is None or preferred == dtype:
        return dtype
    fits = (
        (is_integer(dtype) and (is_integer(preferred) or is_float(preferred)))
        or (is_float(dtype) and is_float(preferred))
        or (is_complex(dtype) and is_complex(preferred))
    )
    if not fits or preferred.itemsize < dtype.itemsize:
        raise TypeError(
            "lax.conv_general_dilated: preferred_element_type must be of the operands' kind (or "
            f"floating, for integers) and not narrower than {dtype}, got {preferred}."
        )
    return preferred


def _window(lhs: Sizes, rhs: Sizes, params: dict[str, Any]) -> tuple[Sizes, dict[str, Any]]:
    """Return the spatial shape of lhs, and the window that slides over it, as `window` has it."""
    layout = params["dimension_numbers"]
    spatial = tuple(lhs[a] for a in layout.lhs_spec[2:])
    return spatial, {
        "window_dimensions": tuple(rhs[a] for a in layout.rhs_spec[2:]),
        "window_strides": params["window_strides"],
        "padding": params["padding"],
        "base_dilation": params["lhs_dilation"],
        "window_dilation": params["rhs_dilation"],
    }


def _conv_aval(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> ShapedArray:
    check_same_dtypes("conv_general_dilated", (lhs, rhs))
    layout = params["dimension_numbers"]
    n_lhs = tuple(lhs.shape[a] for a in layout.lhs_spec)
    n_rhs = tuple(rhs.shape[a] for a in layout.rhs_spec)
    groups = params["batch_group_count"]
    _check_groups(n_lhs, n_rhs, params["feature_group_count"], groups)
    spatial, window = _window(lhs.shape, rhs.shape, params)
    for n, base, (low, high) in zip(
        spatial, params["lhs_dilation"], params["padding"], strict=True
    ):
        if dilated(n, base) + low + high < 0:
            raise ValueError(
                f"lax.conv_general_dilated: negative padding {(low, high)} cuts more than the "
                f"{dilated(n, base)} elements there are."
            )
    places = reduce_window_shape_tuple(spatial, **window)
    sizes = (n_lhs[0] // groups, n_rhs[0], *places)
    shape = tuple(sizes[k] for k in inverse(layout.out_spec))
    dtype = _result_dtype(lhs.dtype, params["preferred_element_type"])
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)


# --- evaluation ---------------------------------------------------------------------------------


def _windows(x: np.ndarray, places: Sizes, window: dict[str, Any]) -> np.ndarray:
    """View a padded (batch, feature, *spatial) array as batch, feature, places, window."""
    n = len(places)
    steps, spread = window["window_strides"], window["window_dilation"]
    strides = x.strides[2:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *places, *window["window_dimensions"]),
        (
            *x.strides[:2],
            *(strides[a] * steps[a] for a in range(n)),
            *(strides[a] * spread[a] for a in range(n)),
        ),
        writeable=False,
    )


def _conv_eval(lhs: np.ndarray, rhs: np.ndarray, **params: Any) -> np.ndarray:
    """Gather windows into matrices, a few batch entries at a time, and multiply by BLAS."""
    layout = params["dimension_numbers"]
    dtype = _result_dtype(lhs.dtype, params["preferred_element_type"])
    wide = working_dtype(lhs.dtype, rhs.dtype, dtype)
    spatial, window = _window(lhs.shape, rhs.shape, params)
    places = reduce_window_shape_tuple(spatial, **window)
    w = rhs.transpose(layout.rhs_spec).astype(wide, copy=False)
    features, batches = params["feature_group_count"], params["batch_group_count"]
    last = lhs.ndim - 1
    together = features == batches == 1 and layout.lhs_spec[1] == layout.out_spec[1] == last

    # Padding copies; keep the feature axis where the products want it.
    x = lhs.transpose(layout.lhs_spec).astype(wide, copy=False)
    whole = {"padding": ((0, 0),) * 2, "base_dilation": (1, 1)}
    around = {name: one + window[name] for name, one in whole.items()}
    if together:
        around = {name: (of[0], *of[2:], of[1]) for name, of in around.items()}
        x = np.moveaxis(spread_out(np.moveaxis(x, 1, -1), 0, around), -1, 1)
    else:
        x = spread_out(x, 0, around)
    if not (x.size and w.size and prod(places)):
        out = np.zeros((x.shape[0] // batches, w.shape[0], *places), wide)
    elif together:
        out = _features_last(_windows(x, places, window), w)
    else:
        out = _features_first(_windows(x, places, window), w, features, batches)
    return narrow(out.transpose(inverse(layout.out_spec)), dtype)


def _features_last(view: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Multiply windows (batch, feature, places, window) whose features lie together in memory."""
    n, k = view.shape[0], (view.ndim - 2) // 2
    places = view.shape[2 : 2 + k]
    view = view.transpose(0, *range(2, 2 + 2 * k), 1)
    weights = np.ascontiguousarray(w.transpose(*range(2, 2 + k), 1, 0)).reshape(-1, w.shape[0])
    out = np.empty((n, *places, w.shape[0]), w.dtype)
    rows = max(1, _PATCH_BYTES // (prod(places) * weights.shape[0] * w.itemsize))
    for start in range(0, n, rows):
        part = view[start : start + rows]
        product = matmul(part.reshape(-1, weights.shape[0]), weights)
        out[start : start + rows] = product.reshape(len(part), *places, -1)
    return np.moveaxis(out, -1, 1)


def _features_first(view: np.ndarray, w: np.ndarray, features: int, batches: int) -> np.ndarray:
    """Multiply windows (batch, feature, places, window), group by group."""
    groups, c, k = features * batches, w.shape[1], (view.ndim - 2) // 2
    n, places = view.shape[0] // batches, view.shape[2 : 2 + k]
    # Batch group, batch, feature group, feature, places, window; then both groups side by side.
    view = _split(view, batches, n, features, c)
    view = view.transpose(1, 0, 2, 3, *range(4 + k, 4 + 2 * k), *range(4, 4 + k))
    weights = np.ascontiguousarray(w).reshape(groups, w.shape[0] // groups, -1)
    terms, size = weights.shape[2], prod(places)
    out = np.empty((n, w.shape[0], *places), w.dtype)
    rows = max(1, _PATCH_BYTES // (groups * terms * size * w.itemsize))
    for start in range(0, n, rows):
        part = view[start : start + rows]
        patches = part.reshape(len(part), groups, terms, size)
        product = matmul(np.broadcast_to(weights, (len(part), *weights.shape)), patches)
        out[start : start + rows] = product.reshape(len(part), -1, *places)
    return out


def _split(view: np.ndarray, batches: int, n: int, features: int, c: int) -> np.ndarray:
    """Split the first two axes of a strided view into groups, still as a view."""
    batch, feature = view.strides[:2]
    return np.lib.stride_tricks.as_strided(
        view,
        (batches, n, features, c, *view.shape[2:]),
        (n * batch, batch, c * feature, feature, *view.strides[2:]),
        writeable=False,
    )


def _strides(shape: Sizes, spec: Sizes) -> Sizes:
    """Return element strides in the order of ``spec``."""
    steps = [prod(shape[a + 1 :]) for a in range(len(shape))]
    return tuple(steps[a] for a in spec)


def _three(values: Sequence[int], fill: int) -> Sizes:
    """Return a spatial tuple brought to three axes, new ones in front."""
    return (*(fill,) * (3 - len(values)), *values)


def _conv_call(ins: Any, outs: Any, **params: Any) -> Call:
    """Call the direct kernel inside loops; it knows up to three spatial axes."""
    lhs, rhs = ins
    out = outs[0]
    layout = params["dimension_numbers"]
    spatial, window = _window(lhs.shape, rhs.shape, params)

    def host(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        return (_conv_eval(a, b, **params),)

    same = lhs.dtype == out.dtype and lhs.dtype not in HALVES and lhs.dtype.kind in "iufc"
    if not (same and len(spatial) <= 3 and out.size and lhs.size and rhs.size):
        return Call(None, host=host)
    features, batches = params["feature_group_count"], params["batch_group_count"]
    counts = (
        lhs.shape[layout.lhs_spec[0]] // batches,
        rhs.shape[layout.rhs_spec[0]],
        rhs.shape[layout.rhs_spec[1]],
        features,
        batches,
    )
    steps: Sizes = ()
    for aval, spec in ((lhs, layout.lhs_spec), (rhs, layout.rhs_spec), (out, layout.out_spec)):
        first, second, *rest = _strides(aval.shape, spec)
        steps += (first, second, *_three(rest, 0))
    statics = (
        *counts,
        *steps,
        *_three(spatial, 1),
        *_three(window["window_dimensions"], 1),
        *_three([out.shape[a] for a in layout.out_spec[2:]], 1),
        *_three(window["window_strides"], 1),
        *_three([low for low, _ in window["padding"]], 0),
        *_three(window["base_dilation"], 1),
        *_three(window["window_dilation"], 1),
    )
    return Call("fk.conv.direct", statics, host)


conv_general_dilated_p = kernel_call(
    "conv_general_dilated",
    aval=_conv_aval,
    eval=_conv_eval,
    call=_conv_call,
    print_params=lambda params: {**params, "out_sharding": None},
)


# --- faces --------------------------------------------------------------------------------------


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
