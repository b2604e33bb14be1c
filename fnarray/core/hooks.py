"""The two late bindings, which the root package makes when something first needs them.

Everything else is imported downwards. These two run upwards on purpose: arrays get their operators
from ``fnarray.numpy``, and control flow called eagerly runs through the compile wing. Nothing is
imported here, so that ``import fnarray`` costs a linter nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .graph import ClosedGraph

_bind: Callable[[], None] | None = None
_compiled_call: Callable[[ClosedGraph, Sequence[Any]], list[Any]] | None = None
_prepare: Callable[[ClosedGraph], None] | None = None


def bind_with(bind: Callable[[], None]) -> None:
    """Set what imports the upper floors and installs both bindings."""
    global _bind
    _bind = bind


def bind() -> None:
    """Install both bindings, unless they are."""
    if _compiled_call is None:
        if _bind is None:
            raise RuntimeError("fnarray is only partly imported: import fnarray first")
        _bind()


def install_array_methods(methods: dict[str, Any]) -> None:
    """Give arrays and tracers their operators, methods and properties."""
    from .array import Array

    for name, method in methods.items():
        setattr(Array, name, method)
    if "__getattr__" in vars(Array):
        del Array.__getattr__  # type: ignore[attr-defined]


def install_compiled_call(
    call: Callable[[ClosedGraph, Sequence[Any]], list[Any]], prepare: Callable[[ClosedGraph], None]
) -> None:
    """Set what runs a graph on NumPy arrays as machine code, and what compiles it beforehand."""
    global _compiled_call, _prepare
    _compiled_call, _prepare = call, prepare


def prepare(graph: ClosedGraph) -> None:
    """Compile a closed graph, unless it is: threads that run it then need not wait for one."""
    if _prepare is None:
        bind()
    assert _prepare is not None
    _prepare(graph)


def compiled_call(graph: ClosedGraph, args: Sequence[Any]) -> list[Any]:
    """Run a closed graph on NumPy arrays; returns NumPy arrays."""
    if _compiled_call is None:
        bind()
    assert _compiled_call is not None
    return _compiled_call(graph, args)
