"""Symbolic sizes of what a program takes: what may be asked of them, and what they turn out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from ..control.signature import abstract
from ..core import dims, tree
from ..core.array import asarray
from ..core.avals import ShapeDtypeStruct
from ..core.dims import names_of, parsed, value
from ..core.source import PACKAGE, user_source
from ..core.trace import JitTracer, state
from ..errors import InconclusiveDimensionOperation
from ..ops.convert import copy

__all__: list[str] = []


class SymbolicArray:
    """Shape, with symbolic sizes, dtype and weak type of an array."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Sequence[Any], dtype: Any, weak_type: bool = False):
        self.shape = tuple(shape)
        self.dtype = dtype
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicArray) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"ShapedArray({self}{', weak_type=True' if self.weak_type else ''})"


#: Libraries that compute with sizes as the package does: what they ask depends on no user.
_ALIKE = ("fnarray", "numpy", "scipy", "opt_einsum", "optree")


def _by_user() -> bool:
    """Say whether the caller's caller is the user's code, which is to get no answer for one size.

    What the package asks of sizes, such as how to compute, it knows how to answer.
    """
    frame = sys._getframe(2)
    if frame.f_code.co_filename.startswith(PACKAGE):
        return False
    return frame.f_globals.get("__name__", "").partition(".")[0] not in _ALIKE


class _Size(int):
    """A size at one choice of the symbolic ones: what the user asks of it is not known."""

    dim: Any

    def __new__(cls, size: int, dim: Any) -> _Size:
        self = super().__new__(cls, size)
        self.dim = dim
        return self

    __hash__ = int.__hash__

    def __int__(self) -> int:
        return int(self.dim) if _by_user() else int.__int__(self)

    def __truediv__(self, other: Any) -> Any:
        ratio = int.__truediv__(self, other)
        return ratio if ratio is NotImplemented else _Ratio(ratio, f"{self.dim} / {other}")


class SymbolicSize(_Size):
    """A size of an argument: beside what is no integer it is an array, as it is in every trace."""

    #: Arrays of NumPy leave to it what they are computed with.
    __array_ufunc__ = None


def _beside(name: str) -> Callable[[SymbolicSize, Any], Any]:
    base = getattr(_Size, name)

    def compute(self: SymbolicSize, other: Any) -> Any:
        out = base(self, other)
        by_numbers = out is NotImplemented and isinstance(other, float | np.ndarray | np.generic)
        if by_numbers or (name == "__rtruediv__" and _by_user()):
            return getattr(copy(asarray(int.__int__(self))), name)(other)
        return SymbolicSize(out, out.dim) if isinstance(out, _Size) else out

    return compute


