"""What names stand for in files: the values that the analysis would find in a live program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache, partial
from types import NoneType
from typing import Any, cast

from ..bindings import belongs, bound_before, bound_in_class
from ..cells import rebound
from ..known import effect_of
from ..literals import TEXT
from ..values import (
    ABSENT,
    CONTAINERS,
    OUTSIDE,
    PARTIAL_METHOD,
    Fields,
    Function,
    Value,
    join,
    numbered,
)
from . import classes
from .calls import OPEN, called
from .decorators import Decorators
from .index import FUNCTIONS, Assigned, Binding, Defined, Import, Scope
from .kinds import (
    external_kind,
    is_final,
    is_number,
    met,
    stands_in_loop,
)
from .places import Places
from .project import External, Target
from .traced import Finder

_DEPTH = 10
#: Names looked up for one traced function. A few that pull in a whole library reach it, and have by
#: then been followed through hundreds of calls; what they call further on is taken as trusted.
BUDGET = 15_000
_CAPITALS = re.compile(r"_*[A-Z][A-Z0-9_]*\Z")

_STILL = ("array", "frozen")


class StaticResolver:
    """Answers the engine's questions from the text of the project."""

    #: More find nothing more in 352,000 lines of libraries, and take half as long again.
    contexts: tuple[int, int] = (1, 4)
    #: An interpreter that runs itself in the loops it finds went 40 traces deep.
    recursion: int = 3
    presumes: bool = False

    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self.project = finder.project
        self._classes: dict[str, Scope] = {}
        #: What makes the defaults of a class's fields.
        self._factories: dict[str, Fields | None] = {}
        self._functions: dict[Scope, Function] = {}
        self.decorators = Decorators(self)
        self._values: dict[tuple[Scope, str], Value | None] = {}
        self._rebound: dict[tuple[Scope, str], str] = {}
        self._looked_up: dict[tuple[Scope, str], Value | None] = {}
        self.modules: dict[str, Value | None] = {}
        self.budget = BUDGET
        self._places = Places(self)
        self._metaclass = cache(partial(classes.metaclass, self.project))
        self._outside = cache(partial(classes.outside, self.project))
        self._busy: set[tuple[Scope, str]] = set()

    # --- the engine's questions ---

    @property
    def places(self) -> Places | None:
        """What places of the files read from libraries, for those who may be told once."""
        return self._places if self.presumes else None

    def lookup(self, function: Function, name: str) -> Value | None:
        """Return what a global, builtin or outer variable stands for."""
        self.budget -= 1
        if self.budget < 0:
            return None
        scope: Scope = function.module
        scope = scope.module.scopes.get(function.node, scope)
        key = scope, name
        if key not in self._looked_up:
            found = self._lookup(scope, name)
            if self._busy:  # in the middle of another search, which may hide something
                return found
            self._looked_up[key] = found
        return self._looked_up[key]

    def _lookup(self, scope: Scope, name: str) -> Value | None:
        start = scope.parent or scope
        if name == "__class__":  # which ``super()`` asks for
            owner = classes.around(scope)
            return None if owner is None else self.of_target(owner, owner.name)
        if name in scope.elsewhere and scope.elsewhere[name] == "global":
            start = scope.module.scope
        while start.is_class and start.parent is not None:
            start = start.parent
        found = start.lookup(name)
        if found is not None:
            value = self.named(found[0], name)
            fixed = value is not None and value.kind in ("function", "class", "module", "partial")
            inner = found[0].is_function or hasattr(scope.loop, "generators")
            if inner and not fixed and (by := self.rebound(scope, name)):
                value = value or Value("", OUTSIDE, name=name, holder="cell")
                return value.but(rebound=by)
            if value is not None and inner and self.is_held(value, scope, name):
                return value.but(guarded=True)
            return value
        binder = self.project.binder(scope.module, name)
        if binder is not None:
            return self.named(binder, name)
        for star in scope.module.stars:
            target = self.project.star(star, name, scope.module, _DEPTH)
            if target is not None:
                return self.of_target(target, name)
        if name == "__name__":
            self.modules[scope.module.name] = self.of_target(scope.module.scope, "__name__")
            return Value("scalar", OUTSIDE, name=name, obj=scope.module.name, constant=True)
        builtin = self.project.resolve(ast.Name(name, ast.Load()), scope.module.scope)
        return self.of_target(builtin, name) if builtin is not None else None

    def rebound(self, scope: Scope, name: str) -> str:
        """Say what rebinds a variable behind the back of a closure; "" if nothing does."""
        if name not in scope.module.reached and not stands_in_loop(scope):
            return ""
        key = scope, name
        if key not in self._rebound:
            tree, node = scope.module.source.tree, scope.node
            assert tree is not None
            assert isinstance(node, FUNCTIONS)
            self._rebound[key] = rebound(tree, node.lineno, node.col_offset, name)
        return self._rebound[key]

    def is_held(self, value: Value, scope: Scope, name: str) -> bool:
        """Say whether what a captured variable holds is compared at each call, and may be read."""
        if value.kind != "ndarray" and value.kind not in CONTAINERS:
            return False
        tree, node = scope.module.source.tree, scope.node
        assert tree is not None
        assert isinstance(node, FUNCTIONS)
        seen = bound_before if value.kind == "ndarray" else belongs
        return seen(tree, node.lineno, node.col_offset, name)

    def attribute(self, value: Value, name: str) -> Value | None:
        """Return the attribute of an object that is not local."""
        spelled = f"{value.name}.{name}" if value.name else name
        if value.kind == "instance" and value.ref in OPEN:
            return Value("", OUTSIDE, name=spelled, holder="attribute", ref=f"{value.ref}.{name}")
        if value.kind == "frozen" and value.fields and name in value.fields:
            return value.fields[name].but(name=spelled, holder="attribute")
        if value.ref in self._classes:
            owner = self._classes[value.ref]
            found = self.project.class_attribute(owner, name)
            if found is not None:
                return self._member(value, found, name, spelled)
            made = self._instance_attribute(value, owner, name, spelled)
            made = made or self._of_library(owner, name, spelled)
            return made or self._of_metaclass(value, owner, name, spelled)
        if value.function is not None and name in ("__defaults__", "__kwdefaults__"):
            return _defaults_of(value.function, name, spelled)
        outside = value.kind in ("class", "frozen") and value.ref not in self._classes
        if outside and value.ref and effect_of(f"{value.ref}.{name}"):
            return self.of_target(External(f"{value.ref}.{name}"), spelled)  # Path(p).read_text
        if value.ref and value.kind in ("module", ""):
            target = self._of_ref(value.ref, name)
            if isinstance(target, Scope) and value.kind == "module":
                return self.of_target(target, spelled)
            if value.kind == "module":
                module = self.project.modules.get(value.ref)
                if module is not None and name in module.scope.names:
                    return self.named(module.scope, name, spelled)
            return self.of_target(target or External(f"{value.ref}.{name}"), spelled)
        return None

    def inherited(self, owner: Value, receiver: Value, name: str) -> Value | None:
        """Return what ``super()`` finds by a name, in a method of a class, bound to the object."""
        scope = self._classes.get(owner.ref)
        for base in self.project.bases(scope) if scope is not None else ():
            if isinstance(base, Scope) and base.is_class:
                found = self.project.class_attribute(base, name)
                if found is not None:
                    one = receiver.but(kind="instance")
                    return self._member(one, found, name, f"super().{name}")
        return self._of_library(scope, name, f"super().{name}") if scope is not None else None

    def _of_library(self, owner: Scope, name: str, spelled: str) -> Value | None:
        """Return what a class has from a library's, if that is known for its effect: of a bar."""
        dotted = (f"{base}.{name}" for base in self._outside(owner))
        known = next((one for one in dotted if effect_of(one)), None)
        return self.of_target(External(known), spelled) if known is not None else None

    def _of_metaclass(
        self, value: Value, owner: Scope, name: str, spelled: str
    ) -> Value | None:  # fmt: skip
        """Return what a class has from its own class, which may answer by a method, too."""
        meta = self._metaclass(owner) if value.kind == "class" else None
        if meta is None:
            return None
        if name == "__class__":
            return self.of_target(meta, meta.name)
        found = self.project.class_attribute(meta, name)
        made = self._member(value.but(kind="instance"), found, name, spelled) if found else None
        return made if made is None or made.bound is None else made.but(bound=value)

    def is_custom(self, value: Value) -> bool:
        """Say whether an object is of a class of the project, whose operators are as well."""
        owner = self._classes.get(value.ref)
        if owner is None or value.kind not in ("instance", "frozen", "class"):
            return False
        return value.kind != "class" or self._metaclass(owner) is not None

    def is_whole(self, value: Value) -> bool:
        """Say no: a static argument is guarded by its mark."""
        return False

    def is_ready_made(self, value: Value) -> bool:
        """Say whether an object is of a class that is known to be a library's."""
        return value.kind == "instance" and value.ref in OPEN

    def setter(self, value: Value, name: str) -> Value | None:
        """Return what an assignment to an attribute calls, by the class of its object."""
        maker = value.bound if value.level != OUTSIDE and value.bound is not None else value
        owner = self._classes.get(maker.ref)
        found = self.project.class_attribute(owner, name) if owner is not None else None
        for binding in reversed(found[1]) if found is not None else ():
            if isinstance(binding, Defined) and binding.scope.is_function:
                marks = {ast.unparse(d) for d in binding.scope.node.decorator_list}  # type: ignore[union-attr]
                if f"{name}.setter" in marks:
                    function = self.function(binding.scope)
                    return Value("function", OUTSIDE, name=name, function=function, bound=value)
        return None

    def is_open(self, value: Value) -> bool:
        """Say whether anybody may set attributes of a class or module of the project."""
        return value.ref in self._classes and value.kind == "class"

    def gives_its_kind(self, value: Value) -> bool:
        """Say no: what an operator of an object in a file gives is not known."""
        return False

    def watch(self, value: Value, what: str) -> None:
        """Guard nothing: what is found holds for the text."""

    def heed(self, value: Value, names: Iterable[str]) -> None:
        """Guard nothing, as above."""

    def is_own(self, value: Value, name: str) -> bool:
        """Say no: whose class an array is of, no text shows."""
        return False

    def members(self, value: Value) -> Iterable[str]:
        """Return nothing: what ``isinstance`` looks at is a matter of guards."""
        return ()

    def names(self, value: Value) -> Iterable[str]:
        """Return the names of attributes of a class of the project, or of its objects."""
        owner = self._classes.get(value.ref)
        return classes.attributes(self.project, owner) if owner is not None else ()

    def parts(self, value: Value) -> Iterator[Value] | None:
        """Return what an immutable object holds, when its text shows it."""
        return self.items(value)

    def items(self, value: Value) -> Iterator[Value] | None:
        """Return the elements of a tuple, when its text shows them."""
        if value.kind in ("tuple", "frozen") and value.fields:
            return iter(list(value.fields.values()))
        return None

    def item(self, value: Value, index: object) -> Value | None:
        """Return what a container holds at a constant index, when its text shows it."""
        if value.ref == "sys.modules":
            return self.modules.get(str(index))
        return value.fields.get(("item", index)) if value.fields else None

    def callables(self, value: Value, index: object) -> list[Value]:
        """Return the functions that a container holds, when its text shows them."""
        found = self.item(value, index)
        return [found] if found is not None and found.function is not None else []

    def follow(self, value: Value) -> tuple[Function, Value | None] | None:
        """Return the body behind a callable, and the receiver that it is bound to."""
        if value.function is not None:
            return value.function, value.bound
        owner = self._classes.get(value.ref)
        if owner is None:
            return None
        answers = self._of_metaclass(value, owner, "__call__", value.name)
        if answers is not None and answers.function is not None:
            return answers.function, value
        names = ("__init__", "__post_init__") if value.kind == "class" else ("__call__",)
        all_found = (self.project.class_attribute(owner, name) for name in names)
        found = next((one for one in all_found if one is not None), None)
        if found is None:
            return None
        for binding in reversed(found[1]):
            if isinstance(binding, Defined) and binding.scope.is_function:
                return self.function(binding.scope), None if value.kind == "class" else value
        return None

    # --- values ---

    def function(self, scope: Scope) -> Function:
        """Return the record of a function in a file, always the same one."""
        known = self._functions.get(scope)
        if known is None:
            assert isinstance(scope.node, FUNCTIONS)
            source = scope.module.source
            defaults = {}
            known = Function(scope.node, source.path, scope, name=scope.name, lines=source.lines)
            self._functions[scope] = known
            args = scope.node.args
            positional = [*args.posonlyargs, *args.args]
            pairs = list(zip(reversed(positional), reversed(args.defaults), strict=False))
            pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
            for arg, default in pairs:
                value = self.of(default, scope.parent or scope)
                if value is not None:
                    defaults[arg.arg] = value.but(holder="default", name=arg.arg)
            known.defaults = defaults
        return known

    def named(self, scope: Scope, name: str, spelled: str = "") -> Value | None:
        """Return what a scope binds a name to."""
        key = (scope, name)
        if key in self._busy:
            return None
        if key in self._values:
            value = self._values[key]
        else:
            self._busy.add(key)
            try:
                value = self._bindings(scope, name)
            finally:
                self._busy.discard(key)
            if not self._busy:  # what a search in a circle finds depends on where it began
                self._values[key] = value
        return value.but(name=spelled) if value is not None and spelled else value

    def _bindings(self, scope: Scope, name: str) -> Value | None:
        bindings = met(scope, name)
        if scope.is_function and scope.parent is not None and scope.parent.is_class:
            args: ast.arguments = cast("Any", scope.node).args
            if [a.arg for a in (*args.posonlyargs, *args.args)][:1] == [name]:
                return self.instance(scope.parent, name)
        holder = "cell" if scope.is_function else "global"
        found = [self._binding(b, scope, name) for b in bindings]
        if any(v is None or v.kind != "scalar" for v in found):
            # A placeholder (None, an empty text) for what is bound to the name elsewhere.
            found = [v for v in found if v is not None and v.kind != "scalar"]
        value = join(found)
        if holder == "global" and name in scope.writes and is_number(bindings):
            value = Value("scalar", OUTSIDE)
        if value is None:  # nothing is known of it, but whose it is
            return Value("", OUTSIDE, name=name, holder=holder) if holder == "global" else None
        if value.kind == "ndarray" and name in scope.frozen:
            value = value.but(kind="frozen")
        constant = bool(_CAPITALS.match(name)) or any(is_final(b) for b in bindings)
        constant = constant or all(isinstance(b, Defined) for b in bindings)
        # Imported from the project it is what it is there; from elsewhere, a constant.
        constant = constant or (all(isinstance(b, Import) for b in bindings) and value.constant)
        if not constant and holder == "global" and value.kind in ("scalar", "ndarray"):
            constant = scope.module.binds_for_good(name, value.kind)
        guarded = constant and value.kind == "ndarray"
        # A method kept under another name says by its own which method it is.
        shown = value.name if value.kind == "member" else name
        imported = value.home is not None and all(isinstance(b, Import) for b in bindings)
        home = value.home if imported else scope
        return value.but(name=shown, holder=holder, constant=constant, guarded=guarded, home=home)

    def _binding(self, binding: Binding, scope: Scope, name: str) -> Value | None:
        match binding:
            case Defined(scope=inner):
                return self.of_target(inner, name)
            case Import(target=dotted):
                return self._imported(dotted, scope, name)
            case Assigned(value=ast.expr() as node, exact=True):
                return self.of(node, scope, name)
            case Assigned(value=None, annotation=ast.Name(id="str")) if scope.is_function:
                return Value("scalar", OUTSIDE, name=name, ref=TEXT)
            case _:
                return None

    def _imported(self, dotted: str, scope: Scope, name: str) -> Value | None:
        head, _, last = dotted.rpartition(".")
        if head:
            module = self.project.module(head, scope.module)
            binder = self.project.binder(module, last) if module is not None else None
            if binder is not None:
                return self.named(binder, last, name)
        target = self.project.follow(dotted, scope.module)
        return self.of_target(target, name) if target is not None else None

    def _member(
        self, value: Value, found: tuple[Scope, list[Binding]], name: str, spelled: str
    ) -> Value | None:
        owner, bindings = found
        inner = self.named(owner, name, spelled)
        if inner is None:
            if value.kind == "class" or not all(isinstance(b, Assigned) for b in bindings):
                return None
            # A field of a dataclass, which nothing but its annotation tells of.
            return Value("", OUTSIDE, name=spelled, holder="attribute", home=owner,
                         constant=value.kind != "instance")  # fmt: skip
        if inner.kind in ("scalar", "tuple") and classes.is_enum(self.project, owner):
            return Value("frozen", OUTSIDE, name=spelled, ref=value.ref, holder="attribute",
                         constant=True)  # fmt: skip
        if inner.ref == PARTIAL_METHOD and value.kind != "class" and inner.bound is not None:
            return inner.but(bound=inner.bound.but(bound=value))
        scope = next((b.scope for b in bindings if isinstance(b, Defined)), None)
        if scope is not None and scope.is_function:
            marks = {ast.unparse(d) for d in scope.node.decorator_list}  # type: ignore[union-attr]
            if "classmethod" in marks:
                return inner.but(bound=self.of_target(owner, owner.name))
            if "staticmethod" in marks:
                return inner.but(holder="static")
            last = {mark.rpartition(".")[2] for mark in marks}
            kind = "property" if last & {"property", "cached_property"} else "function"
            return inner.but(kind=kind, bound=None if value.kind == "class" else value)
        # The classes of an enumeration library, say, cannot be seen through; they are no variables.
        fixed = classes.instance_kind(self.project, owner) != "instance"
        tree = owner.module.source.tree
        if not fixed and inner.kind in ("scalar", "ndarray", *_STILL) and tree:
            # A class below it, in another file, may set it of each object.
            below = self._classes.get(value.ref, owner)
            fixed = inner.kind in _STILL or bound_in_class(tree, owner.qualname, name)
            fixed = fixed and not classes.assigned(self.project, below, name)
        constant = inner.constant or fixed or value.guarded
        return inner.but(holder="attribute", constant=constant,
                         guarded=inner.guarded or value.guarded, home=owner)  # fmt: skip

    def _instance_attribute(
        self, value: Value, owner: Scope, name: str, spelled: str
    ) -> Value | None:
        bound = classes.assigned(self.project, owner, name)
        if not bound or value.kind == "class":
            return None
        kinds: list[Value] = []
        for one in bound:
            scope = owner
            made = self.of(one.value, scope, spelled) if one.value is not None else None
            kinds.append(made or Value("", OUTSIDE, name=spelled))
        found = join(kinds)
        if found is None:
            return None
        if found.kind == "instance" and classes.is_thread_local(self.project, owner):
            found = Value("")  # what a thread has there now is not what was bound first
        # Of a class with bases from elsewhere nobody knows whether its objects can change.
        constant = value.kind != "instance" or value.guarded
        return found.but(name=spelled, holder="attribute", constant=constant,
                         guarded=value.guarded, home=owner)  # fmt: skip

    def defines(self, ref: str) -> bool:
        """Say whether a qualified name is that of a class in the project."""
        return ref in self._classes

    def _of_ref(self, ref: str, name: str) -> Target | None:
        module = self.project.modules.get(ref)
        return self.project.member(module.scope, name) if module is not None else None

    def instance(self, owner: Scope, name: str) -> Value:
        """Return an object of a class, made before any trace."""
        made = self.of_target(owner, name)
        assert made is not None
        kind = classes.instance_kind(self.project, owner)
        return Value(kind, OUTSIDE, name=name, ref=made.ref, holder="cell")

    def class_of(self, value: Value) -> Scope | None:
        """Return the project's class that an object is of."""
        return self._classes.get(value.ref) if value.kind in ("instance", "frozen", "") else None

    def of_target(self, target: Target, name: str) -> Value | None:
        """Return the value of a function, class, module or outside name."""
        if isinstance(target, External):
            return Value(external_kind(target.name), OUTSIDE, name=name, ref=target.name,
                         holder="global", constant=True)  # fmt: skip
        ref = f"{target.module.name}.{target.qualname}" if target.qualname else target.module.name
        if target.is_function:
            around = tuple(
                Value("function", OUTSIDE, name=name, function=one, constant=True)
                for one in (
                    *self.decorators.wrappers(target),
                    *self.decorators.implementations(target),
                )
            )
            around += tuple(self.instance(s, name) for s in self.decorators.replacing(target))
            return Value("function", OUTSIDE, name=name, ref=ref, function=self.function(target),
                         holder="global", constant=True, others=around,
                         keeps=self.decorators.keeps(target))  # fmt: skip
        if target.is_class:
            if ref not in self._classes:
                self._classes[ref], self._factories[ref] = target, None  # it may name itself
                fields = enumerate(classes.factories(self.project, target))
                made = {("made", (i, name)): self.of(e, at) for i, (name, e, at) in fields}
                found = {key: value for key, value in made.items() if value is not None}
                self._factories[ref] = found or None
            return Value("class", OUTSIDE, name=name, ref=ref, holder="global", constant=True,
                         fields=self._factories[ref])  # fmt: skip
        self.project.modules[ref] = target.module
        return Value("module", OUTSIDE, name=name, ref=ref, holder="global", constant=True)

    def of(self, node: ast.expr | None, scope: Scope, name: str = "") -> Value | None:
        """Return the value that an expression outside of any trace makes."""
        match node:
            case ast.Constant():
                truth = node.value if type(node.value) in (bool, str, NoneType) else ABSENT
                kind = "scalar" if node.value is not ... else ""
                return Value(kind, OUTSIDE, name=name, obj=truth)
            case ast.List() | ast.ListComp():
                return Value("list", OUTSIDE, name=name)
            case ast.Dict() | ast.DictComp():
                return Value("dict", OUTSIDE, name=name)
            case ast.Set() | ast.SetComp():
                return Value("set", OUTSIDE, name=name)
            case ast.GeneratorExp():
                return Value("generator", OUTSIDE, name=name)
            case ast.Tuple():
                return self._tuple(node, scope, name)
            case ast.JoinedStr():
                return Value("scalar", OUTSIDE, name=name, ref=TEXT)
            case ast.UnaryOp():
                return self.of(node.operand, scope, name)
            case ast.BinOp():
                left, right = self.of(node.left, scope), self.of(node.right, scope)
                kinds = {v.kind if v is not None else "" for v in (left, right)}
                for kind in ("list", "ndarray", "array"):
                    if kind in kinds:
                        return Value(kind, OUTSIDE, name=name)
                return Value("scalar", OUTSIDE, name=name) if kinds == {"scalar"} else None
            case ast.IfExp():
                return join([self.of(node.body, scope, name), self.of(node.orelse, scope, name)])
            case ast.Lambda():
                inner = scope.module.scopes.get(node)
                return self.of_target(inner, name) if inner is not None else None
            case ast.Name():
                found = scope.lookup(node.id)
                if found is not None:
                    return self.named(found[0], node.id, name)
                target = self.project.resolve(node, scope)
                return self.of_target(target, name) if target is not None else None
            case ast.Attribute():
                target = self.project.resolve(node, scope)
                if target is not None:
                    return self.of_target(target, name)
                base = self.of(node.value, scope, ast.unparse(node.value))
                if base is not None and base.kind in (*CONTAINERS, "ndarray"):
                    return Value("member", OUTSIDE, name=f"{base.name}.{node.attr}", bound=base)
                return self.attribute(base, node.attr) if base is not None else None
            case ast.Call():
                return called(self, node, scope, name)
            case _:
                return None

    def _tuple(self, node: ast.Tuple, scope: Scope, name: str) -> Value:
        parts = [self.of(e, scope) for e in node.elts]
        if all(p is not None and p.kind == "scalar" for p in parts):
            return Value("scalar", OUTSIDE, name=name)
        fields = {("item", i): p for i, p in enumerate(parts) if p is not None}
        return Value("tuple", OUTSIDE, name=name, fields=fields)


def _defaults_of(function: Function, name: str, spelled: str) -> Value:
    """Return ``__defaults__``, or ``__kwdefaults__``, of a function."""
    spec = function.node.args
    inside = spec.kwonlyargs if name == "__kwdefaults__" else (*spec.posonlyargs, *spec.args)
    held = [(a.arg, function.defaults[a.arg]) for a in inside if a.arg in function.defaults]
    if name == "__kwdefaults__":
        fields: Fields = {("item", key): value.but(name=spelled) for key, value in held}
        return Value("dict", OUTSIDE, name=spelled, holder="attribute", fields=fields)
    values = (value.but(name=spelled) for _, value in held)
    return Value("tuple", OUTSIDE, name=spelled, holder="attribute", fields=numbered(values))
