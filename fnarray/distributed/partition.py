"""From a program on whole arrays to the program that each device runs on its blocks."""

from __future__ import annotations

from typing import Any

from ..core.axes import Axes
from ..core.graph import ClosedGraph
from ..core.keep import remembered
from .along import ALONG
from .blocks import Mapped, Spec
from .flow import FLOW
from .reads import READS
from .rules import RULES


@remembered(1024)
def partition(
    closed: ClosedGraph, specs: tuple[Spec, ...], axes: Axes
) -> tuple[ClosedGraph, tuple[Any, ...], tuple[Spec, ...]]:
    """Return a program on blocks, arrays that it takes first, and how its results are cut.

    Parameters
    ----------
    closed : ClosedGraph
        On whole arrays, closed over nothing.
    specs : tuple of Spec
        How its inputs are cut.
    axes : tuple of (name, size)
        Of the mesh.
    """
    derived, found = Mapped(axes, RULES | READS | ALONG, FLOW).graph(closed, specs, closed.in_avals)
    return derived.graph, derived.consts, tuple(found)
