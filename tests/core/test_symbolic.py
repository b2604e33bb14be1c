"""Integer indices mean what plain integers do, for every value of every atom."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fnarray.core.symbolic import (
    Ix,
    LoopVar,
    Opaque,
    Scalar,
    bounds,
    clamp,
    leaves,
    scalar,
    substitute,
    text,
    variable,
)

EXTENTS = {"i": 3, "j": 4, "k": 1, "l": 5}
RANGES = {"s": (-3, 2), "t": (2, 4)}
ATOMS = {n: variable(n, e) for n, e in EXTENTS.items()}
ATOMS |= {n: scalar(n, *r) for n, r in RANGES.items()}
VALUES = {n: range(e) for n, e in EXTENTS.items()}
VALUES |= {n: range(low, high + 1) for n, (low, high) in RANGES.items()}
POINTS = [dict(zip(VALUES, p, strict=True)) for p in product(*VALUES.values())]

Expression = tuple[Any, Callable[[dict[str, int]], int]]


def _atom(name: str) -> Expression:
    return ATOMS[name], lambda at: at[name]


def _combined(pair: tuple[Expression, Expression]) -> st.SearchStrategy[Expression]:
    (x, f), (y, g) = pair
    return st.sampled_from([(x + y, lambda at: f(at) + g(at)), (x - y, lambda at: f(at) - g(at))])


def _changed(item: Expression) -> st.SearchStrategy[Expression]:
    x, f = item
    return st.one_of(
        st.integers(-6, 6).map(lambda c: (x * c, lambda at: f(at) * c)),
        st.integers(-9, 9).map(lambda c: (c - x, lambda at: c - f(at))),
        st.integers(1, 7).map(lambda m: (x // m, lambda at: f(at) // m)),
        st.integers(1, 7).map(lambda m: (x % m, lambda at: f(at) % m)),
        st.tuples(st.integers(-6, 6), st.integers(0, 6)).map(
            lambda c: (
                clamp(x, c[0], c[0] + c[1]),
                lambda at: min(max(f(at), c[0]), c[0] + c[1]),
            )
        ),
    )


#: Pairs of an index and the same in plain integers.
EXPRESSIONS = st.recursive(
    st.one_of(
        st.sampled_from(sorted(ATOMS)).map(_atom),
        st.integers(-9, 9).map(lambda c: (c, lambda at: c)),
    ),
    lambda inner: st.one_of(st.tuples(inner, inner).flatmap(_combined), inner.flatmap(_changed)),
    max_leaves=6,
)
#: Coefficients of a linear index, and its constant.
LINEAR = st.tuples(st.lists(st.integers(-9, 9), min_size=6, max_size=6), st.integers(-20, 20)).map(
    lambda c: sum((x * k for x, k in zip(ATOMS.values(), c[0], strict=True)), c[1])
)


def spelled(ix: Any) -> Callable[[dict[str, int]], int]:
    """Return the index as a kernel would compute it, a function of the atoms' values."""
    function = eval(f"lambda {', '.join(VALUES)}: {text(ix, str)}")
    return lambda at: function(**at)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS)
def test_an_index_is_the_integer_it_stands_for(expression):
    """Text, bounds and substitution of numbers agree with integers at every point."""
    ix, plain = expression
    low, high = bounds(ix)
    kernel = spelled(ix)
    for at in POINTS:
        want = plain(at)
        assert kernel(at) == want
        assert low <= want <= high
    for at in POINTS[::31]:
        numbers = {atom: at[atom.name] for atom in leaves(ix)}
        assert substitute(ix, numbers) == plain(at)


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS)
def test_an_index_depends_on_its_leaves_alone(expression):
    """Atoms that are no leaves may take any value."""
    ix, plain = expression
    names = {atom.name for atom in leaves(ix)}
    seen: dict[tuple[int, ...], int] = {}
    for at in POINTS:
        assert seen.setdefault(tuple(at[n] for n in sorted(names)), plain(at)) == plain(at)


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS, LINEAR)
def test_substitution_of_indices_composes(expression, inner):
    """To replace a counter by an index is to evaluate at that index."""
    ix, plain = expression
    counter = LoopVar("l", EXTENTS["l"])
    replaced, value = (spelled(x) for x in (substitute(ix, {counter: inner % 5}), inner))
    for at in POINTS:
        assert replaced(at) == plain({**at, "l": value(at) % 5})


