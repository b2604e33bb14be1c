"""Names across files: imports are followed to the files of the project, and no further."""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..transforms import ARRAY_PACKAGES
from .changes import Changes
from .config import Settings, real_path
from .index import Assigned, Binding, Defined, Import, Module, Scope
from .source import SourceFile, read

#: Packages whose functions are known by name; their files are never opened.
FRAMEWORKS = ("jax", "fnarray", "numpy", "jaxlib")
_DEPTH = 24
_BUILTINS = frozenset(dir(builtins))


class External(NamedTuple):
    """Something outside the project, known by its dotted name only (``math.pi``)."""

    name: str


Target = External | Scope


class Project:
    """The modules under analysis, and those they import, read as they are needed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.modules: dict[str, Module] = {}
        self._paths: dict[str, Module | None] = {}
        self._found: dict[tuple[str, str], Module | None] = {}
        self._reals: dict[str, str] = {}
        self._roots: dict[Path, Path] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._offered: dict[str, SourceFile] = {}
        self._spelled: dict[str, str] = {}
        self._following: set[str] = set()
        self._followed: dict[tuple[str, str], Target] = {}
        self._closed: dict[str, bool] = {}
        self._bound: dict[int, Target] = {}
        self._changes: dict[Module, Changes] = {}
        self._bases: dict[Scope, tuple[Target | None, ...]] = {}

    def source(self, path: str) -> SourceFile:
        """Return a file that is to be examined, which an import may have led to already."""
        known = self._paths.get(self._real(path))
        if known is not None:
            return known.source
        return self._offered.setdefault(self._real(path), read(path))

    def take(self, source: SourceFile) -> Module:
        """Return the module of a source, which an import may have led to already."""
        known = self._paths.get(self._real(source.path))
        return known if known is not None and known.source is source else self._add(source)

    def offer(self, sources: Iterable[SourceFile], spelled: Iterable[str] = ()) -> None:
        """Keep sources at hand for imports that lead to them, so that none is read twice.

        Files not read yet are ``spelled``: findings in them carry the path as it was given.
        """
        self._offered = {self._real(source.path): source for source in sources}
        self._spelled = {self._real(path): path for path in spelled}

    def _real(self, path: str) -> str:
        """Return a path without links: asked for four times for each file, twenty system calls."""
        known = self._reals.get(path)
        if known is None:
            known = self._reals[path] = real_path(path)
        return known

    def _add(self, source: SourceFile) -> Module:
        path = Path(source.path)
        root = self._real(str(self.import_root(path.parent))).rstrip(os.sep) + os.sep
        real = self._real(source.path)
        inside = os.path.splitext(real.removeprefix(root))[0]  # noqa: PTH122 - for each file
        parts = inside.split(os.sep) if real.startswith(root) else [path.stem]  # noqa: PTH206
        is_package = bool(parts) and parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        module = Module(name, source, is_package)
        self._paths[self._real(source.path)] = module
        return module

    def import_root(self, folder: Path) -> Path:
        """Return the folder that ``import`` starts from for files in ``folder``."""
        known = self._roots.get(folder)
        if known is None:
            known = folder
            while (known / "__init__.py").is_file() and known.parent != known:
                known = known.parent
            self._roots[folder] = known
        return known

    def _is_file(self, path: str) -> bool:
        folder, _, name = path.rpartition(os.sep)
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder or "."))  # noqa: PTH208 - as above
            except OSError:
                self._names[folder] = frozenset()
        return name in self._names[folder] and os.path.isfile(path)  # noqa: PTH113 - as above

    def is_closed(self, dotted: str) -> bool:
        """Say whether a name is known, or trusted, without looking into its files."""
        known = self._closed.get(dotted)
        if known is None:
            known = self._closed[dotted] = dotted.partition(".")[0] in FRAMEWORKS or any(
                f"{dotted}.".startswith(f"{name}.") for name in self.settings.trusted
            )
        return known

    def loaded(self) -> Iterator[Module]:
        """Yield every module that was opened."""
        return (module for module in self._paths.values() if module is not None)

    def module(self, dotted: str, importer: Module) -> Module | None:
        """Return the project's module of that name as seen from a file, or None."""
        if not dotted or self.is_closed(dotted):
            return None
        if dotted in importer.asked:
            return importer.asked[dotted]
        key = (dotted, importer.folder)
        if key not in self._found:
            self._found[key] = self._load(dotted, Path(importer.folder))
        found = importer.asked[dotted] = self._found[key]
        return found

    def locate(self, dotted: str, folder: Path) -> Path | None:
        """Return the file that a dotted name means in a folder's files, if it is the project's."""
        relative = dotted.replace(".", os.sep)
        roots = [self.import_root(folder), folder]
        roots += [self.settings.root / src for src in self.settings.src]
        for root in dict.fromkeys(roots):
            for name in (f"{relative}{os.sep}__init__.py", f"{relative}.py"):
                if "site-packages" not in relative and self._is_file(f"{root}{os.sep}{name}"):
                    return root / name
        return None

    def _load(self, dotted: str, folder: Path) -> Module | None:
        path = self.locate(dotted, folder)
        if path is None:
            return None
        real = self._real(str(path))
        if real not in self._paths:
            self._paths[real] = None
            source = self._offered.get(real) or read(self._spelled.get(real, path))
            if source.tree is not None:
                self._add(source)
        return self._paths[real]

    def changes(self, module: Module) -> Changes:
        """Return what a module changes in place."""
        known = self._changes.get(module)
        if known is None:
            known = self._changes[module] = Changes.of(module)
        return known

    # --- names ---

    def follow(self, dotted: str, importer: Module, depth: int = _DEPTH) -> Target | None:
        """Return what a dotted name stands for, seen from a module."""
        if self.is_closed(dotted):
            return External(dotted)
        if dotted in self._following:  # modules that import from each other in a circle
            return None
        key = (dotted, importer.path)
        if key in self._followed:
            return self._followed[key]
        self._following.add(dotted)
        try:
            found = self._follow(dotted, importer, depth)
        finally:
            self._following.discard(dotted)
        # Inside of another search a circle may have hidden something.
        if found is not None and not self._following:
            self._followed[key] = found
        return found

    def _follow(self, dotted: str, importer: Module, depth: int) -> Target | None:
        parts = dotted.split(".")
        # As Python does: what a package binds to a name hides a submodule of that name.
        for n in range(len(parts) - 1, 0, -1):
            module = self.module(".".join(parts[:n]), importer)
            if module is not None:
                found: Target | None = module.scope
                for part in parts[n:]:
                    found = self.member(found, part, depth - 1) if found else None
                return found
        module = self.module(dotted, importer)
        return module.scope if module is not None else External(dotted)

    def binder(self, module: Module, name: str) -> Scope | None:
        """Return the module scope that binds a global name, through ``import *`` too."""
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            module = waiting.pop()
            if name in module.scope.names:
                return module.scope
            seen.add(module.path)
            below = (self.module(star, module) for star in module.stars)
            waiting += [m for m in below if m is not None and m.path not in seen]
        return None

    def member(self, owner: Target, name: str, depth: int = _DEPTH) -> Target | None:
        """Return an attribute of a module, a class, or something outside."""
        if isinstance(owner, External):
            return External(f"{owner.name}.{name}")
        if depth <= 0:
            return None
        if owner.is_class:
            found = self.class_attribute(owner, name)
            return self.bound(found[1], found[0], depth - 1) if found else None
        if owner.is_function:
            return None
        if name in owner.names:
            target = self.bound(owner.names[name], owner, depth - 1)
            if target is not None:
                return target
        below = self.module(f"{owner.module.name}.{name}", owner.module)
        if below is not None:
            return below.scope
        for star in owner.module.stars:
            target = self.follow(f"{star}.{name}", owner.module, depth - 1)
            if target is not None:
                return target
        return None

    def class_attribute(
        self, owner: Scope, name: str, depth: int = 6
    ) -> tuple[Scope, list[Binding]] | None:
        """Return the class among the bases that binds a name, with its bindings."""
        if name in owner.names:
            return owner, owner.names[name]
        if depth:
            for base in self.bases(owner):
                if isinstance(base, Scope) and base.is_class and base is not owner:
                    found = self.class_attribute(base, name, depth - 1)
                    if found:
                        return found
        return None

    def bases(self, owner: Scope) -> tuple[Target | None, ...]:
        """Return what the bases of a class are."""
        known = self._bases.get(owner)
        if known is None:
            known = ()
            if isinstance(owner.node, ast.ClassDef) and owner.parent is not None:
                bases, outer = owner.node.bases, owner.parent
                known = tuple(self.resolve(base, outer, _DEPTH // 2) for base in bases)
            if not self._following:
                self._bases[owner] = known
        return known

    def bound(self, bindings: list[Binding], scope: Scope, depth: int = _DEPTH) -> Target | None:
        """Return what a name with these bindings stands for; the last definition counts."""
        if depth <= 0:
            return None
        known = self._bound.get(id(bindings))  # a list lives as long as its scope
        if known is not None:
            return known
        found: Target | None = None
        for binding in _preferred(bindings):
            match binding:
                case Defined():
                    found = binding.scope
                case Import():
                    found = self.follow(binding.target, scope.module, depth - 1)
                case Assigned(value=ast.expr() as value, exact=True):
                    found = self.resolve(value, scope, depth - 1)
                case _:
                    pass
            if found is not None:
                break
        if found is not None and not self._following:
            self._bound[id(bindings)] = found
        return found

    def resolve(self, node: ast.expr, scope: Scope, depth: int = _DEPTH) -> Target | None:
        """Return the function, class, module or outside name that an expression stands for."""
        if depth <= 0:
            return None
        match node:
            case ast.Name(id=name):
                found = scope.lookup(name)
                if found is not None:
                    return self.bound(found[1], found[0], depth - 1)
                for star in scope.module.stars:
                    target = self.star(star, name, scope.module, depth - 1)
                    if target is not None:
                        return target
                return External(f"builtins.{name}") if name in _BUILTINS else None
            case ast.Attribute(value=ast.Name(id="self" | "cls" as name), attr=attr):
                owner = scope.enclosing_class() if _is_self(scope, name) else None
                if owner is not None:
                    found = self.class_attribute(owner, attr)
                    return self.bound(found[1], found[0], depth - 1) if found else None
                base = self.resolve(node.value, scope, depth - 1)
                return self.member(base, attr, depth - 1) if base is not None else None
            case ast.Attribute(value=value, attr=attr):
                base = self.resolve(value, scope, depth - 1)
                return self.member(base, attr, depth - 1) if base is not None else None
            case ast.Lambda():
                return scope.module.scopes.get(node)
            case _:
                return None

    def written(
        self, node: ast.expr, scope: Scope, depth: int = _DEPTH
    ) -> tuple[ast.expr, Scope] | None:
        """Return the expression that a name was bound to last, and where, through imports too."""
        found: tuple[Scope, list[Binding]] | None = None
        match node:
            case ast.Name(id=name):
                found = scope.lookup(name)
            case ast.Attribute(value=ast.Name() as base, attr=name):
                owner = self.resolve(base, scope)
                if isinstance(owner, Scope) and not owner.is_function and name in owner.names:
                    found = owner, owner.names[name]
            case _:
                return node, scope
        match found[1][-1] if found is not None and depth > 0 else None:
            case Assigned(value=ast.expr() as value, exact=True):
                return self.written(value, found[0], depth - 1) if found is not None else None
            case Import(target=target) if found is not None:
                home, _, name = target.rpartition(".")
                module = self.module(home, found[0].module)
                there = ast.Name(name, ast.Load())
                return self.written(there, module.scope, depth - 1) if module is not None else None
            case _:
                return None

    def star(self, module: str, name: str, importer: Module, depth: int) -> Target | None:
        """Return what ``from module import *`` binds to a name, if anything can be said."""
        if depth <= 0:
            return None
        found = self.module(module, importer)
        if found is not None:
            return self.member(found.scope, name, depth)
        if name in _BUILTINS:
            return None
        return External(f"{module}.{name}")


def _preferred(bindings: list[Binding]) -> list[Binding]:
    """Return bindings with the last first; where JAX's NumPy is one of them, another stands in for
    it: ``except ImportError: import numpy as jnp``.
    """
    last = bindings[::-1]
    if len(last) > 1:
        last.sort(key=lambda b: not (isinstance(b, Import) and b.target in _NUMPY))
    return last


_NUMPY = frozenset(f"{package}.numpy" for package in ARRAY_PACKAGES)


def _is_self(scope: Scope, name: str) -> bool:
    """Say whether a name is the first parameter of the method around."""
    inner: Scope | None = scope
    while inner is not None and not inner.is_class:
        node = inner.node
        if inner.parent is not None and inner.parent.is_class:
            args = getattr(node, "args", None)
            first = [*args.posonlyargs, *args.args][:1] if args else []
            return bool(first) and first[0].arg == name
        inner = inner.parent
    return False
