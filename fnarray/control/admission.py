"""Admission: a function is checked before it is traced, and what it read is guarded after.

Two things are in progress while functions are traced. *Admissions* cover the functions that run:
the body of a loop inside a checked function was judged with it, where it is known who owns what,
and is not judged again. *Guards* are collected for every trace whose result is kept: what any
function inside of it read, the program depends on. What is an effect depends on whether the trace
is staged or eager, which `fnarray.purity.law` decides.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..config import config
from ..core.callables import is_a
from ..core.keep import kept_with
from ..core.source import PACKAGE
from ..purity.guards import Guards, static
from ..purity.law import STAGED

if TYPE_CHECKING:
    from ..purity.live import Statics, Verdict

__all__ = ["admit", "collect", "collecting", "guard_rules"]


class _Progress(threading.local):
    admissions: tuple[Admission, ...] = ()
    guards: Guards | None = None

    @property
    def staged(self) -> bool:
        """Whether what is traced now is kept: as part of the innermost function admitted."""
        return bool(self.admissions) and self.admissions[-1].staged


_progress = _Progress()


class Admission:
    """A function that passed: entered while it is traced, so that it covers what is inside it.

    Attributes
    ----------
    verdict : Verdict or None
        None where nothing is checked.
    staged : bool
        Whether it is traced by a transform that keeps what it traced, or inside of one.
    guards : Guards
        Of what it reads from outside.
    """

    __slots__ = ("guards", "staged", "verdict")

    def __init__(self, verdict: Verdict | None, staged: bool) -> None:
        self.verdict = verdict
        self.staged = staged
        self.guards = Guards() if verdict is None else verdict.guards

    @property
    def steady(self) -> bool:
        """Whether what is traced may be kept: all that it reads is guarded, or nobody asks."""
        return self.staged or self.verdict is None or self.verdict.steady

    def covers(self, code: types.CodeType, staged: bool) -> bool:
        """Say whether a function was judged with this one, by the law that holds for it."""
        if self.verdict is None or code not in self.verdict.codes:
            return False
        return self.staged or not staged or self.verdict.steady

    def __enter__(self) -> Admission:
        _progress.admissions += (self,)
        return self

    def __exit__(self, *exc: object) -> None:
        _progress.admissions = _progress.admissions[:-1]


_UNCHECKED = {staged: Admission(None, staged) for staged in (False, True)}


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
    staged = _progress.staged or transform in STAGED
    if mode == "off":
        return _UNCHECKED[staged]
    while type(fun) is types.FunctionType and fun.__code__.co_filename.startswith(PACKAGE):
        if "__wrapped__" not in fun.__dict__:
            return _UNCHECKED[staged]  # the package's own
        fun = fun.__dict__["__wrapped__"]  # a transform's, around one of the user's
    covered = any(a.verdict is not None for a in _progress.admissions)
    kept = kept_with(fun).table("admission")
    key = staged, config.captured_array_limit
    found = None if statics else kept.get(key)
    if found is None or covered or not found.guards.holds():
        found = _judge(fun, statics, staged)
        if not statics and not covered:
            kept[key] = found
    verdict = cast("Verdict", found.verdict)
    if verdict.findings:
        verdict.enforce(fun, transform, mode, staged)
    if _progress.guards is not None:
        _progress.guards.update(found.guards)
    return found


def _judge(fun: Any, statics: Statics, staged: bool) -> Admission:
    # Imported when first needed: to analyse source is no part of `import fnarray`.
    from ..purity.live import Verdict, assumed_code, examine

    if _progress.admissions and (code := _code_of(fun)) is not None:
        for around in reversed(_progress.admissions):
            if around.covers(code, staged):
                return Admission(cast("Verdict", around.verdict).silent(), staged)
        if code in assumed_code:
            return Admission(Verdict((), Guards(), ()), staged)
    return Admission(examine(fun, statics), staged)


def _code_of(fun: Any) -> types.CodeType | None:
    """Return the code that a callable runs, seen through what wraps it."""
    from ..purity.members import wrapped_by

    for _ in range(50):
        if is_a(fun, types.FunctionType):
            return fun.__code__
        if is_a(fun, partial):
            fun = fun.func
        elif is_a(fun, types.MethodType):
            fun = fun.__func__
        elif (inner := wrapped_by(fun)) is not None:
            fun = inner
        else:
            call = static(type(fun), "__call__")
            return call.__code__ if isinstance(call, types.FunctionType) else None
    return None


def collect(guards: Guards) -> None:
    """Add guards to those of the trace in progress whose result is to be kept, if there is one."""
    if _progress.guards is not None:
        _progress.guards.update(guards)


def guard_rules(holder: Any, names: tuple[str, ...]) -> None:
    """Guard, in the trace in progress, the rules that an object was given."""
    if _progress.guards is not None:
        for name in names:
            _progress.guards.add_attribute(holder, name, getattr(holder, name))


@contextmanager
def collecting(guards: Guards) -> Iterator[None]:
    """Collect the guards of a trace; they count for the trace around it, too."""
    outer, _progress.guards = _progress.guards, guards
    try:
        yield
    finally:
        _progress.guards = outer
        collect(guards)
