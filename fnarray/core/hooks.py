"""The late bindings, which are made when something first needs them.

Everything else is imported downwards. These run upwards on purpose: arrays get their operators
from ``fnarray.numpy``, graphs their text from ``core.pretty``, which reads them, control flow
called eagerly runs through the compile wing, and a rule may name an operation of a family that
nobody imported yet. Nothing is imported here, not even to name a type: whatever is bound late may
import this, and ``import fnarray`` costs a linter nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

# Those of `core.graph`, which stands above.
Graph = Any
ClosedGraph = Any

_importers: dict[str, Callable[[], Any]] = {}


def bind_with(**importers: Callable[[], Any]) -> None:
    """Set what imports the upper floors; each returns what it is called for."""
    _importers.update(importers)


@cache
def _bound(name: str) -> Any:
    if name not in _importers:
        raise RuntimeError("fnarray is only partly imported: import fnarray first")
    return _importers[name]()


def gpus() -> Any:
    """Return what evaluates, and puts values, on the GPU that is the default device."""
    return _bound("gpus")


def install_operators() -> None:
    """Give arrays and tracers their operators and methods, unless they have them."""
    _bound("operators")


def declare(primitive: str) -> None:
    """Import the family that declares a primitive, if there is one."""
    _bound("families")(primitive)


def graph_text(graph: Graph) -> str:
    """Return a graph as text."""
    return _bound("graph_text")(graph)


def prepare(graph: ClosedGraph) -> None:
    """Compile a closed graph, unless it is: threads that run it then need not wait for one."""
    _bound("prepare")(graph)


def compiled_call(graph: ClosedGraph, args: Sequence[Any]) -> Sequence[Any]:
    """Run a closed graph on NumPy arrays; returns NumPy arrays."""
    return _bound("compiled_call")(graph, args)
