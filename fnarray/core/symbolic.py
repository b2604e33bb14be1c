"""Integer index expressions in linear normal form.

An index is an ``int`` or an `Ix`: a sum of atoms with integer coefficients and a constant. The
normal form makes equal indices equal objects in the sense of ``==``, so "is this access aligned
with that loop" is a comparison; known ranges of atoms let the quotients and remainders that
reshapes produce cancel (``(i*m + j) // m == i`` where ``0 <= j < m``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .frozen import frozen

_BIG = 1 << 62


@frozen
class LoopVar:
    """A loop's counter: ``0 <= name < extent``."""

    name: str
    extent: int

    def __hash__(self) -> int:
        return hash(self.name)  # which a text knows: they are asked for more than anything else

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value."""
        return 0, max(self.extent - 1, 0)


@frozen
class Scalar:
    """An integer read from data at run time, known by the local name that holds it."""

    name: str
    low: int = -_BIG
    high: int = _BIG

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value."""
        return self.low, self.high


@frozen
class Opaque:
    """A non-linear piece: ``floordiv``, ``mod`` or ``clamp`` of indices."""

    kind: str
    args: tuple[Any, ...]
    range: tuple[int, int]


Atom = LoopVar | Scalar | Opaque
Index = Any  # int | Ix


class Ix:
    """``const + sum(coefficient * atom)``."""

    __slots__ = ("_hash", "const", "terms")

    def __init__(self, terms: Mapping[Atom, int], const: int = 0):
        self.terms = terms
        self.const = const
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ix) and self.const == other.const and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((frozenset(self.terms.items()), self.const))
        return self._hash

    def __add__(self, other: Index) -> Index:
        if isinstance(other, int):
            return Ix(self.terms, self.const + other)
        terms = dict(self.terms)
        for atom, k in other.terms.items():
            terms[atom] = terms.get(atom, 0) + k
        return _normal(terms, self.const + other.const)

    __radd__ = __add__

    def __mul__(self, k: int) -> Index:
        if not isinstance(k, int):  # pyright: ignore[reportUnnecessaryIsInstance] - or an Ix
            raise TypeError(f"an index times {k!r} is not linear")
        if k == 1:
            return self
        return Ix({a: c * k for a, c in self.terms.items()}, self.const * k) if k else 0

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index) -> Index:
        return self + (-other)

    def __rsub__(self, other: Index) -> Index:
        return (-self) + other

    def __floordiv__(self, m: int) -> Index:
        quotient, rest = _split(self, m)
        low, high = _quotient_range(rest, m)
        if low == high:
            return quotient + low
        return quotient + Ix({Opaque("floordiv", (rest, m), (low, high)): 1})

    def __mod__(self, m: int) -> Index:
        _, rest = _split(self, m)
        low, high = bounds(rest)
        if low // m == high // m:
            return rest - (low // m) * m
        return Ix({Opaque("mod", (rest, m), (0, m - 1)): 1})

    def __repr__(self) -> str:
        return text(self, str)


def variable(name: str, extent: int) -> Index:
    """Return a loop's counter as an index; the only value of an extent of one is 0."""
    return 0 if extent == 1 else Ix({LoopVar(name, extent): 1})


def scalar(name: str, low: int = -_BIG, high: int = _BIG) -> Ix:
    """Return the integer held by a local as an index."""
    return Ix({Scalar(name, low, high): 1})


def _normal(terms: dict[Atom, int], const: int) -> Index:
    kept = {a: c for a, c in terms.items() if c}
    if not kept:
        return const
    for atom, c in kept.items():
        if isinstance(atom, Opaque) and atom.kind == "mod":
            whole, m = atom.args
            partner = Opaque("floordiv", (whole, m), _quotient_range(whole, m))
            if kept.get(partner) == c * m:  # m * (x // m) + x % m == x
                del kept[atom], kept[partner]
                return _normal(kept, const) + whole * c
    return Ix(kept, const)


def _quotient_range(ix: Index, m: int) -> tuple[int, int]:
    low, high = bounds(ix)
    return low // m, high // m


def _split(ix: Ix, m: int) -> tuple[Index, Index]:
    """Split into ``m * quotient + rest`` by the coefficients that ``m`` divides."""
    whole = {a: c // m for a, c in ix.terms.items() if c % m == 0}
    rest = {a: c for a, c in ix.terms.items() if c % m}
    return _normal(whole, ix.const // m), _normal(rest, ix.const % m)


def bounds(ix: Index) -> tuple[int, int]:
    """Return the smallest and largest value an index can take, by interval arithmetic."""
    if isinstance(ix, int):
        return ix, ix
    low = high = ix.const
    for atom, c in ix.terms.items():
        a, b = atom.range
        low += min(a * c, b * c)
        high += max(a * c, b * c)
    return low, high


def clamp(ix: Index, low: int, high: int) -> Index:
    """Return an index limited to ``[low, high]``; itself where it provably lies within."""
    a, b = bounds(ix)
    if low <= a and b <= high:
        return ix
    if b <= low or low == high:  # an axis of size 1 is read at 0, whatever the index array holds
        return low
    if a >= high:
        return high
    return Ix({Opaque("clamp", (ix, low, high), (low, high)): 1})


def leaves(ix: Index) -> set[LoopVar | Scalar]:
    """Return the loop counters and scalars an index depends on."""
    found: set[LoopVar | Scalar] = set()
    if isinstance(ix, Ix):
        for atom in ix.terms:
            if isinstance(atom, Opaque):
                for arg in atom.args:
                    found |= leaves(arg)
            else:
                found.add(atom)
    return found


def substitute(ix: Index, values: Mapping[Atom, Index]) -> Index:
    """Return the index with atoms replaced by indices, simplified anew."""
    if not isinstance(ix, Ix):
        return ix
    if (simple := _substituted(ix, values)) is not None:
        return simple
    total: Index = ix.const
    for atom, c in ix.terms.items():
        if isinstance(atom, Opaque):
            args = tuple(substitute(a, values) for a in atom.args)
            value = _rebuild(atom.kind, args)
        else:
            value = values.get(atom, Ix({atom: 1}))
        total = total + value * c
    return total


def _substituted(ix: Ix, values: Mapping[Atom, Index]) -> Index | None:
    """Return what `substitute` does, in one pass; None where a piece is not linear."""
    terms: dict[Atom, int] = {}
    const = ix.const
    for atom, c in ix.terms.items():
        if type(atom) is Opaque:
            return None
        value = values.get(atom)
        if value is None:
            terms[atom] = terms.get(atom, 0) + c
            continue
        if isinstance(value, int):
            const += value * c
            continue
        const += value.const * c
        for inner, k in value.terms.items():
            if type(inner) is Opaque:
                return None
            terms[inner] = terms.get(inner, 0) + k * c
    kept = {a: c for a, c in terms.items() if c}
    return Ix(kept, const) if kept else const


def _rebuild(kind: str, args: tuple[Any, ...]) -> Index:
    if kind == "clamp":
        return clamp(*args)
    first, m = args
    return first // m if kind == "floordiv" else first % m


def text(ix: Index, number: Callable[[int], str]) -> str:
    """Return the index as source; ``number`` spells each integer constant."""
    if isinstance(ix, int):
        return number(ix)
    parts: list[str] = []
    for atom, c in ix.terms.items():
        body = _atom_text(atom, number)
        sign = "-" if c < 0 else "+"
        parts.append(f"{sign} {body}" if abs(c) == 1 else f"{sign} {number(abs(c))} * {body}")
    if ix.const:
        parts.append(f"{'-' if ix.const < 0 else '+'} {number(abs(ix.const))}")
    parts.sort(key=lambda p: p[0] == "-")  # begin with a positive term where there is one
    joined = " ".join(parts)
    return joined[2:] if joined.startswith("+ ") else "-" + joined[2:]


def _atom_text(atom: Atom, number: Callable[[int], str]) -> str:
    if not isinstance(atom, Opaque):
        return atom.name
    first = text(atom.args[0], number)
    if atom.kind == "clamp":
        _, low, high = atom.args
        least, most = bounds(atom.args[0])
        above = first if least >= low else f"max({first}, {number(low)})"
        return above if most <= high else f"min({above}, {number(high)})"
    m = atom.args[1]
    least, most = bounds(atom.args[0])
    if atom.kind == "mod" and least >= 0 and most < 2 * m:
        return f"({first} if {first} < {number(m)} else {first} - {number(m)})"  # divides nothing
    return f"(({first}) {'//' if atom.kind == 'floordiv' else '%'} {number(m)})"
