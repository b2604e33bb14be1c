"""What a module changes in place, outside of constructors: attributes, and contents of containers.

An attribute that nothing in the project binds but a constructor, and a container that nothing
writes, are as final as a name that is bound once. What is put back, or taken out again, by the
function that put it there (or by ``__exit__``, for ``__enter__``) was never changed for a reader.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from .customs import constructing, is_first_use, is_new, is_set_up
from .index import Module, Scope, Site
from .kinds import spelled

#: Methods in which an object is made: what they bind is bound once for each object.
CONSTRUCTORS = frozenset(
    {"__init__", "__post_init__", "__new__", "__setstate__", "__attrs_post_init__"}
)
_OPPOSITE = {
    **dict.fromkeys(("append", "appendleft", "extend", "key", "item", "add", "insert", "update",
                     "setdefault"), "in"),
    **dict.fromkeys(("pop", "popleft", "popitem", "remove", "discard", "del", "clear"), "out"),
}  # fmt: skip
_GROWING = frozenset({"key", "setdefault", "move_to_end"})
_PAIRS = {"__enter__": "__exit__", "__aenter__": "__aexit__"}


class Change(NamedTuple):
    """A change that stays, as other files see it.

    ``name`` is the last part of what is changed. ``owner`` is the class whose method changes its
    own object, ``module:NAME`` for a module's own name, or "" where anybody's may be meant.
    ``grows`` says that an entry is put under a key that is computed, or taken out, as of caches.
    """

    name: str
    owner: str
    grows: bool


class Condition(NamedTuple):
    """What must be changed somewhere for a read to be of something that can change.

    ``names`` are attributes of the class ``owner``, all of them where "*" is one, or a name of the
    module ``owner``, in a ``package``: who does not import from it changes nothing there. Entries
    that are only added count where ``grows``.
    """

    owner: str
    names: tuple[str, ...]
    grows: bool
    package: str


class Changes:
    """The changes of one module: those that stay, and the nodes of those that are undone."""

    def __init__(self) -> None:
        self.lasting: list[Change] = []
        self.undone: set[ast.AST] = set()

    @staticmethod
    def of(module: Module) -> Changes:
        """Sort the changes of a module."""
        found = Changes()
        groups: defaultdict[tuple[object, str], list[Site]] = defaultdict(list)
        parts = constructing(module, CONSTRUCTORS)
        for site in module.sites:
            groups[_home(site.scope), spelled(site.target)].append(site)
        for (_, text), sites in groups.items():
            if all(site.how == "own" for site in sites) or _is_undone(sites, text):
                found.undone.update(site.node for site in sites)
            else:
                made = (_change(site) for site in sites if not _is_making(site, parts))
                found.lasting += (change for change in made if not _is_of_functions(change))
        return found


def _is_of_functions(change: Change) -> bool:
    """Say whether nobody's field is changed: a variable's, or what a decorator gives a function."""
    return not change.name or (not change.owner and change.name in _OF_FUNCTIONS)


_OF_FUNCTIONS = frozenset({"__name__", "__qualname__", "__doc__", "__module__", "__wrapped__"})


def _home(scope: Scope) -> object:
    """Return where the opposite of a change is looked for: the function, or the pair of methods."""
    inner = scope
    if inner.parent is not None and inner.parent.is_class and inner.name in _METHODS_OF_PAIRS:
        return inner.parent
    return inner


_METHODS_OF_PAIRS = frozenset(_PAIRS) | frozenset(_PAIRS.values())


def _is_undone(sites: list[Site], text: str) -> bool:
    if not sites[0].scope.is_function:
        return False
    names = {site.scope.name for site in sites}
    if any(first in names and second in names for first, second in _PAIRS.items()):
        return True
    ways = {_OPPOSITE.get(site.how) for site in sites}
    called = {site.how for site in sites if isinstance(site.node, ast.Call)}
    if {"in", "out"} <= ways or {"set", "reset"} <= called:
        return True
    return all(s.how == "set" for s in sites) and _puts_back(sites[-1], text)


def _puts_back(site: Site, text: str) -> bool:
    """Say whether ``obj.attr = old`` binds what was there before: ``old = obj.attr``."""
    match site.value:
        case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=attr), *_]):
            return f"{spelled(base)}.{attr}" == text  # with a default: bound once
        case _:
            pass
    if not isinstance(site.value, ast.Name):
        return False
    found = site.scope.lookup(site.value.id)
    values = (getattr(b, "value", None) for b in (found[1] if found else ()))
    return any(value is not None and spelled(value) == text for value in values)


def _is_making(site: Site, parts: set[Scope]) -> bool:
    """Say whether an object is given an attribute as it is made, or at its first use.

    ``parts`` are the methods that constructors alone call.
    """
    scope, target = site.scope, site.target
    while scope.parent is not None and scope.parent.is_function:
        scope = scope.parent
    method = scope.parent is not None and scope.parent.is_class
    if method and (scope.name in CONSTRUCTORS or scope in parts):
        return spelled(target).partition(".")[0] in ("self", "cls")
    if not isinstance(target, ast.Attribute):
        return False
    binds = site.how == "set"
    if (binds or site.node is target) and is_new(site.scope, target):
        return True
    return binds and (is_first_use(site.scope, site.node, target) or is_set_up(site, CONSTRUCTORS))


def _change(site: Site) -> Change:
    target, scope = site.target, site.scope
    # What is taken out of a table is made again by who looks it up.
    grows = site.how in _GROWING or _OPPOSITE.get(site.how) == "out"
    if isinstance(target, ast.Attribute):
        mine = isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")
        owner = scope if scope.is_class else scope.enclosing_class()
        if mine and owner is not None:
            return Change(target.attr, owner.name, grows)
        return Change(target.attr, _class_named(target.value, scope), grows)
    found = scope.lookup(target.id)
    if found is None:
        return Change(target.id, "", grows)
    holder, bindings = found
    imported = getattr(bindings[-1], "target", "")
    if imported:  # the other module's container
        return Change(imported.rpartition(".")[2], "", grows)
    if holder.is_function or holder.is_class:
        return Change("", "", grows)  # a variable of a function is nobody else's
    return Change(target.id, f"module:{holder.module.name}", grows)


def _class_named(node: ast.expr, scope: Scope) -> str:
    """Return the class of the object that a variable holds, if its text tells; "" if not.

    What an annotation says, or the class or function that makes it: ``cell = lambda: None`` is no
    object of the project's.
    """
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    if found is None or not found[0].is_function or len(found[1]) != 1:
        return ""
    (binding,) = found[1]
    value = getattr(binding, "value", None)
    if getattr(binding, "exact", False) and isinstance(value, ast.Lambda):
        return "function"
    if getattr(binding, "scope", None) is not None:  # a function, or a class, that is defined here
        return "function"
    note = getattr(binding, "annotation", None)
    if isinstance(note, ast.Constant) and isinstance(note.value, str):
        note = _parsed(note.value)
    names = {getattr(n, "attr", getattr(n, "id", "")) for n in _classes_in(note)} - _NO_CLASS
    return names.pop() if len(names) == 1 else ""


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _classes_in(note: ast.expr | None) -> list[ast.expr]:
    """Return the classes of a union; what stands in other brackets says nothing of the object."""
    match note:
        case ast.BinOp(left=left, right=right):
            return [*_classes_in(left), *_classes_in(right)]
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner) if (
            name in ("Optional", "Union")
        ):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return [one for part in parts for one in _classes_in(part)]
        case ast.Subscript(value=base):
            return [base]
        case ast.Name() | ast.Attribute():
            return [note]
        case _:
            return []


_NO_CLASS = frozenset({"Any", "object", "None", "T", "Self", ""})


class Part(NamedTuple):
    """What one file tells of a project: changes, bases of its classes, packages that it names.

    The first of the packages is its own.
    """

    changes: Iterable[Change]
    classes: Mapping[str, Iterable[str]]
    packages: Iterable[str]


NOTHING: Final = Part((), {}, ())


def part_of(module: Module, changes: Changes) -> Part:
    """Return what a module tells of its project."""
    classes: dict[str, list[str]] = {}
    packages = {star.partition(".")[0] for star in module.stars}
    packages |= {target.partition(".")[0] for _, target in module.imports}
    for node in module.scopes:
        if isinstance(node, ast.ClassDef):
            bases = (b.value if isinstance(b, ast.Subscript) else b for b in node.bases)
            names = (getattr(b, "attr", getattr(b, "id", "")) for b in bases)
            classes.setdefault(node.name, []).extend(name for name in names if name)
    packages.discard(module.package)
    lasting = set(changes.lasting)
    if _is_test(module.path):
        own = {f"module:{module.name}", *classes}
        fields = {name for s in module.scopes.values() if s.is_class for name in s.sets or ()}
        lasting = {one for one in lasting if one.owner in own or one.name in fields}
    return Part(sorted(lasting), classes, [module.package, *sorted(packages)])


def _is_test(path: str) -> bool:
    """Say whether a file tests: of others' objects it changes those that it made for that."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


