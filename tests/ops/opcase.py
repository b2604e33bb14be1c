"""Rows of the operation tests: what to call, on what, and how exact the answer must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

#: Dtypes that stand for a kind; 64-bit ones run with ``enable_x64``.
DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int32"),
    "u": ("uint8", "uint32"),
    "I": ("int64", "uint64"),
    "f": ("float32", "float16", "bfloat16", "float64"),
    "c": ("complex64", "complex128"),
}
WIDE = {"int64", "uint64", "float64", "complex128"}
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan)


def dtype_of(name: str) -> np.dtype:
    """Return the NumPy dtype of a name, ``bfloat16`` included."""
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)


@dataclass(frozen=True)
class OpCase:
    """One operation with its parameters; the driver runs it here and in JAX, and compares.

    Parameters
    ----------
    name : str
        Of the operation in ``lax``; a suffix after ``:`` tells rows of one operation apart.
    fn : callable, optional
        ``fn(lax)`` gives what to call on the arrays; ``lax.<name>`` where omitted.
    shapes : tuple of tuples
        Shape of each operand.
    dtypes : str or tuple of str
        Kinds (``"iuf"``; ``"I"`` for 64-bit integers), all operands sharing each dtype in turn;
        or the operands' own dtype names (``("float32", "int32")``).
    params : mapping
        Keyword arguments.
    ulp : float
        Error allowed in units in the last place of the result, two at most for half types (JAX
        rounds some of them midway); 0 asks for equal bits but for NaN payloads.
    domain : (low, high)
        Range of the elements; integers take its whole numbers.
    special : bool
        Whether float operands also hold zeros, infinities and NaN.
    raises : exception type, optional
        What both must raise.
    jax_raises : exception type, optional
        What JAX raises where it differs from ``raises``.
    match : str
        Pattern that our message must match.
    values : tuple, optional
        The operands themselves, in place of random ones; ``dtypes`` is then not used.
    bench : str
        Tag of the benchmark that runs the row; none where empty.
    """

    name: str
    fn: Callable[[Any], Callable[..., Any]] | None = None
    shapes: tuple[tuple[int, ...], ...] = ((3, 4),)
    dtypes: str | tuple[str, ...] = "f"
    params: Mapping[str, Any] = field(default_factory=dict)
    ulp: float = 0
    domain: tuple[float, float] = (-4, 4)
    special: bool = False
    raises: type[BaseException] | None = None
    jax_raises: type[BaseException] | None = None
    match: str = ""
    values: tuple[Any, ...] | None = None
    bench: str = ""

    def __post_init__(self) -> None:
        """Freeze the parameters: the functions under test read them, and are to be pure."""
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))

    def face(self, lax: Any) -> Callable[..., Any]:
        """Return the operation of a ``lax`` module, as a function of the arrays."""
        face = self.fn(lax) if self.fn else getattr(lax, self.name.split(":")[0])
        return partial(face, **self.params) if self.params else face

    def call(self, lax: Any, *args: Any) -> Any:
        """Apply the operation of a ``lax`` module."""
        return self.face(lax)(*args)

    def signatures(self) -> Iterator[tuple[str, ...]]:
        """Yield the operands' dtype names of each run."""
        if self.values is not None:
            yield ()
        elif isinstance(self.dtypes, str):
            for kind in self.dtypes:
                for name in DTYPES[kind]:
                    yield (name,) * len(self.shapes)
        else:
            yield self.dtypes

    def args(self, signature: tuple[str, ...], seed: int = 0) -> tuple[Any, ...]:
        """Return operands; the same for the same seed."""
        if self.values is not None:
            return self.values
        rng = np.random.default_rng(seed)
        pairs = zip(self.shapes, signature, strict=True)
        return tuple(self._draw(rng, shape, dtype_of(name)) for shape, name in pairs)

    def _draw(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        low, high = self.domain
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            low = max(low, np.iinfo(dtype).min)
            return rng.integers(
                int(low), int(min(high, np.iinfo(dtype).max)), shape, np.int64
            ).astype(dtype)
        x = np.asarray(rng.uniform(low, high, shape))
        if dtype.kind == "c":
            x = x + 1j * rng.uniform(low, high, shape)
        elif self.special and x.ndim:
            some = rng.permutation(x.size)[: min(x.size // 2, len(_SPECIAL))]
            x.flat[some] = rng.permutation(_SPECIAL)[: some.size]
        return x.astype(dtype)


def is_wide(signature: tuple[str, ...]) -> bool:
    """Whether a run needs 64-bit types."""
    return not WIDE.isdisjoint(signature)
