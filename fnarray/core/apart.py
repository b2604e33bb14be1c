"""Arrays among arguments, and results that are none of them.

Whoever donates or deletes a result keeps the operand, and the other way round (decision 0045).
"""

# pyright: standard
# Arguments are anything: nothing is typed before.
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .array import ArrayElsewhere, ArrayImpl, Deletable
from .trace import state


def another(x: Any) -> Any:
    """Return another array over the memory of an array with a value; what is traced, itself."""
    if state.trace is not None:
        return x
    if type(x) is ArrayImpl:
        return ArrayImpl(x._data, x.aval)  # a tenth of the time that any class takes
    return x._again() if isinstance(x, Deletable) else x


def is_among(x: Any, operands: Iterable[Any]) -> bool:
    """Whether an object is among arguments, or in lists of them."""
    for one in operands:
        if one is x:
            return True
        kind = type(one)
        if kind in (tuple, list, dict) and is_among(x, one.values() if kind is dict else one):
            return True
    return False


def apart(out: Any, *operands: Any) -> Any:
    """Return the result of a function, an array or several, with none of its operands in it."""
    if state.trace is not None:
        return out
    if type(out) in (tuple, list):
        return type(out)([apart(x, *operands) for x in out])
    return another(out) if is_among(out, operands) else out


def leaves_of(x: Any) -> Iterator[Any]:
    """Return the arrays among arguments, or in lists of them."""
    if type(x) is ArrayImpl or isinstance(x, ArrayElsewhere):
        yield x
    elif type(x) in (tuple, list, dict):
        for part in x.values() if type(x) is dict else x:
            yield from leaves_of(part)


def with_leaves(x: Any, leaves: Iterator[Any]) -> Any:
    """Return arguments with others in place of those that `leaves_of` gives."""
    if type(x) is ArrayImpl or isinstance(x, ArrayElsewhere):
        return next(leaves)
    if type(x) in (tuple, list):
        return type(x)(with_leaves(part, leaves) for part in x)
    if type(x) is dict:
        return {name: with_leaves(part, leaves) for name, part in x.items()}
    return x
