"""Which effects can go wrong where JAX traces: the law of `purity.law`, asked of what people ship.

`fnarray` refuses what its guards cannot see, and the linter says of its transforms what the call
will say. JAX refuses nothing: there a finding is worth a reader's time if the program can do other
than its author means. Each law below names a kind of effect that cannot; some need what the whole
project changes, and give a `Doubt`, which is settled when all files have been looked through.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..nodes import nodes_in, walk
from ..scopes import parameters
from ..values import CONTAINERS
from .case import Case, Verdict, is_traced, is_untraced
from .changes import Condition, Site
from .classes import above, assigned, attributes, is_thread_local
from .customs import asks_for_tracers, is_failing, is_first_use, is_locked, is_tally, root_of
from .index import Scope
from .kinds import spelled
from .said import acted, logged, printed, shown
from .shapes import is_static


def judged(case: Case) -> Verdict:
    """Say whether an effect can go wrong, or what must be changed somewhere for that."""
    law = _LAWS.get(case.finding.code)
    if law is None:
        return not asks_for_tracers(case.scope)
    verdict = law(case)
    scope, node = case.scope, case.evidence.node
    if not verdict or is_failing(scope, node) or asks_for_tracers(scope) or is_tally(scope, node):
        return False
    return verdict


def _is_aware(case: Case) -> bool:
    """Say whether the class of an object asks what it is given if it is traced: a state, which
    knows what a trace writes into it.
    """
    value = case.evidence.value
    made = (case.resolver.class_of(value) or value.home) if value is not None else None
    while isinstance(made, Scope) and made.is_class:
        if asks_for_tracers(made):
            return True
        made = next(above(case.resolver.project, made), None)
    return False


# ---- reads: of what nothing changes --------------------------------------------------------------


def _read(case: Case) -> Verdict:
    """A read is of what may change only if something changes it, once it is made."""
    value = case.evidence.value
    if _is_asserted(case):
        return False
    if value is None:
        return True
    if (
        value.kind == "class"
        or value.ref.startswith("threading.local.")
        or is_locked(case.scope, case.evidence.node)
    ):
        return False  # its text says what it has; and a context is set by whoever calls
    made = case.resolver.class_of(value)
    if value.holder != "attribute" and made is not None:
        known = attributes(case.resolver.project, made)
        answers = known & {"__getattr__", "__getattribute__"}  # what it answers from may be changed
        names = (() if answers else _asked_of(case)) or ("*", *sorted(known))
        return Condition(made.name, names, True, made.module.package)
    home = value.home
    name = value.name.rpartition(".")[2]
    if (value.kind in CONTAINERS or value.kind == "ndarray") and home is None:
        return Condition(
            "", (name,), True, case.module.package
        )  # a part of what is frozen, and made with it
    if not isinstance(home, Scope):
        return True
    if home.is_class and is_thread_local(case.resolver.project, home):
        return False  # a context, which whoever calls has set
    if home.is_class and _is_defined_late(case, home, name):
        return Condition("", (name,), True, home.module.package)
    grows = value.kind not in _LOOKED_UP or not _is_looked_up(case)
    if home.is_class:
        return Condition(home.name, (name,), grows, home.module.package)
    if home.parent is None and value.kind in CONTAINERS:
        return Condition(f"module:{home.module.name}", (name,), grows, home.module.package)
    if home.is_function and value.kind in CONTAINERS:
        return _is_written_later(case, home, name)
    return True


#: What may be a table: of the other kinds it is known that they are none.
_LOOKED_UP = CONTAINERS | {""}


def _asked_of(case: Case) -> tuple[str, ...]:
    """Return the one name that is asked of an object: ``hasattr(x, "params")``, ``x.step(...)``."""
    node = case.evidence.node
    for n in nodes_in(case.scope.node):
        match n:
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"),
                          args=[one, ast.Constant(value=str() as name), *_]) if (
                one is node or n is node
            ):  # fmt: skip
                return (name,)
            case ast.Attribute(value=one, attr=name) if one is node or n is node:
                return (name,)
            case ast.Call(func=ast.Attribute(attr=name)) if n is node:
                return (name,)
            case _:
                pass
    return ()


def _is_asserted(case: Case) -> bool:
    """Say whether a read is for an assertion, or for what an error says."""
    node = case.evidence.node
    return any(
        isinstance(n, (ast.Assert, ast.Raise)) and node in walk(n)
        for n in nodes_in(case.scope.node)
    )


def _is_defined_late(case: Case, home: Scope, name: str) -> bool:
    """Say whether a field is called that a constructor leaves empty: a rule that is given later.

    Who calls it can do so only once a method has bound it; whoever else binds it is the doubt.
    """
    node = case.evidence.node
    called = isinstance(node, ast.Call) and spelled(node.func).rpartition(".")[2] == name
    values = [one.value for one in assigned(case.resolver.project, home, name)]
    return called and any(isinstance(v, ast.Constant) and v.value is None for v in values)


def _is_written_later(case: Case, home: Scope, name: str) -> bool:
    """Say whether a container of an enclosing function is written once the closure is made."""
    # A closure made elsewhere was given it, as an argument.
    inside = any(node is case.scope.node for node in nodes_in(home.node))
    own = getattr(case.scope.node, "lineno", 0)
    made: int = own if inside else _first_given(name, home)
    return any(
        spelled(site.target).partition(".")[0] == name
        and (found := site.scope.lookup(name)) is not None
        and found[0] is home
        and (site.scope is not home or site.target.lineno >= made)
        and not (inside and site.scope is home and _is_finished(case.scope, home, site.target))
        for site in case.module.sites
    )


def _is_finished(closure: Scope, home: Scope, target: ast.expr) -> bool:
    """Say whether a function writes what its closure reads before anybody can call the closure.

    ``later[0] = rule`` closes a circle: nothing has named the function that reads it.
    """
    while closure.parent is not home and closure.parent is not None:
        closure = closure.parent
    loops = (n for n in nodes_in(home.node) if isinstance(n, (ast.For, ast.While)))
    if any(target in walk(loop) for loop in loops):
        return False
    return not any(
        isinstance(n, ast.Name) and n.id == closure.name and n.lineno < target.lineno
        for statement in getattr(home.node, "body", ())
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for n in walk(statement)
    )


def _first_given(name: str, home: Scope) -> int:
    """Return the line of the first call that is given a variable."""
    lines = [
        part.lineno
        for call in nodes_in(home.node) if isinstance(call, ast.Call)
        for part in (*call.args, *(k.value for k in call.keywords))
        if isinstance(part, ast.Name) and part.id == name
    ]  # fmt: skip
    return min(lines, default=0)


def _is_looked_up(case: Case) -> bool:
    """Say whether a container is asked for one key, which is computed: what it finds there stays.

    A registry of types, or a cache, is asked so, and grows; settings are asked by literal names.
    """
    text = spelled(case.evidence.node)
    for node in nodes_in(case.scope.node):
        match node:
            case ast.Subscript(value=base, slice=key) if spelled(base) == text:
                if isinstance(key, ast.Constant):
                    return False
            case ast.Compare(left=key, comparators=[base]) if spelled(base) == text:
                if isinstance(key, ast.Constant) or not isinstance(
                    node.ops[0], (ast.In, ast.NotIn)
                ):
                    return False
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=given) if (
                spelled(base) == text
            ):
                if attr not in _BY_KEY or not given or isinstance(given[0], ast.Constant):
                    return False
            case ast.For(iter=base) | ast.comprehension(iter=base) if spelled(base) == text:
                return False
            case ast.Call(func=ast.Name(id="len"), args=[base]) if spelled(base) == text:
                return False
            case _:
                pass
    return True


_BY_KEY = frozenset({"get", "setdefault", "pop"})


# ---- writes --------------------------------------------------------------------------------------


def _write(case: Case) -> Verdict:
    """A write leaves nothing behind if it is undone, or fills a cache with what is not traced."""
    given = case.evidence.given
    site = _site(case)
    if not any(map(is_traced, given)) and (
        _is_forced(case) or _is_context(case) or is_locked(case.scope, case.evidence.node)
        or (site is not None and _is_plain(case, site)
            and is_first_use(case.scope, site.node, site.target))
    ):  # fmt: skip
        return False
    if _is_put_back(case) or _is_aware(case):
        return False
    if site is None:
        return True
    if _is_name_counter(case, site):
        return False
    if site.node in case.resolver.project.changes(case.module).undone:
        return False
    told = site.node.args if isinstance(site.node, ast.Call) else [site.value]
    if all(n is not None and is_static(n, case.scope) for n in told) and not all(
        isinstance(n, ast.Constant) for n in told
    ):
        return False  # a shape, a dtype: the same whenever this runs
    if told and all(_is_narrowed(case, n) for n in told):
        return False
    if site.how not in ("key", "setdefault", "add"):
        return True
    if isinstance(site.value, ast.Constant):
        return False  # a set of names, which is the same whenever this runs
    # What a table is asked for it hashes, which nothing does that is traced.
    put = given[1:] if site.how == "setdefault" else given
    if any(is_traced(value) for value in put):
        return True
    if site.how == "setdefault" or all(map(is_untraced, put)):
        return False
    return not _was_looked_for(case, site)


def _is_plain(case: Case, site: Site) -> bool:
    """Say whether what is put somewhere is surely nothing that the trace computes."""
    match site.value:
        case ast.Constant() | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.ListComp():
            return True
        case ast.Call(func=func):
            made = case.resolver.project.resolve(func, case.scope)
            if isinstance(made, Scope) and made.is_class:
                return True
            return spelled(func).rpartition(".")[2] in ("cls", "__new__", "object")
        case _:
            return all(map(is_untraced, case.evidence.given))


def _is_forced(case: Case) -> bool:
    """Say whether a write goes around the ``__setattr__`` of its own class: it is meant."""
    node = case.evidence.node
    return isinstance(node, ast.Call) and spelled(node.func) == "object.__setattr__"


def _is_context(case: Case) -> bool:
    """Say whether what is written belongs to a thread: a context, which its owner sets."""
    value = case.evidence.value
    if value is None:
        return False
    if value.ref == "threading.local":
        return True
    made = case.resolver.class_of(value) or value.home
    if not (isinstance(made, Scope) and made.is_class):
        return False
    return is_thread_local(case.resolver.project, made) or _is_stack(case, made)


def _is_stack(case: Case, made: Scope) -> bool:
    """Say whether methods of one class put an object on a stack and take it off again."""
    site = _site(case)
    if site is None or site.how not in ("append", "pop", "add", "remove"):
        return False
    ways = {
        other.how for other in made.module.sites
        if other.scope.parent is made and spelled(other.target) == spelled(site.target)
        and not (other.how == "pop" and other.node.args)  # type: ignore[attr-defined]
    }  # fmt: skip
    return {"append", "pop"} <= ways or {"add", "remove"} <= ways


def _is_put_back(case: Case) -> bool:
    """Say whether a generator puts back, at its end, what it changes for a ``with``; or a pair of
    methods does, by names that are computed.
    """
    scope = case.scope
    if isinstance(case.evidence.node, ast.Call) and scope.name in ("__enter__", "__exit__"):
        pair = {"__enter__", "__exit__"} <= (scope.parent.names.keys() if scope.parent else set())
        return pair and spelled(case.evidence.node.func) == "setattr"
    inner = nodes_in(scope.node)
    if not any(isinstance(n, ast.Yield) for n in inner):
        return False
    node = case.evidence.node
    ends = [part for n in inner if isinstance(n, ast.Try) for part in n.finalbody]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # ``held.set(value)``
        where, called = spelled(node.func.value), node.func.attr
        back = [c.func for part in ends for c in walk(part)
                if isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute)
                and spelled(c.func.value) == where]  # fmt: skip
        return any({called, f.attr} <= _UNDONE for f in back)
    last = _last(node)
    stores = [n for part in ends for n in walk(part) if isinstance(n, (ast.Name, ast.Attribute))]
    return any(isinstance(n.ctx, ast.Store) and _last(n) == last for n in stores)


#: What sets a context, or the state of a generator, and takes it back.
_UNDONE = frozenset({"set", "reset", "get_state", "set_state", "getstate", "setstate"})


def _last(node: ast.AST) -> str:
    return spelled(node).rpartition(".")[2]


def _global(case: Case) -> Verdict:
    """A global, or a generator's state, that is put back at the end of a ``with``, is as it was."""
    if _is_put_back(case):
        return False
    node = case.evidence.node
    values = [n.value for n in nodes_in(case.scope.node)
              if isinstance(n, ast.Assign) and node in n.targets]  # fmt: skip
    made = all(isinstance(v, ast.Constant) or _makes_object(case, v) for v in values)
    return not (values and made and is_first_use(case.scope, node, node))


