"""Which findings are shown: what configuration and comments leave, each place and code once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ..findings import Finding, Place
from ..rules import RULES, LintRule, rule
from .config import Settings
from .source import SourceFile
from .suppress import MARK, Comment, Suppressions

_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(jax|fnarray)\b", re.MULTILINE)
_LIBRARY = re.compile(r"\bfnarray(?=\.\w)")


def select(
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
            silencers[path] = _comments(source)
        return silencers[path]

    on = _switch(settings)
    for finding in raw:
        if not on(finding):
            continue
        if silencer(finding.file).covers(finding.code, finding.name, finding.line):
            continue
        if finding.presumed and not settings.presumed:
            continue
        key = (finding.file, finding.code, finding.line, finding.column)
        if key not in kept or (kept[key].presumed and not finding.presumed):
            kept[key] = finding
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


def _comments(source: SourceFile | None) -> Suppressions:
    if source is None or MARK not in source.text:
        return Suppressions()
    return Suppressions.of(source.lines)


def _switch(settings: Settings) -> Callable[[Finding], bool]:
    def on(finding: Finding) -> bool:
        return settings.enabled(finding.code, finding.name) and not settings.ignored_in(
            finding.file, finding.code, finding.name
        )

    return on


def _spoken(known: dict[str, SourceFile], given: list[SourceFile]) -> Callable[[Finding], Finding]:
    """Return what words repairs for the library that a file, or else the project, imports."""
    uses: dict[str, frozenset[str]] = {}

    def imported(source: SourceFile) -> frozenset[str]:
        if source.path not in uses:
            named = "jax" in source.text or source.ours
            uses[source.path] = frozenset(_IMPORT.findall(source.text) if named else ())
        return uses[source.path]

    def by_project(library: str) -> bool:
        return any(library in imported(source) for source in given)

    def spoken(finding: Finding) -> Finding:
        if not by_project("jax"):
            return finding
        source = known.get(finding.file)
        used = imported(source) if source else frozenset[str]()
        if "fnarray" in used or (not used and by_project("fnarray")):
            return finding
        return finding._replace(repair=_LIBRARY.sub("jax", finding.repair))

    return spoken


def _upkeep(
    source: SourceFile, comments: Suppressions, settings: Settings, ran: bool
) -> Iterator[Finding]:
    """Yield the suppression comments that suppress nothing, or name nothing."""
    unused, unknown = RULES["FNA002"], RULES["FNA003"]

    def at(comment: Comment, of: type[LintRule], name: str) -> Finding:
        line, start, end = comment.line, comment.column + 1, comment.end_column + 1
        where = Place(source.path, line, start, line, end)
        return of.at(where, name=name, source=source.line(line))

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
