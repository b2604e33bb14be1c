"""Products of narrow operands with a scale for each block of the contracted axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from .. import lax
from .. import numpy as jnp
from ..control.custom import custom_vjp
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


class BlockScaleConfig(NamedTuple):
    """How the operands of `scaled_dot_general` become narrow.

    Attributes
    ----------
    mode : {"mxfp8", "nvfp4"}
    block_size : int
        How many elements along the contracted axes have one scale.
    data_type, scale_type : dtype
        Of the elements and of the scales.
    global_scale : Array, optional
        A scale of all blocks, for ``"nvfp4"``.
    infer_only : bool
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """Return how `scaled_dot_general` makes an operand narrow.

    Parameters
    ----------
    mode : {"mxfp8", "nvfp4"}
        8 bits in blocks of 32 whose scales are powers of two, or 4 bits in blocks of 16 whose
        scales are floats of 8 bits.
    global_scale : Array, optional
        A scale of all blocks besides, of float32; for ``"nvfp4"``, 1 by default.

    Raises
    ------
    ValueError
        For another mode.
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None, False)
    if mode == "nvfp4":
        scale = jnp.ones(1, "float32") if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, scale, False)
    raise ValueError(
        f"get_scaled_dot_general_config: mode must be 'mxfp8' or 'nvfp4', got {mode!r}."
    )


def _narrowed(x: Array, config: BlockScaleConfig, axes: Sequence[int]) -> Array:
    """Return what an operand stands for once its blocks along some axes are narrow."""
    others = [d for d in range(x.ndim) if d not in axes]
    order = [*others, *sorted(axes)]
    moved = lax.transpose(x, order)
    sizes = moved.shape
    rows, length = prod(sizes[: len(others)]), prod(sizes[len(others) :])
    blocks = -(-length // config.block_size)
    flat = jnp.pad(moved.reshape(rows, length), ((0, 0), (0, blocks * config.block_size - length)))
    flat = flat.reshape(rows, blocks, config.block_size).astype("float32")
    if config.global_scale is not None:
        flat = flat / config.global_scale
    top = float(jnp.finfo(config.data_type).max)
    scales = jnp.abs(flat).max(-1, keepdims=True) / top
    if config.mode == "mxfp8":
        # The next power of two: no element of the block is clipped.
        mantissa, exponent = jnp.frexp(scales)
        exponent = jnp.where(mantissa == 0.5, exponent - 1, exponent)
        scales = jnp.ldexp(jnp.ones_like(scales), jnp.clip(exponent, -126, 127))
    else:
        most = float(jnp.finfo(config.scale_type).max)
        scales = jnp.clip(scales, 0, most).astype(config.scale_type).astype("float32")
    found = jnp.where(scales > 0, flat / jnp.where(scales > 0, scales, 1), 0)
    narrow = jnp.clip(found, -top, top).astype(config.data_type).astype("float32") * scales
    if config.global_scale is not None:
        narrow = narrow * config.global_scale
    whole = narrow.reshape(rows, -1)[:, :length].reshape(sizes).astype(x.dtype)
    return lax.transpose(whole, [order.index(d) for d in range(x.ndim)])


def _clipped(x: Array, config: BlockScaleConfig) -> Any:
    """Return where an operand's elements are too large for any scale."""
    if config.global_scale is None:
        return jnp.zeros(x.shape, bool)
    top = float(jnp.finfo(config.data_type).max) * float(jnp.finfo(config.scale_type).max)
    return jnp.abs(x) > config.global_scale * top


def _by_one(
    g: Array, other: Array, at: tuple[Any, Any], like: Array, side: int, dtype: Any,
    configs: Sequence[BlockScaleConfig],
) -> Array:  # fmt: skip
    """Return the gradient by one operand: the result's, contracted with the other operand."""
    (mine, theirs), (of_me, of_them) = at
    n = len(of_me)
    left = [d for d in range(like.ndim) if d not in mine and d not in of_me]
    gone = [d for d in range(other.ndim) if d not in theirs and d not in of_them]
    summed = range(n + len(left), g.ndim) if side == 0 else range(n, n + len(gone))
    narrow = _narrowed(g, configs[2], summed), _narrowed(other, configs[1 - side], gone)
    numbers = ((tuple(summed), tuple(gone)), (tuple(range(n)), tuple(of_them)))
    found = lax.dot_general(*narrow, numbers, preferred_element_type=dtype)
    paired = [mine[theirs.index(d)] for d in sorted(theirs)]
    axes = [*of_me, *left, *paired]
    out = lax.transpose(found, [axes.index(d) for d in range(like.ndim)]).astype(like.dtype)
    return jnp.where(_clipped(like, configs[side]), 0, out)


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = "float32",
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: None = None,
) -> Array:
    """`lax.dot_general` of operands that are made narrow, block by block of the contracted axes.

    It computes with what the narrow operands stand for, and so do its gradients, which pass the
    rounding as if it were not there.

    Parameters
    ----------
    lhs, rhs : array
    dimension_numbers
        As of `dot_general`.
    preferred_element_type : dtype
        Of the result.
    configs : sequence of three, optional
        Of ``lhs``, ``rhs`` and the gradient, from `get_scaled_dot_general_config`. Without them
        nothing is made narrow.
    implementation : None
        Accepted for compatibility.

    Raises
    ------
    ValueError
        There are not three configs.
    """
    lhs, rhs = as_array(lhs), as_array(rhs)
    (lc, rc), (lb, rb) = [[tuple(map(int, d)) for d in pair] for pair in dimension_numbers]
    numbers = ((lc, rc), (lb, rb))
    if configs is None:
        return lax.dot_general(lhs, rhs, numbers, preferred_element_type=preferred_element_type)
    if len(configs) != 3:
        raise ValueError(
            "scaled_dot_general: configs must be three, of lhs, rhs and the gradient, got "
            f"{len(configs)}."
        )

    @custom_vjp
    def product(lhs: Array, rhs: Array) -> Array:
        narrow = _narrowed(lhs, configs[0], lc), _narrowed(rhs, configs[1], rc)
        return lax.dot_general(*narrow, numbers, preferred_element_type=preferred_element_type)

    def forward(lhs: Array, rhs: Array) -> Any:
        return product(lhs, rhs), (lhs, rhs)

    def backward(held: Any, g: Array) -> Any:
        lhs, rhs = held
        kind, swapped = preferred_element_type, ((rc, lc), (rb, lb))
        return (
            _by_one(g, rhs, numbers, lhs, 0, kind, configs),
            _by_one(g, lhs, swapped, rhs, 1, kind, configs),
        )

    product.defvjp(forward, backward)
    return product(lhs, rhs)
