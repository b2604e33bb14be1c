"""Products of narrow operands with a scale for each block of the contracted axis."""

from __future__ import annotations

from typing import Any

from .. import lax
from ..core.array import Array
from ..ops.kit.canonical import as_array


def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = "float32"
) -> Array:
    """Multiply batches of matrices, the right one transposed, each times the scales of its blocks.

    Parameters
    ----------
    lhs : array (b, m, k)
    rhs : array (b, n, k)
    lhs_scales : array (b, m, blocks)
        ``k`` is a multiple of the blocks.
    rhs_scales : array (b, n, blocks)
    preferred_element_type : dtype

    Returns
    -------
    Array
        Of shape ``(b, m, n)``.

    Raises
    ------
    ValueError
        The shapes do not fit.
    """
    a, b, of_a, of_b = map(as_array, (lhs, rhs, lhs_scales, rhs_scales))
    shapes = tuple(x.shape for x in (a, b, of_a, of_b))
    fits = all(x.ndim == 3 for x in (a, b, of_a, of_b)) and (
        (a.shape[0], a.shape[2]) == (b.shape[0], b.shape[2])
        and of_a.shape[2] == of_b.shape[2]
        and (of_a.shape[:2], of_b.shape[:2]) == (a.shape[:2], b.shape[:2])
    )
    if not fits:
        raise ValueError(
            "scaled_matmul: expected shapes (b, m, k), (b, n, k), (b, m, blocks) and "
            f"(b, n, blocks), got {', '.join(map(str, shapes))}."
        )
    return lax.scaled_dot(
        a,
        b,
        lhs_scale=of_a,
        rhs_scale=of_b,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=preferred_element_type,
    )
