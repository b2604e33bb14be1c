"""From sources to findings: the order of the work, and what silences a finding."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..findings import Finding, Place
from ..known import EFFECTS
from ..rules import RULES, rule
from .config import Settings
from .effects import Effects
from .index import Module
from .keys import reused
from .pitfalls import pitfalls
from .project import Project
from .source import SourceFile
from .suppress import Suppressions
from .traced import Finder, TracedSite
from .uses import jit_in_loop, unhashable

#: A file that says none of these traces nothing; it is opened only as somebody's helper.
_MARKS = ("jax", "fnarray")
_IMPORT = re.compile(r"\s*(?:import|from)\s+(jax|fnarray)\b")
_LIBRARY = re.compile(r"\bfnarray(?=\.\w)")
#: Helpers call helpers, and expressions nest: the interpreter's own limit is soon reached.
_RECURSION = 12_000


@dataclass
class Result:
    """Findings in order of file and place, every source they stand in, and internal failures."""

    findings: list[Finding]
    sources: dict[str, SourceFile]
    traced: int = 0
    crashes: list[str] = field(default_factory=list)


def lint(
    sources: Iterable[SourceFile], settings: Settings, seen: Iterable[Finding] | None = None
) -> Result:
    """Check sources and the helpers that they import.

    Parameters
    ----------
    sources
        What to check.
    settings
        What to look for, and where.
    seen
        What was found in another way (by running the files), to be selected from with the rest.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        with _declared(settings.impure):
            return _lint(list(sources), settings, seen)
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def _declared(names: Iterable[str]) -> Iterator[None]:
    """Know further functions and packages to be impure, for one run."""
    new = dict.fromkeys(set(names) - EFFECTS.keys(), RULES["FNA316"].code)
    EFFECTS.update(new)
    try:
        yield
    finally:
        for name in new:
            del EFFECTS[name]


def _lint(given: list[SourceFile], settings: Settings, seen: Iterable[Finding] | None) -> Result:
    marks = _MARKS + tuple(t.partition(".")[0] for t in settings.transforms)
    relevant = [s for s in given if any(m in line for line in s.lines for m in marks)]
    crashes: list[str] = []
    raw: list[Finding] = [_fault(s) for s in given if s.problem is not None]
    project = Project((), settings)
    for source in relevant:
        if source.tree is not None:
            with _Survive(crashes, source.path):
                project.add(source)
    # The other files are known by name, so that an import finds the text already read.
    project.offer(s for s in given if s.tree is not None)
    finder = Finder(project)
    per_module: list[tuple[Module, list[TracedSite]]] = []
    for module in project.linted:
        with _Survive(crashes, module.path):
            per_module.append((module, list(finder.find(module))))
    everything = [t for _, found in per_module for t in found]
    roots = _by_node(everything)
    for module, found in per_module:
        with _Survive(crashes, module.path):
            raw += jit_in_loop(finder, module)
            raw += unhashable(finder, module, found)
            raw += reused(project, module)
        for traced in _distinct(found):
            with _Survive(crashes, f"{module.path}: {traced.label}"):
                raw += pitfalls(project, traced, roots)
    effects = Effects(finder, everything)
    raw += effects.run(
        _distinct(everything),
        lambda traced: _Survive(crashes, f"{traced.scope.module.path}: {traced.label}"),
    )
    known = {s.path: s for s in given} | project.extra
    places = {(f.file, f.code, f.line) for f in raw}
    raw += [f for f in seen or () if (f.file, f.code, f.line) not in places]
    findings = _select(raw, given, known, settings, ran=seen is not None)
    return Result(findings, known, len(roots), crashes)


def _by_node(found: Iterable[TracedSite]) -> dict:
    """Return one entry per function; abstract uses come first, for they claim most."""
    roots: dict = {}
    for traced in sorted(found, key=lambda t: not t.transform.abstract):
        roots.setdefault(traced.scope.node, traced)
    return roots


def _distinct(found: Iterable[TracedSite]) -> Iterator[TracedSite]:
    """Yield each function once per way of tracing it that matters."""
    seen = set()
    for traced in found:
        kind = traced.transform
        key = (traced.scope, kind.abstract, kind.body, traced.bound, traced.fixed)
        if key not in seen:
            seen.add(key)
            yield traced


