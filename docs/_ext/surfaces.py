"""What is public: the modules, the names in each, what they stand for and what is said of them."""

from __future__ import annotations
import __future__

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from sphinx.pycode import ModuleAnalyzer, PycodeError

from fnarray.core import hooks
from fnarray.core.primitive import Primitive

hooks.install_operators()  # arrays get their methods when the first is used

ROOT = Path(__file__).parents[2]
#: Modules that hold one primitive a name: the table of operations has them all.
TABLES = {"fnarray.extend.core.primitives"}
#: Modules to begin from: the root does not lead to what needs an extra, or serves another tool.
FIRST = ("fnarray", "fnarray.distributed", "fnarray.testing.asv")
#: Modules that act where they are imported: the reference has their docstrings.
ACTING = {"fnarray.as_jax"}


@dataclass(frozen=True, slots=True)
class Name:
    """A public name of one module."""

    module: str
    name: str
    value: Any
    home: str

    @property
    def full(self) -> str:
        """The name by which programs reach it."""
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        """Return ``module``, ``class``, ``exception``, ``function`` or ``data``."""
        value = self.value
        if isinstance(value, types.ModuleType):
            return "module"
        if isinstance(value, type):
            return "exception" if issubclass(value, BaseException) else "class"
        if callable(value) and not isinstance(value, Primitive | types.UnionType):
            return "function"
        return "data"

    @property
    def ours(self) -> bool:
        """Whether the name stands for something of this package, not of Python's or NumPy's."""
        module = getattr(self.value, "__module__", None) or "fnarray"
        return self.kind == "data" or module.startswith("fnarray")

    @property
    def doc(self) -> str:
        """The docstring; of data, the comment ``#:`` above it, or its class' where it has one."""
        if self.kind != "data" and self.ours:
            return inspect.getdoc(self.value) or ""
        if isinstance(self.value, Primitive):
            return f"The primitive ``{self.value.name}``: see the table of operations."
        found = comment(self.home, self.name) or comment(self.module, self.name)
        if self.kind != "data":
            return found or lead(inspect.getdoc(self.value) or "")
        own = type(self.value).__module__.startswith("fnarray")
        return found or ((inspect.getdoc(type(self.value)) or "") if own else "")

    @property
    def place(self) -> tuple[str, int] | None:
        """File and line where it is written: its definition, or where the name is given to it."""
        value = getattr(self.value, "call", self.value)
        try:
            value = inspect.unwrap(value) if callable(value) else value
            path = Path(inspect.getsourcefile(value) or "")
        except (TypeError, ValueError):
            path = Path()
        line = _line(value, path) if path.is_relative_to(ROOT) else None
        if line is None:
            own = type(self.value)  # of what a module makes when it is asked for
            places = (
                (self.home, self.name),
                (self.module, self.name),
                (own.__module__, own.__name__),
            )
            return next(filter(None, (assigned(*place) for place in places)), None)
        return str(path.relative_to(ROOT)), line


def _line(value: Any, path: Path) -> int | None:
    """Return the line that a class, function or module begins in, its decorators among it.

    `inspect.getsourcelines` reads each to its end, and parses the file anew for each class: of
    2,000 names that is 15 s, a third of what the pages of the reference take.
    """
    if isinstance(value, type):
        return _classes(path).get(value.__qualname__)
    value = getattr(value, "__func__", value)
    code = getattr(value, "__code__", None)
    return 0 if isinstance(value, types.ModuleType) else getattr(code, "co_firstlineno", None)


