"""Functions of elements as objects: ``add.reduce``, ``add.accumulate``, ``add.at``."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

__all__ = ["UFunc"]


class UFunc:
    """A function of elements, with the whole-array functions that follow from it.

    Parameters
    ----------
    call : callable
        The function itself; broadcasts.
    nin : int
        Number of array arguments.
    reduce, accumulate, at : str, optional
        Names of the ``fnarray.numpy`` function, and of the method of ``x.at[...]``, that do the
        same as the loop in order; filled in by `connect`.
    identity : scalar, optional
        Value that changes nothing, the reduction of no elements.
    """

    nout = 1

    def __init__(
        self,
        call: Callable[..., Any],
        *,
        nin: int = 2,
        reduce: str = "",
        accumulate: str = "",
        at: str = "",
        identity: Any = None,
    ):
        update_wrapper(self, call)
        self.call = call
        self.nin = nin
        self.nargs = nin + 1
        self.identity = identity
        self._names = {"reduce": reduce, "accumulate": accumulate, "at": at}

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)

    def __repr__(self) -> str:
        return f"<fnarray ufunc {self.__name__!r}>"


def ufunc(**options: Any) -> Callable[[Callable[..., Any]], UFunc]:
    """Make a `UFunc` of a function; the options are its parameters."""
    return lambda call: UFunc(call, **options)
