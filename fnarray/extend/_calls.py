"""Primitives that call a function."""

from __future__ import annotations

from typing import Any

from ..core.trace import state
from ._primitive import Primitive
from .linear_util import WrappedFun


class CallPrimitive(Primitive):
    """A primitive that calls a function, ``bind(*args, subfuns=(fun,))``, made by `wrap_init`.

    Outside of any trace it does what its author said by `def_impl` (`call_impl` calls the
    function). Within one the function's operations are traced in its place: graphs have an
    equation for a call of `jit` alone.

    Parameters
    ----------
    name : str
        As it is printed.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.extend import core, linear_util
    >>> named_p = core.CallPrimitive("named")
    >>> _ = named_p.def_impl(core.call_impl)
    >>> named_p.bind(2.0, subfuns=(linear_util.wrap_init(lambda x: [x * x]),))
    [4.0]
    """

    __slots__ = ()

    def __init__(self, name: str):
        super().__init__(name)
        self.multiple_results = self.call_primitive = True

    def bind(self, /, *args: Any, subfuns: tuple[WrappedFun], **params: Any) -> Any:
        """Call a function with arguments."""
        (fun,) = subfuns
        if state.trace is None:
            return self.impl(fun, *args, **params)
        return fun.call_wrapped(*args)
