"""How operations pass on along which mesh axes arrays are cut: one rule for each kind.

A rule gets blocks with their specs and returns results with theirs; or None, and operands are
gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ..core.primitive import Primitive
from ..core.trace import bind
from ..ops.collective import pmax_p, pmin_p, psum_p
from ..ops.kit.calls import convert
from .blocks import Mapped, Rule, Spec, Value

Params = dict[str, Any]
#: Given what came of a block, and the names of the mesh's axes, returns what comes of all.
Combine = Callable[[Mapped, Primitive, Any, tuple[Hashable, ...], Params], Any]


def reduction(combined: Combine) -> Rule:
    """Reduce blocks, and combine what came of them where an axis that is reduced is cut."""

    def rule(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
        if len(values) != 1:
            return None
        (v,) = values
        out = bind(prim, v.x, **params)
        names = tuple(n for d in params["axes"] for n in v.spec[d])
        if names:
            out = combined(m, prim, out, names, params)
        spec = tuple(s for d, s in enumerate(v.spec) if d not in params["axes"])
        return [Value(out, spec)]

    return rule


def _across(collective: Primitive) -> Rule:
    """Reduce blocks, and over the mesh by a collective."""

    def combined(
        m: Mapped, prim: Primitive, out: Any, names: tuple[Hashable, ...], params: Params
    ) -> Any:
        kind = out.dtype
        out = convert(out, np.uint8) if kind == np.bool_ else out
        return convert(bind(collective, out, axis_name=names, axis_index_groups=None), kind)

    return reduction(combined)


def _product(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Multiply blocks: axes that are summed over are cut alike, and sums are added up."""
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    left, right = values
    aims = [list(left.spec), list(right.spec)]
    pairs = [*zip(lb, rb, strict=True), *zip(lc, rc, strict=True)]
    for a, b in pairs:
        aims[0][a] = aims[1][b] = aims[0][a] or aims[1][b]
    # A mesh axis may cut one axis of the result, or a sum: the larger operand has its way.
    small = 0 if left.x.size < right.x.size else 1
    used: set[Hashable] = set()
    paired = (dict(pairs), {b: a for a, b in pairs})
    for side in (1 - small, small):
        for d, names in enumerate(aims[side]):
            other = paired[side].get(d)
            if side == small and other is not None:
                continue  # as the larger operand's
            if not used.isdisjoint(names):
                aims[side][d] = ()
                if other is not None:
                    aims[1 - side][other] = ()
            else:
                used.update(names)
    for k, v in enumerate(values):
        if not m.divides(m.shape(v), tuple(aims[k])):
            return None
    out = bind(prim, m.to(left, tuple(aims[0])), m.to(right, tuple(aims[1])), **params)
    summed = tuple(n for d in lc for n in aims[0][d])
    if summed:
        out = bind(psum_p, out, axis_name=summed, axis_index_groups=None)
    spec = [aims[0][d] for d in lb]
    spec += [s for d, s in enumerate(aims[0]) if d not in (*lb, *lc)]
    spec += [s for d, s in enumerate(aims[1]) if d not in (*rb, *rc)]
    return [Value(out, tuple(spec))]


