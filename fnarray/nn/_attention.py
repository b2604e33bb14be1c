"""Scaled dot-product attention."""

from __future__ import annotations

from math import sqrt
from typing import Any, cast

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import float32, float64
from ._normalization import logsumexp, softmax

# Batch and head axes lead, so that both products are matrix products.
_SCORES = (((4,), (3,)), ((0, 2), (0, 2)))  # (B,T,K,G,H), (B,S,K,H) -> (B,K,T,G,S)
_VALUES = (((4,), (1,)), ((0, 1), (0, 2)))  # (B,K,T,G,S), (B,S,K,H) -> (B,K,T,G,H)


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Attention ``softmax(q k^T scale + bias) v`` of every head.

    Parameters
    ----------
    query : array (B, T, N, H) or (T, N, H)
    key, value : arrays (B, S, K, H) or (S, K, H)
        N is a multiple of K: consecutive query heads share a key head.
    bias : array, optional
        Added to the scores; broadcasts to (B, N, T, S).
    mask : array of bool, optional
        True where a query may see a key; broadcasts to (B, N, T, S).
    scale : float, optional
        ``1 / sqrt(H)`` where omitted.
    is_causal : bool
        Position t sees positions up to t.
    query_seq_lengths, key_value_seq_lengths : int arrays (B,), optional
        Rows beyond a query length give zeros; keys beyond a key length are not seen.
    local_window_size : int or (int, int), optional
        How many positions to the left and right are seen.
    implementation : {None, "xla"}
        There is one implementation.
    return_residual : bool
        Also return the logarithm of the sum of the exponentials of the scores, (B, T, N).

    Returns
    -------
    Array of the shape and dtype of ``query``, or a pair

    Raises
    ------
    ValueError
        Shapes do not fit, or ``implementation`` is another.
    """
    if implementation not in (None, "xla"):
        raise ValueError(
            f"nn.dot_product_attention: implementation must be None or 'xla', got "
            f"{implementation!r}."
        )
    query, key, value = map(jnp.asarray, (query, key, value))
    single = query.ndim == 3
    if single:
        query, key, value = (lax.expand_dims(x, (0,)) for x in (query, key, value))
    batch, rows, heads, width = _check(query, key, value)
    keys, groups = key.shape[1], heads // key.shape[2]
    scores_dtype = float64 if query.dtype == float64 else float32
    grouped = lax.reshape(query, (batch, rows, key.shape[2], groups, width))
    scores = lax.dot_general(grouped, key, _SCORES, preferred_element_type=scores_dtype)
    # (B,K,T,G,S) -> (B,N,T,S)
    scores = lax.transpose(scores, (0, 1, 3, 2, 4))
    scores = lax.reshape(scores, (batch, heads, rows, keys))
    scores = scores * np.asarray(1 / sqrt(width) if scale is None else scale, scores_dtype)
    if bias is not None:
        scores = scores + lax.convert_element_type(jnp.asarray(bias), scores_dtype)
    seen = _seen(
        (batch, rows, keys), mask, is_causal, query_seq_lengths, key_value_seq_lengths,
        local_window_size,
    )  # fmt: skip
    if seen is not None:
        # Finite, so that a row that sees nothing is uniform rather than NaN.
        scores = jnp.where(
            seen, scores, np.asarray(-0.7 * np.finfo(scores_dtype).max, scores_dtype)
        )
    # Not by the residual: beside a large negative number the logarithm of the count is lost.
    weights = lax.convert_element_type(softmax(scores), key.dtype)
    weights = lax.reshape(weights, (batch, key.shape[2], groups, rows, keys))
    weights = lax.transpose(weights, (0, 1, 3, 2, 4))
    out = lax.dot_general(weights, value, _VALUES)  # (B,K,T,G,H)
    out = lax.reshape(lax.transpose(out, (0, 2, 1, 3, 4)), (batch, rows, heads, width))
    if query_seq_lengths is not None:
        inside = _before(query_seq_lengths, rows)
        out = jnp.where(lax.reshape(inside, (batch, rows, 1, 1)), out, np.zeros((), out.dtype))
    if single:
        out = lax.squeeze(out, (0,))
    if not return_residual:
        return out
    residual = lax.transpose(logsumexp(scores, axis=-1), (0, 2, 1))
    return out, lax.squeeze(residual, (0,)) if single else residual


def _check(query: Array, key: Array, value: Array) -> tuple[int, int, int, int]:
    shapes = f"got query {query.shape}, key {key.shape}, value {value.shape}"
    if not query.ndim == key.ndim == value.ndim == 4 or key.shape != value.shape:
        raise ValueError(
            f"nn.dot_product_attention: query must be (B, T, N, H) and key and value (B, S, K, H), "
            f"or all without B; {shapes}."
        )
    fits = query.shape[0] == key.shape[0] and query.shape[3] == key.shape[3]
    if not fits or query.shape[2] % key.shape[2]:
        raise ValueError(
            "nn.dot_product_attention: batch and head sizes must agree, and the number of query "
            f"heads must be a multiple of that of key heads; {shapes}."
        )
    return cast("tuple[int, int, int, int]", query.shape)


def _before(lengths: Any, size: int) -> Array:
    """Whether each position comes before the end of its sequence: (B, size)."""
    return lax.broadcasted_iota(np.int32, (1, size), 1) < lax.expand_dims(
        jnp.asarray(lengths), (1,)
    )


def _seen(
    sizes: tuple[int, int, int],
    mask: Any,
    is_causal: bool,
    query_lengths: Any,
    key_lengths: Any,
    window: int | tuple[int, int] | None,
) -> Array | None:
    """Which keys each query sees, broadcastable to (B, N, T, S); None for all."""
    batch, rows, keys = sizes
    found = [] if mask is None else [jnp.asarray(mask)]
    row = lax.broadcasted_iota(np.int32, (1, 1, rows, keys), 2)
    column = lax.broadcasted_iota(np.int32, (1, 1, rows, keys), 3)
    if is_causal:
        found.append(row >= column)
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        found += [column >= row - left, column <= row + right]
    if query_lengths is not None:
        found.append(lax.reshape(_before(query_lengths, rows), (batch, 1, rows, 1)))
    if key_lengths is not None:
        found.append(lax.reshape(_before(key_lengths, keys), (batch, 1, 1, keys)))
    if not found:
        return None
    seen, *rest = found
    for other in rest:
        seen = jnp.logical_and(seen, other)
    return seen
