"""Every primitive, by name."""

from __future__ import annotations

from ...core.primitive import Primitive

registry: dict[str, Primitive] = {}


def register(prim: Primitive) -> Primitive:
    """Enter a primitive in the registry; its name must be new."""
    if prim.name in registry:
        raise ValueError(f"primitive {prim.name!r} is declared twice")
    registry[prim.name] = prim
    return prim
