"""From sources to findings: each file is examined with what it imports, then all are compared."""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..findings import Finding, Place
from ..known import declared
from ..nodes import deeply
from ..rules import RULES
from .case import Doubt
from .changes import NOTHING, Changed, Part, part_of
from .config import Settings
from .customs import is_expected
from .effects import Effects, FunctionKey, key_of
from .index import Module, Scope
from .keys import reused
from .passing import function_around
from .pitfalls import pitfalls
from .project import External, Project
from .selection import select
from .source import SourceFile, read
from .statics import StaticResolver
from .traced import Finder, TracedSite
from .uses import jit_in_loop, unhashable

#: A file that says none of these, nor imports from one that does, traces nothing; it is opened only
#: as somebody's helper.
_MARKS = ("jax", "fnarray")


class Inner(NamedTuple):
    """What was found in a traced function that stands inside others, if none of them is traced."""

    around: list[FunctionKey]
    found: list[Finding]
    entered: list[FunctionKey]
    doubts: list[Doubt]


class Outcome:
    """What one file and those that it imports give; nothing is selected, nothing silenced.

    ``doubts`` are findings that wait for what all files change, and ``part`` is what this one does.
    ``crashes`` are the tracebacks of failures of the linter itself, which are findings besides.
    """

    def __init__(
        self,
        path: str,
        found: Iterable[Finding] = (),
        inner: Iterable[Inner] = (),
        traced: Iterable[FunctionKey] = (),
        entered: Iterable[FunctionKey] = (),
        doubts: Iterable[Doubt] = (),
        part: Part = NOTHING,
    ) -> None:
        self.path = path
        self.found = list(found)
        self.inner = list(inner)
        self.traced = list(traced)
        self.entered = list(entered)
        self.doubts = list(doubts)
        self.part = part
        self.crashes: list[str] = []

    def row(self) -> tuple[object, ...]:
        """Return what the constructor takes, in order, ready for JSON."""
        found = self.found, self.inner, self.traced, self.entered, self.doubts
        return self.path, *found, self.part


class Result:
    """Findings in order of file and place, every source they stand in, and internal failures."""

    def __init__(
        self, findings: list[Finding], sources: dict[str, SourceFile], traced: int,
        crashes: list[str],
    ) -> None:  # fmt: skip
        self.findings = findings
        self.sources = sources
        self.traced = traced
        self.crashes = crashes


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
    given = list(sources)
    examiner = Examiner(given, settings)
    return conclude(given, [examiner.examine(source) for source in given], settings, seen)


def conclude(
    given: list[SourceFile],
    outcomes: Iterable[Outcome],
    settings: Settings,
    seen: Iterable[Finding] | None = None,
) -> Result:
    """Put together what the files gave, in their order.

    A callback inside a function that another file traces, or calls from what it traces, is judged
    there, where it is known who owns what.
    """
    outcomes = list(outcomes)
    changed = Changed(outcome.part for outcome in outcomes)

    def settled_of(doubts: Iterable[Doubt]) -> list[Finding]:
        return [doubt.finding for doubt in doubts if changed.meets(doubt.condition)]

    raw = [f for o in outcomes for f in (*o.found, *settled_of(o.doubts))]
    settled = {key for outcome in outcomes for key in (*outcome.traced, *outcome.entered)}
    for inner in (inner for outcome in outcomes for inner in outcome.inner):
        if settled.isdisjoint(inner.around):
            raw += [*inner.found, *settled_of(inner.doubts)]
            settled.update(inner.entered)
    places = {(f.file, f.code, f.line) for f in raw}
    raw += [f for f in seen or () if (f.file, f.code, f.line) not in places]
    known = {source.path: source for source in given}
    for file in {finding.file for finding in raw} - known.keys():
        known[file] = read(file)
    findings = select(_caused_once(raw), given, known, settings, ran=seen is not None)
    findings = list(_of_one_object(findings, known))
    traced = {key for outcome in outcomes for key in outcome.traced}
    crashes = [crash for outcome in outcomes for crash in outcome.crashes]
    return Result(findings, known, len(traced), crashes)


#: Of several codes for one write, from different ways that lead there, the surest is said.
_WRITES = {code: i for i, code in enumerate(("FNA108", "FNA103", "FNA105", "FNA104", "FNA106"))}


def _caused_once(raw: list[Finding]) -> list[Finding]:
    """Leave one finding for each place that writes: one that is shown, if any is."""
    best: dict[tuple[str, int, int], tuple[bool, int]] = {}
    for finding in raw:
        if finding.code in _WRITES:
            rank = finding.presumed, _WRITES[finding.code]
            key = finding.file, finding.line, finding.column
            best[key] = min(rank, best.get(key, rank))
    return [
        f for f in raw
        if f.code not in _WRITES or best[f.file, f.line, f.column][1] == _WRITES[f.code]
    ]  # fmt: skip


def _of_one_object(findings: list[Finding], known: dict[str, SourceFile]) -> Iterator[Finding]:
    """Yield findings: where JAX traces, one for all fields that a call sets of one object."""
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        ours = finding.code != "FNA105" or known[finding.file].ours
        owner = finding.message.partition("'")[2].partition(".")[0]
        key = finding if ours else (finding.file, finding.path, owner, finding.presumed)
        groups.setdefault(key, []).append(finding)
    for first, *others in groups.values():
        if not others:
            yield first
            continue
        said = f" and {len(others)} more, attributes of"
        yield first._replace(message=first.message.replace(", an attribute of", said))