def _makes_object(case: Case, node: ast.expr) -> bool:
    """Say whether an expression makes an object of a class, by the spelling of its name."""
    if not isinstance(node, ast.Call):
        return False
    made = case.resolver.project.resolve(node.func, case.scope)
    return (isinstance(made, Scope) and made.is_class) or _last(node.func)[:1].isupper()


def _hashed(case: Case) -> Verdict:
    """What makes an object's own hash is compared in the process that made it."""
    return case.scope.name not in ("hash", "__hash__")


def _is_name_counter(case: Case, site: Site) -> bool:
    """Say whether ``self.count += 1`` makes names: read for text, or an object."""
    text = spelled(site.target)
    counted = any(
        isinstance(n, ast.AugAssign) and n.target is site.target
        and isinstance(n.value, ast.Constant) for n in nodes_in(case.scope.node)
    )  # fmt: skip
    if not counted:
        return False
    reads = {
        n for n in nodes_in(case.scope.node)
        if spelled(n) == text and isinstance(getattr(n, "ctx", None), ast.Load)
    }  # fmt: skip
    naming: set[ast.AST] = set()
    for n in nodes_in(case.scope.node):
        if isinstance(n, ast.FormattedValue):
            naming.add(n.value)
        elif isinstance(n, ast.Call):
            made = case.resolver.project.resolve(n.func, case.scope)
            if isinstance(made, Scope) and made.is_class:
                naming.update(n.args)
    return bool(reads) and reads <= naming


