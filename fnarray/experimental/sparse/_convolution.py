"""Convolutions of sparse arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ._bcoo import BCOO, bcoo_update_layout, fitted, inside, sparse_shape

__all__ = ["bcoo_conv_general_dilated"]


def bcoo_conv_general_dilated(
    lhs: BCOO,
    rhs: BCOO,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> BCOO:
    """`lax.conv_general_dilated` of two sparse arrays, which multiplies all pairs of elements.

    Raises
    ------
    NotImplementedError
        For groups of features or batches.
    """
    if (feature_group_count, batch_group_count) != (1, 1):
        raise NotImplementedError(
            "bcoo_conv_general_dilated: groups of features and batches must be 1. Convolve each "
            "group by itself, or dense arrays: M.todense()."
        )
    if isinstance(padding, str) and any(k != 1 for k in lhs_dilation or ()):
        raise ValueError(
            "bcoo_conv_general_dilated: with lhs_dilation, padding must be explicit pairs, got "
            f"{padding!r}."
        )
    n = len(window_strides)
    dilations = (tuple(lhs_dilation or (1,) * n), tuple(rhs_dilation or (1,) * n))
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    lhs, rhs = (bcoo_update_layout(m, n_batch=0, n_dense=0) for m in (lhs, rhs))
    pads, out = _sizes(lhs, rhs, numbers, dilations, window_strides, padding)
    of_lhs = [lhs.indices[:, None, d] for d in numbers.lhs_spec]
    of_rhs = [rhs.indices[None, :, d] for d in numbers.rhs_spec]
    here = inside(lhs.indices, sparse_shape(lhs))[:, None] & inside(rhs.indices, sparse_shape(rhs))
    # Pairs of one feature meet, where the window's step falls on the sum of their places.
    here &= of_lhs[1] == of_rhs[1]
    found = [of_lhs[0], of_rhs[0]]
    for k in range(n):
        at = of_lhs[2 + k] * dilations[0][k] - of_rhs[2 + k] * dilations[1][k] + pads[k][0]
        here &= (at >= 0) & (at % window_strides[k] == 0) & (at // window_strides[k] < out[k])
        found.append(at // window_strides[k])
    places: list[Any] = [None] * (n + 2)
    shape = [0] * (n + 2)
    wanted = (lhs.shape[numbers.lhs_spec[0]], rhs.shape[numbers.rhs_spec[0]], *out)
    for k, d in enumerate(numbers.out_spec):
        places[d], shape[d] = found[k], wanted[k]
    pairs = here.shape
    ends = np.asarray(shape, lhs.indices.dtype)
    indices = jnp.stack([jnp.broadcast_to(x, pairs) for x in places], -1)
    indices = jnp.where(here[..., None], indices, ends).reshape(-1, n + 2)
    data = jnp.where(here, lhs.data[:, None] * rhs.data[None], 0).reshape(-1)
    if preferred_element_type is not None:
        data = data.astype(preferred_element_type)
    return fitted(BCOO((data, indices.astype(lhs.indices.dtype)), shape=tuple(shape)))


def _sizes(
    lhs: BCOO, rhs: BCOO, numbers: Any, dilations: Any, window_strides: Sequence[int], padding: Any
) -> tuple[Any, list[int]]:
    """Return the padding of each axis, and the sizes of the result's."""
    sizes = [
        [(mat.shape[d] - 1) * k + 1 for d, k in zip(spec[2:], dilation, strict=True)]
        for mat, spec, dilation in zip((lhs, rhs), numbers[:2], dilations, strict=True)
    ]
    pads = (
        lax.padtype_to_pads(sizes[0], sizes[1], window_strides, padding)
        if isinstance(padding, str)
        else padding
    )
    out = [
        max(0, (m + low + high - k) // stride + 1)
        for m, k, stride, (low, high) in zip(*sizes, window_strides, pads, strict=True)
    ]
    return pads, out
