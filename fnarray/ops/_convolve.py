"""The convolution: its shape, evaluation, kernel, and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.contraction import matmul, narrow, slides_along_lines, working_dtype
from ..core.dtypes import is_complex, is_float, is_integer
from ..core.forms import HOST, Inline, KernelRef, Library
from ..core.record import known_of
from ..core.tangents import Undefined, is_undefined
from ..core.trace import bind
from .conv_layout import (
    ConvDimensionNumbers,
    inverse,
)
from .kit.calls import convert, full, moveaxis, reshape, rev
from .kit.checks import check_same_dtypes
from .kit.declare import inlined, kernel_call
from .kit.rules import BILINEAR
from .reduce import HALVES
from .window_layout import (
    dilated,
    reduce_window_shape_tuple,
    spread_out,
    transposed_pads,
)

Sizes = tuple[int, ...]

#: Bytes of window elements gathered at a time: a quarter of a large cache.
_PATCH_BYTES = 1 << 23
#: Places of windows below which products of single batch entries have too few columns for BLAS.
_FEW = 64


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
    elif slides_along_lines(lhs, rhs, params):
        out = np.stack([np.correlate(line, w.reshape(-1)) for line in x[:, 0]])[:, None]
    elif together:
        out = _features_last(_windows(x, places, window), w)
    else:
        out = _features_first(_windows(x, places, window), w, features, batches)
    return narrow(out.transpose(inverse(layout.out_spec)), dtype)


def _known_conv(
    lhs: ShapedArray, rhs: ShapedArray, **params: Any
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Return the product that the convolution of two short vectors is, as `_few_places` has it."""
    dtype, layout = lhs.dtype, params["dimension_numbers"]
    if lhs.ndim != 3 or {*lhs.shape[:2], *rhs.shape[:2]} != {1} or dtype.kind not in "fc":
        return None
    plain = all(of == (0, 1, 2) for of in (layout.lhs_spec, layout.rhs_spec, layout.out_spec))
    ones = (*params["window_strides"], *params["lhs_dilation"], *params["rhs_dilation"])
    groups = params["feature_group_count"], params["batch_group_count"]
    if not plain or (*ones, *groups) != (1,) * 5 or dtype in HALVES:
        return None
    if params["preferred_element_type"] not in (None, dtype):
        return None
    (n, k), ((low, high),) = (lhs.shape[2], rhs.shape[2]), params["padding"]
    size, step = n + low + high, dtype.itemsize
    places = size - k + 1
    if min(low, high, n - 1, k - 1) < 0 or not 0 < places < _FEW:
        return None

    def evaluate(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        x = np.zeros(size, dtype)
        x[low : low + n] = lhs.reshape(n)
        windows = np.ndarray((k, places), dtype, x, 0, (step, step))
        return np.matmul(rhs.reshape(1, k), windows).reshape(1, 1, places)

    return evaluate


known_of[_conv_eval] = _known_conv


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
    if groups == 1 and prod(places) < _FEW:
        return _few_places(view, w)
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


def _few_places(view: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Multiply windows with the batch beside the places, for products of more than few columns.

    So it is with derivatives by kernels: the places are the kernel's, the windows whole images.
    """
    n, k = view.shape[0], (view.ndim - 2) // 2
    places = tuple(range(2, 2 + k))
    view = view.transpose(1, *range(2 + k, 2 + 2 * k), *places, 0)
    weights = np.ascontiguousarray(w).reshape(w.shape[0], -1)
    out = np.empty((w.shape[0], *view.shape[1 + k :]), w.dtype)
    columns = prod(out.shape[1:-1])
    rows = max(1, 4 * _PATCH_BYTES // (weights.shape[1] * columns * w.itemsize))
    for start in range(0, n, rows):
        part = view[..., start : start + rows]
        product = matmul(weights, part.reshape(weights.shape[1], -1))
        out[..., start : start + rows] = product.reshape(*out.shape[:-1], -1)
    return np.moveaxis(out, -1, 0)


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


@inlined
def _conv_wide(lhs: Any, rhs: Any, *, preferred_element_type: Any, **params: Any) -> Any:
    """Convert operands first, to what `_conv_eval` forms products and sums in."""
    wide = working_dtype(lhs.dtype, rhs.dtype, preferred_element_type)
    given = (convert(x, wide) for x in (lhs, rhs))
    out = bind(conv_general_dilated_p, *given, preferred_element_type=None, **params)
    return convert(out, preferred_element_type)


def _conv_call(ins: Any, outs: Any, **params: Any) -> Library | Inline:
    """Call the direct kernel inside loops; it knows up to three spatial axes."""
    lhs, rhs = ins
    out = outs[0]
    layout = params["dimension_numbers"]
    spatial, window = _window(lhs.shape, rhs.shape, params)

    if lhs.dtype != out.dtype:
        return _conv_wide(ins, outs, **params)
    if not (len(spatial) <= 3 and out.size and lhs.size and rhs.size):
        return HOST
    has = lhs.dtype not in HALVES and lhs.dtype.kind in "iufc"
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
    products = out.size * rhs.shape[layout.rhs_spec[1]] * prod(window["window_dimensions"])
    ref = KernelRef("conv", "direct")
    return Library(ref, statics, out.size, has, flops=2 * products)


# --- derivatives and batches --------------------------------------------------------------------


def _split_axis(x: Any, axis: int, groups: int) -> Any:
    """Make an axis two, the first over ``groups``."""
    return reshape(x, (*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :]))


def _merge(x: Any, axis: int, into: int) -> Any:
    """Move an axis before another (as numbered without the first), and make the two one."""
    x = moveaxis(x, axis, into)
    size = x.shape[into] * x.shape[into + 1]
    return reshape(x, (*x.shape[:into], size, *x.shape[into + 2 :]))


def _swapped(spec: Sizes) -> Sizes:
    return (spec[1], spec[0], *spec[2:])


def _lhs_cotangent(ct: Any, lhs: Undefined, rhs: Any, params: dict[str, Any]) -> Any:
    """Convolve the cotangent with the kernel turned round, inputs and outputs exchanged."""
    layout, batches = params["dimension_numbers"], params["batch_group_count"]
    groups = max(params["feature_group_count"], batches)
    lhs_spec, rhs_spec, out_spec = layout
    spatial, window = _window(lhs.shape, rhs.shape, params)
    pads = transposed_pads(spatial, tuple(ct.shape[a] for a in out_spec[2:]), window)
    if groups > 1:
        # Output features become inputs, group by group.
        out, into = rhs_spec[:2]
        rhs = _split_axis(rhs, out, groups)
        rhs = _merge(rhs, out, into)
    bar = bind(
        conv_general_dilated_p,
        ct,
        convert(rev(rhs, rhs_spec[2:]), ct.dtype, rhs.aval.weak_type),
        **{
            **params,
            "window_strides": params["lhs_dilation"],
            "padding": pads,
            "lhs_dilation": params["window_strides"],
            "dimension_numbers": ConvDimensionNumbers(out_spec, _swapped(rhs_spec), lhs_spec),
            "feature_group_count": groups,
            "batch_group_count": 1,
        },
    )
    if batches > 1:
        bar = _merge(_split_axis(bar, lhs_spec[1], batches), lhs_spec[1], lhs_spec[0])
    return bar


def _rhs_cotangent(ct: Any, lhs: Any, rhs: Undefined, params: dict[str, Any]) -> Any:
    """Convolve the other operand with the cotangent, the batch in the place of features."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    spatial, window = _window(lhs.shape, rhs.shape, params)
    pads = []
    for n, m, k, stride, (low, _), base, spread in zip(
        spatial,
        (ct.shape[a] for a in out_spec[2:]),
        window["window_dimensions"],
        window["window_strides"],
        window["padding"],
        window["base_dilation"],
        window["window_dilation"],
        strict=True,
    ):
        pads.append((low, dilated(m, stride) + dilated(k, spread) - 1 - dilated(n, base) - low))
    return bind(
        conv_general_dilated_p,
        convert(lhs, ct.dtype, lhs.aval.weak_type),
        ct,
        **{
            **params,
            "window_strides": params["rhs_dilation"],
            "padding": tuple(pads),
            "rhs_dilation": params["window_strides"],
            "dimension_numbers": ConvDimensionNumbers(
                *map(_swapped, (lhs_spec, out_spec, rhs_spec))
            ),
            "feature_group_count": params["batch_group_count"],
            "batch_group_count": params["feature_group_count"],
        },
    )


def _conv_transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> list[Any]:
    x, rule = (lhs, _lhs_cotangent) if is_undefined(lhs) else (rhs, _rhs_cotangent)
    if 0 in ct.shape or 0 in x.shape:
        bar = full(x.aval, 0)
    else:
        bar = rule(ct, lhs, rhs, params)
        bar = convert(bar, x.dtype, bar.aval.weak_type)
    return [bar, None] if x is lhs else [None, bar]


def _conv_batch(size: int, operands: Any, batched: Any, **params: Any) -> Any:
    """Fold the mapped axis into the batch or the features, whose groups keep lanes apart."""
    (lhs, rhs), (lhs_spec, rhs_spec, out_spec) = operands, params["dimension_numbers"]
    if size == 0:
        lanes = (x.aval.update(shape=x.shape[b:]) for x, b in zip(operands, batched, strict=True))
        out = _conv_aval(*lanes, **params)
        return full(out.update(shape=(0, *out.shape)), 0)
    features, batches = params["feature_group_count"], params["batch_group_count"]
    n, c = out_spec[:2]
    if all(batched):
        name = "batch_group_count" if batches > 1 else "feature_group_count"
        params[name] *= size
        lhs = _merge(lhs, 0, lhs_spec[0 if batches > 1 else 1])
        out = bind(conv_general_dilated_p, lhs, _merge(rhs, 0, rhs_spec[0]), **params)
        return moveaxis(_split_axis(out, c, size), c, 0)
    if batched[0]:
        axis = lhs_spec[0]
        if batches > 1:
            # Lanes go inside the groups of the batch.
            lhs = _split_axis(moveaxis(lhs, 0, axis), axis + 1, batches)
            lhs = _merge(_merge(lhs, axis, axis + 1), axis, axis)
        else:
            lhs = _merge(lhs, 0, axis)
        out = bind(conv_general_dilated_p, lhs, rhs, **params)
        return moveaxis(_split_axis(out, n, size), n, 0)
    axis, groups = rhs_spec[0], features * batches
    # Lanes go inside the groups of the output features.
    rhs = _split_axis(moveaxis(rhs, 0, axis), axis + 1, groups)
    rhs = _merge(_merge(rhs, axis, axis + 1), axis, axis)
    out = bind(conv_general_dilated_p, lhs, rhs, **params)
    out = _split_axis(_split_axis(out, c, groups), c + 1, size)
    return moveaxis(_merge(out, c, c + 1), c, 0)


conv_general_dilated_p = kernel_call(
    "conv_general_dilated",
    aval=_conv_aval,
    eval=_conv_eval,
    call=_conv_call,
    jvp=BILINEAR,
    transpose=_conv_transpose,
    batch=_conv_batch,
    print_params=lambda params: {**params, "out_sharding": None},
)
