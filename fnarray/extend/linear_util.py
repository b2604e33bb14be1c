"""Functions wrapped by transformations of their arguments and results.

Named as in ``jax.extend.linear_util``: what a transformation hands out beside the results is kept
in a store, which a thunk reads once the function has run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any

__all__ = [
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]
__dir__ = __all__.copy

Fun = Callable[..., Any]
Steps = Callable[..., Generator[Any, Any, Any]]
_EMPTY = object()


class StoreException(Exception):
    """A store that was read before anything was put there."""


class Store:
    """Holds what a run of a function handed out, the last if it ran again."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = _EMPTY

    def store(self, value: Any) -> None:
        """Hold a value, in place of what was held."""
        self.value = value

    @property
    def val(self) -> Any:
        """What is held."""
        return self()

    def __call__(self) -> Any:
        """Return what is held."""
        if self.value is _EMPTY:
            raise StoreException("Store empty: the function has not run yet.")
        return self.value

    def __bool__(self) -> bool:
        return self.value is not _EMPTY


class WrappedFun:
    """A function and what was wrapped around it.

    Attributes
    ----------
    f : callable
        The function at the heart.
    call_wrapped : callable
        The function as wrapped.
    """

    def __init__(self, f: Fun, call: Fun, params: dict[str, Any] | None, debug_info: Any):
        self.f = f
        self.call_wrapped = call
        self.params = params or {}
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        """Name of the function at the heart."""
        return getattr(self.f, "__name__", "<unnamed function>")

    def wrapped_by(self, call: Fun) -> WrappedFun:
        """Return the function with one more wrapper, given whole."""
        return WrappedFun(self.f, call, self.params, self.debug_info)

    def with_unknown_names(self) -> WrappedFun:
        """Return the function itself: names of arguments are not followed."""
        return self

    def __repr__(self) -> str:
        return f"WrappedFun({self.f!r})"


def wrap_init(
    f: Fun, params: dict[str, Any] | None = None, *, debug_info: Any = None
) -> WrappedFun:
    """Return a function that transformations can be wrapped around.

    Parameters
    ----------
    f : callable
    params : dict, optional
        Keyword arguments of every call.
    debug_info : object, optional
        What `api_util.debug_info` says of the function.
    """
    call = functools.partial(f, **params) if params else f
    return WrappedFun(f, call, params, debug_info)


def _stepped(gen: Steps, fun: Fun, fixed: Any, args: Any, kws: Any) -> Any:
    """Run a function within a generator that yields its arguments and then its result."""
    steps = gen(*fixed, *args, **kws)
    inner_args, inner_kws = next(steps)
    out = steps.send(fun(*inner_args, **inner_kws))
    steps.close()
    return out


def _curried(wrap: Callable[..., Any]) -> Callable[..., Any]:
    """Let what wraps a function be used as a decorator of the generator or function it wraps by."""

    @functools.wraps(wrap)
    def wrapping(gen: Fun, *rest: Any, **settings: Any) -> Any:
        if not rest:
            return functools.partial(wrap, gen, **settings)
        return wrap(gen, *rest, **settings)

    return wrapping


@_curried
def transformation(gen: Fun, fun: WrappedFun, *fixed: Any) -> WrappedFun:
    """Wrap by a generator: it yields ``args, kwargs``, is sent the result, and yields its own."""
    call = fun.call_wrapped
    return fun.wrapped_by(lambda *args, **kws: _stepped(gen, call, fixed, args, kws))


@_curried
def transformation_with_aux(gen: Fun, fun: WrappedFun, *fixed: Any) -> tuple[WrappedFun, Store]:
    """Wrap by a generator that at last yields ``result, aux``; a thunk gives ``aux``."""
    store, call = Store(), fun.call_wrapped

    def wrapped(*args: Any, **kws: Any) -> Any:
        out, store.value = _stepped(gen, call, fixed, args, kws)
        return out

    return fun.wrapped_by(wrapped), store


@_curried
def transformation2(gen: Fun, fun: WrappedFun, *fixed: Any) -> WrappedFun:
    """Wrap by a function that is given the one within: ``gen(fun, *fixed, *args)``."""
    return fun.wrapped_by(functools.partial(gen, fun.call_wrapped, *fixed))


@_curried
def transformation_with_aux2(
    gen: Fun, fun: WrappedFun, *fixed: Any, **settings: Any
) -> tuple[WrappedFun, Store]:
    """Wrap by ``gen(fun, store, *fixed, *args)``, which sets ``store.value``."""
    store = Store()
    return fun.wrapped_by(functools.partial(gen, fun.call_wrapped, store, *fixed)), store


def merge_linear_aux(aux1: Store, aux2: Store) -> tuple[bool, Any]:
    """Return which of two stores was filled, and with what."""
    if bool(aux1) == bool(aux2):
        which = "both stores are" if aux1 else "neither store is"
        raise StoreException(f"{which} filled")
    return bool(aux1), (aux1 if aux1 else aux2)()


def cache(call: Fun, **settings: Any) -> Fun:
    """Return the function itself: what is worth keeping of a graph is kept with the graph."""
    return call
