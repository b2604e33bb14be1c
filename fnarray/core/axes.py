"""Names of mapped axes: which are bound where, and which a graph's collectives use."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from .graph import Eqn, Graph, subgraphs
from .primitive import Primitive
from .trace import Trace, bind, state, within

Axes = tuple[tuple[Hashable, int], ...]


class Axis(int):
    """The mapped axis: its size, and its name if it has one."""

    name: Hashable | None

    def __new__(cls, size: int, name: Hashable | None = None) -> Axis:
        """Return the axis of a size and a name."""
        self = super().__new__(cls, size)
        self.name = name
        return self


class AxisTrace(Trace):
    """Binds the axes of a function that runs on several devices, while it is traced.

    ``checked`` are those along which types say whether values differ.
    """

    def __init__(self, name: str, axes: Axes, checked: bool = False):
        super().__init__(name)
        self.axes = axes
        self.checked = frozenset(n for n, _ in axes) if checked else frozenset[Hashable]()

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Pass an operation on: what the function does is recorded in a trace of its own."""
        with within(self.parent):
            return bind(prim, *args, **params)


def _frames() -> Iterator[Trace]:
    trace = state.trace
    while trace is not None:
        if trace.axes:
            yield trace
        trace = trace.parent


def axis_env() -> Axes:
    """Return the names and sizes of the mapped axes around, innermost first."""
    return tuple(axis for frame in _frames() for axis in reversed(frame.axes))


def checked_axes() -> frozenset[Hashable]:
    """Return the axes around along which types say whether values differ."""
    names = frozenset[Hashable]()
    for frame in _frames():
        if isinstance(frame, AxisTrace):
            names |= frame.checked
    return names


def devices_in_use() -> int:
    """Return on how many devices the function being traced is to run."""
    count = 1
    for frame in _frames():
        if isinstance(frame, AxisTrace):
            for _, size in frame.axes:
                count *= size
    return count


@lru_cache(maxsize=4096)
def collective_axes(graph: Graph) -> frozenset[Hashable]:
    """Return the names of the axes that a graph's collectives run along."""
    return frozenset(name for eqn in graph.eqns for name in _axes_of(eqn))


def _axes_of(eqn: Eqn) -> frozenset[Hashable]:
    return axes_named(eqn.primitive, eqn.params)


def axes_named(prim: Primitive, params: dict[str, Any]) -> frozenset[Hashable]:
    """Return the names of the axes that an operation, or a graph it holds, runs along."""
    if prim.collective is not None:
        return frozenset(params["axis_name"])
    names: frozenset[Hashable] = frozenset()
    for graph in subgraphs(params):
        names |= collective_axes(graph)
    if names:
        names -= {name for name, _ in params.get("mesh_axes", ())}
    return names