def _is_narrowed(case: Case, told: ast.expr | None) -> bool:
    """Say whether a branch asked for the class of a value, and it is one of the project's."""
    return isinstance(told, ast.Name) and any(
        isinstance(n, ast.If)
        and isinstance(n.test, ast.Call)
        and getattr(n.test.func, "id", "") == "isinstance"
        and spelled(n.test.args[0]) == told.id
        and isinstance(case.resolver.project.resolve(n.test.args[1], case.scope), Scope)
        and any(inner is case.evidence.node for part in n.body for inner in walk(part))
        for n in nodes_in(case.scope.node)
    )


def _site(case: Case) -> Site | None:
    node = case.evidence.node
    return next((site for site in case.module.sites if site.node is node), None)


def _was_looked_for(case: Case, site: Site) -> bool:
    """Say whether a function asks a container for a key before it fills it: a cache."""
    text = spelled(site.target)
    return any(
        (isinstance(n, ast.Compare) and isinstance(n.ops[0], (ast.In, ast.NotIn))
        and spelled(n.comparators[0]) == text)
        or (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
        and n.func.attr == "get" and spelled(n.func.value) == text)
        for n in nodes_in(case.scope.node)
    )  # fmt: skip


def _rebinding(case: Case) -> Verdict:
    """Who hands out the structure of a tree, or a shape, hands out what is known at the trace."""
    if case.finding.code == "FNA108" and is_locked(case.scope, case.evidence.node):
        return False
    name = getattr(case.evidence.node, "id", "")
    around = case.scope
    if case.finding.code == "FNA205" and _is_called_at_once(around):
        return False
    if case.finding.code == "FNA205":  # it is read here, and rebound beside
        found = around.lookup(name)
        around = found[0] if found is not None else around
    values = [
        n.value for n in nodes_in(around.node)
        if isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
    ]  # fmt: skip
    values = [v for v in values if not isinstance(v, ast.Constant)]  # until it is bound
    if case.finding.code == "FNA102" and values and all(_is_free(v, name, around) for v in values):
        return False  # of what is captured alone: the same whenever it is bound
    return not values or not all(is_static(value, around) for value in values)