class _Ratio(float):
    """A quotient of sizes, which is no size: what the user asks of it is not known."""

    text: str

    def __new__(cls, ratio: float, text: str) -> _Ratio:
        self = super().__new__(cls, ratio)
        self.text = text
        return self

    __hash__ = float.__hash__


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic, or one that stands for a symbolic size while it is traced."""
    return isinstance(p, _Size) or dims.is_symbolic_dim(p)


def _plain(x: Any) -> Any:
    """Return what a symbolic size stands for; other numbers as they are."""
    return x.dim if isinstance(x, _Size) else x


def _asked(name: str) -> Callable[[_Size, Any], Any]:
    plain = getattr(int, name)

    def compare(self: _Size, other: Any) -> Any:
        if isinstance(other, int) and _by_user():
            return getattr(self.dim, name)(_plain(other))
        return plain(self, other)

    return compare


def _asked_of_ratio(name: str) -> Callable[[_Ratio, Any], Any]:
    plain = getattr(float, name)

    def compare(self: _Ratio, other: Any) -> Any:
        if _by_user():
            raise InconclusiveDimensionOperation(
                f"Symbolic dimension comparison of '{self.text}' with {other} is inconclusive, at "
                f"{user_source()}. Compare integers: // in place of /."
            )
        return plain(self, other)

    return compare


def _computed(name: str) -> Callable[[_Size, Any], Any]:
    plain = getattr(int, name)

    def compute(self: _Size, *others: Any) -> Any:
        out = plain(self, *others)
        if not isinstance(out, int) or any(type(x) is bool for x in others):
            return out
        dim = getattr(self.dim, name)(*map(_plain, others))
        return _Size(out, dim) if dims.is_symbolic_dim(dim) else out

    return compute


for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(_Size, _name, _asked(_name))
    setattr(_Ratio, _name, _asked_of_ratio(_name))
_ARITHMETIC = ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "mod", "rmod")
for _name in (*_ARITHMETIC, "neg"):
    setattr(_Size, f"__{_name}__", _computed(f"__{_name}__"))
for _name in (*_ARITHMETIC, "truediv", "rtruediv"):
    setattr(SymbolicSize, f"__{_name}__", _beside(f"__{_name}__"))


def given(tracer: Any, shape: Sequence[Any]) -> Any:
    """Return an argument that knows which of its sizes are symbolic."""
    return sized(tracer, shape, SymbolicSize)


class _SizedTracer(JitTracer):
    """A tracer with symbolic sizes."""

    __slots__ = ("sizes",)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.sizes

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.sizes)

    def __len__(self) -> int:
        if self.sizes and isinstance(self.sizes[0], _Size) and _by_user():
            return int(self.sizes[0].dim)  # an error: len() gives nothing but a number
        return super().__len__()


def sized(tracer: Any, shape: Sequence[Any], kind: type[_Size] = _Size) -> Any:
    """Return a tracer that knows which of its sizes are symbolic."""
    if not any(map(dims.is_symbolic_dim, shape)):
        return tracer
    new = object.__new__(_SizedTracer)
    new.frame, new.aval, new.origin, new.atom = (
        tracer.frame, tracer.aval, tracer.origin, tracer.atom
    )  # fmt: skip
    new.sizes = tuple(
        kind(n, d) if dims.is_symbolic_dim(d) else n
        for n, d in zip(tracer.aval.shape, shape, strict=True)
    )
    return new


@contextmanager
def watched(watch: Callable[[JitTracer], JitTracer]) -> Iterator[None]:
    """Call a function with each tracer that traces make, for one in its place."""
    before, state.watch = state.watch, watch
    try:
        yield
    finally:
        state.watch = before


class Shapes:
    """The shapes of all that is computed, at several choices of the sizes; then as formulas.

    A function is traced at some choices, each within `noted`. Traced once more within `asked`,
    what it computes knows its symbolic sizes: a branch on any is refused as one on an argument's.
    """

    def __init__(self, scope: Any):
        self.scope = scope
        self.found: list[list[tuple[int, ...]]] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the shapes of what is traced."""
        shapes: list[tuple[int, ...]] = []
        self.found.append(shapes)

        def note(tracer: JitTracer) -> JitTracer:
            shapes.append(tracer.aval.shape)
            return tracer

        with watched(note):
            yield

    @contextmanager
    def asked(
        self, formula: Callable[[Sequence[int]], str | None], sizes: Mapping[str, int]
    ) -> Iterator[None]:
        """Let what is traced know its sizes: formulas of the numbers noted, one a choice."""
        # The first trace may have met functions whose graphs the later ones found kept.
        rows = iter(zip(*self.found[1:], strict=False))

        def name(tracer: JitTracer) -> JitTracer:
            shapes = next(rows, ())
            if len({len(s) for s in shapes} | {tracer.aval.ndim}) > 1:
                return tracer  # something else than was traced before
            found = [self._dim(formula, numbers) for numbers in zip(*shapes, strict=True)]
            fits = [value(d, sizes) for d in found] == list(tracer.aval.shape)
            return sized(tracer, found) if fits else tracer

        with watched(name):
            yield

    def _dim(self, formula: Callable[[Sequence[int]], str | None], numbers: Sequence[int]) -> Any:
        if len(set(numbers)) == 1:
            return numbers[0]
        text = formula(numbers)
        return parsed(text, self.scope) if text else 0  # which is none: nothing is said of it


