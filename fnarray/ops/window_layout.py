"""Where the windows of windowed operations lie: their places, padding and dilations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


def dilated(n: int, dilation: int) -> int:
    """Return the length of ``n`` elements spread ``dilation`` apart."""
    return 0 if n == 0 else (n - 1) * dilation + 1


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """Return the (low, high) padding of each axis that a name stands for.

    ``"VALID"`` pads nothing. ``"SAME"`` pads so that the result has ``ceil(n / stride)``
    elements, with the odd one at the end; ``"SAME_LOWER"`` has it at the start.

    Raises
    ------
    RuntimeError
        For another name.
    """
    if not isinstance(padding, str):
        return [(int(low), int(high)) for low, high in padding]
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"padding must be 'VALID', 'SAME' or 'SAME_LOWER', got {padding!r}.")
    pads = []
    for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max((-(-n // stride) - 1) * stride + window - n, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if name == "SAME" else (large, small))
    return pads


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Sizes:
    """Return how many places windows have along each axis."""
    ones = (1,) * len(operand_shape)
    places = []
    for n, window, stride, (low, high), base, spread in zip(
        operand_shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation or ones,
        window_dilation or ones,
        strict=True,
    ):
        room = low + dilated(n, base) + high - dilated(window, spread)
        places.append(room // stride + 1 if room >= 0 else 0)
    return tuple(places)


def check_window(name: str, shape: Sizes, params: dict[str, Any]) -> None:
    """Raise `TypeError` unless params have one positive entry per axis."""
    for what, sizes in params.items():
        if len(sizes) != len(shape):
            raise TypeError(
                f"lax.{name}: {what} must have one entry per axis of shape {shape}, got {sizes}."
            )
        if what != "padding" and any(n < 1 for n in sizes):
            raise TypeError(f"lax.{name}: {what} must be positive, got {sizes}.")


def window_shape(name: str, shape: Sizes, params: dict[str, Any]) -> Sizes:
    """Check params and return how many places windows have along each axis."""
    check_window(name, shape, params)
    return reduce_window_shape_tuple(shape, **params)


def window_form(shape: Sizes, params: dict[str, Any]) -> tuple[Callable, Callable]:
    """Return index and validity of window element ``r`` at place ``o``, for `Reduce`."""
    pads, base = params["padding"], params["base_dilation"]
    strides, spread = params["window_strides"], params["window_dilation"]
    axes = range(len(shape))

    def position(o: Any, r: Any) -> list[Any]:
        return [o[a] * strides[a] + r[a] * spread[a] - pads[a][0] for a in axes]

    def index(o: Any, r: Any) -> tuple:
        return tuple(p // b if b > 1 else p for p, b in zip(position(o, r), base, strict=True))

    def valid(o: Any, r: Any) -> tuple:
        found = position(o, r)
        inside = [(0, p, dilated(n, b)) for p, n, b in zip(found, shape, base, strict=True)]
        # Between the elements of a dilated operand lie holes, which are padding too.
        filled = [(0, p % b, 1) for p, b in zip(found, base, strict=True) if b > 1]
        return (*inside, *filled)

    return index, valid


def spread_out(x: np.ndarray, fill: Any, params: dict[str, Any]) -> np.ndarray:
    """Return an array dilated and padded with ``fill``; negative padding cuts."""
    pads, base = params["padding"], params["base_dilation"]
    if not any(low or high for low, high in pads) and all(b == 1 for b in base):
        return x
    inner = tuple(map(dilated, x.shape, base))
    shape = tuple(max(low + n + high, 0) for n, (low, high) in zip(inner, pads, strict=True))
    out = np.full(shape, fill, x.dtype)
    into, source = [], []
    for n, b, (low, _), size in zip(x.shape, base, pads, shape, strict=True):
        first = max(-(low // b), 0)  # the first element at or after the start
        last = min((size - 1 - low) // b + 1, n)
        last = max(last, first)
        source.append(slice(first, last))
        into.append(
            slice(low + first * b, max(low + (last - 1) * b + 1, 0) if last > first else 0, b)
        )
    if all(s.stop > s.start for s in source):
        out[tuple(into)] = x[tuple(source)]
    return out


def at_places(places: Sizes, r: Sizes, params: dict[str, Any]) -> tuple[slice, ...]:
    """Return where window element ``r`` of every place lies in the padded operand."""
    spread, strides = params["window_dilation"], params["window_strides"]
    return tuple(
        slice(k * d, k * d + (n - 1) * s + 1 if n else k * d, s)
        for k, d, s, n in zip(r, spread, strides, places, strict=True)
    )


def transposed_pads(shape: Sizes, places: Sizes, params: dict[str, Any]) -> Pads:
    """Return the padding that makes windows over places as many as the elements."""
    pads = []
    for n, m, window, stride, (low, _), base, spread in zip(
        shape,
        places,
        params["window_dimensions"],
        params["window_strides"],
        params["padding"],
        params["base_dilation"],
        params["window_dilation"],
        strict=True,
    ):
        reach = dilated(window, spread) - 1
        total = dilated(n, base) + reach - dilated(m, stride)
        pads.append((reach - low, total - (reach - low)))
    return tuple(pads)


def window_params(
    shape: Sizes,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the canonical params of a window over an operand of ``shape``."""

    def ints(sizes: Sequence[int] | None) -> Sizes:
        return (1,) * len(shape) if sizes is None else tuple(map(operator.index, sizes))

    params: dict[str, Any] = {
        "window_dimensions": ints(window_dimensions),
        "window_strides": ints(window_strides),
        "base_dilation": ints(base_dilation),
        "window_dilation": ints(window_dilation),
    }
    check_window("reduce_window", shape, params)
    if isinstance(padding, str):
        spread = map(dilated, shape, params["base_dilation"])
        window = map(dilated, params["window_dimensions"], params["window_dilation"])
        padding = padtype_to_pads(tuple(spread), tuple(window), params["window_strides"], padding)
    params["padding"] = tuple((operator.index(a), operator.index(b)) for a, b in padding)
    if len(params["padding"]) != len(shape):
        raise ValueError(
            f"lax.reduce_window: padding must have one pair per axis of shape {shape}, "
            f"got {params['padding']}."
        )
    return params
