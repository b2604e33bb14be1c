"""The two late bindings, set once at import by the root package.

Everything else is imported downwards. These two run upwards on purpose: arrays get their operators
from ``fnarray.numpy``, and control flow called eagerly runs through the compile wing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .array import Array
from .graph import ClosedGraph

_compiled_call: Callable[[ClosedGraph, Sequence[Any]], list[Any]] | None = None


def install_array_methods(methods: dict[str, Any]) -> None:
    """Give arrays and tracers their operators, methods and properties."""
    for name, method in methods.items():
        setattr(Array, name, method)


def install_compiled_call(call: Callable[[ClosedGraph, Sequence[Any]], list[Any]]) -> None:
    """Set what runs a graph on NumPy arrays as machine code."""
    global _compiled_call
    _compiled_call = call


def compiled_call(graph: ClosedGraph, args: Sequence[Any]) -> list[Any]:
    """Run a closed graph on NumPy arrays; returns NumPy arrays."""
    if _compiled_call is None:
        raise RuntimeError("fnarray is only partly imported: import fnarray first")
    return _compiled_call(graph, args)
