"""The traces that an exported program is made of: one for each choice of its symbolic sizes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..config import config
from ..config import effects as effects_scope
from ..control.signature import fun_name, with_statics
from ..control.tracing import Traced, trace
from ..core import tree
from ..core.avals import ShapeDtypeStruct
from ..core.dims import SymbolicScope, is_choice, is_symbolic_dim, value
from ..errors import ShapeError
from ..runtime.spec import NamedSharding, PartitionSpec
from .generalize import formulas
from .resharding import shardings_for
from .sizes import Shapes, given

__all__: list[str] = []


def scope_of(fun: Any, leaves: Sequence[Any]) -> SymbolicScope:
    first: Any = None
    for x in leaves:
        for d in getattr(x, "shape", ()):
            if not is_symbolic_dim(d):
                continue
            first = first or d
            if is_choice(d):
                # Programs are traced at a few sizes, at which it would be one of the two.
                raise NotImplementedError(
                    f"export: {fun_name(fun)} takes an array of size {d}, and one program must do "
                    "for both. Give the size a name of its own, and constraints: 'c >= b'."
                )
            if d.scope is not first.scope:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {fun_name(fun)}: '{first}' "
                    f"is of the {first.scope}, '{d}' of the {d.scope}. Make both with scope=, or "
                    "by one call of symbolic_args_specs."
                )
    return first.scope


def all_traced(
    fun: Any,
    args: tuple,
    kwargs: dict[str, Any],
    leaves: Sequence[Any],
    sizes: Sequence[Mapping[str, int]],
    scope: SymbolicScope | None,
) -> list[Traced]:
    """Trace at each choice of the sizes; the last one knows what all sizes are formulas of."""
    if scope is None:
        return [_traced(fun, args, kwargs, leaves, sizes[0])]
    shapes, ts = Shapes(scope), []
    *most, last = sizes
    for choice in most:
        with shapes.noted():
            ts.append(_traced(fun, args, kwargs, leaves, choice))
    with shapes.asked(formulas(most[1:]), last):
        ts.append(_traced(fun, args, kwargs, leaves, last))
    return ts


def _traced(
    fun: Any, args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any], sizes: Mapping[str, int]
) -> Traced:
    """Trace at one choice of the symbolic sizes."""
    if not sizes:
        return fun.trace(*args, **kwargs)._traced

    def concrete(x: Any) -> Any:
        if not any(map(is_symbolic_dim, getattr(x, "shape", ()))):
            return x
        weak = bool(getattr(x, "weak_type", False))
        return ShapeDtypeStruct([value(d, sizes) for d in x.shape], x.dtype, weak_type=weak)

    _, signature = fun._signature_of(*tree.map(concrete, (args, kwargs)))
    inner = fun.__wrapped__

    @functools.wraps(inner)
    def asked(*a: Any, **k: Any) -> Any:
        found, spec = tree.flatten_spec(fun._split(a, k)[:2])
        dyn, dyn_kw = cast("tuple[Any, Any]", spec.unflatten(map(_named, found, leaves)))
        full_args, full_kwargs = with_statics(dyn, dyn_kw, signature.statics)
        return inner(*full_args, **full_kwargs)

    try:
        with effects_scope(fun._effects or config.effects):
            return trace(inner, signature, user="export", call=asked)
    except ShapeError as error:  # its numbers are of this choice, which the program never said
        chosen = ", ".join(f"{n} = {k}" for n, k in sizes.items())
        error.args = (f"{error} The symbolic sizes stood for {chosen}.",)
        raise


def _named(tracer: Any, spec: Any) -> Any:
    """Return an argument that knows its symbolic sizes."""
    return given(tracer, getattr(spec, "shape", ()))


def places_said(fun: Any, option: str, x: Any, leaves: Sequence[Any]) -> list[Any]:
    """Return as data how leaves of a tree are said to be cut, None where nothing is said.

    What the compiled function's ``option`` says comes before the leaves' own shardings, and may be
    that they are not cut.
    """
    where = fun._options.get(option)
    own = [getattr(leaf, "placement", getattr(leaf, "sharding", None)) for leaf in leaves]
    wanted = None if where is None else shardings_for(f"export {option}", where, x)
    found: list[Any] = []
    s: Any
    for s in own if wanted is None else wanted:
        names = s.spec.names() if isinstance(s, NamedSharding) else ()
        said = isinstance(s, NamedSharding) and (wanted is not None or any(names))
        said = said and all(isinstance(n, str) for group in names for n in group)
        found.append(
            [list(map(list, s.mesh.shape_tuple)), list(map(list, names))] if said else None
        )
    return found


def on_mesh(places: Sequence[Any], mesh: Any) -> tuple[NamedSharding | None, ...]:
    """Return the shardings that data says, on a mesh with the axes that they name."""
    return tuple(
        None if place is None else NamedSharding(mesh, PartitionSpec(*map(tuple, place[1])))
        for place in places
    )
