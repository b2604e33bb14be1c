"""Primitives that call a function."""

from __future__ import annotations

from typing import Any

from ..core.trace import state
from ._primitive import Primitive
from .linear_util import WrappedFun


class CallPrimitive(Primitive):
    """A primitive whose first operand is a function, as `linear_util.wrap_init` gives them.

    Outside of any trace it does what its author said by `def_impl` (`call_impl` calls the
    function). Within one the function's operations are traced in its place: graphs have an
    equation for a call of `jit` alone.

    Parameters
    ----------
    name : str
        As it is printed.
    """

    __slots__ = ()
    multiple_results = True

    def __init__(self, name: str):
        super().__init__(name)
        self.call_primitive = True

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Call the function that is the first operand with the others."""
        fun: WrappedFun = args[0]
        if state.trace is None:
            return self.impl(*args, **params)
        return fun.call_wrapped(*args[1:])
