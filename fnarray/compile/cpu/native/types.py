"""What the values of a kernel are, and Numba's rules for numbers of different types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import numpy as np

# Found by the install's import hook, which pyright cannot follow: typed here, for all this folder.
import fnarray_kernels._ir as _ir  # pyright: ignore
import fnarray_kernels.registry as _registry  # pyright: ignore

from ....core.frozen import frozen
from .codes import DType as DType
from .codes import Fallback as Fallback
from .codes import dtype_of as dtype_of

I64, BOOL = np.dtype(np.int64), np.dtype(np.bool_)
U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
C64, C128 = np.dtype(np.complex64), np.dtype(np.complex128)

ir: Any = _ir
registry: Any = _registry
#: Marks a function that is its own text.
compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = registry.compiled
#: LLVM's names of the types that carry numbers.
LLVM: Final[dict[DType, str]] = ir.LLVM


class Template(Protocol):
    """A traced scalar text: `fnarray_kernels._ir.Template`, which says what its parts are."""

    body: str
    result: str
    dtype: DType
    declared: dict[str, tuple[str, tuple[str, ...]]]
    tables: dict[str, np.ndarray[Any, Any]]

    def pasted(
        self, prefix: str, operands: list[str], result: str | None = None
    ) -> tuple[str, str]:
        """Return the instructions with names of their own, and the result's operand."""
        ...


def spelled(dtype: DType, number: Any) -> str:
    """Return a number as LLVM spells a constant of `dtype`."""
    return ir.spelled(dtype, number)


def comparison(symbol: str, dtype: DType) -> str:
    """Return LLVM's instruction of a comparison; a NaN makes all but ``!=`` false."""
    return ir.comparison(symbol, dtype)


@dataclass(slots=True)
class Scalar:
    """A number: its dtype, and the LLVM operand, or two for the parts of a complex number.

    ``literal`` is its value where the text spells it out.
    """

    dtype: DType
    ir: Any
    literal: Any = None


@dataclass(slots=True)
class Array:
    """A contiguous array: the dtype of its elements, a pointer and their count."""

    dtype: DType
    ir: str
    size: str | None = None


@frozen
class Known:
    """Something that compilation knows: a function, a module, a dtype, a number of a global."""

    value: Any


Value = Scalar | Array | Known | tuple[Any, ...]


def part(dtype: DType) -> DType:
    """Return the dtype of a complex number's parts."""
    return F32 if dtype == C64 else F64


def promoted(a: DType, b: DType) -> DType:
    """Return the dtype in which Numba adds numbers of two types: integers in 64 bits at least."""
    kinds = {a.kind, b.kind}
    if "c" in kinds:
        floats = [part(d) if d.kind == "c" else d if d.kind == "f" else F64 for d in (a, b)]
        return C128 if F64 in floats else C64
    if kinds == {"f"}:
        return F64 if F64 in (a, b) else F32
    if "f" in kinds:
        other = a if a.kind != "f" else b
        if other.itemsize < 4:
            raise Fallback(f"{a} with {b}")
        return F64
    if kinds == {"b"}:
        raise Fallback("arithmetic of bools")
    return I64 if "i" in kinds or "b" in kinds else U64


def unified(a: DType, b: DType) -> DType:
    """Return the dtype of a variable that holds values of both types."""
    return a if a == b else np.promote_types(a, b)


def shape_of(value: Any) -> Any:
    """Return what must be equal in arguments of one written function."""
    if isinstance(value, tuple):
        return tuple(map(shape_of, cast(tuple[Any, ...], value)))
    return type(value), value.dtype, getattr(value, "size", 0) is None


def operands_of(value: Any) -> list[str]:
    """Return the operands, after their types, that pass a value to a function."""
    if isinstance(value, tuple):
        return [x for item in cast(tuple[Any, ...], value) for x in operands_of(item)]
    if isinstance(value, Array):
        return [f"ptr {value.ir}", *([f"i64 {value.size}"] if value.size is not None else [])]
    if value.dtype.kind == "c":
        return [f"{LLVM[part(value.dtype)]} {ir}" for ir in value.ir]
    return [f"{LLVM[value.dtype]} {value.ir}"]


def result_type(returns: Sequence[DType]) -> str:
    """Return the LLVM type of a function's results."""
    if not returns:
        return "void"
    kinds = [k for d in returns for k in ([LLVM[part(d)]] * 2 if d.kind == "c" else [LLVM[d]])]
    return "{ " + ", ".join(kinds) + " }"
