"""Checking of live functions: the verdict on one, kept with it, and what is done about it."""

from __future__ import annotations

import inspect
import linecache
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import errors
from ..config import config
from ..core.keep import kept_with
from ..core.uncollected import count_as_old, uncollected
from .engine.analysis import Analysis, analyse
from .findings import Finding, in_characters, render
from .guards import Guards
from .law import effects_of, is_steady
from .nodes import deeply
from .objects import attribute_of, is_a, is_user_file, kind_of
from .resolver import LiveResolver
from .resolver import trust as trust
from .rules import RULES
from .syntax import trees_known
from .values import ABSENT, Function, Value

if TYPE_CHECKING:
    from .lint.suppress import Suppressions

Statics = Sequence[tuple[int | str, type, Any]]


class Verdict:
    """What is known of a function: its effects, guards of its reads, the code it runs.

    Attributes
    ----------
    findings : tuple of Finding
        Their paths begin with the function's name.
    guards : Guards
    steady : bool
        Whether the guards cover all reads.
    """

    __slots__ = ("_codes", "_entered", "findings", "guards", "steady")

    def __init__(
        self, findings: tuple[Finding, ...], guards: Guards, entered: Iterable[Function]
    ) -> None:
        self.findings = findings
        self.guards = guards
        self.steady = is_steady(findings)
        self._entered = {f.module.__code__ for f in entered}
        self._codes: frozenset[types.CodeType] | None = None

    @property
    def codes(self) -> frozenset[types.CodeType]:
        """The code of all functions that were looked into, and of those inside them."""
        if self._codes is None:
            self._codes = frozenset(_with_inner(self._entered))
        return self._codes

    def silent(self) -> Verdict:
        """Return the verdict on what was judged with it: its findings are said once."""
        if not self.findings:
            return self
        verdict = Verdict((), self.guards, ())
        verdict._codes, verdict.steady = self.codes, self.steady
        return verdict

    def enforce(self, fun: Any, transform: str, mode: str, staged: bool = True) -> None:
        """Raise, or warn of, those findings that are effects where the function is traced."""
        found = effects_of(self.findings, staged)
        if not found:
            return
        count = "an effect" if len(found) == 1 else f"{len(found)} effects"
        name = name_of_callable(fun)
        head = f"{transform}: {name} is not pure: {count} found."
        findings = tuple(f._replace(path=(f"{transform}({f.path[0]})", *f.path[1:])) for f in found)
        if mode == "error":
            raise error_of(findings, head)
        text = f"{head}\n\n{render(findings)}"
        warnings.warn(text, errors.EffectWarning, stacklevel=_outside())


def name_of_callable(fun: Any) -> str:
    """Return the name of a function, or of an object's class; no code of the user's runs."""
    fun = fun.__func__ if is_a(fun, types.MethodType) else fun
    if is_a(fun, (types.FunctionType, type)):
        return fun.__name__
    name = attribute_of(fun, "__name__")
    return name if isinstance(name, str) else type(fun).__name__


def _with_inner(codes: Iterable[types.CodeType]) -> Iterator[types.CodeType]:
    for code in codes:
        yield code
        yield from _with_inner(c for c in code.co_consts if isinstance(c, types.CodeType))


