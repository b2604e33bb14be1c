"""Operands of derivative rules that are no arrays: zeros never made, and values yet unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .avals import ShapedArray
from .dtypes import float0, is_inexact

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class Zero:
    """A tangent or cotangent known to be zero before anything runs: no array is made of it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


class SymbolicZero(Zero):
    """A known zero as rules with ``symbolic_zeros`` get it, and may return it: a leaf of a tree.

    Its attributes are those of the array that it stands for.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_" or name == "aval":  # of one that is being copied
            raise AttributeError(name)
        return getattr(self.aval, name)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


class Undefined:
    """The operand of an equation under transposition for which a cotangent is wanted."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.aval.shape)

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.aval.dtype

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            "the program is not linear: this operand depends on the values it should be linear "
            "in, as does another operand."
        )

    def __repr__(self) -> str:
        return f"Undefined({self.aval.str_short()})"


def is_zero(t: Any) -> TypeIs[Zero]:
    """Whether a tangent or cotangent is a symbolic zero."""
    return type(t) is Zero


def symbolic(t: Any) -> Any:
    """Return a tangent or cotangent as a rule with ``symbolic_zeros`` gets it."""
    return SymbolicZero(t.aval) if type(t) is Zero else t


def is_undefined(x: Any) -> bool:
    """Whether an operand of an equation under transposition is the linear one."""
    return type(x) is Undefined


def differentiable(dtype: np.dtype) -> bool:
    """Whether values of a dtype have tangents of it: floats and complex numbers."""
    return is_inexact(dtype)


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """Return the aval of the tangents of a value: ``float0`` for integers and booleans."""
    return aval if differentiable(aval.dtype) else ShapedArray(aval.shape, float0)


def nonzero(tangents: Sequence[Any]) -> tuple[bool, ...]:
    """Say which tangents are not known to be zero."""
    return tuple(not is_zero(t) for t in tangents)


def chosen(flags: Sequence[bool], items: Sequence[Any]) -> list[Any]:
    """Return the items that are flagged."""
    return [x for x, f in zip(items, flags, strict=True) if f]


def with_zeros(
    flags: Sequence[bool], items: Iterable[Any], avals: Sequence[ShapedArray]
) -> list[Any]:
    """Return the items at the places flagged, and zeros of the avals' tangents at the others."""
    given = iter(items)
    return [next(given) if f else Zero(tangent_aval(a)) for f, a in zip(flags, avals, strict=True)]


def zero_of(x: Any) -> Zero:
    """Return the symbolic zero tangent of a value."""
    return Zero(tangent_aval(x.aval))
