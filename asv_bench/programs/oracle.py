"""NumPy behind the interface of a module: ``.at``, ``lax`` loops and nothing traced.

The same text runs in double precision on arrays that are copied by every update.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy


class _Updates:
    """``x.at[index]``: updates of a copy."""

    def __init__(self, x: numpy.ndarray, index: Any = None) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> _Updates:
        return _Updates(self.x, index)

    def _by(self, ufunc: Any, value: Any) -> numpy.ndarray:
        out = self.x.copy()
        ufunc.at(out, self.index, numpy.asarray(value))
        return out

    def set(self, value: Any) -> numpy.ndarray:
        out = self.x.copy()
        out[self.index] = value
        return out

    def add(self, value: Any) -> numpy.ndarray:
        return self._by(numpy.add, value)

    def multiply(self, value: Any) -> numpy.ndarray:
        return self._by(numpy.multiply, value)

    def max(self, value: Any) -> numpy.ndarray:
        return self._by(numpy.maximum, value)


class Updatable(numpy.ndarray):
    """An array with ``.at``."""

    @property
    def at(self) -> _Updates:
        return _Updates(self)


def array(x: Any) -> Updatable:
    """Give an array, or a NumPy scalar, its ``.at``."""
    return numpy.asarray(x).view(Updatable)


class _Numpy:
    """NumPy, with functions whose arrays have ``.at``."""

    def __getattr__(self, name: str) -> Any:
        member = getattr(numpy, name)
        if isinstance(member, type) or not callable(member):
            return member

        def call(*args: Any, **options: Any) -> Any:
            out = member(*args, **options)
            return array(out) if isinstance(out, numpy.ndarray) else out

        return call


def _fori_loop(start: int, stop: int, body: Any, carry: Any) -> Any:
    for i in range(start, stop):
        carry = body(i, carry)
    return carry


def _while_loop(going: Any, body: Any, carry: Any) -> Any:
    while going(carry):
        carry = body(carry)
    return carry


def _stacked(rows: list[Any]) -> Any:
    if rows[0] is None:
        return None
    if isinstance(rows[0], tuple):
        return tuple(map(_stacked, zip(*rows, strict=True)))
    return array(numpy.stack(rows))


def _scan(body: Any, carry: Any, xs: Any, length: int | None = None, reverse: bool = False) -> Any:
    several = isinstance(xs, tuple)
    n = length if xs is None else len(xs[0] if several else xs)
    rows = []
    for t in reversed(range(n)) if reverse else range(n):
        x = None if xs is None else tuple(map(array, (x[t] for x in xs))) if several else xs[t]
        carry, row = body(carry, x)
        rows.append(row)
    return carry, _stacked(rows[::-1] if reverse else rows)


numpy_module = SimpleNamespace(
    numpy=_Numpy(),
    lax=SimpleNamespace(
        fori_loop=_fori_loop,
        while_loop=_while_loop,
        scan=_scan,
        cond=lambda which, yes, no, *args: (yes if which else no)(*args),
    ),
)
