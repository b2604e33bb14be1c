"""Symbolic sizes: integer polynomials in names that stand for sizes of axes, at least 1.

Arithmetic and equality are exact. An order of two sizes is known where it holds for all values of
the names that the scope's constraints allow; else asking for it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any

from ..errors import InconclusiveDimensionOperation
from .source import Source, user_source

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(\*\*|==|>=|<=|\.\.\.|.))")
#: A product of atoms: names, or `_Call`, with their powers; sorted.
Monomial = tuple[tuple[Any, int], ...]
Terms = Mapping[Monomial, int]


class SymbolicScope:
    """The names of some symbolic sizes, and what is known of them.

    Parameters
    ----------
    constraints : sequence of str
        ``"b >= 4"``, ``"c == 2*b"``, ``"mod(b, 2) == 0"``.
    """

    def __init__(self, constraints: Sequence[str] = ()):
        if isinstance(constraints, str):
            raise TypeError(f"SymbolicScope: constraints must be a sequence, got {constraints!r}.")
        self.constraints = tuple(constraints)
        self.source: Source = user_source()
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.equal: dict[str, Any] = {}
        self.known: list[Any] = []
        #: What a product is where it stands alone, or times so much: its factor, and what for.
        self.instead: dict[Monomial, tuple[int, Any]] = {}
        #: Both sides of each constraint, and how they compare.
        self.tests: list[tuple[Any, str, Any]] = []
        for text in constraints:
            self._add(text)

    def _add(self, text: str) -> None:
        parser = _Parser(text, self, "constraint")
        left = parser.expression()
        op = parser.take()
        if op not in ("==", ">=", "<="):
            raise ValueError(
                f"Unsupported constraint {text!r}: it must be of the form e1 >= e2, e1 <= e2 or "
                "e1 == e2."
            )
        right = parser.expression()
        parser.end()
        self.tests.append((left, op, right))
        if op == "==":
            self._replace(text, left, right)
            return
        more = left - right if op == ">=" else right - left
        if isinstance(more, Dim):
            self._bound(more)
            self.known.append(more)

    def _replace(self, text: str, left: Any, right: Any) -> None:
        """Learn what stands for a name, or a product, wherever it is met."""
        if not isinstance(left, Dim) or len(left.terms) != 1:
            raise ValueError(
                f"Invalid equality constraint: {text!r}, at {self.source}: the left-hand-side must "
                "be one name or product, with no sum, which the right one then stands for."
            )
        ((product, factor),) = left.terms.items()
        if factor == 1 and len(product) == 1 and isinstance(product[0][0], str):
            ((name, power),) = product
            if power == 1:
                self.equal[name] = right
                return
        self.instead[product] = factor, right

    def replaced(self, terms: Terms) -> Any:
        """Return a polynomial in which what constraints have found equal stands for products."""
        total: Any = 0
        left: dict[Monomial, int] = {}
        for m, c in terms.items():
            factor, right = self.instead.get(m, (0, None))
            if factor and c % factor == 0:
                total = total + right * (c // factor)
            else:
                left[m] = c
        return Dim.made(left, self) + total

    def _bound(self, more: Dim) -> None:
        """Learn a bound of a single name from ``more >= 0``."""
        terms = {m: c for m, c in more.terms.items() if m}
        if len(terms) != 1:
            return
        (((atom, power),), c) = next(((m, c) for m, c in terms.items()), (((None, 0),), 0))
        if not isinstance(atom, str) or power != 1:
            return
        const = more.terms.get((), 0)
        if c > 0:
            self.least[atom] = max(self.least.get(atom, 1), -(const // c))
        else:
            self.most[atom] = const // -c

    def admits(self, sizes: Mapping[str, int]) -> str | None:
        """Return the first constraint that sizes break, None if there is none."""
        for text, (left, op, right) in zip(self.constraints, self.tests, strict=True):
            a, b = value(left, sizes), value(right, sizes)
            if not {"==": a == b, ">=": a >= b, "<=": a <= b}[op]:
                return text
        return None

    def __str__(self) -> str:
        inside = ", ".join(self.constraints)
        return f"scope created at {self.source}" + (f" with constraints {inside}" if inside else "")


#: What an atom of two sizes is where they are known.
_CALLS: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class _Call:
    """One of `_CALLS` of two sizes, as an atom."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Any, ...]):
        self.name = name
        self.args = args

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Dim:
    """A symbolic size: a polynomial with integer coefficients that is no constant."""

    __slots__ = ("scope", "terms")

    def __init__(self, terms: Terms, scope: SymbolicScope):
        self.terms = dict(terms)
        self.scope = scope

    @staticmethod
    def name(name: str, scope: SymbolicScope) -> Any:
        """Return the size of a name."""
        return scope.equal.get(name, Dim({((name, 1),): 1}, scope))

    @staticmethod
    def made(terms: Terms, scope: SymbolicScope) -> Any:
        """Return a polynomial, as an int where it is constant."""
        terms = {m: c for m, c in terms.items() if c}
        if any(m in scope.instead and c % scope.instead[m][0] == 0 for m, c in terms.items()):
            return scope.replaced(terms)
        return terms.get((), 0) if set(terms) <= {()} else Dim(terms, scope)

    def _with(self, other: Any, combine: Callable[[Terms, Terms], Terms]) -> Any:
        if isinstance(other, Dim):
            if other.scope is not self.scope:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes: {self} of the {self.scope}, and {other} "
                    f"of the {other.scope}. Make both with scope=."
                )
            return Dim.made(combine(self.terms, other.terms), self.scope)
        if isinstance(other, int):
            return Dim.made(combine(self.terms, {(): int(other)}), self.scope)
        return NotImplemented

    def __add__(self, other: Any) -> Any:
        return self._with(other, _sum)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, _product)

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -1 * other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __pow__(self, power: int) -> Any:
        out: Any = 1
        for _ in range(power):
            out = out * self
        return out

    def __floordiv__(self, other: Any) -> Any:
        return called("floordiv", self, other)

    def __mod__(self, other: Any) -> Any:
        return called("mod", self, other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rfloordiv__(self, other: Any) -> Any:
        return called("floordiv", other, self)

    def __rmod__(self, other: Any) -> Any:
        return called("mod", other, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dim | int):
            return NotImplemented
        return (self - other) == 0 if isinstance(other, Dim) else False

    def __hash__(self) -> int:
        return hash(str(self))

    def __ge__(self, other: Any) -> bool:
        return _not_negative(self - other, self, ">=", other)

    def __gt__(self, other: Any) -> bool:
        return _not_negative(self - other - 1, self, ">", other)

    def __le__(self, other: Any) -> bool:
        return _not_negative(other - self, self, "<=", other)

    def __lt__(self, other: Any) -> bool:
        return _not_negative(other - self - 1, self, "<", other)

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension {str(self)!r} used in a context that requires a constant, at "
            f"{user_source()}. What is compiled or run has sizes: give it a shape of numbers; "
            "fnarray.export keeps the symbol."
        )

    __index__ = __int__

    def __str__(self) -> str:
        return _text(self.terms)

    __repr__ = __str__