@settings(max_examples=200, deadline=None)
@given(LINEAR, LINEAR, LINEAR, st.integers(-9, 9))
def test_equal_sums_are_equal_objects(x, y, z, k):
    """Order and grouping of a sum leave no trace in the normal form."""
    for one, other in (
        (x + y, y + x),
        ((x + y) + z, x + (y + z)),
        ((x + y) * k, x * k + y * k),
        (x - y, -(y - x)),
        (x + y - y, x),
        (k - x, -x + k),
    ):
        assert one == other
        assert hash(one) == hash(other)
    assert x - x == 0
    assert x * 0 == 0


@settings(max_examples=200, deadline=None)
@given(LINEAR)
def test_bounds_of_sums_are_attained(ix):
    """Interval arithmetic is exact where every atom occurs once."""
    values = [*map(spelled(ix), POINTS)]
    assert bounds(ix) == (min(values), max(values))


@settings(max_examples=200, deadline=None)
@given(LINEAR, st.integers(1, 9))
def test_quotient_and_remainder_make_the_whole(ix, m):
    """``m * (x // m) + x % m`` is ``x`` again, as an object."""
    assert m * (ix // m) + ix % m == ix
    assert ix % m + (ix // m) * m == ix


@settings(max_examples=200, deadline=None)
@given(LINEAR, LINEAR, st.integers(1, 9))
def test_multiples_leave_a_quotient(x, y, m):
    """Terms that the divisor divides come out of a quotient, and vanish from a remainder."""
    other = {LoopVar(n, e): variable(n * 2, e) for n, e in EXTENTS.items()}
    y = substitute(y, {**other, **{Scalar(n, *r): scalar(n * 2, *r) for n, r in RANGES.items()}})
    assert (x * m + y) // m == x + y // m
    assert (x * m + y) % m == y % m


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_places_are_found_again(shape):
    """The counters of an array's axes come back from a place in its memory."""
    counters = [variable(f"i{k}", n) for k, n in enumerate(shape)]
    place: Any = 0
    for counter, n in zip(counters, shape, strict=True):
        place = place * n + counter
    for counter, n in reversed(list(zip(counters, shape, strict=True))):
        assert place % n == counter
        place = place // n
    assert place == 0


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_a_reshape_and_back_is_nothing(a, b, c):
    """Split along other axes and joined again, a place is the place it was."""
    place = variable("i", a) * (b * c) + variable("j", b * c)
    rows, columns = place // c, place % c
    assert rows * c + columns == place
    assert (rows // b) == variable("i", a)


def test_a_counter_of_one_step_is_zero():
    """A loop of extent one has no counter."""
    assert variable("i", 1) == 0
    assert variable("i", 2) == Ix({LoopVar("i", 2): 1})
    assert LoopVar("i", 0).range == (0, 0)


def test_clamp_keeps_what_lies_within():
    """Within the limits the index is the same object; outside it is the limit."""
    ix = variable("i", 5) * 2 - 3  # from -3 to 5
    assert clamp(ix, -3, 5) is ix
    assert clamp(ix, 5, 9) == 5
    assert clamp(ix, -9, -3) == -3
    assert clamp(7, 0, 4) == 4
    assert clamp(ix, 2, 2) == 2
    inside = clamp(ix, 0, 4)
    assert bounds(inside) == (0, 4)
    assert clamp(inside, 0, 4) is inside
    assert [type(atom) for atom in inside.terms] == [Opaque]


def test_products_of_indices_are_refused():
    """A product of two counters is no index, and the error says so."""
    i = variable("i", 3)
    with pytest.raises(TypeError, match="not linear"):
        i * i
    with pytest.raises(TypeError, match="not linear"):
        i * 1.5


def test_text_spells_every_constant():
    """Coefficients, divisors, limits and constants go through ``number``; signs do not."""
    i, s = variable("i", 9), scalar("s", -9, 9)
    spelled = text(clamp(i * 3 - (s // 4) - 5, 0, 7) - 2, lambda n: f"<{n}>")
    assert spelled == "min(max(<3> * i - ((s) // <4>) - <5>, <0>), <7>) - <2>"
    assert text(-i + 3, str) == "3 - i"
    assert text(-i, str) == "-i"
    assert text(-4, str) == "-4"
    assert repr(i + s) == "i + s"


def test_leaves_reach_into_opaque_pieces():
    """Counters and scalars are found under quotients, remainders and limits."""
    i, s = variable("i", 9), scalar("s", -9, 9)
    assert leaves(clamp((i + s) // 2 % 3, 0, 1)) == {LoopVar("i", 9), Scalar("s", -9, 9)}
    assert leaves(5) == set()
