"""From a program on whole arrays to the program that each device runs on its blocks."""

from __future__ import annotations

from collections.abc import Hashable
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
    closed: ClosedGraph,
    specs: tuple[Spec, ...],
    axes: Axes,
    said: tuple[Spec, ...] = (),
    explicit: frozenset[Hashable] = frozenset(),
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
    said : tuple of Spec
        How its results are cut along axes that are ``explicit``: those of which types say it.
    """
    mapped = Mapped(axes, RULES | READS | ALONG, FLOW)
    derived, found = mapped.graph(closed, specs, closed.in_avals)
    if explicit:
        aims = [
            mapped.along(a.shape, have, want, explicit)
            for a, have, want in zip(closed.out_avals, found, said, strict=True)
        ]
        derived, found = mapped.graph(closed, specs, closed.in_avals, aims)
    return derived.graph, derived.consts, tuple(found)
