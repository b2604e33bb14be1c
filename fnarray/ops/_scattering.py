"""Scatter by NumPy: updates of one place, which may repeat, act one after another."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..core.forms import Map
from ..core.graph import ClosedGraph, Literal, eval_graph
from ..core.primitive import Primitive
from ._windows import GatherScatterMode, Windows

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _unbuffered(out: np.ndarray, index: Any, updates: np.ndarray, ufunc: np.ufunc) -> None:
    """Combine in place where places may repeat.

    NumPy's loop for one flat index is several times faster than that for a tuple of them.
    """
    places = np.arange(out.size).reshape(out.shape)[index] if out.ndim != 1 else index[0]
    flat = np.ascontiguousarray(places).reshape(-1)
    ufunc.at(out.reshape(-1), flat, np.ascontiguousarray(updates).reshape(-1))


def _by_rounds(out: np.ndarray, index: Any, updates: np.ndarray, combine: Combine) -> None:
    """Combine in place by a function of whole arrays: each round takes places' next updates."""
    places = np.arange(out.size).reshape(out.shape)[index].reshape(-1)
    flat, values = out.reshape(-1), updates.reshape(-1)
    left = np.arange(places.size)
    while left.size:
        _, first = np.unique(places[left], return_index=True)
        at = places[left[first]]
        flat[at] = combine(flat[at], values[left[first]])
        left = np.delete(left, first)


def scatter_eval(
    x: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    *,
    windows: Windows,
    mode: GatherScatterMode,
    ufunc: np.ufunc | Combine | None,
    unique: bool,
) -> np.ndarray:
    """Return ``x`` with windows of it combined with updates by ``ufunc``; replaced, if None."""
    out = x.copy()
    if not updates.size:
        return out
    clip = mode is GatherScatterMode.CLIP
    if prod(windows.batch) == 1:
        box, inside = windows.box(indices)
        if inside or clip:
            shape = out[box].shape
            new = updates.reshape(shape)
            out[box] = new if ufunc is None else ufunc(out[box], new)
        return out
    starts, inside = windows.starts(indices)
    order, index, axes = windows.lattice(starts)
    if not starts:  # every update has the same place
        order, axes = tuple(range(x.ndim)), (*windows.batch_dims, *windows.offset_dims)
        rows = updates.transpose(axes).reshape(-1, *windows.sizes)
        for row in rows:
            out[index] = row if ufunc is None else ufunc(out[index], row)
        return out
    moved = updates.transpose(np.argsort(axes))
    if not (clip or inside.all()):
        rank = len(windows.batch)
        index = tuple(
            np.broadcast_to(i, (*windows.batch, *i.shape[rank:]))[inside]
            if isinstance(i, np.ndarray)
            else i
            for i in index
        )
        moved = moved[inside]
    # The permuted whole shares the copy's buffer where its axes keep their order.
    view = np.ascontiguousarray(out.transpose(order))
    if ufunc is None:
        view[index] = moved
    elif unique:
        view[index] = ufunc(view[index], moved)
    elif isinstance(ufunc, np.ufunc):
        _unbuffered(view, index, moved, ufunc)
    else:
        _by_rounds(view, index, np.ascontiguousarray(moved), ufunc)
    return view.transpose(np.argsort(order))


def apply_on_arrays(graph: ClosedGraph) -> Combine:
    """Return a combination by graph: all at once if it is elementwise, else one by one."""

    def evaluate(prim: Primitive, *args: Any, **params: Any) -> Any:
        arrays = [np.asarray(a.val) if type(a) is Literal else np.asarray(a) for a in args]
        return prim.eval(*arrays, **params)

    consts = [np.asarray(c) for c in graph.consts]
    whole = all(isinstance(eqn.form(), Map) for eqn in graph.eqns)

    def combine(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        if whole:
            (value,) = eval_graph(graph.jaxpr, consts, [old, new], evaluate)
            return np.asarray(value.val if type(value) is Literal else value)
        pairs = zip(old.flat, new.flat, strict=True)
        values = [eval_graph(graph.jaxpr, consts, list(p), evaluate)[0] for p in pairs]
        values = [v.val if type(v) is Literal else v for v in values]
        return np.array(values, old.dtype).reshape(old.shape)

    return combine