def _fault(source: SourceFile) -> Finding:
    problem = source.problem
    assert problem is not None
    where = Place(source.path, problem.line, problem.column, problem.line, problem.column + 1)
    text = source.line(problem.line)
    return RULES["FNA001"].at(where, what=problem.message, source=text)


def _select(
    raw: Iterable[Finding],
    given: list[SourceFile],
    known: dict[str, SourceFile],
    settings: Settings,
    *,
    ran: bool,
) -> list[Finding]:
    """Return what configuration and comments leave, each place and code once, in order."""
    order = {source.path: i for i, source in enumerate(given)}
    silencers: dict[str, Suppressions] = {}
    kept: dict[tuple[str, str, int, int], Finding] = {}

    def silencer(path: str) -> Suppressions:
        if path not in silencers:
            source = known.get(path)
            silencers[path] = Suppressions.of(source.lines) if source else Suppressions()
        return silencers[path]

    on = _switch(settings)
    for finding in raw:
        if not on(finding):
            continue
        if silencer(finding.file).covers(finding.code, finding.name, finding.line):
            continue
        key = (finding.file, finding.code, finding.line, finding.column)
        kept.setdefault(key, finding)
    for source in given:
        comments = silencer(source.path)
        kept |= {
            (f.file, f.code, f.line, f.column): f
            for f in _upkeep(source, comments, settings, ran)
            if on(f) and not comments.covers(f.code, f.name, f.line)
        }
    spoken = _spoken(known, given)
    return sorted(
        map(spoken, kept.values()),
        key=lambda f: (order.get(f.file, len(order)), f.file, f.line, f.column, f.code),
    )


def _switch(settings: Settings) -> Callable[[Finding], bool]:
    def on(finding: Finding) -> bool:
        return settings.enabled(finding.code, finding.name) and not settings.ignored_in(
            finding.file, finding.code, finding.name
        )

    return on


def _spoken(known: dict[str, SourceFile], given: list[SourceFile]) -> Callable[[Finding], Finding]:
    """Return what words repairs for the library that a file, or else the project, imports."""
    uses = {source.path: _imported(source) for source in given}
    project = frozenset().union(*uses.values())

    def spoken(finding: Finding) -> Finding:
        if finding.file not in uses:
            source = known.get(finding.file)
            uses[finding.file] = _imported(source) if source else project
        if "jax" not in project or "fnarray" in (uses[finding.file] or project):
            return finding
        return replace(finding, repair=_LIBRARY.sub("jax", finding.repair))

    return spoken


def _imported(source: SourceFile) -> frozenset[str]:
    return frozenset(m[1] for line in source.lines if (m := _IMPORT.match(line)))


def _upkeep(
    source: SourceFile, comments: Suppressions, settings: Settings, ran: bool
) -> Iterator[Finding]:
    """Yield the suppression comments that suppress nothing, or name nothing."""
    unused, unknown = RULES["FNA002"], RULES["FNA003"]

    def at(comment: object, of: type, name: str) -> Finding:
        line, start, end = comment.line, comment.column + 1, comment.end_column + 1  # type: ignore
        where = Place(source.path, line, start, line, end)
        return of.at(where, name=name, source=source.line(line))  # type: ignore[attr-defined]

    for comment in comments.blanket():
        yield at(comment, unknown, "")
    for comment, entry in comments.unused():
        try:
            named = rule(entry)
        except KeyError:
            yield at(comment, unknown, entry)
            continue
        on = settings.enabled(named.code, named.name) and (ran or named.code != "FNA004")
        if on and named is not unused and not settings.ignored_in(
            source.path, named.code, named.name
        ):  # fmt: skip
            yield at(comment, unused, entry)


class _Survive:
    """One function that the linter cannot cope with must not hide the findings of the others."""

    def __init__(self, crashes: list[str], where: str) -> None:
        self.crashes, self.where = crashes, where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        import traceback

        last = traceback.extract_tb(error.__traceback__)[-1]
        self.crashes.append(
            f"{self.where}: {type(error).__name__}: {error} "
            f"(in {last.name}, {last.filename}:{last.lineno})"
        )
        return True
