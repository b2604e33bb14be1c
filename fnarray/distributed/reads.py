"""Rules of what reads, or writes, parts of blocks: slices, indices, positions, running totals.

What is asked for along an axis that is cut is taken where it is, and added up over the mesh, to
which all others bring a zero: each device gets as many elements as the result has, never the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import numpy as jnp
from ..core.primitive import Primitive
from ..core.trace import bind
from ..ops._windows import GatherScatterMode
from ..ops.collective import pmax_p, pmin_p, psum_p
from ..ops.exchange import all_gather_p
from ..ops.kit import calls
from ..ops.kit.calls import add, mul, select, sub
from .blocks import Mapped, Rule, Spec, Value
from .rules import reduction

Params = dict[str, Any]
Names = tuple[Hashable, ...]


def gathered(m: Mapped, x: Any, names: Names) -> Any:
    """Return all devices' values along mesh axes, in their order, along a new first axis."""
    return bind(
        all_gather_p, x, all_gather_dimension=0, axis_name=names, axis_index_groups=None,
        axis_size=m.parts(names), tiled=False,
    )  # fmt: skip


def _of_owner(mine: Any, x: Any, names: Names) -> Any:
    """Return the elements of those who have them, on all devices along mesh axes, bit for bit."""
    dtype = x.dtype
    if dtype == np.bool_:
        return calls.convert(_of_owner(mine, calls.convert(x, np.uint8), names), dtype)
    x = jnp.where(mine, x, _nothing(dtype))
    return bind(psum_p, x, axis_name=names, axis_index_groups=None)


def _nothing(dtype: Any) -> np.ndarray:
    """Return the zero that changes no other: 0.0 + -0.0 is 0.0, and -0.0 + -0.0 is -0.0."""
    return np.array(0, dtype) if np.dtype(dtype).kind in "iu" else -np.zeros((), dtype)


def _can_add(x: Any) -> bool:
    """Whether minus zero changes nothing: floats of eight bits may have none."""
    return np.dtype(x.dtype).kind in "biu" or x.dtype.itemsize > 1


def _local(m: Mapped, positions: Any, size: int, names: Names) -> tuple[Any, Any]:
    """Return positions along an axis as those in this device's block, and which are in it."""
    local = sub(positions, mul(m.index(names).astype(positions.dtype), size))
    return local, (local >= 0) & (local < size)


def _taken(m: Mapped, v: Value, d: int, positions: Any) -> Value:
    """Return elements at positions along an axis that is cut, which then is whole."""
    names, size = v.spec[d], v.x.shape[d]
    local, mine = _local(m, positions, size, names)
    found = jnp.take(v.x, local, axis=d, mode="clip")
    mine = _along(mine, d, v.x.ndim)
    spec = tuple(() if k == d else s for k, s in enumerate(v.spec))
    return Value(_of_owner(mine, found, names), spec)


def _along(x: Any, d: int, rank: int) -> Any:
    """Return a vector as an array along one axis."""
    return jnp.expand_dims(x, tuple(k for k in range(rank) if k != d))


def _recut(m: Mapped, v: Value, spec: Spec) -> Value:
    """Cut results that are larger than a block as the operand was, where that can be."""
    shape = m.shape(v)
    keep = tuple(
        s if not have and n % m.parts(s) == 0 and n >= m.parts(s) ** 2 else have
        for n, s, have in zip(shape, spec, v.spec, strict=True)
    )
    return Value(m.to(v, keep), keep)


