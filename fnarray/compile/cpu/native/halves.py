"""Float16 by instructions of the processor, where it has them.

The text's own words take about ten operations each way. Results are the same bits, but for a NaN
that signals: an instruction makes it quiet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import fnarray_kernels.scalar as _scalar  # pyright: ignore

from ..processor import processor
from .types import F32, Known, Scalar, Value

if TYPE_CHECKING:
    from .writer import Writer

Rule = Callable[["Writer", list[Value]], Value]
sc: Any = _scalar

_BITS = np.dtype(np.uint16)


def _number(to: Writer, x: Value, dtype: np.dtype) -> Scalar:
    return to.cast(to.constant(x.value) if isinstance(x, Known) else x, dtype)  # type: ignore[arg-type]


def narrowed(kind: str) -> Rule:
    """Return the rule of float32 as the bits of a half: one instruction."""

    def rule(to: Writer, args: list[Value]) -> Value:
        half = to.new(f"fptrunc float {_number(to, args[0], F32).ir} to {kind}")
        return Scalar(_BITS, to.new(f"bitcast {kind} {half} to i16"))

    return rule


def widened(to: Writer, args: list[Value]) -> Value:
    """Write the number that bits of float16 are; those of bfloat16 are shifted."""
    half = to.new(f"bitcast i16 {_number(to, args[0], _BITS).ir} to half")
    return Scalar(F32, to.new(f"fpext half {half} to float"))


def rules() -> dict[object, Rule]:
    """Return the rules of words that the processor has instructions for."""
    if "+f16c" not in processor().features.split(","):
        return {}
    return {sc.f16_load: widened, sc.f16_store: narrowed("half")}
