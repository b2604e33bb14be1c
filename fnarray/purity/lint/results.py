"""What earlier runs found, kept by the content of each file and of all that it imports.

One entry of the cache holds a project: the digest of each file, which files its names were looked
for in, and what it gave. A file's outcome holds while nothing that it can reach has changed, and
every name still leads to the same file. The entry is whole or none, and tied to the linter's own
source and to Python's version, whose parser it is.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ...core import store
from ..findings import Finding
from .case import Doubt
from .changes import Change, Condition, Part
from .config import Settings
from .index import Module
from .linter import Inner, Outcome
from .project import Project
from .source import SourceFile, read

#: The settings that the outcome of a file depends on; the others select from it.
_SETTINGS = ("root", "src", "transforms", "trusted", "impure", "max_unrolled")
_PURITY = Path(__file__).parents[1]


class Record:
    """A file as it was: its digest, where its imports start, and what they led to."""

    def __init__(self, digest: str, root: str, asked: dict[str, str | None] | None = None) -> None:
        self.digest = digest
        self.root = root
        self.asked = {} if asked is None else asked


class Results:
    """The outcomes of a project's files."""

    def __init__(self, settings: Settings) -> None:
        given = [str(Path.cwd()), *(str(getattr(settings, name)) for name in _SETTINGS)]
        self.key = f"l_{store.digest(json.dumps(given).encode()).hexdigest()[:32]}"
        self.project = Project(settings)
        self.records: dict[str, Record] = {}
        self.outcomes: dict[str, Any] = {}
        payload = store.get(self.key, _mark())
        if payload is not None:
            known = json.loads(payload)
            self.records = {path: Record(*row) for path, row in known["files"].items()}
            self.outcomes = known["outcomes"]

    def hold(self, given: Iterable[SourceFile]) -> dict[str, Outcome]:
        """Return the outcomes of the files whose surroundings did not change, by path.

        Those of all files that changed, or reach one that did, are dropped.
        """
        sources = {source.path: source for source in given}
        changed = {path for path in self._reached(sources) if self._is_changed(path, sources)}
        for path in self._reaching(changed):
            self.outcomes.pop(path, None)
        for path in changed:
            self.records.pop(path, None)
        return {p: _outcome(self.outcomes[p]) for p in sources.keys() & self.outcomes.keys()}

    def _reached(self, paths: Iterable[str]) -> set[str]:
        """Return the files, and all that their names were looked for in."""
        found: set[str] = set()
        waiting = list(paths)
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                if path in self.records:
                    waiting += filter(None, self.records[path].asked.values())
        return found

    def _reaching(self, changed: set[str]) -> set[str]:
        """Return the files that changed, and all whose names led to one."""
        users: defaultdict[str, list[str]] = defaultdict(list)
        for path, record in self.records.items():
            for target in filter(None, record.asked.values()):
                users[target].append(path)
        found: set[str] = set()
        waiting = list(changed)
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                waiting += users[path]
        return found

    def _is_changed(self, path: str, sources: dict[str, SourceFile]) -> bool:
        record = self.records.get(path)
        if record is None:
            return True
        folder = Path(path).parent
        if record.root != str(self.project.import_root(folder)):
            return True
        if (sources.get(path) or read(path)).digest != record.digest:
            return True
        return any(
            not _same(self.project.locate(dotted, folder), target)
            for dotted, target in record.asked.items()
        )

    def add(self, outcomes: Iterable[Outcome], records: dict[str, Record]) -> None:
        """Take in what was found, and the files that were opened on the way."""
        for path, record in records.items():
            before = self.records.get(path)
            if before is not None and before.digest == record.digest:
                record.asked = before.asked | record.asked
            self.records[path] = record
        self.outcomes |= {o.path: o.row() for o in outcomes if not o.crashes}

    def write(self) -> None:
        """Keep everything for the next run, but for files that are gone."""
        for path in [path for path in self.records if not Path(path).exists()]:
            del self.records[path]
            self.outcomes.pop(path, None)
        files = {path: (r.digest, r.root, r.asked) for path, r in self.records.items()}
        text = json.dumps({"files": files, "outcomes": self.outcomes})
        store.put(self.key, text.encode(), _mark())


class Records:
    """What an analysis was given or opened, told once: what is new since the last time."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._told: dict[str, int] = {}

    def of(self, given: Iterable[SourceFile]) -> dict[str, Record]:
        """Return the files given, and those opened or looked into more since, as they are now."""
        found = {source.path: self._record(source.path, source.digest) for source in given}
        for module in self.project.loaded():
            path = module.path
            if path in found or self._told.get(path) != len(module.asked):
                self._told[path] = len(module.asked)
                record = found[path] = self._record(path, module.source.digest)
                for dotted, target in module.asked.items():
                    record.asked[dotted] = self._target(dotted, target, path, found)
        return found

    def _target(
        self, dotted: str, target: Module | None, importer: str, found: dict[str, Record]
    ) -> str | None:
        if target is not None:
            return target.path
        path = self.project.locate(dotted, Path(importer).parent)
        if path is None:
            return None
        known = str(path)  # it is there, and cannot be parsed
        found.setdefault(known, self._record(known, read(path).digest))
        return known

    def _record(self, path: str, digest: str) -> Record:
        return Record(digest, str(self.project.import_root(Path(path).parent)))


def _same(path: Path | None, before: str | None) -> bool:
    if path is None or before is None:
        return path is before
    return str(path) == before or os.path.realpath(path) == os.path.realpath(before)


def _outcome(row: list[Any]) -> Outcome:
    path, found, inner, traced, entered, doubts, part = row
    return Outcome(
        path,
        [_finding(f) for f in found],
        [
            Inner(_keys(a), [_finding(f) for f in found], _keys(e), [_doubt(d) for d in some])
            for a, found, e, some in inner
        ],
        _keys(traced),
        _keys(entered),
        [_doubt(d) for d in doubts],
        _part(*part),
    )


def _part(changes: list[Any], classes: dict[str, list[str]], packages: list[str]) -> Part:
    return Part([Change(*c) for c in changes], classes, packages)


def _doubt(row: list[Any]) -> Doubt:
    finding, (owner, names, grows, package) = row
    return Doubt(_finding(finding), Condition(owner, tuple(names), grows, package))


def _finding(row: list[Any]) -> Finding:
    *fields, path, presumed = row
    return Finding(*fields, path=tuple(path), presumed=presumed)


def _keys(rows: list[Any]) -> list[tuple[str, int, int]]:
    return [(file, line, column) for file, line, column in rows]


@cache
def _mark() -> str:
    """Return what an entry is tied to: the linter's source, and the version of Python."""
    digest = store.digest(repr((sys.version_info, Finding._fields)).encode())
    for folder, _, names in sorted(os.walk(_PURITY)):
        for name in sorted(name for name in names if name.endswith(".py")):
            digest.update(Path(folder, name).read_bytes())
    return digest.hexdigest()
