"""Contractions: sums of products over paired axes of two operands."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..config import config
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.contraction import LINE, contracted, free_axes
from ..core.dtypes import (
    as_dtype,
    bfloat16,
    bool_,
    canonicalize_dtype,
    float16,
    is_float,
    is_half,
    is_inexact,
    is_integer,
    promote_types,
    to_real,
)
from ..core.forms import Contract
from ..core.frozen import frozen
from ..core.hooks import cut_as
from ..core.primitive import Primitive
from ..core.record import known_of
from ..core.tangents import is_undefined
from ..core.trace import bind
from .kit.calls import convert, moveaxis, permute
from .kit.registry import register
from .kit.rules import BILINEAR, shifted

__all__ = [
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "Precision",
    "PrecisionLike",
    "batch_matmul",
    "dot",
    "dot_general",
]

Axes = tuple[int, ...]
#: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
#: ``((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))``: which axes are paired.
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]

HALVES = (float16, bfloat16)


# --- precision ----------------------------------------------------------------------------------


class Precision(enum.Enum):
    """How exact products must be on hardware with a choice; here they are always exact.

    Strings stand for the members: ``"default"`` (``"bfloat16"``, ``"fastest"``), ``"high"``
    (``"bfloat16_3x"``, ``"tensorfloat32"``) and ``"highest"`` (``"float32"``).
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _SPELLINGS.get(value) if value is None or isinstance(value, str) else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


