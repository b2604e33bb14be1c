"""Finding the functions that a file hands to transforms and control flow."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, cast

from ..transforms import JIT, PARTIALS, SETTERS, Transform, last_names, transform_of
from .appliers import Appliers, Use, given, may_be_own, may_hand, positions, slots
from .index import (
    FUNCTIONS,
    Assigned,
    Binding,
    CallSite,
    Defined,
    Import,
    Module,
    Scope,
    parameters,
)
from .project import External, Project

_DEPTH = 8


class TracedSite(NamedTuple):
    """A function that is traced: by what, and which of its parameters are no traced values.

    ``bound`` counts leading positional parameters filled by ``partial`` or a bound method;
    ``fixed`` names parameters that are static or bound by keyword; ``around`` is where the
    transform is applied.
    """

    scope: Scope
    transform: Transform
    site: ast.AST
    bound: int = 0
    fixed: frozenset[str] = frozenset()
    partial: bool = False
    around: Scope | None = None

    @property
    def ours(self) -> bool:
        """Whether the file that traces it names ``fnarray``, which will refuse what is found."""
        return (self.around or self.scope).module.ours

    @property
    def decorates(self) -> bool:
        """Whether the transform stands above the function."""
        return self.site in getattr(self.scope.node, "decorator_list", ())

    @property
    def label(self) -> str:
        """The first step of a finding's path: ``jit(train)``."""
        return f"{self.transform.name}({self.scope.name})"