def _is_called_at_once(scope: Scope) -> bool:
    """Say whether a lambda is given to what calls it and keeps nothing: ``map``, ``sorted``."""
    return scope.parent is not None and any(
        isinstance(n, ast.Call)
        and scope.node in n.args
        and (_last(n.func) in _CALLING or spelled(n.func).endswith((".tree.map", "tree_util.map")))
        for n in nodes_in(scope.parent.node)
    )


_CALLING = frozenset({"tree_map", "tree_multimap", "sorted", "min", "max", "reduce", "cond", "scan",
                      "fori_loop", "while_loop", "apply_along_axis"})  # fmt: skip


def _is_free(node: ast.expr, name: str, scope: Scope) -> bool:
    """Say whether an expression names nothing that a function binds, nor the variable itself."""
    used = {n.id for n in walk(node) if isinstance(n, ast.Name)}
    return bool(used) and name not in used and used.isdisjoint(scope.names)


def _drawn(case: Case) -> Verdict:
    """A number drawn from ``itertools.count()`` to name something is compared, as an ``id`` is."""
    node = case.evidence.node
    given = node.args[0] if isinstance(node, ast.Call) and node.args else node
    found = case.scope.lookup(spelled(given))
    value = getattr(found[1][-1], "value", None) if found is not None else None
    counts = isinstance(value, ast.Call) and spelled(value.func).endswith("count")
    return not counts or any(
        isinstance(n, ast.BinOp) and node in walk(n) for n in nodes_in(case.scope.node)
    )


