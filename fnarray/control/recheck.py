"""A second line for what analysis cannot prove: a program is traced again, and compared.

``config.recheck`` says when: ``"sampled"`` at calls 2, 4, 8, 16, ... of a program, which costs
nothing in the long run, ``"always"`` at every call after the first.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..config import config, effects
from ..core.callables import is_a, unwrapped
from ..errors import ReadEffectError
from .again import difference
from .signature import Signature, fun_text
from .tracing import Traced, is_traced_anew, trace, traced_anew

__all__: list[str] = []


class Recheck:
    """Compares a function with the program that was made of it; called before each run.

    Parameters
    ----------
    fun : callable
        What the program was made from.
    t : Traced
        As it was traced then.
    again : callable
        Traces it now.
    """

    __slots__ = ("_again", "_always", "_calls", "_fun", "_watched", "traced")

    def __init__(self, fun: Callable[..., Any], t: Traced, again: Callable[[], Traced]) -> None:
        self.traced = t
        self._fun = fun
        self._again = again
        self._always = config.recheck == "always"
        self._watched = _Watched(fun)
        self._calls = 0

    def __call__(self) -> None:
        """Count a call, and compare where ``config.recheck`` asks.

        Raises
        ------
        ReadEffectError
            The function has become another one.
        """
        self._calls += 1
        if self._calls > 1 and (self._always or self._calls & (self._calls - 1) == 0):
            self._compare()

    def _compare(self) -> None:
        # Its effects were judged when the program was made, as was asked there.
        with effects("off"), traced_anew():
            again = self._again()
        found = difference(self.traced.graph, again.graph)
        if found:
            changed = self._watched.changed()
            names = f"\n  Changed since: {', '.join(changed)}." if changed else ""
            raise ReadEffectError(
                f"{fun_text(self._fun)} was traced again at call {self._calls}, as config.recheck "
                f"asks, and is no longer the program that was compiled: {found}{names}\n  The "
                "function reads something that changed, and that no guard sees. Pass it as an "
                "argument."
            )


def rechecked(
    run: Callable[..., Any], fun: Callable[..., Any], signature: Signature, t: Traced
) -> Callable[..., Any]:
    """Return a compiled program that compares itself with its function, as ``config`` asks.

    Parameters
    ----------
    run : callable
        The program.
    fun, t
        As of `Recheck`.
    signature : Signature
        For which it was traced.
    """
    if config.recheck == "off":
        return run
    compare = Recheck(fun, t, lambda: trace(fun, signature))

    def checked(*buffers: Any) -> Any:
        compare()
        return run(*buffers)

    return checked


def compared(table: dict[Any, Any], fun: Callable[..., Any], t: Traced) -> None:
    """Compare a function that is called in a trace with what is kept of it, as ``config`` asks.

    Parameters
    ----------
    table : dict
        Where the comparison is kept, as long as the programs of the function are.
    fun, t
        As of `Recheck`.
    """
    if is_traced_anew():
        return  # it was traced for this call
    key = "recheck", t.signature
    known = table.get(key)
    if known is None or known.traced is not t:
        known = table[key] = Recheck(fun, t, lambda: trace(fun, t.signature))
    known()


class _Watched:
    """The outer names of a function, with what they hold: to tell which one changed."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        from ..purity.contents import contents_of

        self.names: dict[str, tuple[Callable[[], Any], Any, Any]] = {}
        plain = unwrapped(fun)
        plain = plain.__func__ if is_a(plain, types.MethodType) else plain
        if not is_a(plain, types.FunctionType):
            return
        space, code = plain.__globals__, plain.__code__
        for name in _names(code):
            if name in space:
                get = lambda name=name: space.get(name)  # noqa: E731
                self.names[name] = get, space[name], contents_of(space[name])
        for name, cell in zip(code.co_freevars, plain.__closure__ or (), strict=True):
            with suppress(ValueError):
                value = cell.cell_contents
                get = lambda cell=cell: cell.cell_contents  # noqa: E731
                self.names[name] = get, value, contents_of(value)

    def changed(self) -> list[str]:
        """Return the names that stand for another object, or for one that holds other things."""
        return [
            name
            for name, (get, value, contents) in self.names.items()
            if get() is not value or (contents is not None and not contents.hold())
        ]


def _names(code: types.CodeType) -> list[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return list(dict.fromkeys([*code.co_names, *(n for c in inner for n in _names(c))]))
