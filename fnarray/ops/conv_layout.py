"""Where the axes of a convolution are, and the shapes that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .window_layout import dilated, padtype_to_pads, reduce_window_shape_tuple

Sizes = tuple[int, ...]


# --- layouts ------------------------------------------------------------------------------------


class ConvDimensionNumbers(NamedTuple):
    """Where the axes are: batch and feature, then the spatial ones.

    ``rhs_spec`` begins with the kernel's output and input feature axes.
    """

    lhs_spec: Sizes
    rhs_spec: Sizes
    out_spec: Sizes


#: What stands for the layout of a convolution's operands and result.
ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Return the layout that three strings describe, such as ``("NHWC", "HWIO", "NHWC")``.

    Parameters
    ----------
    lhs_shape, rhs_shape : sequence of int
    dimension_numbers : ConvDimensionNumbers, tuple of str, or None
        None is batch (or output feature), feature, spatial axes in order.

    Raises
    ------
    TypeError
        For descriptions that do not fit the shapes or each other.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if ndim != len(rhs_shape):
        raise TypeError(
            f"lax.conv_general_dilated: lhs and rhs must have one rank, got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}."
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*(tuple(range(ndim)),) * 3)
    if not isinstance(dimension_numbers, tuple | list):
        raise TypeError(
            "lax.conv_general_dilated: dimension_numbers must be None, a ConvDimensionNumbers or "
            f"a tuple of three strings, got {dimension_numbers!r}."
        )
    specs = tuple(dimension_numbers)
    if len(specs) != 3 or not all(isinstance(s, str) for s in specs):
        raise TypeError(
            f"lax.conv_general_dilated: dimension_numbers must be three strings, got {specs!r}."
        )
    for spec in specs:
        if len(spec) != ndim:
            raise TypeError(
                f"lax.conv_general_dilated: each of dimension_numbers must have {ndim} letters, "
                f"one per axis, got {spec!r}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(specs))


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Sizes, Sizes, Sizes]:
    """Return the axes of each operand, and of the result, in the order of a `ConvDimensionNumbers`.

    Raises
    ------
    TypeError
        For letters that are missing, repeated, or not the same in all three.
    """
    lhs, rhs, out = dimension_numbers
    for spec, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if len(set(spec)) != len(spec) or not set(first) <= set(spec):
            raise TypeError(
                f"lax.conv_general_dilated: {spec!r} must hold {first[0]!r}, {first[1]!r} and "
                "other letters for the spatial axes, each once."
            )
    spatial = [c for c in rhs if c not in "OI"]
    if not set(lhs) - set("NC") == set(out) - set("NC") == set(spatial):
        raise TypeError(
            "lax.conv_general_dilated: the spatial letters of dimension_numbers must be the same "
            f"in all three, got {tuple(dimension_numbers)}."
        )

    def axes(spec: str, first: str) -> Sizes:
        return tuple(spec.index(c) for c in (*first, *spatial))

    return axes(lhs, "NC"), axes(rhs, "OI"), axes(out, "NC")


def inverse(permutation: Sizes) -> Sizes:
    """Return the permutation that undoes another."""
    return tuple(permutation.index(a) for a in range(len(permutation)))


def transpose_pads(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding that makes a strided convolution's transpose as long as named.

    ``n * stride`` elements for SAME, and ``n * stride + max(window - stride, 0)`` for VALID.
    """
    total = window + stride - 2
    if padding == "SAME":
        low = window - 1 if stride > window - 1 else -(-total // 2)
    else:
        total += max(window - stride, 0)
        low = window - 1
    return low, total - low


# --- shapes of results, for callers that size their parameters ----------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> Sizes:
    """Return the shape of a convolution in the default layout."""
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    places = reduce_window_shape_tuple(lhs_shape[2:], rhs_shape[2:], strides, pads)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *places)


def _shape_in_layout(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Any, pads: Any, names: Any
) -> Sizes:
    lhs, rhs, out = conv_general_permutations(names)
    shape = conv_shape_tuple(
        [lhs_shape[a] for a in lhs], [rhs_shape[a] for a in rhs], strides, pads
    )
    return tuple(shape[k] for k in inverse(out))


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Sizes:
    """Return the shape of a convolution in a layout given by three strings."""
    return _shape_in_layout(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Sizes:
    """Return the shape of `conv_transpose` in a layout given by three strings."""
    lhs, rhs, _ = conv_general_permutations(dimension_numbers)
    if isinstance(padding, str):
        windows = [rhs_shape[a] for a in rhs[2:]]
        padding = [
            transpose_pads(w, s, padding.upper())
            for w, s in zip(windows, window_strides, strict=True)
        ]
    spread = list(lhs_shape)
    for a, s in zip(lhs[2:], window_strides, strict=True):
        spread[a] = dilated(spread[a], s)
    ones = (1,) * len(window_strides)
    return _shape_in_layout(spread, rhs_shape, ones, padding, dimension_numbers)