class Examiner:
    """Examines files of one project, each on its own, so that their order is all the same."""

    def __init__(
        self, given: Iterable[SourceFile], settings: Settings, spelled: Iterable[str] = ()
    ) -> None:
        self.settings = settings
        self.marks = _MARKS + tuple(t.partition(".")[0] for t in settings.transforms)
        self.project = Project(settings)
        # The other files are known by name, so that an import finds the text already read.
        self.project.offer(given, spelled)
        self.finder = Finder(self.project)
        self.resolver = StaticResolver(self.finder)

    def examine(self, source: SourceFile) -> Outcome:
        """Return what a file gives."""
        outcome = Outcome(source.path)
        told = declared(self.settings.impure, RULES["FNA316"].code)
        with told, _surviving(outcome, source):
            deeply(self._examine, source, outcome)
        return outcome

    def _examine(self, source: SourceFile, outcome: Outcome) -> None:
        if source.problem is not None:
            outcome.found.append(_fault(source))
        if source.tree is not None and self._may_trace(source):
            self._look(source, outcome)

    def _may_trace(self, source: SourceFile) -> bool:
        """Say whether a file names what traces, or imports from a file of the project that does.

        Where nothing is imported nothing is to be found, and a file's names need not be gathered.
        """
        if self._is_marked(source.text):
            return True
        if "import" not in source.text:
            return False
        module = self.project.take(source)
        near = [*self._imported(module)]
        module.ours = any(is_ours for _, is_ours in near)
        return any(is_marked for is_marked, _ in near)

    def _imported(self, module: Module) -> Iterator[tuple[bool, bool]]:
        """Yield whether what a module imports comes from where tracing, or fnarray, is named."""
        for target in dict.fromkeys((*(target for _, target in module.imports), *module.stars)):
            found = self.project.follow(target, module)
            if isinstance(found, External):  # ``from .compat import jit``, which JAX gives there
                yield self._is_marked(found.name), found.name.startswith("fnarray.")
                continue
            package = target.rpartition(".")[0]
            holder = found.module if found is not None else self.project.module(package, module)
            if holder is not None:
                yield self._is_marked(holder.source.text), holder.source.ours

    def _is_marked(self, text: str) -> bool:
        return any(mark in text for mark in self.marks)

    def _look(self, source: SourceFile, outcome: Outcome) -> None:
        module = self.project.take(source)
        outcome.part = part_of(module, self.project.changes(module))
        sites = list(self.finder.find(module))
        roots = _by_node(sites)
        outcome.traced = [key_of(t.scope) for t in roots.values()]
        with _surviving(outcome, source):
            outcome.found += jit_in_loop(self.finder, module)
            outcome.found += unhashable(self.finder, module, sites)
            outcome.found += reused(self.project, module)
        alone, inner = list[TracedSite](), list[TracedSite]()
        effects = Effects(self.resolver, sites)
        for traced in _distinct(site for site in sites if not _is_refused(site)):
            with _surviving(outcome, source, traced):
                outcome.found += pitfalls(self.project, traced, roots)
            (inner if effects.enclosing(traced.scope) else alone).append(traced)
        for traced in alone:
            with _surviving(outcome, source, traced):
                _share(effects.check(traced), outcome)
        settled = {*outcome.traced, *effects.entered}
        outcome.entered = sorted(effects.entered)
        for traced in inner:
            around = [key_of(scope) for scope in effects.enclosing(traced.scope)]
            if settled.isdisjoint(around):
                with _surviving(outcome, source, traced):
                    found = effects.check(traced)
                    new = effects.entered - settled
                    settled |= new
                    inside = Inner(around, [], sorted(new), [])
                    _share(found, inside)
                    outcome.inner.append(inside)


_TESTS = ("assertRaises", "raises", "assertWarns")


def _is_refused(traced: TracedSite) -> bool:
    """Say whether a test applies a transform to see it refuse, or warn."""
    around = function_around(traced)
    if around is None or not around.module.mentions(*_TESTS):
        return False
    return is_expected(traced.scope, traced.site, around)


def _share(found: Iterable[Finding | Doubt], among: Outcome | Inner) -> None:
    for one in found:
        if isinstance(one, Doubt):
            among.doubts.append(one)
        else:
            among.found.append(one)


def _by_node(found: Iterable[TracedSite]) -> dict[ast.AST, TracedSite]:
    """Return one entry per function; abstract uses come first, for they claim most."""
    roots: dict[ast.AST, TracedSite] = {}
    for traced in sorted(found, key=lambda t: not t.transform.abstract):
        roots.setdefault(traced.scope.node, traced)
    return roots


def _distinct(found: Iterable[TracedSite]) -> Iterator[TracedSite]:
    """Yield each function once per way of tracing it that matters."""
    seen = set[tuple[object, ...]]()
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
    found = RULES["FNA001"].at(where, what=problem.message, source=text)
    if not problem.newer:
        return found
    return found._replace(repair=f"Run fnarray lint with Python {problem.newer} or newer.")


@contextmanager
def _surviving(
    outcome: Outcome, source: SourceFile, traced: TracedSite | None = None
) -> Generator[None, None, None]:
    """Make a finding of a failure of the linter: it must not hide what is found elsewhere."""
    try:
        yield
    except Exception as error:
        label = f" in {traced.label}" if traced is not None else ""
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        if not outcome.crashes:  # one is enough to find the cause
            scope = traced.scope if traced is not None else None
            outcome.found.append(_failure(source, scope, f"{what}{label}"))
        import traceback  # takes longer than most files, and no run needs it

        outcome.crashes.append(f"{source.path}{label}\n{traceback.format_exc()}")


def _failure(source: SourceFile, scope: Scope | None, what: str) -> Finding:
    here = scope is not None and scope.module.source is source
    line = getattr(scope.node, "lineno", 1) if here and scope is not None else 1
    where = Place(source.path, line, 1, line, len(source.line(line)) + 1)
    return RULES["FNA005"].at(where, what=what, source=source.line(line))
