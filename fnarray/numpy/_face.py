"""How a function of elements is declared: promotion, then one primitive, or several."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ..core.array import aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import bool_
from ..core.eager import elementwise
from ..ops.kit.moves import Overlay
from ._promote import Promotion

__all__: list[str] = []

F = TypeVar("F", bound=Callable[..., Any])


def promoted(
    op: Callable[..., Any],
    promote: Promotion,
    boolean: Any = None,
    numbers: Promotion | None = None,
    others: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Declare a function of one or two arrays: the ``lax`` operation ``op`` after promotion.

    Parameters
    ----------
    op : callable
    promote : callable
        One of `_promote`'s.
    boolean : callable, optional
        Operation for bools.
    numbers : callable, optional
        Promotion by which Python numbers enter, where ``promote`` does more than convert.
    others : callable, optional
        Operation for elements that are no numbers, such as random keys.
    """

    def declare(signature: F) -> F:
        name = signature.__name__

        @wraps(signature)
        def apply(*args: Any) -> Any:
            if others is not None and any(isinstance(x, Overlay) for x in args):
                return others(*args)
            operands = promote(name, *args)
            act = boolean if boolean is not None and operands[0].dtype == bool_ else op
            return act(*operands)

        # A Python number is converted once, to what the operation takes.
        join = numbers or promote
        return cast("F", elementwise(lambda *args: [x.aval for x in join(name, *args)])(apply))

    return declare


def _own_avals(*args: Any) -> list[ShapedArray]:
    return list(map(aval_of, args))


#: Declare a function of elements that is several operations.
composed = elementwise(_own_avals)
#: The same of one that computes the same bits compiled: of exact operations alone.
composed_exactly = elementwise(_own_avals, exact=True)