def _sum(a: Terms, b: Terms) -> Terms:
    return {m: a.get(m, 0) + b.get(m, 0) for m in {**a, **b}}


def _product(a: Terms, b: Terms) -> dict[Monomial, int]:
    out: dict[Monomial, int] = {}
    for m, c in a.items():
        for n, d in b.items():
            powers: dict[Any, int] = dict(m)
            for atom, p in n:
                powers[atom] = powers.get(atom, 0) + p
            key = tuple(sorted(powers.items(), key=lambda item: str(item[0])))
            out[key] = out.get(key, 0) + c * d
    return out


def called(name: str, a: Any, b: Any) -> Any:
    """Return one of `_CALLS` of two sizes."""
    if isinstance(a, int) and isinstance(b, int):
        return _CALLS[name](a, b)
    scope = (a if isinstance(a, Dim) else b).scope
    if name in ("max", "min"):
        return _chosen(name, a, b, scope)
    if isinstance(b, int) and b and isinstance(a, Dim):
        # The part that divides without remainder comes out.
        whole = Dim.made({m: c // b for m, c in a.terms.items() if c % b == 0}, scope)
        rest = Dim.made({m: c for m, c in a.terms.items() if c % b}, scope)
        if isinstance(rest, int):
            return whole + rest // b if name == "floordiv" else rest % b
        alone = Dim.made({((_Call(name, (rest, b)), 1),): 1}, scope)
        return alone if name == "mod" else whole + alone
    return Dim.made({((_Call(name, (a, b)), 1),): 1}, scope)


def _chosen(name: str, a: Any, b: Any, scope: SymbolicScope) -> Any:
    """Return the larger or smaller of two sizes, one of them where it is known which."""
    try:
        return (a if a >= b else b) if name == "max" else (b if a >= b else a)
    except InconclusiveDimensionOperation:
        return Dim.made({((_Call(name, (a, b)), 1),): 1}, scope)


def _text(terms: Terms) -> str:
    def order(item: tuple[Monomial, int]) -> Any:
        return sum(p for _, p in item[0]), [(str(a), p) for a, p in reversed(item[0])]

    out = ""
    for m, c in sorted(terms.items(), key=order, reverse=True):
        factors = [f"{a}^{p}" if p > 1 else str(a) for a, p in m]
        size = abs(c)
        body = "*".join([str(size)] * (size != 1 or not m) + factors)
        if not out:
            out = f"-{body}" if c < 0 else body
        else:
            out += f" - {body}" if c < 0 else f" + {body}"
    return out or "0"


def _names(e: Any) -> set[str]:
    found: set[str] = set()
    if isinstance(e, Dim):
        for m in e.terms:
            for atom, _ in m:
                found |= {atom} if isinstance(atom, str) else set().union(*map(_names, atom.args))
    return found


def is_choice(e: Any) -> bool:
    """Whether a size is the larger or smaller of two, or made of one that is."""
    atoms = (a for m in e.terms for a, _ in m) if isinstance(e, Dim) else ()
    calls = [a for a in atoms if isinstance(a, _Call)]
    return any(a.name in ("max", "min") or any(map(is_choice, a.args)) for a in calls)


def names_of(shapes: Iterable[Sequence[Any]]) -> list[str]:
    """Return the names in some shapes, sorted."""
    found: set[str] = set()
    for shape in shapes:
        found = found.union(*map(_names, shape))
    return sorted(found)


def value(e: Any, sizes: Mapping[str, int]) -> int:
    """Return a size where the names have values."""
    if not isinstance(e, Dim):
        return int(e)
    total = 0
    for m, c in e.terms.items():
        for atom, p in m:
            if isinstance(atom, str):
                c *= sizes[atom] ** p
            else:
                a, b = (value(x, sizes) for x in atom.args)
                c *= _CALLS[atom.name](a, b) ** p
        total += c
    return total


# ---- bounds --------------------------------------------------------------------------------------


def _bounds(e: Any, scope: SymbolicScope) -> tuple[float, float]:
    """Return what a size is at least and at most."""
    if not isinstance(e, Dim):
        return e, e
    low: float = 0
    high: float = 0
    for m, c in e.terms.items():
        a: float = 1
        b: float = 1
        for atom, p in m:
            least, most = _atom_bounds(atom, scope)
            if least < 0:
                return -inf, inf
            a, b = a * least**p, b * most**p if b and most else 0
        low, high = low + (c * a if c > 0 else c * b), high + (c * b if c > 0 else c * a)
    return low, high


def _atom_bounds(atom: Any, scope: SymbolicScope) -> tuple[float, float]:
    if isinstance(atom, str):
        return scope.least.get(atom, 1), scope.most.get(atom, inf)
    if atom.name in ("max", "min"):
        (a, b), (c, d) = (_bounds(x, scope) for x in atom.args)
        choose = max if atom.name == "max" else min
        return choose(a, c), choose(b, d)
    (low, high), by = _bounds(atom.args[0], scope), atom.args[1]
    if not isinstance(by, int) or by <= 0:
        return -inf, inf
    if atom.name == "mod":
        return 0, by - 1
    return (low // by if low > -inf else -inf), (high // by if high < inf else inf)


def _not_negative(e: Any, a: Any, op: str, b: Any) -> bool:
    if isinstance(e, int):
        return e >= 0
    low, high = _bounds(e, e.scope)
    if low >= 0:
        return True
    if high < 0:
        return False
    times = dict.fromkeys((1, max(abs(c) for m, c in e.terms.items() if m)))
    for known in (k * n for k in e.scope.known for n in times):
        rest = e - known
        if _bounds(rest, e.scope)[0] >= 0:
            return True
        if _bounds(-1 * e - known - 1, e.scope)[0] >= 0:
            return False
    raise InconclusiveDimensionOperation(
        f"Symbolic dimension comparison '{a}' {op} '{b}' is inconclusive, at {user_source()}: it "
        f"does not hold, or fail, for all sizes.\n  It is of the {e.scope}.\n  Add a constraint to "
        "the scope, or choose by value with lax.cond."
    )


# ---- parsing -------------------------------------------------------------------------------------


class _Parser:
    """Reads a shape, or a constraint."""

    def __init__(self, text: str, scope: SymbolicScope, what: str):
        self.text, self.scope, self.what = text, scope, what
        self.tokens = [
            "".join(m) for m in _TOKEN.findall(text.strip()) if any(x.strip() for x in m)
        ]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if wanted and token != wanted:
            raise self.error(f"expecting {wanted!r}")
        self.at += 1
        return token

    def error(self, why: str) -> ValueError:
        found = self.peek() or "the end"
        return ValueError(
            f"syntax error in symbolic {self.what} {self.text!r}: {why} but found {found}. Parsed "
            f"{' '.join(self.tokens[: self.at])!r}."
        )

    def end(self) -> None:
        if self.peek():
            raise self.error("expecting the end")

    def expression(self) -> Any:
        total = self.term()
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            total = total + sign * self.term()
        return total

    def term(self) -> Any:
        total = self.factor()
        while self.peek() == "*":
            self.take()
            total = total * self.factor()
        return total

    def factor(self) -> Any:
        base = self.atom()
        if self.peek() in ("^", "**"):
            self.take()
            if not self.peek().isdigit():
                raise self.error("expecting a number")
            base = base ** int(self.take())
        return base

    def atom(self) -> Any:
        token = self.peek()
        if token == "-":
            self.take()
            return -1 * self.atom()
        if token == "(":
            self.take()
            inner = self.expression()
            self.take(")")
            return inner
        if token.isdigit():
            return int(self.take())
        if not token.isidentifier():
            raise self.error("expecting a name, a number or '-'")
        self.take()
        if token in _CALLS and self.peek() == "(":
            self.take()
            a = self.expression()
            self.take(",")
            b = self.expression()
            self.take(")")
            return called(token, a, b)
        return Dim.name(token, self.scope)


def parsed(text: str, scope: SymbolicScope) -> Any:
    """Return the size that a text says."""
    parser = _Parser(text, scope, "dimension")
    found = parser.expression()
    parser.end()
    return found


@lru_cache(maxsize=4096)
def formula(text: str) -> Any:
    """Return the size that a text says, in a scope that knows nothing."""
    return parsed(text, _NOTHING)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Return a shape with symbolic sizes.

    Parameters
    ----------
    shape_spec : str
        ``"b, 2*b, 3"``: sums and products of names and numbers, ``floordiv(a, n)``, ``mod(a, n)``,
        ``max(a, b)``, ``min(a, b)``.
        ``"_"`` stands for the size in ``like``, ``"..."`` for all that are left there.
    constraints : sequence of str
        What is known of the names: see `SymbolicScope`.
    scope : SymbolicScope, optional
        In place of constraints: sizes of one scope may be used together.
    like : sequence of int, optional

    Raises
    ------
    ValueError
        The text is no shape, or does not fit ``like``.
    """
    if scope is not None and constraints:
        raise ValueError("symbolic_shape: pass constraints to the scope, not beside it.")
    scope = scope or SymbolicScope(constraints)
    parser = _Parser("..." if shape_spec is None else _bare(shape_spec), scope, "shape")
    out: list[Any] = []
    while parser.peek():
        if parser.peek() == "...":
            parser.take()
            if like is None:
                raise ValueError(f"symbolic_shape: {shape_spec!r} has '...', and like= is missing.")
            parser.end()
            out += like[len(out) :]
            break
        if parser.peek() == "_":
            parser.take()
            if like is None or len(out) >= len(like):
                raise ValueError(f"symbolic_shape: {shape_spec!r} has '_', and like= no such size.")
            out.append(like[len(out)])
        else:
            out.append(parser.expression())
        if parser.peek():
            parser.take(",")
    if like is not None and len(out) != len(like):
        raise ValueError(
            f"symbolic_shape: {shape_spec!r} has {len(out)} sizes, like={tuple(like)} has "
            f"{len(like)}."
        )
    return tuple(out)


def _bare(text: str) -> str:
    """Return a shape without the parentheses around it all."""
    text = text.strip()
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is symbolic."""
    return isinstance(p, Dim)


_NOTHING = SymbolicScope()
