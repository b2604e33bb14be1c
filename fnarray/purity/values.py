"""What the engine knows of an object: what it is, who owns it, where it came from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

#: Level of objects made before any trace: captured, global, or an attribute of such.
OUTSIDE = 0

#: Containers that can change in place.
CONTAINERS = frozenset({"list", "dict", "set", "bytearray", "deque", "container"})
#: Objects with an inner state that every use advances.
DRAWN = frozenset({"iterator", "generator", "file", "rng"})
#: Objects that are known to change, whatever holds them.
CHANGING = CONTAINERS | DRAWN | {"ndarray"}
#: Immutable values without identity: numbers, text, None, tuples of them.
SCALARS = frozenset({"scalar"})


#: Refers to what holds arguments for a method, which is given its object before those.
PARTIAL_METHOD = "functools.partialmethod"


#: Classes whose operators are Python's own.
_NUMBERS = frozenset({bool, int, float, complex, str, bytes, type(None)})


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


#: Stands for an object that is not at hand.
ABSENT: Any = _Absent()


class Function:
    """The syntax of a function, and where its free names are looked up.

    ``module`` belongs to the resolver, which alone reads it: the function object of a live
    function, the module of a function in a file.  ``frame`` is the frame of the analysis in which
    an inner function was defined, and holds its free variables.  ``above`` lines of the file stand
    above the text that the syntax was parsed from.
    """

    __slots__ = ("above", "defaults", "file", "frame", "lines", "module", "name", "node")

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        file: str,
        module: Any,
        *,
        name: str = "",
        frame: Any = None,
        defaults: dict[str, Value] | None = None,
        lines: list[str] | None = None,
        above: int = 0,
    ) -> None:
        self.node = node
        self.file = file
        self.module = module
        self.name = name or getattr(node, "name", "<lambda>")
        self.frame = frame
        self.defaults = defaults or {}
        self.lines = lines
        self.above = above


class Value:
    """An abstract object.

    Attributes
    ----------
    kind
        ``"list" "dict" "set" "deque" "container" "ndarray" "array" "iterator" "generator"
        "rng" "file" "logger" "scalar" "tuple" "frozen" "function" "class" "module" "instance"``,
        or ``""`` where nothing is known.  ``"frozen"`` is any object that cannot change.
    level
        0 when made outside of the trace, else the depth of the trace that made it.
    argument
        Whether the tracer hands it in: it is, or is part of, an argument of the traced function.
    name
        How the user spells it.
    ref
        Its qualified name: ``"numpy.random.normal"``.
    obj
        The object itself, where it is at hand, else `ABSENT`.
    function
        Its body, for a function defined in code under analysis.
    bound
        The receiver, when it is a method taken from an object, or what it is a partial of; what a
        container made in the trace is a copy of.
    fields
        Contents and attributes, shared by all names of one object: by attribute name, by
        ``("item", constant)``, and under None whatever may be an element.
    holder
        ``"global"``, ``"cell"``, ``"attribute"``, ``"default"``: from where it was read.
    constant
        Whether that place is declared constant: CAPITALS, ``Final``, a trusted package.
    home
        What binds the place it was read from, where a resolver has it at hand: a class, a module.
    guarded
        Whether what it holds, all the way down, is compared at each call: it may be read.
    keeps
        Whether its results outlive the call: those of a function under ``lru_cache``.
    rebound
        What happens to the cell it was read from (``"a loop rebinds"``), or "".
    origin
        ``(frame, node)`` of the expression that read it from outside.
    others
        Further possibilities, where branches meet.
    """

    __slots__ = (
        "_each",
        "argument",
        "bound",
        "constant",
        "fields",
        "function",
        "guarded",
        "holder",
        "home",
        "keeps",
        "kind",
        "level",
        "name",
        "obj",
        "origin",
        "others",
        "rebound",
        "ref",
    )

    def __init__(
        self,
        kind: str = "",
        level: int = OUTSIDE,
        *,
        name: str = "",
        ref: str = "",
        argument: bool = False,
        obj: Any = ABSENT,
        function: Function | None = None,
        bound: Value | None = None,
        fields: dict[Any, Value] | None = None,
        holder: str = "",
        home: Any = None,
        constant: bool = False,
        guarded: bool = False,
        keeps: bool = False,
        rebound: str = "",
        origin: tuple[Any, ast.AST] | None = None,
        others: tuple[Value, ...] = (),
    ) -> None:
        self.kind = kind
        self.level = level
        self.name = name
        self.ref = ref
        self.argument = argument
        self.obj = obj
        self.function = function
        self.bound = bound
        self.fields = fields
        self.holder = holder
        self.home = home
        self.constant = constant
        self.guarded = guarded
        self.keeps = keeps
        self.rebound = rebound
        self.origin = origin
        self.others = others
        self._each: tuple[Value, ...] | None = None

    def but(self, **changes: Any) -> Value:
        """Return a copy with some attributes replaced."""
        new = self.read_at(self.origin)
        for slot, value in changes.items():
            setattr(new, slot, value)
        return new

    def read_at(self, origin: tuple[Any, ast.AST] | None) -> Value:
        """Return a copy, read from outside at a place."""
        new = object.__new__(Value)
        # Written out: a loop over the slots was a tenth of a first check.
        new.kind, new.level, new.argument = self.kind, self.level, self.argument
        new.name, new.ref, new.obj = self.name, self.ref, self.obj
        new.function, new.bound, new.fields = self.function, self.bound, self.fields
        new.holder, new.constant, new.guarded = self.holder, self.constant, self.guarded
        new.rebound, new.origin, new.others = self.rebound, origin, self.others
        new.keeps, new.home, new._each = self.keeps, self.home, None
        return new

    def each(self) -> tuple[Value, ...]:
        """Return all possibilities."""
        if not self.others:
            return (self,)
        # Made once: every use of a joined value asks, which was a tenth of a first check.
        if self._each is None:
            self._each = self.but(others=()), *self.others
        return self._each

    def identity(self) -> tuple[Any, ...]:
        """Return what two values have in common that stand for one object, as far as is known."""
        return (
            self.kind,
            self.level,
            self.argument,
            id(self.obj),
            id(self.function),
            id(self.fields),
            self.name,
            self.ref,
            id(self.bound),
        )

    def is_idle(self) -> bool:
        """Say whether it is a number or array: to see it once more tells nothing.

        One from outside must be a constant, and none that decides which way an ``if`` goes.
        """
        if self.argument or self.fields or self.bound or self.function:
            return False
        if self.level == OUTSIDE:
            known = self.constant and not self.rebound and self.obj is not ABSENT
            idle = known and self.kind == "scalar" and not self.decides()
        else:
            idle = self.kind in ("", "array")
        return idle and all(one.is_idle() for one in self.others)

    def is_plain(self) -> bool:
        """Say whether it is a number or array: operators and tests of it call nothing of a user's.

        One that the trace made; or a number, text or None from outside, by its very class.
        """
        if self.others:
            return all(one.is_plain() for one in self.each())
        if self.level != OUTSIDE:
            return self.kind == "" or self.kind == "array"
        obj: object = self.obj
        cls = type(obj)  # whose hash a metaclass may compute
        return self.kind == "scalar" and type(cls) is type and cls in _NUMBERS

    def same(self, other: Value) -> bool:
        """Say whether both stand for the same object, as far as anybody can tell."""
        return self is other or self.identity() == other.identity()

    def decides(self) -> bool:
        """Say whether a test of it goes one way: it is True, False or None."""
        return any(self.obj is one for one in (True, False, None))

    def stays(self, before: Value) -> bool:
        """Say whether a pass through a loop leaves what a name stood for, and where tests go."""
        return self.same(before) and (len(self.others) == len(before.others) or not self.decides())

    def __repr__(self) -> str:
        shown = ((s, getattr(self, s)) for s in ("kind", "level", "name", "ref", "argument"))
        return f"Value({', '.join(f'{k}={v!r}' for k, v in shown if v)})"


def join(values: Iterable[Value | None]) -> Value | None:
    """Return one value that may be any of the given ones; at most six are kept apart."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return known[0] if known else None
    if len(known) == 2 and known[0] is known[1]:
        return known[0]
    # By hash: a captured tuple of 2,000 steps has as many parts.
    unlike: dict[Any, Value] = {}
    for value in known:
        for one in value.each():
            unlike.setdefault(one.identity(), one)
    kept = [*unlike.values()]
    if len(kept) == 1:
        return kept[0]
    # What is known matters more than what is not: an unknown local can do no harm.
    kept.sort(key=lambda v: (v.level, not v.argument, not v.kind))
    return kept[0].but(others=tuple(kept[1:6]))