def _transpose(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    (v,) = values
    spec = tuple(v.spec[d] for d in params["permutation"])
    return [Value(bind(prim, v.x, **params), spec)]


def _broadcast(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    v, whole = values[0], m.shape(values[0])
    shape, axes = tuple(params["shape"]), params["broadcast_dimensions"]
    spec: list[tuple[Hashable, ...]] = [()] * len(shape)
    for d, at in enumerate(axes):
        if v.spec[d]:
            if whole[d] != shape[at]:
                return None
            spec[at] = v.spec[d]
    params = {**params, "shape": m.local(shape, tuple(spec))}
    return [Value(bind(prim, v.x, **params), tuple(spec))]


def _reshape(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Cut axes stay so where they lead the axes that they are split into, or joined from."""
    (v,) = values
    old, new = m.shape(v), tuple(params["new_sizes"])
    if params.get("dimensions") is not None or 0 in old:
        return None
    have: list[tuple[Hashable, ...]] = list(v.spec)
    spec: list[tuple[Hashable, ...]] = [()] * len(new)
    for olds, news in _groups(old, new):
        cut = [d for d in olds if have[d]]
        wide_old = [d for d in olds if old[d] > 1]
        wide_new = [d for d in news if new[d] > 1]
        keep = bool(cut) and bool(wide_new) and cut == wide_old[: len(cut)]
        if keep and len(cut) == 1:
            (d,) = cut
            # Joined with what follows it leads the product; split, its first factor must hold it.
            parts = m.parts(have[d])
            if new[wide_new[0]] % parts == 0:
                spec[wide_new[0]] = have[d]
                continue
        elif keep:
            # Several cut axes are joined: each but the last must be cut to single elements.
            names = tuple(n for d in cut for n in have[d])
            single = all(old[d] == m.parts(have[d]) for d in cut[:-1])
            if single and new[wide_new[0]] % m.parts(names) == 0:
                spec[wide_new[0]] = names
                continue
        lead = wide_old[0] if len(cut) == 1 else None
        for d in cut:
            have[d] = ()
        if lead is not None and wide_new:
            # The axis that leads is cut in its place: each device hands on as much as it gets.
            names = v.spec[cut[0]]
            if not (old[lead] % m.parts(names) or new[wide_new[0]] % m.parts(names)):
                have[lead] = spec[wide_new[0]] = names
    for olds, news in _groups(old, new):
        if _split(m, olds, news, old, new, v.spec, spec):
            for d in olds:
                have[d] = v.spec[d]
    x = m.to(v, tuple(have))
    local = m.local(new, tuple(spec))
    return [Value(bind(prim, x, **{**params, "new_sizes": local}), tuple(spec))]


def _split(
    m: Mapped, olds: Any, news: Any, old: Any, new: Any, have: Spec, spec: list[Any]
) -> bool:
    """Cut the leading factors of an axis that is split, one mesh axis each; say whether it is."""
    cut = [d for d in olds if have[d]]
    if len(cut) != 1 or any(spec[k] for k in news) or [d for d in olds if old[d] > 1] != cut:
        return False
    names, wide = list(have[cut[0]]), [k for k in news if new[k] > 1]
    aims = {}
    for k in wide:
        if not names:
            break
        if new[k] != m.sizes[names[0]]:
            return False
        aims[k] = (names.pop(0),)
    if names:
        return False
    for k, s in aims.items():
        spec[k] = s
    return True


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return which axes of a reshaped array are made of which: runs of equal products."""
    out, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        olds, news, a, b = [], [], 1, 1
        while True:
            if a == b and (olds or news):
                break
            if (a <= b and i < len(old)) or j >= len(new):
                a *= old[i]
                olds.append(i)
                i += 1
            else:
                b *= new[j]
                news.append(j)
                j += 1
        out.append((olds, news))
    return out


def concatenated(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Axes other than the one that is joined stay cut, as those of the first operand are."""
    d = params["dimension"]
    spec = tuple(() if k == d else s for k, s in enumerate(values[0].spec))
    if not all(m.divides(m.shape(v), spec) for v in values):
        return None
    return [Value(bind(prim, *(m.to(v, spec) for v in values), **params), spec)]


def _squeeze(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    (v,) = values
    gone = params["dimensions"]
    have = tuple(() if d in gone else s for d, s in enumerate(v.spec))
    spec = tuple(s for d, s in enumerate(v.spec) if d not in gone)
    return [Value(bind(prim, m.to(v, have), **params), spec)]


#: By name of operation.
RULES: dict[str, Rule] = {
    "reduce_sum": _across(psum_p),
    "reduce_max": _across(pmax_p),
    "reduce_min": _across(pmin_p),
    "reduce_or": _across(pmax_p),
    "reduce_and": _across(pmin_p),
    "dot_general": _product,
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _squeeze,
}
