"""Admission: a function is checked before it is traced, and what it read is guarded after.

Two things are in progress while functions are traced. *Verdicts* cover the functions that run: the
body of a loop inside a checked function was judged with it, where it is known who owns what, and
is not judged again. *Guards* are collected for every trace whose result is kept: what any function
inside of it read, the program depends on.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..config import config
from ..core.keep import kept_with
from ..core.source import PACKAGE
from ..purity.guards import Guards

if TYPE_CHECKING:
    from ..purity.live import Statics, Verdict

__all__ = ["admit", "collect", "collecting"]


class _Progress(threading.local):
    verdicts: tuple[Verdict, ...] = ()
    guards: Guards | None = None


_progress = _Progress()


class Admission:
    """A function that passed: entered while it is traced, so that it covers what is inside it.

    Attributes
    ----------
    guards : Guards
        Of what it reads from outside.
    """

    __slots__ = ("guards", "verdict")

    def __init__(self, verdict: Verdict | None) -> None:
        self.verdict = verdict
        self.guards = Guards() if verdict is None else verdict.guards

    def __enter__(self) -> Admission:
        if self.verdict is not None:
            _progress.verdicts += (self.verdict,)
        return self

    def __exit__(self, *exc: object) -> None:
        if self.verdict is not None:
            _progress.verdicts = _progress.verdicts[:-1]


_UNCHECKED = Admission(None)


def admit(
    fun: Callable[..., Any], transform: str, mode: str | None = None, statics: Statics = ()
) -> Admission:
    """Check a function that a transform is about to run on tracers.

    Use as ``with admit(fun, "grad"): ...`` around the run of ``fun``; known functions pass in
    well under a microsecond. What the function reads is guarded in every trace in progress.

    Parameters
    ----------
    fun : callable
        What the user handed in.
    transform : str
        Begins the path of each finding: ``grad(loss) -> helper``.
    mode : str, optional
        ``"error"``, ``"warn"`` or ``"off"`` in place of ``config.effects``.
    statics : tuple of (position or name, type, value)
        Arguments that are not traced.

    Raises
    ------
    EffectError
        The function is not pure; nothing of it has run.
    """
    mode = mode or config.effects
    if mode == "off":
        return _UNCHECKED
    while type(fun) is types.FunctionType and fun.__code__.co_filename.startswith(PACKAGE):
        if "__wrapped__" not in fun.__dict__:
            return _UNCHECKED  # the package's own
        fun = fun.__dict__["__wrapped__"]  # a transform's, around one of the user's
    kept = kept_with(fun).table("admission")
    found = None if statics else kept.get(())
    if found is None or _progress.verdicts or not found.guards.holds():
        found = _judge(fun, statics)
        if not statics and not _progress.verdicts:
            kept[()] = found
    verdict = cast("Verdict", found.verdict)
    if verdict.findings:
        verdict.enforce(fun, transform, mode)
    if _progress.guards is not None:
        _progress.guards.update(found.guards)
    return found


def _judge(fun: Any, statics: Statics) -> Admission:
    # Imported when first needed: to analyse source is no part of `import fnarray`.
    from ..purity.live import Verdict, assumed_code, examine

    if _progress.verdicts and (code := _code_of(fun)) is not None:
        for verdict in reversed(_progress.verdicts):
            if code in verdict.codes:
                return Admission(verdict.silent())
        if code in assumed_code:
            return Admission(Verdict((), Guards(), ()))
    return Admission(examine(fun, statics))


def _code_of(fun: Any) -> types.CodeType | None:
    """Return the code that a callable runs, seen through what wraps it."""
    for _ in range(50):
        if isinstance(fun, types.FunctionType):
            return fun.__code__
        if isinstance(fun, partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        elif (inner := getattr(fun, "__wrapped__", None)) is not None:
            fun = inner
        else:
            call = type(fun).__call__
            return call.__code__ if isinstance(call, types.FunctionType) else None
    return None


def collect(guards: Guards) -> None:
    """Add guards to those of the trace in progress whose result is to be kept, if there is one."""
    if _progress.guards is not None:
        _progress.guards.update(guards)


@contextmanager
def collecting(guards: Guards) -> Iterator[None]:
    """Collect the guards of a trace; they count for the trace around it, too."""
    outer, _progress.guards = _progress.guards, guards
    try:
        yield
    finally:
        _progress.guards = outer
        collect(guards)
