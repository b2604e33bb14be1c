"""Steps of the driver that are products: of matrices, or of what is read where it lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ...core.avals import ShapedArray
from ...core.contraction import free_axes
from ...core.forms import Contract, Library
from ..target import Limits
from .blas import product_of

Run = Callable[..., tuple[np.ndarray, ...]]
Product = Contract | Library


def product_step(
    form: Product, ins: Sequence[ShapedArray], out: ShapedArray, limits: Limits
) -> Run:
    """Return what computes a product."""
    if isinstance(form, Library):
        from .sums import sum_of  # which few programs need

        return sum_of(form.statics[0], ins, out, limits)
    if _is_copied(form, ins, out):
        from .sums import is_summed, product_where_it_lies

        run = is_summed(out.dtype) and product_where_it_lies(form, ins, out, limits)
        if run:
            return run
    return product_of(form, out.dtype, limits)


def _is_copied(form: Contract, ins: Sequence[ShapedArray], out: ShapedArray) -> bool:
    """Whether the first of two arrays is no stack of matrices: axes do not lie together."""
    lhs, rhs = ins
    if not lhs.dtype == rhs.dtype == out.dtype or lhs.size < rhs.size or lhs.ndim < 3:
        return False
    groups = (
        form.lhs_batch,
        form.lhs_contract,
        free_axes(lhs.ndim, form.lhs_batch, form.lhs_contract),
    )
    return any(b != a + 1 for group in groups for a, b in pairwise(group))