def _slice(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Axes that stay whole stay cut; of others each device brings what it has."""
    (v,) = values
    if not _can_add(v.x):
        return None
    whole = m.shape(v)
    starts, limits = params["start_indices"], params["limit_indices"]
    strides = params["strides"] or (1,) * len(whole)
    bounds = list(zip(starts, limits, strides, strict=True))
    parted = [d for d, n in enumerate(whole) if v.spec[d] and bounds[d] != (0, n, 1)]
    local = [(0, v.x.shape[d], 1) if v.spec[d] else bound for d, bound in enumerate(bounds)]
    a, b, s = zip(*local, strict=True)
    out = Value(bind(prim, v.x, start_indices=a, limit_indices=b, strides=s), v.spec)
    for d in parted:
        out = _taken(m, out, d, jnp.asarray(np.arange(*bounds[d], dtype=np.int32)))
    return [_recut(m, out, v.spec)]


def _dynamic_slice(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    v, *rest = values
    if not _can_add(v.x):
        return None
    whole, sizes = m.shape(v), params["slice_sizes"]
    starts = [m.whole(s) for s in rest]
    parted = [d for d, n in enumerate(whole) if v.spec[d] and sizes[d] != n]
    params = {**params, "slice_sizes": tuple(
        v.x.shape[d] if v.spec[d] else n for d, n in enumerate(sizes)
    )}  # fmt: skip
    at = [calls.const(s, 0) if v.spec[d] else s for d, s in enumerate(starts)]
    out = Value(bind(prim, v.x, *at, **params), v.spec)
    for d in parted:
        start = jnp.clip(starts[d].astype(np.int32), 0, whole[d] - sizes[d])
        out = _taken(m, out, d, add(jnp.arange(sizes[d], dtype=np.int32), start))
    return [out]


def _dynamic_update_slice(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Each device writes what falls into its block."""
    v, new, *rest = values
    whole, sizes = m.shape(v), m.shape(new)
    spec = tuple(s if whole[d] == sizes[d] else () for d, s in enumerate(v.spec))
    x, new, starts = v.x, m.to(new, spec), [m.whole(s) for s in rest]
    parted = [d for d, s in enumerate(v.spec) if s and not spec[d]]
    if not parted:
        at = [calls.const(s, 0) if v.spec[d] else s for d, s in enumerate(starts)]
        return [Value(bind(prim, x, new, *at, **params), v.spec)]
    inside: Any = np.True_
    for d in range(x.ndim):
        if spec[d]:
            continue
        start = jnp.clip(starts[d].astype(np.int32), 0, whole[d] - sizes[d])
        own = jnp.arange(x.shape[d], dtype=np.int32)
        if v.spec[d]:
            own = add(own, mul(m.index(v.spec[d]), x.shape[d]))
        at = sub(own, start)
        new = jnp.take(new, at, axis=d, mode="clip")
        row = (at >= 0) & (at < sizes[d])
        inside = inside & _along(row, d, x.ndim)
    return [Value(jnp.where(inside, new, x), v.spec)]


# ---- indices -------------------------------------------------------------------------------------


def _indexed(
    m: Mapped, v: Value, indices: Any, index_map: Sequence[int], single: Sequence[int], clip: bool
) -> tuple[Any, Any]:
    """Return indices into blocks, just outside where another device has it; and which are here.

    ``single`` are the axes that are cut, and of which single elements are taken.
    """
    mine: Any = None
    columns = [indices[..., j] for j in range(len(index_map))]
    for d in single:
        j, names = index_map.index(d), v.spec[d]
        size, n = v.x.shape[d], v.x.shape[d] * m.parts(names)
        at = columns[j]
        if np.dtype(at.dtype).kind == "u":
            at = at.astype(np.int64 if at.dtype.itemsize > 4 else np.int32)
        bounded = jnp.clip(at, 0, n - 1)
        local, here = _local(m, bounded, size, names)
        inside = here if clip else here & (at == bounded)
        columns[j] = jnp.where(inside, local, size).astype(indices.dtype)
        mine = here if mine is None else mine & here
    return jnp.stack(columns, axis=-1), mine


def _passes(v: Value, sizes: Sequence[int], whole: Sequence[int], index_map: Any) -> set[int]:
    """Return the axes that are cut, and taken as they are."""
    return {d for d, s in enumerate(v.spec) if s and sizes[d] == whole[d] and d not in index_map}


def _gather(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    v, indices = values
    numbers, mode = params["dimension_numbers"], params["mode"]
    if numbers.operand_batching_dims:
        return _batched_gather(m, prim, v, indices, params)
    whole, sizes = m.shape(v), params["slice_sizes"]
    passing = _passes(v, sizes, whole, numbers.start_index_map)
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    single = [
        d for d, s in enumerate(v.spec)
        if s and d in numbers.collapsed_slice_dims and d in numbers.start_index_map
    ]  # fmt: skip
    if not _can_add(v.x) or passing & gone:
        return None
    v = Value(
        m.to(v, keep := tuple(s if d in passing or d in single else ()
                              for d, s in enumerate(v.spec))), keep,
    )  # fmt: skip
    # Rows of indices that are cut stay so, where the operand leaves the mesh axis to them.
    used = {n for s in keep for n in s}
    rows = tuple(() if used & {*s} else s for s in indices.spec[:-1])
    ids = m.to(indices, (*rows, ()))
    offsets = numbers.offset_dims
    mine, clip = None, mode == GatherScatterMode.CLIP
    if single:
        ids, mine = _indexed(m, v, ids, numbers.start_index_map, single, clip)
    local = tuple(v.x.shape[d] if d in passing else n for d, n in enumerate(sizes))
    out = bind(prim, v.x, ids, **{**params, "slice_sizes": local})
    if mine is not None:
        names = tuple(n for d in single for n in v.spec[d])
        out = _of_owner(jnp.expand_dims(mine, offsets), out, names)
    inner = iter(s for d, s in enumerate(keep) if d not in gone)
    outer = iter(rows)
    spec = tuple(next(inner if d in offsets else outer) for d in range(out.ndim))
    return [Value(out, spec)]


def _batched_gather(
    m: Mapped, prim: Primitive, v: Value, indices: Value, params: Params
) -> list[Value] | None:
    """Take from each row by indices of its own: rows are cut alike, others than these moved so."""
    numbers, shape = params["dimension_numbers"], m.shape(v)
    pairs = [*zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)]
    spec: list[Names] = [()] * len(v.spec)
    rows: list[Names] = [()] * len(indices.spec)
    used: set[Hashable] = set()
    own = [(d, k, v.spec[d] or indices.spec[k]) for d, k in pairs]
    moved = [(d, k, names) for names in v.spec for d, k in pairs]
    for d, k, names in (*own, *moved):
        if not spec[d] and used.isdisjoint(names) and shape[d] % m.parts(names) == 0:
            spec[d] = rows[k] = names
            used.update(names)
    if not used:
        return None
    out = bind(prim, m.to(v, tuple(spec)), m.to(indices, tuple(rows)), **params)
    outer = iter(rows)
    return [
        Value(out, tuple(() if d in numbers.offset_dims else next(outer) for d in range(out.ndim)))
    ]


def _by_rows(
    m: Mapped, values: list[Value], d: int, window: int, params: Params
) -> tuple[Value, Value, Params]:
    """Return indices and updates of single elements along an axis, of which windows are written.

    A window that is not all inside is left out, as it would be.
    """
    v, indices, updates = values
    numbers = params["dimension_numbers"]
    n, j = m.shape(v)[d], numbers.scatter_dims_to_operand_dims.index(d)
    spec = (*(s for k, s in enumerate(updates.spec) if k != window), ())
    whole = tuple(() if k == window else s for k, s in enumerate(updates.spec))
    new = jnp.moveaxis(m.to(updates, whole), window, -1)
    size, ids = new.shape[-1], indices.x
    start = ids[..., j, None]
    at = jnp.where((start >= 0) & (start <= n - size), start + np.arange(size), n)
    ids = jnp.broadcast_to(ids[..., None, :], (*ids.shape[:-1], size, ids.shape[-1]))
    ids = jnp.where(np.arange(ids.shape[-1]) == j, at[..., None].astype(ids.dtype), ids)
    numbers = numbers._replace(
        update_window_dims=tuple(
            k - (k > window) for k in numbers.update_window_dims if k != window
        ),
        inserted_window_dims=tuple(sorted((*numbers.inserted_window_dims, d))),
    )
    at_most = {"dimension_numbers": numbers, "indices_are_sorted": False}
    return Value(ids, (*indices.spec[:-1], (), ())), Value(new, spec), {**params, **at_most}


def _cut_like(m: Mapped, v: Value, wanted: Mapping[int, Names]) -> Value:
    """Cut axes of a value that are whole, where what is written into it is cut along them."""
    spec, used = list(v.spec), {n for s in v.spec for n in s}
    for d, names in wanted.items():
        if not spec[d] and used.isdisjoint(names):
            spec[d] = names
            used.update(names)
    return Value(m.to(v, tuple(spec)), tuple(spec))


def _scatter(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Each device writes what falls into its block.

    Updates that are cut, and that are added up, are added up by the devices that have them.
    """
    v, indices, updates = values
    numbers, mode = params["dimension_numbers"], params["mode"]
    whole, index_map = m.shape(v), numbers.scatter_dims_to_operand_dims
    if mode == GatherScatterMode.CLIP or numbers.operand_batching_dims:
        return None
    windows = [d for d in range(v.x.ndim) if d not in numbers.inserted_window_dims]
    window = dict(zip(windows, numbers.update_window_dims, strict=True))
    shape = m.shape(updates)
    sizes = [shape[window[d]] if d in window else 1 for d in range(v.x.ndim)]
    v = _cut_like(
        m,
        v,
        {
            d: updates.spec[k]
            for d, k in window.items()
            if sizes[d] == whole[d] and d not in index_map
        },
    )
    passing = _passes(v, sizes, whole, index_map) & {*window}
    for d, s in enumerate(v.spec):
        if s and d in window and d not in passing and d in index_map:
            indices, updates, params = _by_rows(m, [v, indices, updates], d, window[d], params)
            return _scatter(m, prim, [v, indices, updates], params)
    single = [d for d, s in enumerate(v.spec) if s and d not in window and d in index_map]
    if any(s and d not in passing and d not in single for d, s in enumerate(v.spec)):
        return None
    cut = {window[d]: v.spec[d] for d in passing}
    total = _TOTALS.get(prim.name) if v.x.dtype != np.bool_ else None
    used = {n for s in v.spec for n in s}
    rows: list[Names] = []
    for k, s in zip(
        [k for k in range(len(shape)) if k not in numbers.update_window_dims],
        indices.spec[:-1],
        strict=True,
    ):
        names = updates.spec[k] or s
        rows.append(names if total is not None and used.isdisjoint(names) else ())
        used.update(rows[-1])
        cut[k] = rows[-1]
    new = m.to(updates, tuple(cut.get(k, ()) for k in range(len(shape))))
    ids = m.to(indices, (*rows, ()))
    if single:
        ids, _ = _indexed(m, v, ids, index_map, single, False)
        params = {**params, "mode": GatherScatterMode.FILL_OR_DROP, "indices_are_sorted": False}
        params["unique_indices"] = False  # those of other devices all are the one outside
    axes = tuple(n for s in rows for n in s)
    if not axes or total is None:
        return [Value(bind(prim, v.x, ids, new, **params), v.spec)]
    summed = total is psum_p
    x = jnp.broadcast_to(_nothing(v.x.dtype), v.x.shape) if summed else v.x
    out = bind(prim, x, ids, new, **params)
    out = bind(total, out, axis_name=axes, axis_index_groups=None)
    return [Value(add(v.x, out) if summed else out, v.spec)]


#: What puts together what devices wrote into arrays of their own.
_TOTALS = {
    "scatter-add": psum_p,
    "scatter-sub": psum_p,
    "scatter-min": pmin_p,
    "scatter-max": pmax_p,
}


# ---- reductions ----------------------------------------------------------------------------------


def _reduced_again(
    m: Mapped, prim: Primitive, out: Any, names: tuple[Hashable, ...], params: Params
) -> Any:
    """Reduce what came of blocks as they were."""
    return bind(prim, gathered(m, out, names), **{**params, "axes": (0,)})


def _position(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
    """Find the place of the best element of blocks, then the first device that has the best."""
    (v,) = values
    (axis,) = params["axes"]
    spec = tuple(s for d, s in enumerate(v.spec) if d != axis)
    at, names = bind(prim, v.x, **params), v.spec[axis]
    if not names:
        return [Value(at, spec)]
    best = jnp.take_along_axis(v.x, jnp.expand_dims(at, axis), axis, mode="clip")
    at = add(at, mul(m.index(names).astype(at.dtype), v.x.shape[axis]))
    first = bind(prim, gathered(m, jnp.squeeze(best, axis), names), **{**params, "axes": (0,)})
    every = gathered(m, at, names)
    return [Value(jnp.take_along_axis(every, first[None], 0, mode="clip")[0], spec)]


def _running(combine: Callable[[Any, Any], Any]) -> Rule:
    """Run along blocks, each of which goes on from the totals of those before it."""

    def rule(m: Mapped, prim: Primitive, values: list[Value], params: Params) -> Any:
        (v,) = values
        axis, names = params["axis"], v.spec[params["axis"]]
        out = bind(prim, v.x, **params)
        if not names or not v.x.shape[axis]:
            return [Value(out, v.spec)]
        back = params["reverse"]
        last = 0 if back else v.x.shape[axis] - 1
        totals = gathered(m, calls.slice(out, *_at(out.shape, axis, last)), names)
        totals = bind(prim, totals, **{**params, "axis": 0})
        n, index = m.parts(names), m.index(names)
        before = jnp.clip(index + 1 if back else index - 1, 0, n - 1)
        first = index == (n - 1 if back else 0)
        more = combine(totals[before], out)
        return [Value(select(jnp.broadcast_to(first, out.shape), out, more), v.spec)]

    return rule


def _at(shape: Sequence[int], axis: int, k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (
        tuple(k if d == axis else 0 for d in range(len(shape))),
        tuple(k + 1 if d == axis else n for d, n in enumerate(shape)),
    )


#: By name of operation.
READS: dict[str, Rule] = {
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    **dict.fromkeys(
        ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"),
        _scatter,
    ),
    **dict.fromkeys(("reduce_prod", "reduce_xor"), reduction(_reduced_again)),
    "argmax": _position,
    "argmin": _position,
    "cumsum": _running(jnp.add),
    "cumprod": _running(jnp.multiply),
    "cummax": _running(jnp.maximum),
    "cummin": _running(jnp.minimum),
    "cumlogsumexp": _running(jnp.logaddexp),
}
