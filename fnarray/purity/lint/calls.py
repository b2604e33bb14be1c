"""What a call makes, as a text shows it: an object of a class, a partial, an array, a container."""

from __future__ import annotations

import ast
import re
from typing import Any, Protocol

from ..known import effect_of
from ..rules import Print
from ..values import OUTSIDE, PARTIAL_METHOD, Value, join
from . import classes
from .index import Scope
from .kinds import MADE, NDARRAYS, external_kind, is_generator
from .project import External, Project, Target
from .traced import Finder

_NUMBER = re.compile(r"numpy\.(?:u?int|float|complex|bool|half|single|double|longdouble)\w*\Z")
# Objects that take any attribute, at any time.
OPEN = frozenset({"types.SimpleNamespace", "argparse.Namespace", "threading.local"})


class Texts(Protocol):
    """What is asked of a resolver: what expressions and names of a project stand for."""

    finder: Finder
    project: Project

    def of(self, node: ast.expr | None, scope: Scope, name: str = "") -> Value | None:
        """Return what an expression gives."""

    def of_target(self, target: Target, name: str) -> Value | None:
        """Return what something that a name leads to is."""


def called(resolver: Texts, node: ast.Call, scope: Scope, name: str) -> Value | None:
    """Return what a call makes; None where the text does not tell."""
    if resolver.finder.is_partial(node.func, scope) and node.args:
        return _partial(resolver, node, scope, name)
    target = resolver.project.resolve(node.func, scope)
    if isinstance(target, External) and target.name == PARTIAL_METHOD and node.args:
        made = _partial(resolver, node, scope, name)
        return made.but(ref=PARTIAL_METHOD) if made is not None else None
    if isinstance(target, External):
        return _made(resolver, target.name, node, scope, name)
    if isinstance(target, Scope) and target.is_class:
        made = resolver.of_target(target, name)
        assert made is not None
        kind, fields = (
            classes.instance_kind(resolver.project, target),
            _fields(resolver, target, node, scope),
        )
        return Value(kind, OUTSIDE, name=name, ref=made.ref, fields=fields)
    if target is None and isinstance(node.func, ast.Name):
        return _named_tuple(resolver, node, scope, name)
    if isinstance(target, Scope) and target.is_function:
        if is_generator(target):
            return Value("generator", OUTSIDE, name=name)
        inner = [s for s, *_ in resolver.finder.functions(node, scope)]
        if inner:
            return join([resolver.of_target(s, name) for s in inner])
    return None


def _named_tuple(resolver: Texts, node: ast.Call, scope: Scope, name: str) -> Value | None:
    """Return an object of a class made by ``collections.namedtuple("Pair", "a b")``."""
    assert isinstance(node.func, ast.Name)
    found = scope.lookup(node.func.id)
    maker = getattr(found[1][-1], "value", None) if found is not None else None
    if not isinstance(maker, ast.Call) or found is None:
        return None
    target = resolver.project.resolve(maker.func, found[0])
    if not isinstance(target, External) or target.name != "collections.namedtuple":
        return None
    given = [*zip(classes.tuple_names(maker), node.args, strict=False)]
    given += [(k.arg, k.value) for k in node.keywords if k.arg]
    fields = {key: v for key, arg in given if (v := resolver.of(arg, scope)) is not None}
    return Value("frozen", OUTSIDE, name=name, fields=fields)


def _fields(resolver: Texts, owner: Scope, node: ast.Call, scope: Scope) -> dict[Any, Value]:
    """Return what a call of a dataclass or named tuple puts into the fields."""
    names = [s.target.id for s in classes.fields_of(owner) if isinstance(s.target, ast.Name)]
    given = [*zip(names, node.args, strict=False)]
    given += [(k.arg, k.value) for k in node.keywords if k.arg]
    return {name: v for name, arg in given if (v := resolver.of(arg, scope)) is not None}


def _partial(resolver: Texts, node: ast.Call, scope: Scope, name: str) -> Value | None:
    inner = resolver.of(node.args[0], scope, name)
    if inner is None:
        return None
    given = [resolver.of(arg, scope) or Value("", OUTSIDE) for arg in node.args[1:]]
    fields: dict[Any, Value] = {("item", i): v for i, v in enumerate(given)}
    for keyword in node.keywords:
        if keyword.arg:
            fields[keyword.arg] = resolver.of(keyword.value, scope) or Value("", OUTSIDE)
    return Value("partial", OUTSIDE, name=name, bound=inner, fields=fields)


def _made(resolver: Texts, dotted: str, node: ast.Call, scope: Scope, name: str) -> Value | None:
    if dotted in OPEN:
        return Value("instance", OUTSIDE, name=name, ref=dotted)
    if dotted.startswith("numpy.") and _NUMBER.match(dotted):
        return Value("scalar", OUTSIDE, name=name)
    if dotted == "typing.cast" and len(node.args) == 2:
        return resolver.of(node.args[1], scope, name)
    kind = MADE.get(dotted, "")
    package, _, last = dotted.rpartition(".")
    if dotted.startswith("itertools."):
        kind = "iterator"
    elif package == "numpy" and last in NDARRAYS:
        kind = "ndarray"
    elif package in ("jax.numpy", "fnarray.numpy") or dotted.startswith(
        ("jax.random.", "fnarray.random.")
    ):
        kind = "array"
    elif node.args and resolver.finder.named(dotted) is not None:
        return resolver.of(node.args[0], scope, name)
    effect = effect_of(dotted)  # that of a bar: what it is told to do shows as well
    if effect == Print.code or (external_kind(dotted) == "class" and (not kind or effect)):
        return Value("frozen", OUTSIDE, name=name, ref=dotted)
    return Value(kind, OUTSIDE, name=name) if kind else None
