"""Effects of the functions that files trace: the engine, asked through the static resolver."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..engine.analysis import analyse
from ..findings import Finding
from ..law import is_read
from ..nodes import walk
from ..values import Function, Value
from .harm import Doubt, is_passing, is_said_each_time, judged
from .index import FUNCTIONS, Scope
from .place import column_of
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


class Effects:
    """Runs the analysis over the traced functions of a file.

    ``entered`` are the functions that it came through and that have functions inside of them.
    """

    def __init__(self, resolver: StaticResolver) -> None:
        self.resolver = resolver
        self.entered: set[FunctionKey] = set()
        self._seen: dict[tuple[object, ...], list[tuple[Finding | Doubt, bool]]] = {}

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
        decorated = traced.site in getattr(traced.scope.node, "decorator_list", ())
        key = (traced.scope, traced.bound, traced.fixed, decorated, traced.partial and traced.site)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self.analysed(traced)
        kind = traced.transform
        staged = kind.staged or kind.setter or kind.name in _CUSTOM
        if staged and not traced.ours and not decorated:
            staged = not is_passing(traced.site, traced.around)
        return [
            replace(f, finding=_located(f.finding, traced))
            if isinstance(f, Doubt)
            else _located(f, traced)
            for f, kept in found
            if staged or not kept
        ]

    def analysed(self, traced: TracedSite) -> list[tuple[Finding | Doubt, bool]]:
        """Return what a traced function does, and whether only in a trace that is kept."""
        found: list[tuple[Finding | Doubt, bool]] = []
        self.resolver.budget = BUDGET
        for function in (self.function(traced), *self.wrappers(traced.scope)):
            analysis = analyse(function, self.resolver, (traced.label,))
            for entered in analysis.entered:
                scope = entered.module.module.scopes.get(entered.node)
                if scope is not None and scope.holds:
                    self.entered.add(key_of(scope))
            for finding in analysis.findings:
                evidence = analysis.evidence[finding]
                verdict = traced.ours or judged(finding, evidence, self.resolver)
                if verdict:
                    one = finding if verdict is True else Doubt(finding, verdict)
                    found.append((one, is_read(finding) or (
                        not traced.ours and is_said_each_time(finding, evidence))))  # fmt: skip
        return found

    def function(self, traced: TracedSite) -> Function:
        """Return the record of a traced function, with what is fixed about its parameters."""
        base = self.resolver.function(traced.scope)
        fixed: dict[str, Value] = {}
        node = traced.scope.node
        assert isinstance(node, FUNCTIONS)
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        owner = traced.scope.parent
        method = owner is not None and owner.is_class and bool(names)
        decorated = traced.site in getattr(node, "decorator_list", ())
        given = [] if decorated else self.given(traced)
        for i, name in enumerate([] if decorated else names[: traced.bound]):
            value = given[i] if i < len(given) else None
            fixed[name] = (value or Value("", 1)).but(name=name, holder="receiver")
        if method and (traced.bound if not decorated else names[0] in traced.fixed):
            assert owner is not None
            receiver = self.resolver.instance(owner, names[0])
            fixed[names[0]] = receiver.but(holder="receiver")
        if not fixed and not traced.fixed:
            return base
        # A static argument's default is part of the key: a change of it is noticed.
        defaults = {k: v for k, v in base.defaults.items() if k not in traced.fixed}
        return Function(base.node, base.file, base.module, name=base.name,
                        defaults=defaults | fixed, lines=base.lines)  # fmt: skip

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

    def wrappers(self, scope: Scope) -> list[Function]:
        """Return the functions that the project's own decorators put around a function."""
        return [self.resolver.function(s) for s in self.resolver.wrappers(scope)]


def _located(finding: Finding, traced: TracedSite) -> Finding:
    return _in_characters(replace(finding, path=(traced.label, *finding.path[1:])))


def _in_characters(finding: Finding) -> Finding:
    """Return the finding with columns in characters; the tree counts bytes of UTF-8."""
    if finding.source.isascii():
        return finding
    start = column_of(finding.source, finding.column - 1)
    end = finding.end_column
    if finding.end_line == finding.line:
        end = column_of(finding.source, end - 1)
    return replace(finding, column=start, end_column=end)
