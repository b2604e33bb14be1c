"""Operations that change where an array is said to be, and nothing else.

They are types' part of programs on meshes: what is compiled has none of them (``surgery.erased``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..core import hooks
from ..core.avals import NO_SUMS, Cuts, ShapedArray, Sums, place
from ..core.forms import Map
from ..core.primitive import Missing, Primitive
from ..core.trace import Tracer, bind
from .collective import axis_index_p, psum_p
from .kit.calls import eq, full, select
from .kit.registry import register
from .kit.rules import LINEAR

__all__ = [
    "cast",
    "constrained",
    "constraint_p",
    "inspect_p",
    "of_the_first",
    "pcast_p",
    "placed_as",
    "pvary_p",
    "reshard_p",
    "varied",
]


def _form(ins: Any, outs: Any, **params: Any) -> Map:
    return Map("{0}")


def _summed(ct: Any, axes: Sequence[Hashable]) -> Any:
    """Sum over axes, of which a cotangent may not know that it varies along them."""
    return bind(psum_p, varied(ct, axes), axis_name=tuple(axes), axis_index_groups=None)


def _as_primal(ct: Any, x: Any, **params: Any) -> list[Any]:
    return [placed_as(ct, x.aval.of_cotangents())]


#: Rules of operations whose result is their operand, said to be somewhere.
_SAME: dict[str, Any] = {
    "eval": lambda x, **params: x,
    "form": _form,
    "word": True,
    "jvp": LINEAR,
}

pvary_p = register(
    Primitive(
        "pvary",
        aval=lambda x, *, axes: x.update(
            place=place(x.place.mesh if x.place else (), x.cuts, x.vma | set(axes), x.sums)
        ),
        **_SAME,
        transpose=lambda ct, x, *, axes: [_summed(ct, axes)],
        batch=lambda size, xs, batched, **params: bind(pvary_p, xs[0], **params),
    )
)


def _cast_aval(x: ShapedArray, *, axes: tuple[Hashable, ...], to: str) -> ShapedArray:
    kinds = {"varying": x.vma, "unreduced": x.sums[0], "reduced": x.sums[1]}
    found = {k: v | set(axes) if k == to else v - set(axes) for k, v in kinds.items()}
    sums = found["unreduced"], found["reduced"]
    return x.update(place=place((), x.cuts, found["varying"], sums))


#: A value that is taken for another kind along axes: ``to`` is one of those of `kind_along`. Free
#: are of these: the same on all to reduced and back, reduced to varying, varying to partial sums.
pcast_p = register(
    Primitive(
        "pcast",
        aval=_cast_aval,
        **_SAME,
        transpose=_as_primal,
        batch=lambda size, xs, batched, **params: bind(pcast_p, xs[0], **params),
    )
)


def kind_along(aval: ShapedArray, axis: Hashable) -> str:
    """Return what devices along a manual axis have: ``"varying"`` values, ``"unreduced"`` ones,
    which are to be summed, ``"reduced"`` ones, which were, or the same, ``"invarying"``.
    """
    if axis in aval.vma:
        return "varying"
    unreduced, reduced = _manual_sums(aval)
    return "unreduced" if axis in unreduced else "reduced" if axis in reduced else "invarying"


def _manual_sums(aval: ShapedArray) -> Sums:
    # Of a value in a program on devices: outside, a type with sums names its mesh.
    return NO_SUMS if aval.place is None or aval.place.mesh else aval.place.sums


def cast(x: Any, axes: Sequence[Hashable], to: str) -> Any:
    """Return a value of another kind along manual axes, of the same value: summed where it must be.

    What is the same on all devices becomes partial sums as the first device's, and others' zeros.
    """
    by_kind: dict[str, list[Hashable]] = {}
    for axis in axes:
        by_kind.setdefault(kind_along(x.aval, axis), []).append(axis)
    for kind, names in by_kind.items():
        if kind == to:
            continue
        along = tuple(names)
        if kind == "unreduced" or (kind == "varying" and to in ("invarying", "reduced")):
            x, kind = _psum(x, along), "invarying"
        if kind == "invarying" and to == "unreduced":
            x, kind = bind(pvary_p, of_the_first(x, along), axes=along), "varying"
        if kind == "invarying" and to == "varying":
            x = bind(pvary_p, x, axes=along)
        elif kind != to:
            x = bind(pcast_p, x, axes=along, to=to)
    return x


def _psum(x: Any, axes: tuple[Hashable, ...]) -> Any:
    return bind(psum_p, x, axis_name=axes, axis_index_groups=None)


def of_the_first(x: Any, axes: Sequence[Hashable]) -> Any:
    """Return a value in the first device along axes, zeros in the others."""
    for name in axes:
        index = bind(axis_index_p, axis_name=(name,))
        x = select(eq(index, 0), x, full(x.aval, 0))
    return x


def varied(x: Any, axes: Sequence[Hashable]) -> Any:
    """Return a value as one that varies along some axes."""
    missing = [a for a in axes if a not in x.aval.vma]
    return cast(x, missing, "varying") if missing else x


def _reshard_aval(
    x: ShapedArray, *, mesh: Any, cuts: Cuts, sums: Sums, sharding: Any
) -> ShapedArray:
    return x.update(place=place(mesh, cuts, x.vma, sums))


def _reshard_batch(
    size: int, xs: Any, batched: Any, *, mesh: Any, cuts: Cuts, sums: Sums, sharding: Any
) -> Any:
    (x,) = xs
    return bind(reshard_p, x, mesh=mesh, cuts=(x.aval.cuts[0], *cuts), sums=sums, sharding=None)


#: An array cut along axes of type Explicit: ``cuts`` and ``sums`` of a mesh, and all that is said
#: in ``sharding``, where that is known.
reshard_p = register(
    Primitive(
        "reshard",
        aval=_reshard_aval,
        **_SAME,
        transpose=_as_primal,
        batch=_reshard_batch,
        print_params=lambda params: {},
    )
)


def _constrained_batch(size: int, xs: Any, batched: Any, *, sharding: Any) -> Any:
    return bind(constraint_p, xs[0], sharding=sharding.one_more_axis())


#: A word about axes of type Auto: types do not change.
constraint_p = register(
    Primitive(
        "sharding_constraint",
        aval=lambda x, *, sharding: x,
        **_SAME,
        transpose=lambda ct, x, **params: [constrained(ct, **params)],
        batch=_constrained_batch,
    )
)

#: A function that is told how a value is cut, once its program is compiled.
inspect_p = register(
    Primitive(
        "inspect_sharding",
        aval=lambda x, *, callback: (),
        eval=lambda x, *, callback: (),
        form=_form,
        word=True,
        jvp=lambda primals, tangents, **params: (bind(inspect_p, *primals, **params), []),
        transpose=Missing("it has no result"),
        batch=lambda size, xs, batched, **params: (bind(inspect_p, *xs, **params), ()),
        effects=("inspect_sharding",),
        multiple_results=True,
    )
)


def constrained(x: Any, sharding: Any) -> Any:
    """Return a value said to be somewhere."""
    if not isinstance(x, Tracer):
        return hooks.put(x, sharding)
    return bind(constraint_p, x, sharding=sharding)


def placed_as(x: Any, aval: ShapedArray) -> Any:
    """Return a value that is cut, and varies, as an aval says."""
    here, there = x.aval, aval
    meshes = [a.place.mesh for a in (there, here) if a.place is not None and a.place.mesh]
    mesh = meshes[0] if meshes else ()
    if here.cuts != there.cuts or (mesh and here.sums != there.sums):
        x = bind(reshard_p, x, mesh=mesh, cuts=there.cuts, sums=there.sums, sharding=None)
        here = x.aval
    along = frozenset().union(here.vma, there.vma, *_manual_sums(here), *_manual_sums(there))
    by_kind: dict[str, list[Hashable]] = {}
    for axis in sorted(along, key=str):
        by_kind.setdefault(kind_along(there, axis), []).append(axis)
    for kind, axes in by_kind.items():
        x = cast(x, axes, kind)
    return x
