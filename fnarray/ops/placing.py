"""Operations that change where an array is said to be, and nothing else.

They are types' part of programs on meshes: what is compiled has none of them (``surgery.erased``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..core import hooks
from ..core.avals import Cuts, ShapedArray, place
from ..core.forms import Map
from ..core.primitive import Missing, Primitive
from ..core.trace import Tracer, bind
from .collective import psum_p
from .kit.registry import register
from .kit.rules import LINEAR

__all__ = [
    "OWN_TYPES",
    "constrained",
    "constraint_p",
    "inspect_p",
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


pvary_p = register(
    Primitive(
        "pvary",
        aval=lambda x, *, axes: x.update(
            place=place(x.place.mesh if x.place else (), x.cuts, x.vma | set(axes))
        ),
        eval=lambda x, **params: x,
        form=_form,
        word=True,
        jvp=LINEAR,
        transpose=lambda ct, x, *, axes: [_summed(ct, axes)],
        batch=lambda size, xs, batched, **params: bind(pvary_p, xs[0], **params),
    )
)


def varied(x: Any, axes: Sequence[Hashable]) -> Any:
    """Return a value as one that varies along some axes."""
    missing = tuple(a for a in axes if a not in x.aval.vma)
    return bind(pvary_p, x, axes=missing) if missing else x


def _reshard_aval(x: ShapedArray, *, mesh: Any, cuts: Cuts, sharding: Any) -> ShapedArray:
    return x.update(place=place(mesh, cuts, x.vma))


def _reshard_batch(
    size: int, xs: Any, batched: Any, *, mesh: Any, cuts: Cuts, sharding: Any
) -> Any:
    (x,) = xs
    return bind(reshard_p, x, mesh=mesh, cuts=(x.aval.cuts[0], *cuts), sharding=None)


#: An array cut along axes of type Explicit: ``cuts`` of a mesh, and all that is said in
#: ``sharding``, where that is known.
reshard_p = register(
    Primitive(
        "reshard",
        aval=_reshard_aval,
        eval=lambda x, **params: x,
        form=_form,
        word=True,
        jvp=LINEAR,
        transpose=lambda ct, x, **params: [placed_as(ct, x.aval)],
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
        eval=lambda x, **params: x,
        form=_form,
        word=True,
        jvp=LINEAR,
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

#: Operations whose rules for types say where their results are.
OWN_TYPES = frozenset((pvary_p, reshard_p, constraint_p, inspect_p))


def constrained(x: Any, sharding: Any) -> Any:
    """Return a value said to be somewhere."""
    if not isinstance(x, Tracer):
        return hooks.put(x, sharding)
    return bind(constraint_p, x, sharding=sharding)


def placed_as(x: Any, aval: ShapedArray) -> Any:
    """Return a value that is cut, and varies, as an aval says."""
    if x.aval.cuts != aval.cuts:
        mesh = (aval.place or x.aval.place).mesh or x.aval.place.mesh
        x = bind(reshard_p, x, mesh=mesh, cuts=aval.cuts, sharding=None)
    x = varied(x, sorted(aval.vma, key=str))
    more = sorted(x.aval.vma - aval.vma, key=str)
    return _summed(x, more) if more else x