def _handed_in(case: Case) -> Verdict:
    """A transform makes the containers that it hands in: a write is lost only if nobody reads it.

    The caller's own container stays as it was. Who goes on to read, or returns, what was written
    means the copy; who does not, means the caller's.
    """
    node = case.scope.node
    if isinstance(node, ast.Lambda):
        return True
    if len(case.evidence.frame.path) > 1:
        return False  # a helper fills what the traced function was handed, which goes on with it
    at = case.evidence.node
    if isinstance(at, ast.Call) and not any(
        isinstance(n, ast.Expr) and n.value is at for n in walk(node)
    ):
        return False  # ``waiting.popleft()``: it takes from what it was handed
    names = {root_of(case.evidence.node)}
    sites = (site for site in case.module.sites if site.scope is case.scope)
    written = {n for site in sites for n in walk(site.target)}
    for other in walk(node):  # ``st = state``: another name of the same
        match other:
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=name)):
                if name in names or alias in names:
                    names |= {name, alias}
            case _:
                pass
    reads = (
        n for n in walk(node)
        if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)
    )  # fmt: skip
    return not any(n not in written for n in reads if n.lineno > case.finding.end_line)


def _replaced(case: Case) -> Verdict:
    """Who writes ``x.at[i].set(v)`` in the same function knows arrays: this is for NumPy's.

    What ships runs: a parameter of the traced function is an array as far as anybody knows, and so
    is what ``jax.numpy`` made; what a helper is handed, or holds, need not be.
    """
    value, frame = case.evidence.value, case.evidence.frame
    name = spelled(_base(case.evidence.node))
    itself = len(frame.path) == 1 and name in parameters(frame.function.node)
    if not itself and (value is None or any(v.kind != "array" for v in value.each())):
        return False
    return not any(
        isinstance(n, ast.Subscript) and isinstance(n.value, ast.Attribute) and n.value.attr == "at"
        for n in nodes_in(case.scope.node)
    )


def _base(node: ast.AST) -> ast.AST:
    while isinstance(node, (ast.Subscript, ast.Call, ast.AugAssign)):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func.value if isinstance(node.func, ast.Attribute) else ast.Pass()
        else:
            node = node.target
    return node


def _imported(case: Case) -> Verdict:
    """An import gives the same module whenever it runs."""
    return not case.finding.message.startswith("imports")


_LAWS: dict[str, Callable[[Case], Verdict]] = {
    **dict.fromkeys(("FNA201", "FNA202", "FNA204"), _read),
    **dict.fromkeys(("FNA103", "FNA105"), _write),
    **dict.fromkeys(("FNA102", "FNA108", "FNA205"), _rebinding),
    "FNA101": _global,
    "FNA301": _global,
    "FNA304": _hashed,
    "FNA401": _drawn,
    "FNA104": _handed_in,
    "FNA106": _replaced,
    "FNA311": printed,
    "FNA312": acted,
    "FNA313": logged,
    "FNA316": acted,
    "FNA502": _imported,
    "FNA315": shown,
}