class Changed:
    """What a whole project changes, and how its classes are related, by their bare names."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._sites: defaultdict[tuple[str, str], set[tuple[str, bool]]] = defaultdict(set)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._bases: defaultdict[str, set[str]] = defaultdict(set)
        self._above: dict[str, frozenset[str]] = {}
        for part in parts:
            for name, owner, grows in part.changes:
                self._names[owner].add(name)
                # What begins with a line belongs to the package: others have their own of the name.
                for package in [*part.packages][: 1 if name.startswith("_") else None]:
                    self._sites[package, name].add((owner, grows))
            for name, bases in part.classes.items():
                self._bases[name].update(bases)

    def meets(self, condition: Condition) -> bool:
        """Say whether what a condition names is changed."""
        owner, names, counts, package = condition
        for name in names:
            for who, grows in self._sites.get((package, name), ()):
                if (counts or not grows) and (not who or self._related(who, owner)):
                    return True
        if "*" not in names:
            return False
        return any(who and some and self._related(who, owner) for who, some in self._names.items())

    def _related(self, one: str, other: str) -> bool:
        return one == other or one in self._lineage(other) or other in self._lineage(one)

    def _lineage(self, name: str) -> frozenset[str]:
        known = self._above.get(name)
        if known is None:
            found: set[str] = set()
            waiting = [name]
            while waiting:
                new = self._bases.get(waiting.pop(), set()) - found
                found |= new
                waiting += new
            known = self._above[name] = frozenset(found)
        return known