def _outside() -> int:
    """Return how many calls up the stack the user's code is."""
    frame, level = sys._getframe(1), 1  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and not is_user_file(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def examine(fun: Callable[..., Any], statics: Statics = ()) -> Verdict:
    """Return the verdict on a live function.

    It is kept with the function, and made anew once a guard fails.

    Parameters
    ----------
    fun
        Any callable.
    statics
        Arguments that are fixed: ``(position or name, type, value)``.
    """
    # Of numbers and texts it is known that they are not traced, whichever they are.
    statics = tuple((*s[:2], ABSENT) if kind_of(s[2]) == "scalar" else s for s in statics)
    kept: dict[Any, Verdict] = kept_with(fun).table("verdict", make=dict[Any, Verdict])
    key = statics, config.captured_array_limit
    verdict = kept.get(key)
    if verdict is not None and verdict.guards.holds():
        return verdict
    resolver = LiveResolver()
    known = trees_known()
    with uncollected():
        analysis = deeply(_analyse, fun, resolver, statics)
        if trees_known() > known:  # once for each text, or garbage would be old before its time
            count_as_old()
    ignored = Ignored()
    findings = tuple(in_characters(f) for f in analysis.findings if not ignored.covers(f))
    verdict = Verdict(findings, resolver.guards, analysis.entered)
    kept[key] = verdict
    return verdict


class Ignored:
    """The comments, in the files of some findings, that silence them."""

    def __init__(self) -> None:
        self._files: dict[str, Suppressions] = {}

    def covers(self, finding: Finding) -> bool:
        """Say whether a finding is silenced by a comment that names it."""
        found = self._files.get(finding.file)
        if found is None:
            from .lint import suppress  # which pure functions need not

            lines = [line.rstrip("\r\n") for line in linecache.getlines(finding.file)]
            found = self._files[finding.file] = suppress.Suppressions.of(lines)
        return found.covers(finding.code, finding.name, finding.line)


def _analyse(fun: Any, resolver: LiveResolver, statics: Statics) -> Analysis:
    value = resolver.describe(fun, name_of_callable(fun), "global", True)
    fixed: dict[Any, Value] = {}
    positional: list[Value] = []
    while value.kind == "partial" and value.bound is not None:
        fields = value.fields or {}
        positional = [v for k, v in fields.items() if isinstance(k, tuple)] + positional
        fixed = {k: v for k, v in fields.items() if isinstance(k, str)} | fixed
        value = value.bound
    target = resolver.follow(value)
    if target is None:
        return Analysis([], [], {})
    function, receiver = target
    given = [*([receiver] if receiver is not None else []), *positional]
    names = [a.arg for a in (*function.node.args.posonlyargs, *function.node.args.args)]
    for where, _, obj in statics:
        late = names[len(given) + where :] if isinstance(where, int) else [where]
        for name in late[:1]:
            known = obj is not ABSENT
            value = resolver.describe(obj, name, "receiver") if known else Value("", 1)
            fixed[name] = resolver.declare(value)
    defaults = dict(function.defaults)
    for name, one in (*zip(names, given, strict=False), *fixed.items()):
        defaults[name] = one.but(name=name, holder="receiver")
    function = Function(
        function.node, function.file, function.module, name=function.name, defaults=defaults,
        lines=function.lines, above=function.above,
    )  # fmt: skip
    return analyse(function, resolver, (function.name,))


def check(fun: Callable[..., Any]) -> list[Finding]:
    """Return every effect of a function and of the user's functions it calls.

    Parameters
    ----------
    fun
        A function, lambda, method, ``partial``, callable object, or a transformed function.

    Returns
    -------
    list of Finding
        In order of place; empty for a pure function.
    """
    return list(examine(fun).findings)


def assert_pure(fun: Callable[..., Any]) -> None:
    """Raise unless a function is pure: for test suites.

    Raises
    ------
    AssertionError
        With all findings, in full.
    """
    __tracebackhide__ = True
    found = check(fun)
    if found:
        raise AssertionError(f"{name_of_callable(fun)} is not pure:\n\n{render(found)}")


#: Code of functions marked pure, and of those inside them.
assumed_code: set[types.CodeType] = set()


def assume_pure(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as pure: its body is not checked.

    Whether it is, is the author's word. What it reads is not guarded either.
    """
    fun.__fnarray_pure__ = True  # type: ignore[attr-defined]
    inner: Any = inspect.unwrap(fun)
    methods = vars(inner).values() if isinstance(inner, type) else (inner,)
    assumed_code.update(
        _with_inner(m.__code__ for m in methods if isinstance(m, types.FunctionType))
    )
    return fun


_GROUPS = {
    "writes": errors.WriteEffectError,
    "reads": errors.ReadEffectError,
    "nondeterminism": errors.NondeterminismError,
    "io": errors.IOEffectError,
    "iterators": errors.IteratorEffectError,
    "dynamic": errors.DynamicCodeError,
}
#: Item assignment, generator functions: Python, or JAX, has a TypeError for them.
_TYPE_ERRORS = frozenset({"FNA106", "FNA403", "FNA404"})
_errors: dict[tuple[type, ...], type] = {}


def error_of(findings: tuple[Finding, ...], head: str) -> errors.EffectError:
    """Return the exception of some findings: an instance of the class of every group found."""
    groups = dict.fromkeys(_GROUPS[RULES[f.code].group] for f in findings)
    bases: tuple[type, ...] = tuple(groups)
    if any(f.code in _TYPE_ERRORS for f in findings):
        bases = (*bases, TypeError)
    if bases not in _errors:
        body = {"__module__": errors.__name__, "__reduce__": _reduce}
        _errors[bases] = bases[0] if len(bases) == 1 else type(bases[0].__name__, bases, body)
    error = _errors[bases](f"{head}\n\n{render(findings)}")
    error.findings = findings
    return error


def _reduce(error: Any) -> Any:
    # A class made for some groups has no name to be found by.
    return error_of, (error.findings, str(error).partition("\n\n")[0])


def verify(
    fun: Callable[..., Any], transform: str, mode: str | None = None, statics: Statics = ()
) -> Guards:
    """Check a function that a transform is about to trace; return the guards of its reads.

    Parameters
    ----------
    fun
        What the user handed in.
    transform
        Name of the transform, which begins the path of each finding: ``jit(train) -> step``.
    mode
        ``"error"``, ``"warn"`` or ``"off"``; by default ``config.effects``.
    statics
        Arguments that are fixed: ``(position or name, type, value)``.

    Raises
    ------
    EffectError
        In mode ``"error"``, with all findings, of the class of every group found.
    """
    mode = mode or config.effects
    if mode == "off":
        return Guards()
    verdict = examine(fun, statics)
    verdict.enforce(fun, transform, mode)
    return verdict.guards
