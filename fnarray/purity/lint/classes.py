"""What the text of a class, and of those above it, says of its objects."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ._words import words
from .index import Assigned, Scope
from .project import External, Project

_FROZEN_BASES = words(
    """
    typing.NamedTuple enum.Enum enum.IntEnum enum.Flag enum.IntFlag enum.StrEnum
    equinox.Module flax.linen.Module builtins.tuple builtins.str builtins.int builtins.float
    builtins.frozenset flax.struct.PyTreeNode chex.dataclass
    """
)
# The same when the library itself is linted.
_FROZEN_ROOTS = frozenset({"equinox.Module", "flax.Module", "flax.PyTreeNode"})
_PLAIN_BASES = frozenset({"builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol",
                          "builtins.Exception"})  # fmt: skip
#: How many classes up an attribute is looked for.
_HIGHEST = 6


def above(project: Project, owner: Scope) -> Iterator[Scope]:
    """Yield the project's classes that a class inherits from directly.

    One that is written below it, in the same block, is none: it has no name yet.
    """
    for base in project.bases(owner):
        if not isinstance(base, Scope) or not base.is_class or base is owner:
            continue
        if base.parent is not owner.parent or _line_of(base) < _line_of(owner):
            yield base


def _line_of(owner: Scope) -> int:
    assert isinstance(owner.node, ast.ClassDef)
    return owner.node.lineno


def around(scope: Scope | None) -> Scope | None:
    """Return the class that a method, or a function inside of one, is written in."""
    while scope is not None and not scope.is_class:
        scope = scope.parent
    return scope


def outside(project: Project, owner: Scope) -> list[str]:
    """Return the names of the libraries' classes that a class inherits from."""
    own = [base.name for base in project.bases(owner) if isinstance(base, External)]
    return own + [name for base in above(project, owner) for name in outside(project, base)]


def assigned(project: Project, owner: Scope, name: str, depth: int = _HIGHEST) -> list[Assigned]:
    """Return what methods bind to an attribute: of a class, or of the first above that does."""
    found = (owner.sets or {}).get(name)
    if found or not depth:
        return found or []
    for base in above(project, owner):
        if some := assigned(project, base, name, depth - 1):
            return some
    return []


def attributes(project: Project, owner: Scope) -> set[str]:
    """Return the names that a class, and those above, give their objects."""
    found = {*owner.names, *(owner.sets or {})}
    for base in above(project, owner):
        found |= attributes(project, base)
    return found


def is_enum(project: Project, owner: Scope) -> bool:
    """Say whether a class is an enumeration: what it binds are its members."""
    bases = project.bases(owner)
    return any(isinstance(b, External) and b.name.startswith("enum.") for b in bases)


def is_thread_local(project: Project, owner: Scope) -> bool:
    """Say whether each thread has contents of its own in the objects of a class."""
    bases = project.bases(owner)
    return any(isinstance(b, External) and b.name == "threading.local" for b in bases) or any(
        is_thread_local(project, base) for base in above(project, owner)
    )


def metaclass(project: Project, owner: Scope, depth: int = _HIGHEST) -> Scope | None:
    """Return the project's class that a class, or one above it, names as its own class."""
    for keyword in getattr(owner.node, "keywords", ()):
        if keyword.arg == "metaclass" and owner.parent is not None:
            found = project.resolve(keyword.value, owner.parent)
            return found if isinstance(found, Scope) and found.is_class else None
    higher = (metaclass(project, base, depth - 1) for base in above(project, owner) if depth)
    return next((found for found in higher if found is not None), None)


def instance_kind(project: Project, owner: Scope) -> str:
    """Say whether the instances of a class can change: ``"frozen"`` or ``"instance"``."""
    node = owner.node
    assert isinstance(node, ast.ClassDef)
    for decorator in node.decorator_list:
        text = ast.unparse(decorator)
        if "dataclass" in text and re.search(r"frozen\s*=\s*True", text):
            return "frozen"
        if re.search(r"struct\.dataclass|attrs?\.frozen|\bfrozen\b|pytree", text):
            return "frozen"
    if any(k.arg == "metaclass" and "ABCMeta" not in ast.unparse(k.value)
           for k in node.keywords):  # fmt: skip
        return ""
    if f"{owner.module.package}.{owner.name}" in _FROZEN_ROOTS:
        return "frozen"
    kinds: list[str] = []
    for base in project.bases(owner):
        if isinstance(base, External):
            kinds.append("frozen" if base.name in _FROZEN_BASES else
                         "instance" if base.name in _PLAIN_BASES else "")  # fmt: skip
        elif isinstance(base, Scope) and base.is_class and base is not owner:
            kinds.append(instance_kind(project, base))
        else:
            kinds.append("")
    if "frozen" in kinds:
        return "frozen"
    return "" if "" in kinds else "instance"


def fields_of(owner: Scope) -> list[ast.AnnAssign]:
    """Return the fields that a class itself annotates, as a dataclass's are."""
    body = getattr(owner.node, "body", ())
    return [s for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def factories(project: Project, owner: Scope) -> Iterator[tuple[str, ast.expr | None, Scope]]:
    """Yield the fields of a dataclass, what makes their defaults, and where that is written."""
    for base in above(project, owner):
        yield from factories(project, base)
    for field in fields_of(owner):
        keywords = field.value.keywords if isinstance(field.value, ast.Call) else ()
        made = next((k.value for k in keywords if k.arg == "default_factory"), None)
        yield getattr(field.target, "id", ""), made, owner


def tuple_names(maker: ast.Call) -> list[str]:
    """Return the fields that a call of ``collections.namedtuple`` names; none that it computes."""
    try:
        listed = ast.literal_eval(maker.args[1])
    except (ValueError, IndexError):
        return []
    return listed.replace(",", " ").split() if isinstance(listed, str) else list(listed)
