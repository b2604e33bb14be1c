"""Every primitive, by name."""

from __future__ import annotations

from ...core import hooks
from ...core.primitive import Primitive


class _Registry(dict[str, Primitive]):
    """Primitives by name; the family of one that is asked for is imported."""

    def __missing__(self, name: str) -> Primitive:
        hooks.declare(name)
        if name not in self:
            raise KeyError(name)
        return self[name]


registry: dict[str, Primitive] = _Registry()


def register(prim: Primitive) -> Primitive:
    """Enter a primitive in the registry; its name must be new."""
    if prim.name in registry:
        raise ValueError(f"primitive {prim.name!r} is declared twice")
    registry[prim.name] = prim
    return prim