def check_solvable(program: Any, sizes: Mapping[str, int]) -> None:
    """Raise `ValueError` unless a program's symbolic sizes can be found from its arguments'."""
    found_sizes(
        program,
        [
            ShapeDtypeStruct([value(d, sizes) for d in a.shape], a.dtype, weak_type=a.weak_type)
            for a in program.in_avals
        ],
    )


def found_sizes(program: Any, leaves: Sequence[Any]) -> tuple[int, ...]:
    """Return the values of a program's symbolic sizes; raise for arguments that do not fit.

    Raises
    ------
    ValueError
        A dtype or a shape is another than the program is for; the error names the argument.
    """
    args, kwargs = program.in_tree.unflatten(range(len(leaves)))
    paths = [f"args{tree.keystr(p)}" for p, _ in tree.leaves_with_path(args)]
    paths += [f"kwargs{tree.keystr(p)}" for p, _ in tree.leaves_with_path(kwargs)]
    avals = [abstract(x) for x in leaves]
    sizes: dict[str, int] = {}
    for path, a, want in zip(paths, avals, program.in_avals, strict=True):
        if a.dtype != want.dtype:
            raise ValueError(
                f"Dtype mismatch for {path}: expected {want.dtype} and called with {a.dtype}"
            )
        if len(a.shape) != len(want.shape):
            raise ValueError(
                f"Rank mismatch for {path}: expected {want.shape} and called with {a.shape}"
            )
        for n, d in zip(a.shape, want.shape, strict=True):
            if dims.is_symbolic_dim(d) and str(d) in program.names:
                sizes.setdefault(str(d), n)
    if missing := set(program.names) - sizes.keys():
        _solve(program, avals, sizes, missing)
    for path, a, want in zip(paths, avals, program.in_avals, strict=True):
        for k, (n, d) in enumerate(zip(a.shape, want.shape, strict=True)):
            _check(path, k, n, d, a, want, sizes)
    if broken := program.scope.admits(sizes):
        raise ValueError(
            f"Input shapes do not match the polymorphic shapes specification: {broken} does "
            f"not hold for {sizes}."
        )
    return tuple(sizes[n] for n in program.names)


def _check(path: str, k: int, n: int, d: Any, a: Any, want: Any, sizes: Mapping[str, int]) -> None:
    if not dims.is_symbolic_dim(d):
        if n != d:
            raise ValueError(
                f"Shape mismatch for {path}.shape[{k}] (expected same constant): expected "
                f"{want.shape} and called with {a.shape}"
            )
    elif n != value(d, sizes) or n < 1:
        raise ValueError(
            "Input shapes do not match the polymorphic shapes specification. Found "
            f"inconsistency between dimension size {path}.shape[{k}] (= {n}) and the "
            f"specification '{d}' (= {value(d, sizes)}), with {dict(sizes)}."
        )


def _solve(program: Any, avals: Sequence[Any], sizes: dict[str, int], missing: set[str]) -> None:
    """Find sizes that stand in no shape alone, from those like ``2*b + 1``."""
    pairs = [
        (n, d)
        for a, want in zip(avals, program.in_avals, strict=True)
        for n, d in zip(a.shape, want.shape, strict=True)
        if dims.is_symbolic_dim(d)
    ]
    for n, d in pairs:
        unknown = [x for x in names_of([[d]]) if x not in sizes]
        if len(unknown) != 1:
            continue
        (name,) = unknown
        low, one, two = (value(d, {**sizes, name: k}) for k in range(3))
        step = one - low
        if step and two - one == step and (n - low) % step == 0:
            sizes[name] = (n - low) // step
    if left := [x for x in missing if x not in sizes]:
        raise ValueError(
            f"export: the sizes {', '.join(left)} cannot be found from the shapes of the "
            f"arguments, {', '.join(map(str, program.in_avals))}."
        )
