"""Frozen values behave as the dataclasses they are made in place of."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from fnarray.core.frozen import frozen


def declared(decorate: Any) -> Any:
    class Point:
        """A value."""

        a: int
        b: tuple[int, ...] = (1, 2)
        c: list[int] = field(default_factory=list, compare=False, repr=False)
        d: Any = None

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError(self.a)

        @property
        def twice(self) -> int:
            return 2 * self.a

    return decorate(Point)


OURS = declared(frozen)
THEIRS = declared(dataclass(frozen=True, slots=True))


@frozen(eq=False)
class Alone:
    """Known by identity."""

    x: int
    y: int = 3


@pytest.mark.parametrize("cls", [OURS, THEIRS])
def test_a_value(cls):
    """Defaults, equality, hash, text, replacement, patterns and refusals."""
    one, two = cls(1), cls(a=1, b=(1, 2), c=[5], d=None)
    assert one == two
    assert hash(one) == hash(two)
    assert one != cls(2)
    assert one != (1, (1, 2), None)
    assert repr(one).endswith("Point(a=1, b=(1, 2), d=None)")
    assert (one.c, two.c, one.twice) == ([], [5], 2)
    assert one.c is not cls(1).c
    assert replace(one, d=4) == cls(1, d=4)
    assert copy.deepcopy(two) == two
    assert copy.copy(two).c == [5]
    assert [f.name for f in dataclasses.fields(cls)] == ["a", "b", "c", "d"]
    assert cls.__match_args__ == ("a", "b", "c", "d")
    assert not hasattr(one, "__dict__")
    assert cls.__dataclass_params__.frozen
    assert list(inspect.signature(cls).parameters) == ["a", "b", "c", "d"]
    assert inspect.signature(cls).parameters["b"].default == (1, 2)
    for change in (lambda: setattr(one, "a", 2), lambda: delattr(one, "a")):
        with pytest.raises(FrozenInstanceError, match="'a'"):
            change()
    for wrong in (lambda: cls(), lambda: cls(1, e=2), lambda: cls(1, 2, 3, 4, 5)):
        with pytest.raises(TypeError, match="__init__"):
            wrong()
    with pytest.raises(ValueError, match="-1"):
        cls(-1)


def test_values_known_by_identity():
    """Without equality two are one only when they are the same; they are pickled as all are."""
    one = Alone(1)
    assert one != Alone(1)
    assert one in {one}
    again = pickle.loads(pickle.dumps(one))
    assert (again.x, again.y) == (1, 3)
