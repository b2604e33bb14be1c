"""What the operands of an operation must be: kinds of dtypes, common dtypes and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.avals import ShapedArray
from ...core.dtypes import float0
from ...errors import ShapeError

# Kinds of dtypes, as in ``numpy.dtype.kind``; bfloat16 counts as "f".
FLOAT = "f"
INEXACT = "fc"
INTEGER = "iu"
REAL = "iuf"
NUMBER = "iufc"
LOGICAL = "biu"
ANY = "biufc"
_KIND_NAMES = {
    "b": "bool",
    "i": "integer",
    "u": "unsigned integer",
    "f": "floating",
    "c": "complex",
}


def kind(dtype: Any) -> str:
    """Return the letter of a dtype's kind: one of ``biufc``."""
    letter = np.dtype(dtype).kind
    return "f" if letter == "V" and dtype != float0 else letter


def check_kind(name: str, dtype: Any, kinds: str) -> None:
    """Raise `TypeError` unless the dtype's kind is among ``kinds``."""
    if kind(dtype) not in kinds:
        wanted = ", ".join(_KIND_NAMES[k] for k in kinds)
        raise TypeError(f"lax.{name} does not accept dtype {dtype}; it takes {wanted} dtypes.")


def check_same_dtypes(name: str, avals: tuple[ShapedArray, ...]) -> None:
    """Raise `TypeError` unless all operands have one dtype."""
    first = avals[0].dtype
    for aval in avals:
        if aval.dtype != first:
            got = ", ".join(a.dtype.name for a in avals)
            raise TypeError(
                f"lax.{name} requires arguments to have the same dtypes, got {got}. "
                f"(fnarray.numpy.{name} promotes its arguments; or convert one of them.)"
            )


def broadcast_avals(name: str, avals: tuple[ShapedArray, ...]) -> tuple[int, ...]:
    """Return the common shape of elementwise operands.

    Ranks must be equal but for rank-0 operands; axes of size 1 stretch.
    """
    shape = avals[0].shape
    if all(a.shape == shape for a in avals):
        return shape
    shapes = [a.shape for a in avals if a.shape]
    got = ", ".join(str(a.shape) for a in avals)
    if len({len(s) for s in shapes}) != 1:
        raise ShapeError(
            f"lax.{name}: arrays must have the same number of dimensions, got {got}. "
            f"Use fnarray.numpy.{name} to broadcast."
        )
    out: list[int] = []
    for sizes in zip(*shapes, strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise ShapeError(f"lax.{name} got incompatible shapes for broadcasting: {got}.")
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def all_weak(avals: tuple[ShapedArray, ...]) -> bool:
    """Whether every operand is weakly typed, which makes the result so."""
    return all(a.weak_type for a in avals)
