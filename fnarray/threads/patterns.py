"""What shards do with the values they bring to a meeting, said so that it can be done in parts.

Where shards share a memory one of them computes all results (``combine``). Between processes a
`Fold` may be passed along in pieces, and of a `Route` each part goes straight to whom it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.frozen import frozen


@frozen(eq=False)
class Fold:
    """All get ``ufunc`` of all values, element by element, taken in the order of the shards."""

    ufunc: Callable[..., Any]

    def combine(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the results by shard."""
        return [self.folded(values)] * len(values)

    def folded(self, values: Sequence[Any]) -> Any:
        """Return the one result."""
        total = values[0]
        for value in values[1:]:
            total = self.ufunc(total, value)
        return total


def _all_of(value: Any, source: int, target: int) -> Any:
    return value


def _always(source: int, target: int) -> bool:
    return True


@frozen(eq=False)
class Route:
    """Each gets a part of each value, and joins them.

    Attributes
    ----------
    join : callable
        Of the parts by source, None where nothing came.
    part : callable
        ``part(value, source, target)``; the whole value by default, and then all get the same.
    goes : callable
        ``goes(source, target)``: whether anything does.
    """

    join: Callable[[Sequence[Any]], Any]
    part: Callable[[Any, int, int], Any] = _all_of
    goes: Callable[[int, int], bool] = _always

    @property
    def sparse(self) -> bool:
        """Whether some parts do not go anywhere."""
        return self.goes is not _always

    def combine(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the results by shard."""
        if self.part is _all_of:
            return [self.join(values)] * len(values)
        return [
            self.join(
                [
                    self.part(value, source, target) if self.goes(source, target) else None
                    for source, value in enumerate(values)
                ]
            )
            for target in range(len(values))
        ]


Pattern = Fold | Route


@frozen(eq=False)
class Here:
    """What only shards of one process can do with their values: one of them computes all results.

    Attributes
    ----------
    combine : callable
        Returns the results by shard.
    """

    combine: Callable[[Sequence[Any]], Sequence[Any]]