class Finder:
    """Resolves what each transform of a module is applied to."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.declared = frozenset(project.settings.transforms)
        self.last = last_names() | {name.rpartition(".")[2] for name in self.declared}
        self.appliers = Appliers(self.applying)
        self._leading: dict[tuple[int, bool], tuple[bool, bool]] = {}
        self._telling: dict[Module, list[tuple[CallSite, Use | None]]] = {}
        self._applying: dict[Module, dict[ast.Call, Use]] = {}

    def named(self, dotted: str) -> Transform | None:
        """Return the transform of a dotted name, those that the settings declare among them."""
        return JIT if dotted in self.declared else transform_of(dotted)

    def transform(self, node: ast.expr, scope: Scope) -> Transform | None:
        """Return the transform that an expression names, through any alias."""
        target = self.project.resolve(node, scope)
        if isinstance(target, External):
            return self.named(target.name)
        if isinstance(target, Scope) and target.name in self.last:
            # A project that defines its own filter_jit, say, is linted by its public name.
            package = target.module.name.partition(".")[0]
            return self.named(f"{package}.{target.name}")
        return None

    def applied(self, node: ast.expr, scope: Scope) -> Use | None:
        """Return the transform that a decorator or factory call applies: ``jit``,
        ``partial(jit, static_argnums=0)``, ``jit(static_argnames="n")``.
        """
        if not isinstance(node, ast.Call):
            found = self.transform(node, scope)
            if found is not None:
                return Use(found, node, (), scope) if found.decorates else None
            return self._preset(node, scope)
        if self.is_partial(node.func, scope) and node.args:
            found = self.transform(node.args[0], scope)
            if found is not None and found.decorates and len(node.args) == 1:
                return Use(found, node, tuple(node.keywords), scope)
            return None
        if not node.args and not any(k.arg in ("fun", "f", "fn") for k in node.keywords):
            found = self.transform(node.func, scope)
            if found is not None and found.decorates:
                return Use(found, node, tuple(node.keywords), scope)
        return None

    def _preset(self, node: ast.expr, scope: Scope) -> Use | None:
        """Return the transform that a name stands for with its settings: ``fast = jit(n=1)``."""
        made = self.project.written(node, scope)
        if made is None or not isinstance(made[0], ast.Call):
            return None
        use = self.applied(*made)
        return use._replace(node=node, scope=scope) if use is not None else None

    def is_partial(self, node: ast.expr, scope: Scope) -> bool:
        """Say whether an expression names ``functools.partial`` or a twin."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return False
        if (node.id if isinstance(node, ast.Name) else node.attr) not in ("partial", "Partial"):
            return False
        target = self.project.resolve(node, scope)
        return isinstance(target, External) and target.name in PARTIALS

    def find(self, module: Module) -> Iterator[TracedSite]:
        """Yield every function that the module traces."""
        for scope in module.functions:
            if isinstance(scope.node, (ast.Lambda, ast.Module)) or scope.parent is None:
                continue
            for decorator in scope.node.decorator_list:
                use = self.applied(decorator, scope.parent)
                if use is not None:
                    yield self._traced(scope, use, self.is_method(scope), decorated=True)
                elif isinstance(decorator, ast.Attribute) and decorator.attr in SETTERS:
                    use = Use(SETTERS[decorator.attr], decorator, (), scope.parent)
                    yield self._traced(scope, use, decorated=True)
                else:
                    yield from self._decorated(scope, decorator, scope.parent)
        for site, use in self._calls(module):
            yield from self._call(site, use)

    def _decorated(self, scope: Scope, decorator: ast.expr, outer: Scope) -> Iterator[TracedSite]:
        """Yield a function that a decorator of the project's own hands to a transform."""
        for maker in self._own(decorator, outer):
            for one in self.appliers.of(maker):
                if positions(maker).get(one.parameter) == 0:
                    use = Use(one.transform, decorator, one.keywords, outer)
                    yield self._traced(scope, use, self.is_method(scope), decorated=True)

    def _own(self, func: ast.expr, scope: Scope) -> Iterator[Scope]:
        """Yield the functions of the project that a callee may stand for, those made by others."""
        if isinstance(func, ast.Call):
            yield from (inner for inner, *_ in self.functions(func, scope))
        elif isinstance(func, (ast.Name, ast.Attribute)) and may_be_own(func, scope, self.project):
            target = self.project.resolve(func, scope)
            if isinstance(target, Scope) and target.is_function and not self.is_method(target):
                yield target

    def _handed(self, call: ast.Call, scope: Scope) -> Iterator[TracedSite]:
        """Yield what a call hands to a function of the project, and that to a transform."""
        for maker in self._own(call.func, scope) if may_hand(call, scope) else ():
            for one in self.appliers.of(maker):
                node = given(call, maker, one.parameter)
                use = Use(one.transform, call, one.keywords, scope)
                for target, bound, names, part in self.functions(node, scope) if node else ():
                    yield self._traced(target, use, bound, names, part)

    def applying(self, module: Module) -> dict[ast.Call, Use]:
        """Return what the calls of a module apply, those that do: ``jit(f)``, ``jit(n=1)(f)``.

        The node of a use is the call, if its callee is a transform by itself.
        """
        known = self._applying.get(module)
        if known is None:
            known = {site.node: use for site, use in self._calls(module) if use is not None}
            self._applying[module] = known
        return known

    def _calls(self, module: Module) -> list[tuple[CallSite, Use | None]]:
        """Return the calls of a module that may trace something, and what they apply.

        Three of four cannot, as what binds the first name of their callee says.
        """
        known = self._telling.get(module)
        if known is None:
            known = self._telling[module] = []
            for site in module.calls:
                call, scope = site.node, site.scope
                func, use, own = call.func, None, False
                if isinstance(func, ast.Call):
                    use, own = self.applied(func, scope), True
                elif isinstance(func, (ast.Name, ast.Attribute)):
                    name = func.id if isinstance(func, ast.Name) else func.attr
                    may, own = self._led(func, scope)
                    use = self._use(call, func, scope) if may or name in self.last else None
                    own = own or name in SETTERS
                if own or use is not None:
                    known.append((site, use))
        return known

    def _use(self, call: ast.Call, func: ast.expr, scope: Scope) -> Use | None:
        found = self.transform(func, scope)
        if found is not None:
            return Use(found, call, tuple(call.keywords), scope)
        return self._preset(func, scope) if call.args else None

    def _call(self, site: CallSite, use: Use | None) -> Iterator[TracedSite]:
        call, scope = site.node, site.scope
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in SETTERS:
            yield from self._slots(call, scope, SETTERS[func.attr])
        elif use is None:
            yield from self._handed(call, scope)
        elif use.node is call:
            yield from self._slots(call, scope, use.transform)
        elif call.args:  # partial(jit, static_argnums=0)(f), jit(...)(f)
            for target, bound, names, part in self.functions(call.args[0], scope):
                yield self._traced(target, use, bound, names, part)

    def _led(self, func: ast.Name | ast.Attribute, scope: Scope) -> tuple[bool, bool]:
        """Say whether a callee may be a transform under another name, and whether the project's
        own, by what binds its first name.

        To resolve all callees took a tenth of the time.
        """
        root: ast.expr = func
        while isinstance(root, ast.Attribute):
            root = root.value
        found = scope.lookup(root.id) if isinstance(root, ast.Name) else None
        if found is None:
            stars = bool(scope.module.stars)
            return stars, stars and root is func
        key = id(found[1]), root is func  # a list lives as long as its scope
        known = self._leading.get(key)
        if known is None:
            known = self._leading[key] = self._leads(found[1], scope.module.package, root is func)
        return known

    def _leads(self, bindings: list[Binding], here: str, alone: bool) -> tuple[bool, bool]:
        """Say the same of a name with these bindings, ``alone`` or with attributes."""
        may = alone and any(isinstance(one, Assigned) for one in bindings)
        imports = [one.target.partition(".") for one in bindings if isinstance(one, Import)]
        if not imports:
            return may, alone
        own = any(root == here for root, *_ in imports)
        may = may or own or any(rest.rpartition(".")[2] in self.last for *_, rest in imports)
        return may, own or not all(self.project.is_closed(root) for root, *_ in imports)

    def _slots(self, call: ast.Call, scope: Scope, found: Transform) -> Iterator[TracedSite]:
        use = Use(found, call, tuple(call.keywords), scope)
        for node in slots(call, found):
            many = found.several and isinstance(node, (ast.List, ast.Tuple))
            for item in cast("ast.List", node).elts if many else [node]:
                for target, bound, names, part in self.functions(item, scope):
                    yield self._traced(target, use, bound, names, part)

    def functions(
        self, node: ast.expr, scope: Scope, depth: int = _DEPTH
    ) -> Iterator[tuple[Scope, int, frozenset[str], bool]]:
        """Yield the functions an expression may stand for, as ``(scope, bound, names, partial)``.

        ``bound`` leading parameters and the parameters ``names`` are already filled.
        """
        if depth <= 0:
            return
        match node:
            case ast.Lambda():
                found = scope.module.scopes.get(node)
                if found is not None:
                    yield found, 0, frozenset(), False
            case ast.IfExp():
                yield from self.functions(node.body, scope, depth - 1)
                yield from self.functions(node.orelse, scope, depth - 1)
            case ast.Name() | ast.Attribute():
                yield from self._named(node, scope, depth)
            case ast.Subscript(value=ast.Name(id=name)):
                for item, holder in self._items(name, node.slice, scope):
                    yield from self.functions(item, holder, depth - 1)
            case ast.Subscript(value=ast.ListComp(elt=item)):
                yield from self.functions(item, scope, depth - 1)
            case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=str(name))]):
                named = ast.copy_location(ast.Attribute(base, name, ast.Load()), node)
                yield from self._named(named, scope, depth)
            case ast.Call():
                yield from self._made(node, scope, depth)
            case _:
                pass

    def _items(self, name: str, key: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
        """Yield what a list, tuple or dict may hold under a key: its literal and what is appended.

        All of it where the key is no constant.
        """
        found = scope.lookup(name)
        if found is None:
            return
        holder, bindings = found
        for binding in bindings:
            match getattr(binding, "value", None):
                case ast.List(elts=items) | ast.Tuple(elts=items):
                    exact = isinstance(key, ast.Constant) and isinstance(key.value, int)
                    at: Any = key
                    chosen = items[at.value : at.value + 1] if exact else items
                    yield from ((one, holder) for one in chosen or items)
                case ast.Dict(keys=keys, values=values):
                    same = [
                        value for k, value in zip(keys, values, strict=True)
                        if isinstance(k, ast.Constant) and isinstance(key, ast.Constant)
                        and k.value == key.value
                    ]  # fmt: skip
                    yield from ((value, holder) for value in same or values)
                case _:
                    pass
        for site in holder.module.calls:
            match site.node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=owner), attr="append"), args=[item]
                ) if owner == name and site.scope is holder:
                    yield item, holder
                case _:
                    pass

    def _named(
        self, node: ast.Name | ast.Attribute, scope: Scope, depth: int
    ) -> Iterator[tuple[Scope, int, frozenset[str], bool]]:
        if isinstance(node, ast.Name) and (again := self._rebound(node, scope)) is not None:
            yield from again
            return
        target = self.project.resolve(node, scope)
        if isinstance(target, Scope) and target.is_function:
            if isinstance(node, ast.Attribute) and _is_property(target):
                return  # what it gives is traced, which nobody sees
            yield target, int(isinstance(node, ast.Attribute) and self.is_method(target)), \
                frozenset(), False  # fmt: skip
        elif isinstance(node, ast.Name):
            found = scope.lookup(node.id)
            if found is None:
                return
            holder, bindings = found
            for binding in bindings:
                value = getattr(binding, "value", None)
                if isinstance(value, (ast.Call, ast.IfExp)) and getattr(binding, "exact", False):
                    yield from self.functions(value, holder, depth - 1)
        elif isinstance(node.value, ast.Call):  # Model().step
            yield from self._method(node.value, scope, node.attr)
        elif isinstance(node.value, ast.Name):  # a method of an object made here
            found = scope.lookup(node.value.id)
            for binding in found[1] if found else ():
                value = getattr(binding, "value", None)
                if isinstance(value, ast.Call) and getattr(binding, "exact", False):
                    yield from self._method(value, found[0], node.attr)  # type: ignore[index]

    def _rebound(
        self, node: ast.Name, scope: Scope
    ) -> list[tuple[Scope, int, frozenset[str], bool]] | None:
        """Return the function of a name that is rebound to a ``partial`` of itself."""
        found = scope.lookup(node.id)
        names: frozenset[str] = frozenset()
        bound, filled = 0, False
        before = [b for b in found[1] if b.line < node.lineno] if found is not None else []
        for binding in reversed(before):
            match binding:
                case Defined(scope=inner):
                    return [(inner, bound, names, True)] if filled else None
                case Assigned(
                    value=ast.Call(func=func, args=[ast.Name(id=name), *rest], keywords=given),
                    exact=True,
                ) if name == node.id:
                    if self.is_partial(func, scope):
                        names |= {k.arg for k in given if k.arg}
                        bound, filled = bound + len(rest), True
                    elif self.transform(func, scope) is None:
                        return None
                case _:
                    return None
        return None

    def _method(
        self, made: ast.Call, scope: Scope, name: str
    ) -> Iterator[tuple[Scope, int, frozenset[str], bool]]:
        """Yield the method of an object that a call of its class makes."""
        owner = self.project.resolve(made.func, scope)
        if isinstance(owner, Scope) and owner.is_class:
            method = self.project.member(owner, name)
            if isinstance(method, Scope) and method.is_function:
                yield method, int(self.is_method(method)), frozenset(), False

    def _made(
        self, node: ast.Call, scope: Scope, depth: int
    ) -> Iterator[tuple[Scope, int, frozenset[str], bool]]:
        if self.is_partial(node.func, scope) and node.args:
            names = frozenset(k.arg for k in node.keywords if k.arg)
            open_ended = any(k.arg is None for k in node.keywords)  # ``partial(f, **kwargs)``
            for target, bound, before, _ in self.functions(node.args[0], scope, depth - 1):
                some = _keywords(target) if open_ended else names
                yield target, bound + len(node.args) - 1, before | names | some, True
            return
        target = self.project.resolve(node.func, scope)
        if isinstance(target, External):
            # jit(grad(f)): the inner call is a site of its own; the outer one adds its kind.
            found = self.named(target.name)
            wraps = target.name in ("functools.wraps", "functools.lru_cache")
            if found is not None and found.decorates and node.args and not wraps:
                yield from self.functions(node.args[0], scope, depth - 1)
        elif isinstance(target, Scope) and target.is_class:
            method = self.project.member(target, "__call__")
            if isinstance(method, Scope) and method.is_function:
                yield method, 1, frozenset(), False
        elif isinstance(target, Scope) and target.is_function:
            yield from self.given_back(target, depth - 2)
        elif target is None:  # ``logged("a")(f)``; or ``note = logged("a")``, ``note(f)``
            for maker, *_ in self.functions(node.func, scope, depth - 2):
                yield from self.given_back(maker, depth - 4)

    def given_back(
        self, factory: Scope, depth: int = _DEPTH, but: Collection[ast.AST] = ()
    ) -> Iterator[tuple[Scope, int, frozenset[str], bool]]:
        """Yield the functions that a factory returns, ``but`` some of its values."""
        for value in factory.returns:
            if value not in but:
                for inner, *rest in self.functions(value, factory, depth):
                    if inner.parent is not None and inner is not factory:
                        yield inner, *rest  # type: ignore[misc]

    # --- which parameters are traced ---

    def _traced(
        self,
        target: Scope,
        use: Use,
        bound: int = 0,
        names: frozenset[str] = frozenset(),
        partial: bool = False,
        *,
        decorated: bool = False,
    ) -> TracedSite:
        # A decorator sees self; what is already bound no longer counts among the arguments.
        fixed = names | static_names(target, use.keywords, 0 if decorated else bound)
        if use.transform.known:
            fixed |= {a.arg for a in [*parameters(target.node.args)][: use.transform.known]}  # type: ignore[union-attr]
        return TracedSite(target, use.transform, use.node, bound, fixed, partial, use.scope)

    def is_method(self, scope: Scope) -> bool:
        """Say whether a function is given an object, or a class, by its first parameter."""
        if scope.parent is None or not scope.parent.is_class:
            return False
        decorators = getattr(scope.node, "decorator_list", [])
        return not any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)


