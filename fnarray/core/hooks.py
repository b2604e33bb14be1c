"""The three late bindings, which the root package makes when something first needs them.

Everything else is imported downwards. These run upwards on purpose: arrays get their operators
from ``fnarray.numpy``, graphs their text from ``core.pretty``, which reads them, and control flow
called eagerly runs through the compile wing. Nothing is imported here, not even to name a type:
whatever is bound late may import this, and ``import fnarray`` costs a linter nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# Those of `core.graph`, which stands above.
Graph = Any
ClosedGraph = Any

_bind: Callable[[], None] | None = None
_compiled_call: Callable[[ClosedGraph, Sequence[Any]], Sequence[Any]] | None = None
_prepare: Callable[[ClosedGraph], None] | None = None
_graph_text: Callable[[Graph], str] | None = None


def bind_with(bind: Callable[[], None]) -> None:
    """Set what imports the upper floors and installs the bindings."""
    global _bind
    _bind = bind


def bind() -> None:
    """Install the bindings, unless they are."""
    if _compiled_call is None:
        if _bind is None:
            raise RuntimeError("fnarray is only partly imported: import fnarray first")
        _bind()


def install_graph_text(text: Callable[[Graph], str]) -> None:
    """Set what writes a graph as text."""
    global _graph_text
    _graph_text = text


def graph_text(graph: Graph) -> str:
    """Return a graph as text."""
    if _graph_text is None:
        bind()
    assert _graph_text is not None
    return _graph_text(graph)


def install_compiled_call(
    call: Callable[[ClosedGraph, Sequence[Any]], Sequence[Any]],
    prepare: Callable[[ClosedGraph], None],
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


def compiled_call(graph: ClosedGraph, args: Sequence[Any]) -> Sequence[Any]:
    """Run a closed graph on NumPy arrays; returns NumPy arrays."""
    if _compiled_call is None:
        bind()
    assert _compiled_call is not None
    return _compiled_call(graph, args)
