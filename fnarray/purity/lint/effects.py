"""Effects of the functions that files trace: the engine, asked through the static resolver."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ..engine.analysis import analyse
from ..engine.machine import Evidence
from ..findings import Finding
from ..law import is_read
from ..nodes import walk
from ..values import CONTAINERS, Function, Value
from .case import Case, Doubt
from .harm import judged
from .index import FUNCTIONS, Scope, parameters
from .passing import is_callbacks_own, is_left_there, is_passing, maker
from .place import column_of
from .proof import Trace, is_shown
from .said import is_said_each_time
from .statics import BUDGET, StaticResolver
from .traced import TracedSite

# Those that do not say what will trace their function, and so may be kept.
_CUSTOM = frozenset({"custom_jvp", "custom_vjp", "custom_gradient"})


#: A function by its file, line and column.
FunctionKey = tuple[str, int, int]


def key_of(scope: Scope) -> FunctionKey:
    """Return what names a function in any process, whoever parsed its file."""
    node = scope.node
    return scope.module.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


class Found(NamedTuple):
    """A finding, and whether it counts only in a trace that is kept.

    ``doubt`` is what must be changed somewhere for it to count, ``held`` the function that made
    the object that is written.
    """

    finding: Finding
    evidence: Evidence
    kept: bool
    doubt: Doubt | None = None
    held: Scope | None = None


class Effects:
    """Runs the analysis over the traced functions of a file.

    ``sites`` are all of the file's; ``entered`` are the functions that it came through, those that
    have functions inside of them.
    """

    def __init__(self, resolver: StaticResolver, sites: Iterable[TracedSite] = ()) -> None:
        self.resolver = resolver
        self._sites: defaultdict[Scope, list[TracedSite]] = defaultdict(list)
        for site in sites:
            self._sites[site.scope].append(site)
        self.entered: set[FunctionKey] = set()
        self._seen: dict[tuple[object, ...], list[Found]] = {}

    def enclosing(self, scope: Scope) -> list[Scope]:
        """Return the functions around a function, innermost first."""
        around: list[Scope] = []
        outer = scope.parent
        while outer is not None:
            if outer.is_function:
                around.append(outer)
            outer = outer.parent
        return around

    def check(self, traced: TracedSite) -> list[Finding | Doubt]:
        """Return the findings in one traced function, its decorators, and what they call."""
        # What a function does is the same under jit and under grad; what of it matters is not.
        decorated = traced.decorates
        key = (traced.scope, traced.bound, traced.fixed, decorated and traced.site,
               traced.partial and traced.site)  # fmt: skip
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self.analysed(traced)
        if not found:
            return []
        kind = traced.transform
        # What such a function says or asks it does each time, unless somebody jits it.
        custom = (kind.setter or kind.name in _CUSTOM) and not traced.ours
        staged = kind.staged or kind.setter or kind.name in _CUSTOM
        passing = not traced.ours and is_passing(traced)
        return [
            f.doubt._replace(finding=_located(f.doubt.finding, traced))
            if f.doubt is not None
            else _located(f.finding, traced)
            for f in found
            if ((staged and not passing) or not f.kept)
            and not (custom and f.kept and not is_read(f.finding))
            and not (passing and is_left_there(f.evidence, traced, f.held))
        ]

    def analysed(self, traced: TracedSite) -> list[Found]:
        """Return what a traced function does, and what it takes to be harmless there."""
        found: list[Found] = []
        self.resolver.budget, self.resolver.presumes = BUDGET, not traced.ours
        waiting = [self.function(traced), *self.wrappers(traced)]
        for function in waiting:  # it grows on the way
            analysis = analyse(function, self.resolver, (traced.label,))
            for entered in analysis.entered:
                scope = entered.module.module.scopes.get(entered.node)
                if scope is not None and scope.holds:
                    self.entered.add(key_of(scope))
                if scope is not None:
                    known = {id(one.node) for one in waiting}
                    afar = self.resolver.decorators.registered(scope, traced.scope.module)
                    waiting += (one for one in afar if id(one.node) not in known)
            written: set[tuple[object, ...]] = set()
            trace = Trace(traced, {function.node, *(one.node for one in analysis.entered)})
            for finding in sorted(analysis.findings, key=is_read):
                evidence = analysis.evidence[finding]
                node = evidence.frame.function.node
                if traced.ours:
                    found.append(Found(finding, evidence, is_read(finding)))
                    continue
                if is_read(finding) and (node, _named(finding)) in written:
                    continue  # the cause is that it is written here
                case = Case(finding, evidence, self.resolver)
                verdict = judged(case)
                if not verdict or (
                    finding.code == "FNA108"
                    and is_callbacks_own(finding, evidence, traced, case.scope)
                ):
                    continue
                if not is_shown(case, trace):
                    finding = finding._replace(presumed=True)
                kept = is_read(finding) or is_said_each_time(finding, evidence)
                doubt = None if verdict is True else Doubt(finding, verdict)
                held = None if is_read(finding) else maker(evidence, case.scope, traced)
                found.append(Found(finding, evidence, kept, doubt, held))
                written.add((node, _named(finding)))
        return found

    def function(self, traced: TracedSite) -> Function:
        """Return the record of a traced function, with what is fixed about its parameters."""
        base = self.resolver.function(traced.scope)
        fixed: dict[str, Value] = {}
        node = traced.scope.node
        assert isinstance(node, FUNCTIONS)
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        owner = traced.scope.parent
        method = bool(names) and self.resolver.finder.is_method(traced.scope)
        decorated = traced.decorates
        given = [] if decorated else self.given(traced)
        for i, name in enumerate([] if decorated else names[: traced.bound]):
            value = given[i] if i < len(given) else None
            fixed[name] = (value or Value("", 1)).but(name=name, holder="receiver")
        if method and (traced.bound if not decorated else names[0] in traced.fixed):
            assert owner is not None
            receiver = self.resolver.instance(owner, names[0])
            # What a static object holds is guarded; to JAX it is what it was at the trace.
            declared = decorated and traced.ours and receiver.kind == "instance"
            fixed[names[0]] = receiver.but(holder="receiver", guarded=declared)
        for site in self._sites.get(traced.scope, (traced,)):  # ``@jit`` above a loop's body
            fixed |= self.carried(site)
        if not fixed and not traced.fixed:
            return base
        # A static argument's default is part of the key: a change of it is noticed.
        defaults = {k: v for k, v in base.defaults.items() if k not in traced.fixed}
        return Function(base.node, base.file, base.module, name=base.name,
                        defaults=defaults | fixed, lines=base.lines)  # fmt: skip

    def carried(self, traced: TracedSite) -> dict[str, Value]:
        """Return the parameter that a loop hands its body, if it starts from a container."""
        kind, site = traced.transform.carry, traced.site
        if kind is None or traced.around is None or not isinstance(site, ast.Call):
            return {}
        names = [a.arg for a in parameters(traced.scope.node.args)]  # type: ignore[union-attr]
        if kind[0] >= len(site.args) or kind[1] + traced.bound >= len(names):
            return {}
        start = site.args[kind[0]]
        found = traced.around.lookup(start.id) if isinstance(start, ast.Name) else None
        starts = [getattr(b, "value", None) for b in found[1]] if found is not None else [start]
        for one in starts:
            made = self.resolver.of(one, traced.around)
            if made is not None and made.kind in CONTAINERS:
                name = names[kind[1] + traced.bound]
                return {name: Value(made.kind, 1, argument=True, name=name)}
        return {}

    def given(self, traced: TracedSite) -> list[Value | None]:
        """Return what a ``partial`` at the transform fills in."""
        scope = traced.scope.parent
        if not traced.partial or scope is None:
            return []
        calls = [n for n in walk(traced.site) if isinstance(n, ast.Call) and len(n.args) > 1]
        for call in calls:
            if self.resolver.finder.is_partial(call.func, scope):
                return [self.resolver.of(arg, scope) for arg in call.args[1:]]
        return []

    def wrappers(self, traced: TracedSite) -> list[Function]:
        """Return the functions that the project's own decorators put around a function.

        Those above the transform are run at each call: what they do is not traced.
        """
        decorators: list[ast.expr] = getattr(traced.scope.node, "decorator_list", [])
        below = decorators.index(traced.site) + 1 if traced.decorates else 0  # type: ignore[arg-type]
        return self.resolver.decorators.wrappers(traced.scope, decorators[below:])


def _named(finding: Finding) -> str:
    """Return the object that a finding names first."""
    return finding.message.partition("'")[2].partition("'")[0]


def _located(finding: Finding, traced: TracedSite) -> Finding:
    return _in_characters(finding._replace(path=(traced.label, *finding.path[1:])))


def _in_characters(finding: Finding) -> Finding:
    """Return the finding with columns in characters; the tree counts bytes of UTF-8."""
    if finding.source.isascii():
        return finding
    start = column_of(finding.source, finding.column - 1)
    end = finding.end_column
    if finding.end_line == finding.line:
        end = column_of(finding.source, end - 1)
    return finding._replace(column=start, end_column=end)