_SPELLINGS = {
    None: Precision.DEFAULT,
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


@frozen
class DotAlgorithm:
    """The types in which a product is to be computed, named one by one.

    Accepted so that programs carry over; operands of the named types are multiplied exactly.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Usual algorithms: operands' types, then the accumulator's."""

    DEFAULT = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


#: What stands for the precision of a product.
PrecisionLike = (
    None
    | str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
)


def canonical_precision(precision: Any) -> Any:
    """Return a precision as a pair of `Precision`, an algorithm, or None for the default.

    Raises
    ------
    ValueError
        For anything that names no precision.
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, tuple | list) else (precision, precision)
    try:
        lhs, rhs = pair
        if lhs is None or rhs is None:
            raise ValueError
        return Precision(lhs), Precision(rhs)
    except (ValueError, TypeError):
        names = ", ".join(repr(s) for s in _SPELLINGS if s)
        raise ValueError(
            f"precision must be None, one of {names}, a lax.Precision, a pair of these, a "
            f"lax.DotAlgorithm or a lax.DotAlgorithmPreset (or its name), got {precision!r}."
        ) from None


# --- shape and dtype ----------------------------------------------------------------------------


def _natural(lhs: np.dtype, rhs: np.dtype) -> np.dtype:
    """Return the dtype of a product: within a kind the wider; of equals, signed or bfloat16."""
    if lhs == rhs:
        return lhs
    for alike in (is_integer, is_float):
        if alike(lhs) and alike(rhs):
            return max(lhs, rhs, key=lambda d: (d.itemsize, d.kind == "i" or d == bfloat16))
    return promote_types(lhs, rhs)


def result_dtype(
    name: str, lhs: ShapedArray, rhs: ShapedArray, preferred: np.dtype | None
) -> tuple[np.dtype, bool]:
    """Return dtype and weak type of a contraction of two operands.

    Raises
    ------
    TypeError
        For a preferred dtype that is narrower than sums of integers or complex numbers need.
    """
    natural, weak = _natural(lhs.dtype, rhs.dtype), lhs.weak_type and rhs.weak_type
    if preferred is None:
        return natural, weak
    least = to_real(natural) if is_inexact(natural) else natural
    narrower = preferred.itemsize < least.itemsize or preferred == bool_ != natural
    if narrower and not is_float(natural):
        raise TypeError(
            f"lax.{name}: preferred_element_type must not be narrower than the operands' dtype "
            f"{natural}, got {preferred}. Convert the operands, or the result."
        )
    return preferred, weak


def _check_side(side: str, ndim: int, contract: Axes, batch: Axes) -> None:
    for what, axes in (("contracting", contract), ("batch", batch)):
        if any(not 0 <= a < ndim for a in axes):
            raise TypeError(
                f"lax.dot_general: {side} {what} dimensions must be in [0, {ndim}), got {axes}."
            )
        if len(set(axes)) != len(axes):
            raise TypeError(
                f"lax.dot_general: {side} {what} dimensions must be distinct, got {axes}."
            )
    if set(contract) & set(batch):
        raise TypeError(
            f"lax.dot_general: {side} batch dimensions {batch} and contracting dimensions "
            f"{contract} must have no axis in common."
        )


def _dot_general_aval(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: np.dtype | None,
) -> ShapedArray:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    _check_side("lhs", lhs.ndim, lhs_contract, lhs_batch)
    _check_side("rhs", rhs.ndim, rhs_contract, rhs_batch)
    for what, ours, theirs in (
        ("batch", lhs_batch, rhs_batch),
        ("contracting", lhs_contract, rhs_contract),
    ):
        a, b = tuple(lhs.shape[i] for i in ours), tuple(rhs.shape[i] for i in theirs)
        if a != b:
            raise TypeError(
                f"lax.dot_general: {what} dimensions must have equal sizes, got {a} (axes {ours} "
                f"of {lhs.str_short()}) and {b} (axes {theirs} of {rhs.str_short()})."
            )
    shape = (
        *(lhs.shape[a] for a in lhs_batch),
        *(lhs.shape[a] for a in free_axes(lhs.ndim, lhs_contract, lhs_batch)),
        *(rhs.shape[a] for a in free_axes(rhs.ndim, rhs_contract, rhs_batch)),
    )
    dtype, weak = result_dtype("dot_general", lhs, rhs, preferred_element_type)
    return ShapedArray(shape, dtype, weak)


# --- evaluation ---------------------------------------------------------------------------------


def _dot_general_eval(
    lhs: np.ndarray,
    rhs: np.ndarray,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: np.dtype | None,
) -> np.ndarray:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    dtype = preferred_element_type
    if dtype is None:
        dtype = _natural(lhs.dtype, rhs.dtype)
    axes = Contract(lhs_contract, rhs_contract, lhs_batch, rhs_batch)
    return contracted(lhs, rhs, axes, dtype)


def _known_product(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: np.dtype | None,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Return NumPy's product, where a contraction is one of few numbers as they lie."""
    dtype, (sums, batches) = lhs.dtype, dimension_numbers
    short = max(lhs.size, rhs.size) < LINE
    if not short or batches != ((), ()) or sums != ((lhs.ndim - 1,), (0,)) or lhs.ndim > 2:
        return None
    if rhs.dtype is not dtype or preferred_element_type not in (None, dtype):
        return None
    if dtype.kind not in "fc" or is_half(dtype) or rhs.ndim > 2:
        return None
    if lhs.ndim == rhs.ndim == 2:
        return np.matmul
    a, b = (-1, lhs.shape[-1]), (rhs.shape[0], -1)
    shape = (*lhs.shape[:-1], *rhs.shape[1:])
    return lambda x, y: np.matmul(x.reshape(a), y.reshape(b)).reshape(shape)


known_of[_dot_general_eval] = _known_product


def _printed(params: dict[str, Any]) -> dict[str, Any]:
    """Show axes as lists, and optional params only where they are given."""
    shown: dict[str, Any] = {
        "dimension_numbers": tuple(tuple(map(list, p)) for p in params["dimension_numbers"])
    }
    for name in ("precision", "preferred_element_type"):
        if params[name] is not None:
            shown[name] = params[name]
    return shown


def _dot_general_form(ins: Any, outs: Any, *, dimension_numbers: Any, **params: Any) -> Contract:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    return Contract(lhs_contract, rhs_contract, lhs_batch, rhs_batch)


# --- derivatives and batches --------------------------------------------------------------------


def _dot_general_transpose(
    ct: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, **params: Any
) -> list[Any]:
    """Contract the cotangent with the other operand, over the axes that only this one has."""
    contract, batch = dimension_numbers
    operands = lhs, rhs
    cotangents: list[Any] = [None, None]
    k = 0 if is_undefined(lhs) else 1
    x, y = operands[k], operands[1 - k]
    free, kept = (
        free_axes(x.ndim, contract[k], batch[k]),
        free_axes(y.ndim, contract[1 - k], batch[1 - k]),
    )
    together = len(batch[k])
    start = together + len(free) * (1 - k)
    dims = (
        (tuple(range(start, start + len(kept))), kept),
        (tuple(range(together)), batch[1 - k]),
    )
    bar = bind(dot_general_p, ct, y, dimension_numbers=dims, **params)
    # Its contracted axes come in the order of those of the other operand.
    pairs = sorted(zip(contract[1 - k], contract[k], strict=True))
    axes = (*batch[k], *free, *(ours for _, ours in pairs))
    bar = permute(bar, tuple(axes.index(a) for a in range(x.ndim)))
    cotangents[k] = convert(bar, x.dtype, bar.aval.weak_type)
    return cotangents


def _dot_general_batch(
    size: int, operands: Any, batched: Any, *, dimension_numbers: Any, **params: Any
) -> Any:
    """Take the mapped axis as a batch axis, or, where one operand lacks it, as a free one."""
    contract, batch = (
        tuple(shifted(axes) if b else axes for axes, b in zip(pair, batched, strict=True))
        for pair in dimension_numbers
    )
    if all(batched):
        batch = tuple((0, *axes) for axes in batch)
    out = bind(dot_general_p, *operands, dimension_numbers=(contract, batch), **params)
    if all(batched):
        return out
    lhs = operands[0]
    first = len(batch[0]) if batched[0] else lhs.ndim - len(contract[0])
    return moveaxis(out, first, 0)


dot_general_p = register(
    Primitive(
        "dot_general",
        aval=_dot_general_aval,
        eval=_dot_general_eval,
        form=_dot_general_form,
        jvp=BILINEAR,
        transpose=_dot_general_transpose,
        batch=_dot_general_batch,
        print_params=_printed,
    )
)


# --- faces --------------------------------------------------------------------------------------


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Sum products of two operands over contracting axes, for each index of the batch axes.

    Parameters
    ----------
    lhs, rhs : array
        Their dtypes may differ; they promote.
    dimension_numbers : ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))
        Pairs of sequences of axes, paired in order.
    precision : str, Precision, DotAlgorithm or pair, optional
        Accepted and recorded; products here are exact in the working dtype.
    preferred_element_type : dtype-like, optional
        Dtype of sums and result; by default the operands' promoted dtype. Half precision adds up
        in float32 in any case.

    Returns
    -------
    array
        Axes: batch in the order given, the rest of ``lhs``, the rest of ``rhs``.

    Raises
    ------
    TypeError
        For axes that are out of range, repeated, or of different sizes, and for a
        ``preferred_element_type`` too narrow.
    ValueError
        For malformed ``dimension_numbers`` or an unknown precision.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            dot_general,
            lhs,
            rhs,
            dimension_numbers,
            precision,
            preferred_element_type,
        )
    try:
        contract, batch = dimension_numbers
        pairs = tuple(
            tuple(tuple(map(operator.index, axes)) for axes in _pair(p)) for p in (contract, batch)
        )
    except (TypeError, ValueError):
        raise ValueError(
            "lax.dot_general: dimension_numbers must be ((lhs_contracting, rhs_contracting), "
            f"(lhs_batch, rhs_batch)), each a sequence of ints, got {dimension_numbers!r}."
        ) from None
    if preferred_element_type is not None:
        preferred_element_type = canonicalize_dtype(as_dtype(preferred_element_type))
    return bind(
        dot_general_p,
        lhs,
        rhs,
        dimension_numbers=pairs,
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
    )