@cache
def _classes(path: Path) -> dict[str, int]:
    found: dict[str, int] = {}

    def enter(node: ast.AST, around: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = around
            if isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found.setdefault(f"{around}{child.name}", first)
                inside = f"{around}{child.name}."
            elif isinstance(child, ast.FunctionDef):
                inside = f"{around}{child.name}.<locals>."
            enter(child, inside)

    enter(_parsed(path), "")
    return found


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def assigned(module: str, name: str) -> tuple[str, int] | None:
    """Return file and line of the statement that gives a name its value, through imports."""
    path = Path(import_module(module).__file__ or "")
    if path.suffix != ".py" or not path.is_relative_to(ROOT):
        return None
    for node in _parsed(path).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    below = resolve_name("." * node.level + (node.module or ""), _package(module))
                    return assigned(below, alias.name)
        elif name in _given(node):
            return str(path.relative_to(ROOT)), node.lineno
    return None


def _package(module: str) -> str:
    return import_module(module).__package__ or module


def _given(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines, those of a block's statements among them."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


@cache
def _comments(module: str) -> dict[str, str]:
    try:
        found = ModuleAnalyzer.for_module(module).find_attr_docs()
    except PycodeError:
        return {}
    return {name: " ".join(lines).strip() for (scope, name), lines in found.items() if not scope}


def comment(module: str, name: str) -> str:
    """Return what a comment ``#:`` says of a piece of data, where it is written."""
    found = _comments(module).get(name)
    home = _imports(module).get(name)
    return found or (comment(home, name) if home and home != module else "")


def docstring(module: str) -> str:
    """Return the docstring of a module, of one that acts without importing it."""
    if module not in ACTING:
        return inspect.getdoc(import_module(module)) or ""
    path = ROOT / module.replace(".", "/") / "__init__.py"
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def _words(module: Any) -> list[str]:
    """Return the public names of a module, in order."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    return [
        name
        for name in sorted(dir(module))
        if not name.startswith("_") and not isinstance(getattr(module, name), __future__._Feature)
    ]


def _home(module: Any, name: str, value: Any) -> str:
    """Return the module that a name is written in."""
    for home, names in getattr(module, "_HOMES", {}).items():
        if name in names.split():
            return resolve_name(home, module.__name__)
    own = getattr(value, "__module__", None)
    if isinstance(own, str) and own.startswith("fnarray") and callable(value):
        return own
    return _imports(module.__name__).get(name, module.__name__)


@cache
def _imports(module: str) -> dict[str, str]:
    """Return the modules that names of a module are imported from."""
    space = import_module(module)
    source = Path(space.__file__ or "")
    if source.suffix != ".py":
        return {}
    return {
        alias.asname or alias.name: resolve_name("." * node.level + node.module, space.__package__)
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.level
        for alias in node.names
    }


@cache
def names(module: str) -> tuple[Name, ...]:
    """Return the public names of a module."""
    if module in ACTING:
        return ()
    space = import_module(module)
    return tuple(
        Name(module, name, value, _home(space, name, value))
        for name in _words(space)
        for value in [getattr(space, name)]
    )


@cache
def modules() -> tuple[str, ...]:
    """Return the public modules, the root first."""
    found = dict.fromkeys((*FIRST, *ACTING))
    queue = list(FIRST)
    while queue:
        module = queue.pop(0)
        for name in names(module):
            below = f"{module}.{name.name}"
            if name.kind == "module" and name.value.__name__ == below and below not in found:
                found[below] = None
                queue.append(below)
    first, *rest = found
    return (first, *sorted(rest))


def every_name() -> Iterator[Name]:
    """Yield every public name that is no module, tables of primitives apart."""
    for module in modules():
        if module not in TABLES:
            yield from (name for name in names(module) if name.kind != "module")


def lead(doc: str) -> str:
    """Return the first sentence of a docstring, or its first paragraph where that is one."""
    return " ".join(doc.strip().split("\n\n")[0].split())


def signature(value: Any) -> str:
    """Return a signature without its annotations, which the text says in words."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    shown = [
        p.replace(annotation=p.empty, default=_default(p.default))
        for p in found.parameters.values()
        if not p.name.startswith("_")
    ]
    return str(found.replace(parameters=shown, return_annotation=found.empty))


class _Text:
    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return _Text(value.__qualname__.rsplit(".", 1)[-1].replace("<lambda>", "..."))
    text = repr(value)
    return _Text("..." if " at 0x" in text or text.startswith("<") or len(text) > 40 else text)


# ---- the same name elsewhere ------------------------------------------------------------------


@cache
def _names_of_jax() -> frozenset[str]:
    """Return the names that JAX's documentation has: those that the tests compare, and more.

    ``MODULE.*`` where the module's page has all of its names.
    """
    files = ROOT / "tests/surface/names.txt", ROOT / "docs/reference/jax_pages.txt"
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    rows = (line.partition(": ") for line in lines if not line.startswith("#"))
    return frozenset(f"{module}.{name}" for module, _, words in rows for name in words.split())


def links(name: Name) -> list[tuple[str, str]]:
    """Return labels and addresses of the pages of a name in NumPy, SciPy and JAX."""
    rules: tuple[Callable[[Name], tuple[str, str] | None], ...] = (_numpy, _scipy, _jax)
    return [found for rule in rules if (found := rule(name))]


def _reached(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part, None)
    return root


def _numpy(name: Name) -> tuple[str, str] | None:
    path = name.full.removeprefix("fnarray.numpy.")
    if path == name.full or name.name.startswith("__"):
        return None
    found = _reached(np, path)
    if found is None:
        return None
    pages = "https://numpy.org/doc/stable/reference"
    if isinstance(found, type) and issubclass(found, np.generic):
        return f"numpy.{path}", f"{pages}/arrays.scalars.html#numpy.{found.__name__}"
    if isinstance(found, float):
        return f"numpy.{path}", f"{pages}/constants.html#numpy.{path}"
    parts = path.rsplit(".", 1)
    whole = ".".join([*parts[:-1], getattr(found, "__name__", parts[-1])])
    return f"numpy.{whole}", f"{pages}/generated/numpy.{whole}.html"


def _scipy(name: Name) -> tuple[str, str] | None:
    path = name.full.removeprefix("fnarray.scipy.")
    package, _, rest = path.partition(".")
    if path == name.full or not rest:
        return None
    try:
        below = import_module(f"scipy.{package}")
    except ImportError:
        return None
    if _reached(below, rest) is None:
        return None
    if package == "stats" and "." in rest:  # methods of a distribution are on its page
        rest = rest.partition(".")[0]
    pages = "https://docs.scipy.org/doc/scipy/reference/generated"
    return f"{scipy.__name__}.{package}.{rest}", f"{pages}/scipy.{package}.{rest}.html"


def _jax(name: Name) -> tuple[str, str] | None:
    full = name.full.replace("fnarray", "jax", 1)
    module = full.rpartition(".")[0]
    whole = f"{module}.*" in _names_of_jax()
    if not (whole or full in _names_of_jax()) or full.endswith("_p"):
        return None
    pages = "https://docs.jax.dev/en/latest"
    if whole or module == "jax.errors":
        return full, f"{pages}/{module if whole else 'errors'}.html#{full}"
    return full, f"{pages}/_autosummary/{full}.html"