#: Contents and attributes of an object: see `Value`.
Fields = dict[Any, Value]


def numbered(values: Iterable[Value]) -> Fields:
    """Return values as the fields of a tuple."""
    return {("item", i): v for i, v in enumerate(values)}


class Places(Protocol):
    """What places in a text read, whoever calls the function around them."""

    def recall(self, node: ast.AST, frame: Any) -> Value | None:
        """Return what a place reads in a frame, if that is known."""

    def remember(self, node: ast.Attribute, frame: Any, base: Value, value: Value) -> None:
        """Keep what a place reads, of an object, if everybody reads the same there."""


class Resolver(Protocol):
    """What the engine asks of a front end; None always means "nobody knows".

    ``contexts`` says how often one function is entered with different arguments: with local ones,
    which can do no harm that was not seen before, and with others. ``recursion`` says how often a
    function is entered inside of itself, through traces or not.
    """

    contexts: tuple[int, int]
    recursion: int
    #: Whether a test is decided by what a call writes out, and arguments are taken to be arrays.
    presumes: bool

    @property
    def places(self) -> Places | None:
        """What places read from libraries, where it is remembered: each reading is guarded else."""

    def lookup(self, function: Function, name: str) -> Value | None:
        """Return what a global, builtin or outer variable of `function` is bound to."""

    def attribute(self, value: Value, name: str) -> Value | None:
        """Return the attribute of an object that is not local."""

    def inherited(self, owner: Value, receiver: Value, name: str) -> Value | None:
        """Return what ``super()`` finds by a name, in a method of a class, bound to the object."""

    def is_custom(self, value: Value) -> bool:
        """Say whether an object is of a class in the user's code, whose operators are as well."""
        ...

    def is_whole(self, value: Value) -> bool:
        """Say whether all that a static argument holds is guarded, which is read as a whole."""
        ...

    def is_ready_made(self, value: Value) -> bool:
        """Say whether an object is of a class that is known to be a library's."""
        ...

    def is_own(self, value: Value, name: str) -> bool:
        """Say whether an array has an attribute of its own class, one of the user's."""
        ...

    def setter(self, value: Value, name: str) -> Value | None:
        """Return what an assignment to an attribute calls, by the class of its object."""

    def is_open(self, value: Value) -> bool:
        """Say whether anybody may set attributes of a function, class or module of the user's."""
        ...

    def gives_its_kind(self, value: Value) -> bool:
        """Say whether operators of an object give another of its class: of paths, and flags."""
        ...

    def watch(self, value: Value, what: str) -> None:
        """Guard what a function of a library looks at, besides what it is given."""

    def heed(self, value: Value, names: Iterable[str]) -> None:
        """Guard which special methods the class of a library's object has, by some names."""
        ...

    def members(self, value: Value) -> Iterable[str]:
        """Return the attributes that ``isinstance`` looks for: of a protocol, its members."""
        ...

    def names(self, value: Value) -> Iterable[str]:
        """Return the names of attributes that an object of the user's code has."""
        ...

    def parts(self, value: Value) -> Iterator[Value] | None:
        """Return what an immutable object holds, by whatever name: a tuple's items, and fields."""

    def items(self, value: Value) -> Iterator[Value] | None:
        """Return the elements of a container that is not local and is immutable, or guarded."""

    def item(self, value: Value, index: Any) -> Value | None:
        """Return what a container that is not local holds now, at a constant index."""

    def callables(self, value: Value, index: Any) -> list[Value]:
        """Return the functions that a container holds now, at an index or, for None, at any."""
        ...

    def follow(self, value: Value) -> tuple[Function, Value | None] | None:
        """Return the body behind a callable of the user's code, and the receiver it is bound to.

        None for what is trusted, or has no source. The engine unwraps nothing: decorators,
        partials, callable objects and classes (whose ``__init__`` it is) are the resolver's.
        """
