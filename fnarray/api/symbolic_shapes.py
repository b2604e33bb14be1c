"""Shapes of results as formulas of the symbolic sizes that `eval_shape` was given."""

from __future__ import annotations

from typing import Any

from ..core import tree
from ..core.dims import is_symbolic_dim, names_of, parsed
from ..ops.kit.moves import over_words, without_words
from .export_traces import all_traced, scope_of
from .generalize import choices, generalized
from .jit import PjitFunction
from .stages import struct_of

__all__: list[str] = []


def has_symbols(x: Any) -> bool:
    """Say whether an argument's shape has symbolic sizes."""
    return any(map(is_symbolic_dim, getattr(x, "shape", ())))


def symbolic_shapes(jitted: PjitFunction, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return the results' shapes and dtypes, with symbolic sizes where the arguments have them.

    As for an export the function is traced at several choices of the sizes, and a size of a result
    is a formula that explains all of them; that it computes alike for all of them is not asked.

    Raises
    ------
    InconclusiveDimensionOperation
        A result's shape or dtype is no such formula, or the function branches on a size.
    """
    args, kwargs = over_words((args, kwargs))
    dyn, dyn_kw, _ = jitted._split(args, kwargs)
    leaves = tree.leaves((dyn, dyn_kw))
    scope = scope_of(jitted, leaves)
    sizes = choices(names_of(x.shape for x in leaves if has_symbols(x)), scope)
    ts = all_traced(jitted, args, kwargs, leaves, sizes, scope)
    outs = [[[list(a.shape), a.dtype.name, a.weak_type] for a in t.out_avals] for t in ts]

    def size(n: Any) -> Any:
        return n if isinstance(n, int) else parsed(n["size"], scope)

    structs = [
        struct_of(a).update(shape=tuple(map(size, shape)))
        for a, (shape, *_) in zip(ts[-1].out_avals, generalized(outs, sizes), strict=True)
    ]
    return without_words(structs, ts[-1].out_spec.unflatten(structs))
