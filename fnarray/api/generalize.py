"""One program for all sizes, from what a function is traced to at a few of them.

A function is traced at several choices of the symbolic sizes, and the programs, as data, are laid
over each other: an integer in which they differ must be a function of the sizes that explains all
choices, more of them than it has coefficients. Anything else that differs is an error.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from math import lcm
from typing import Any

from ..core.dims import Dim, SymbolicScope, formula, value
from ..errors import InconclusiveDimensionOperation

Sizes = Mapping[str, int]
#: Choices of one size: of both parities, small and large, no two alike. None is 1 or 2, whose
#: arrays are broadcast, or looked at in other ways that only they allow.
_ONE = (37, 41, 46, 53, 64, 99, 150, 1021)
_MOST_TRIES = 20_000


def choices(names: Sequence[str], scope: SymbolicScope | None) -> list[dict[str, int]]:
    """Return choices of the sizes to trace at: more than a formula has coefficients.

    Raises
    ------
    ValueError
        Few or no sizes keep the constraints.
    """
    if not names:
        return [{}]
    count = len(_ONE) if len(names) == 1 else len(_monomials(len(names))) + 5
    rng = random.Random(0)
    found: list[dict[str, int]] = []
    for turn in range(_MOST_TRIES):
        if turn < count and len(names) == 1:
            sizes = [_ONE[turn]]
        else:
            # Wider with each turn: constraints may ask for large sizes, or for small ones.
            sizes = rng.sample(range(3, 200 + turn), len(names))
        choice = dict(zip(names, sizes, strict=True))
        if scope is not None:
            choice |= {n: value(e, choice) for n, e in scope.equal.items() if n in names}
            if scope.admits(choice) is not None:
                continue
        if choice not in found:
            found.append(choice)
        if len(found) == count:
            return found
    raise ValueError(
        f"export: no {count} choices of the sizes {', '.join(names)} were found that keep the "
        f"constraints of the {scope}."
    )


def generalized(programs: Sequence[Any], choices: Sequence[Sizes]) -> Any:
    """Return programs, as data, as one whose integers may be formulas: ``{"size": "2*b"}``.

    Raises
    ------
    InconclusiveDimensionOperation
        They differ in more than integers that are functions of the sizes.
    """
    if len(programs) == 1:
        return programs[0]
    fit = _Fit(choices)
    return _joined(programs, fit, "the program")


def formulas(choices: Sequence[Sizes]) -> Callable[[Sequence[int]], str | None]:
    """Return what finds the formula of an integer, of its numbers at choices of the sizes."""
    return _Fit(choices).formula


def _joined(parts: Sequence[Any], fit: _Fit, where: str) -> Any:
    first = parts[0]
    kinds = set(map(type, parts))
    if len(kinds) == 1:
        if kinds == {list} and len(set(map(len, parts))) == 1:
            inner = f"{first[0]} at {':'.join(map(str, first[4][:2]))}" if _is_eqn(first) else where
            return [_joined(row, fit, inner) for row in zip(*parts, strict=True)]
        if kinds == {dict} and all(p.keys() == first.keys() for p in parts):
            return {k: _joined([p[k] for p in parts], fit, where) for k in first}
        if all(p == first for p in parts):
            return first
        if kinds == {int}:
            found = fit.formula(parts)
            if found is not None:
                return {"size": found}
    shown = ", ".join(
        f"{_short(p)} for {dict(c)}" for p, c in list(zip(parts, fit.choices, strict=True))[:2]
    )
    raise InconclusiveDimensionOperation(
        f"export: what the function does depends on its symbolic sizes, in {where}: {shown}. One "
        "program must do for all sizes: compute with arrays in place of Python and NumPy, or "
        "export for a fixed size."
    )


def _is_eqn(data: list[Any]) -> bool:
    return len(data) == 5 and isinstance(data[0], str) and isinstance(data[4], list)


def _short(data: Any) -> str:
    text = repr(data) if not isinstance(data, list) else f"{len(data)} parts"
    return text if len(text) < 80 else text[:77] + "..."


def at_sizes(data: Any, sizes: Sizes) -> Any:
    """Return a program, as data, at given sizes."""
    if isinstance(data, list):
        return [at_sizes(x, sizes) for x in data]
    if isinstance(data, dict):
        if data.keys() == {"size"}:
            return value(formula(data["size"]), sizes)
        return {k: at_sizes(x, sizes) for k, x in data.items()}
    return data


# ---- formulas ------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _monomials(count: int) -> tuple[tuple[int, ...], ...]:
    """Return products of up to three, or two, of some numbered names."""
    most = 3 if count == 1 else 2
    return tuple(
        m for degree in range(most + 1) for m in combinations_with_replacement(range(count), degree)
    )


class _Fit:
    """Finds the formula of an integer that differs from choice to choice."""

    def __init__(self, choices: Sequence[Sizes]):
        self.choices = choices
        self.names = list(choices[0])
        rows = [[c[n] for n in self.names] for c in choices]
        self.scope = SymbolicScope()
        self.dims: list[Any] = [Dim.name(n, self.scope) for n in self.names]
        self.monomials = _monomials(len(self.names))
        table = [[Fraction(_power(row, m)) for m in self.monomials] for row in rows]
        self.table = table
        self.inverse = _inverse(table[: len(self.monomials)])
        self.known: dict[tuple[int, ...], str | None] = {}

    def formula(self, numbers: Sequence[int]) -> str | None:
        """Return a formula that gives these numbers, one a choice; None if there is none."""
        key = tuple(numbers)
        if key not in self.known:
            self.known[key] = next(
                (
                    str(e)
                    for e in self._candidates(key)
                    if [value(e, c) for c in self.choices] == list(key)
                ),
                None,
            )
        return self.known[key]

    def _candidates(self, numbers: tuple[int, ...]) -> Iterator[Any]:
        if self.inverse is not None:
            k = len(self.monomials)
            by = [sum(a * b for a, b in zip(row, numbers[:k], strict=True)) for row in self.inverse]
            yield self._polynomial(by)
        yield from self._quotients(numbers)

    def _polynomial(self, coefficients: Sequence[Fraction | int]) -> Any:
        divisor = lcm(*(c.denominator for c in coefficients))
        total: Any = 0
        for c, m in zip(coefficients, self.monomials, strict=True):
            term: Any = int(c * divisor)
            for i in m:
                term = term * self.dims[i]
            total = total + term
        return total // divisor

    def _quotients(self, numbers: tuple[int, ...]) -> Iterator[Any]:
        """Yield ``p*n + q*((n + r) // k) + s`` for small ``k``, first with ``p = 0``."""
        mixed: list[Any] = []
        for i, n in enumerate(self.names):
            sizes = [c[n] for c in self.choices]
            for k in (*range(2, 17), 32, 64, 128, 256):
                for r in dict.fromkeys((0, 1, k - 1, k // 2)):
                    table = [[Fraction(a), Fraction((a + r) // k), Fraction(1)] for a in sizes[:3]]
                    inverse = _inverse(table)
                    if inverse is None:
                        continue
                    p, q, s = (
                        sum(a * b for a, b in zip(row, numbers[:3], strict=True)) for row in inverse
                    )
                    if {p.denominator, q.denominator, s.denominator} != {1}:
                        continue
                    dim = self.dims[i]
                    found = int(p) * dim + int(q) * ((dim + r) // k) + int(s)
                    if p:
                        mixed.append(found)
                    else:
                        yield found
        yield from mixed


def _power(row: Sequence[int], monomial: tuple[int, ...]) -> int:
    out = 1
    for i in monomial:
        out *= row[i]
    return out


def _inverse(rows: Sequence[Sequence[Fraction]]) -> list[list[Fraction]] | None:
    """Return the inverse of a matrix, None where it has none."""
    n = len(rows)
    work = [[*row, *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(rows)]
    for i in range(n):
        pivot = next((r for r in range(i, n) if work[r][i]), None)
        if pivot is None:
            return None
        work[i], work[pivot] = work[pivot], work[i]
        work[i] = [x / work[i][i] for x in work[i]]
        for r in range(n):
            if r != i and work[r][i]:
                factor = work[r][i]
                work[r] = [a - factor * b for a, b in zip(work[r], work[i], strict=True)]
    return [row[n:] for row in work]