def _pair(axes: Any) -> tuple[Any, Any]:
    first, second = axes
    return first, second


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply vectors and matrices: the last axis of ``lhs`` with the first of ``rhs``.

    With ``dimension_numbers`` it is `dot_general`.

    Raises
    ------
    ValueError
        For operands that are not vectors or matrices of matching sizes.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            dot,
            lhs,
            rhs,
            dimension_numbers=dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    if dimension_numbers is None:
        a, b = aval_of(lhs).shape, aval_of(rhs).shape
        if not (1 <= len(a) <= 2 and 1 <= len(b) <= 2 and a[-1] == b[0]):
            raise ValueError(
                "lax.dot: operands must be vectors or matrices whose last and first axes have one "
                f"size, got shapes {a} and {b}. Give dimension_numbers for other products."
            )
        dimension_numbers = (((len(a) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Multiply stacks of matrices: the last two axes are the matrices', the others batch.

    Raises
    ------
    ValueError
        For operands of different ranks, or of a rank below 2.
    TypeError
        For batch or contracting axes of different sizes.
    """
    a, b = aval_of(lhs).ndim, aval_of(rhs).ndim
    if a != b or a < 2:
        raise ValueError(
            f"lax.batch_matmul: operands must have one rank of at least 2, got {a} and {b}."
        )
    batch = tuple(range(a - 2))
    return dot_general(lhs, rhs, (((a - 1,), (a - 2,)), (batch, batch)), precision)


def exact_matmul(lhs: Any, rhs: Any) -> Array:
    """Multiply stacks of matrices to the highest precision: steps and derivatives of algebra."""
    return batch_matmul(lhs, rhs, Precision.HIGHEST)
