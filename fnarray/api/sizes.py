"""Symbolic sizes of what a program takes: what may be asked of them, and what they turn out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..control.signature import abstract
from ..core import tree
from ..core.dims import is_symbolic_dim, names_of, value
from ..core.source import PACKAGE
from ..core.trace import JitTracer

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


class _Size(int):
    """A size of an argument at one choice of the symbolic ones: what the user asks is not known."""

    dim: Any

    def __new__(cls, size: int, dim: Any) -> _Size:
        self = super().__new__(cls, size)
        self.dim = dim
        return self

    __hash__ = int.__hash__


def _asked(name: str) -> Callable[[_Size, Any], Any]:
    plain = getattr(int, name)

    def compare(self: _Size, other: Any) -> Any:
        # What the package asks of sizes, such as how to compute, it knows how to answer.
        if isinstance(other, int) and not sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
            return getattr(self.dim, name)(getattr(other, "dim", int(other)))
        return plain(self, other)

    return compare


for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(_Size, _name, _asked(_name))


class _SizedTracer(JitTracer):
    """An argument with symbolic sizes."""

    __slots__ = ("sizes",)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.sizes


def sized(tracer: Any, spec: Any) -> Any:
    """Return an argument that knows which of its sizes are symbolic."""
    if not any(map(is_symbolic_dim, getattr(spec, "shape", ()))):
        return tracer
    new = object.__new__(_SizedTracer)
    new.frame, new.aval, new.origin, new.atom = (
        tracer.frame, tracer.aval, tracer.origin, tracer.atom
    )  # fmt: skip
    new.sizes = tuple(
        _Size(n, d) if is_symbolic_dim(d) else n
        for n, d in zip(tracer.aval.shape, spec.shape, strict=True)
    )
    return new


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
            if is_symbolic_dim(d) and str(d) in program.names:
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
    if not is_symbolic_dim(d):
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
        if is_symbolic_dim(d)
    ]
    for n, d in pairs:
        unknown = [x for x in names_of([[d]]) if x not in sizes]
        if len(unknown) != 1:
            continue
        (name,) = unknown
        low = value(d, {**sizes, name: 0})
        step = value(d, {**sizes, name: 1}) - low
        if step and (n - low) % step == 0:
            sizes[name] = (n - low) // step
    if left := [x for x in missing if x not in sizes]:
        raise ValueError(
            f"export: the sizes {', '.join(left)} cannot be found from the shapes of the "
            f"arguments, {', '.join(map(str, program.in_avals))}."
        )