def _is_property(scope: Scope) -> bool:
    """Say whether an attribute by this name is what a function gives, or is given."""
    decorators = getattr(scope.node, "decorator_list", ())
    marks = {getattr(d, "id", getattr(d, "attr", "")) for d in decorators}
    return bool(marks & {"property", "cached_property", "setter", "deleter"})


def _keywords(target: Scope) -> frozenset[str]:
    """Return the parameters that keywords may fill in."""
    assert isinstance(target.node, FUNCTIONS)
    args = target.node.args
    return frozenset(a.arg for a in (*args.args, *args.kwonlyargs))


#: Keywords that say which parameters keep their values, by position.
_STATIC_POSITIONS = frozenset(
    {"static_argnums", "nondiff_argnums", "static_broadcasted_argnums", "excluded"}
)


def static_names(target: Scope, keywords: tuple[ast.keyword, ...], bound: int) -> frozenset[str]:
    """Return the parameters named by ``static_argnums``, ``static_argnames`` and their kin.

    Positions count from the first parameter that is not ``bound`` yet.
    """
    assert isinstance(target.node, FUNCTIONS)
    args = target.node.args
    positional = [a.arg for a in (*args.posonlyargs, *args.args)]
    names: set[str] = set()
    for keyword in keywords:
        if keyword.arg in _STATIC_POSITIONS:
            for n in _constants(keyword.value):
                if isinstance(n, str):  # ``vectorize(excluded={"n"})``
                    names.add(n)
                elif isinstance(n, int) and n < 0 and -n <= len(positional):
                    names.add(positional[n])
                elif isinstance(n, int) and 0 <= n < len(positional) - bound:
                    names.add(positional[n + bound])
            if not _literal(keyword.value):
                names.update(positional)  # unknown: nothing is surely traced
        elif keyword.arg == "static_argnames":
            names.update(str(n) for n in _constants(keyword.value))
            if not _literal(keyword.value):
                names.update(positional + [a.arg for a in args.kwonlyargs])
        elif keyword.arg is None:
            names.update(positional)
    return frozenset(names)


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _constants(node: ast.expr) -> list[object]:
    if not _literal(node):
        return []
    value: Any = ast.literal_eval(node)
    return [*value] if type(value) in (tuple, list, set) else [value]
