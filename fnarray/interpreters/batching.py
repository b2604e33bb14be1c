"""Batching of primitives that extensions declare, named as in ``jax.interpreters.batching``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..api.batching import ruled_otherwise
from ..core.primitive import Primitive
from ..extend._primitive import Rules
from ..numpy._shape import moveaxis
from ..ops.kit.rules import ELEMENTWISE_BATCH, spread
from ..transforms.batch import Axis, BatchTrace, BatchTracer

__all__ = [
    "AxisData",
    "BatchTrace",
    "BatchTracer",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "broadcast_batcher",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]
__dir__ = __all__.copy

Rule = Callable[..., Any]
#: The place of the mapped axis of what does not have it.
not_mapped = None


class AxisData(NamedTuple):
    """What batching rules are told of the mapped axis."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


def bdim_at_front(x: Any, dim: int | None, size: int) -> Any:
    """Return a value with the mapped axis in front, which it is given if it has none."""
    return spread(x, size) if dim is None else moveaxis(x, dim, 0)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """Return a value repeated along a new axis, at a place."""
    return moveaxis(spread(x, sz), 0, axis)


def _fancy(rule: Rule, prim: Primitive) -> Rule:
    def batch(axis: Axis, xs: Sequence[Any], batched: Sequence[bool], /, **params: Any) -> Any:
        dims = [0 if b else not_mapped for b in batched]
        outs, at = rule(AxisData(axis.name, int(axis)), list(xs), dims, **params)
        if not prim.multiple_results:
            return (outs, False) if at is None else (moveaxis(outs, at, 0), True)
        places = [at] * len(outs) if at is None or isinstance(at, int) else at
        moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(outs, places, strict=True)]
        return moved, tuple(d is not None for d in places)

    return batch


def _with_axis(rule: Rule, prim: Primitive) -> Rule:
    return _fancy(
        lambda axis, xs, dims, /, **params: rule(axis.size, axis.name, None, xs, dims, **params),
        prim,
    )


def _plain(rule: Rule, prim: Primitive) -> Rule:
    return _fancy(lambda axis, xs, dims, /, **params: rule(xs, dims, **params), prim)


def _read(rule: Rule, prim: Primitive) -> Rule:
    """Return a rule of fnarray's as JAX has them: ``rule(xs, dims, **params) -> (outs, dims)``."""

    def batcher(xs: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> Any:
        mapped = [d is not None for d in dims]
        (size,) = {x.shape[d] for x, d in zip(xs, dims, strict=True) if d is not None}
        front = [moveaxis(x, d, 0) if m else x for x, d, m in zip(xs, dims, mapped, strict=True)]
        outs = rule(Axis(size), front, tuple(mapped), **params)
        if prim.multiple_results:
            found, flags = outs
            return found, [0 if f else None for f in flags]
        found, flag = outs if type(outs) is tuple else (outs, True)
        return found, 0 if flag else None

    return batcher


#: ``rule(xs, dims, **params) -> (out, dim)``, lists of them for several results.
primitive_batchers = Rules("batch", _plain, _read)
#: ``rule(axis_size, axis_name, trace_type, xs, dims, **params) -> (out, dim)``.
axis_primitive_batchers = Rules(
    "batch",
    _with_axis,
    lambda rule, prim: lambda size, name, kind, /, *rest, **ps: _read(rule, prim)(*rest, **ps),
)
#: ``rule(axis_data, xs, dims, **params) -> (out, dim)``.
fancy_primitive_batchers = Rules(
    "batch", _fancy, lambda rule, prim: lambda axis, /, *rest, **ps: _read(rule, prim)(*rest, **ps)
)


def defvectorized(prim: Primitive) -> None:
    """Declare that a primitive of one operand treats leading axes alike."""

    def rule(xs: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> Any:
        return prim.bind(*xs, **params), dims[0]

    primitive_batchers[prim] = rule


def defbroadcasting(prim: Primitive) -> None:
    """Declare that a primitive is elementwise in all its operands."""
    prim.batch = ELEMENTWISE_BATCH.make(prim)


def defreducer(prim: Primitive, ident: Any = None) -> None:
    """Declare that a primitive of one operand and a param ``axes`` removes those axes."""

    def rule(xs: Sequence[Any], dims: Sequence[Any], *, axes: Sequence[int], **params: Any) -> Any:
        (x,) = xs
        shifted = tuple(a + 1 for a in axes)
        return prim.bind(moveaxis(x, dims[0], 0), axes=shifted, **params), 0

    primitive_batchers[prim] = rule


def broadcast_batcher(prim: Primitive, xs: Any, dims: Any, /, **params: Any) -> Any:
    """Batch a primitive that is elementwise in all its operands."""
    mapped = tuple(d is not None for d in dims)
    front = [moveaxis(x, d, 0) if m else x for x, d, m in zip(xs, dims, mapped, strict=True)]
    (size,) = {x.shape[0] for x, m in zip(front, mapped, strict=True) if m}
    out = ELEMENTWISE_BATCH.make(prim)(Axis(size), front, mapped, **params)
    return (out[0], [0] * len(out[0])) if prim.multiple_results else (out, 0)


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Rule,
    from_elt: Rule,
    make_iota: Rule | None,
) -> None:
    """Declare that values of a type are mapped by rules of their own.

    There are no such rules here: `vmap` refuses these values, rather than map their leaves.
    """
    ruled_otherwise.add(data_type)


def unregister_vmappable(data_type: type) -> None:
    """Take back what `register_vmappable` declared."""
    ruled_otherwise.discard(data_type)
