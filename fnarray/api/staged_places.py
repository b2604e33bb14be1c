"""Where the arguments and results of a program are that is compiled ahead."""

from __future__ import annotations

from typing import Any

from ..control.tracing import Traced
from ..core import tree
from ..core.frozen import frozen
from ..runtime.device import Device, processor
from ..runtime.layout import Format, row_major
from ..runtime.mesh import AbstractMesh
from ..runtime.spec import Sharding, SingleDeviceSharding
from . import places
from .resharding import shardings_for

__all__: list[str] = []


@frozen(eq=False)
class StagedPlaces:
    """What is known of places when a function is traced ahead.

    Attributes
    ----------
    jitted : callable
        The compiled function, which brings arguments to places and says where results are.
    given : tuple of Sharding or None
        Where the arguments are that it was traced for.
    ins, outs : pytree prefixes
        What `jit` was told of them.
    gpu : Device or None
        The GPU that the program is to run on.
    """

    jitted: Any
    given: tuple[Sharding | None, ...]
    ins: Any
    outs: Any
    gpu: Device | None

    @property
    def said(self) -> bool:
        """Whether anything is said of a place."""
        return any(x is not None for x in (*self.given, self.ins, self.outs))

    @property
    def _own(self) -> Sharding | None:
        return None if self.gpu is None else SingleDeviceSharding(self.gpu)

    def of_arguments(self, t: Traced) -> list[Any]:
        """Return where each argument is to be; None where it may be anywhere."""
        if self.ins is None:
            return [self._own if g is None else g for g in self.given]
        args, _ = t.signature.in_spec.unflatten(t.signature.in_avals)
        ins = tuple(self.ins) if isinstance(self.ins, list) else self.ins
        wanted = shardings_for("jit in_shardings", ins, args, RuntimeError)
        return [g if w is None else w for g, w in zip(self.given, wanted, strict=True)]

    def of_results(self, t: Traced) -> list[Any]:
        """Return where each result will be."""
        given = [None] * len(t.consts) + self.of_arguments(t)
        found = places.of_results(t.closed, given)
        if self.outs is None:
            return [self._own if f is None else f for f in found]
        out = t.out_spec.unflatten(t.out_avals)
        wanted = shardings_for("jit out_shardings", self.outs, out, RuntimeError)
        return [f if w is None else w for f, w in zip(found, wanted, strict=True)]


def staged(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], t: Traced) -> StagedPlaces:
    """Return what is said of places where a function was traced for arguments."""
    options, found = jitted._options, tree.leaves((args, kwargs))
    given = [getattr(x, "placement", getattr(x, "sharding", None)) for x in found]
    # Of a mesh without devices nothing is known but how types are cut.
    given = [None if isinstance(getattr(s, "mesh", None), AbstractMesh) else s for s in given]
    given = [s if isinstance(s, Sharding) and s.num_devices > 1 else None for s in given]
    if len(given) != len(t.signature.in_avals):  # static arguments are among them
        given = [None] * len(t.signature.in_avals)
    gpu = jitted._where([*found, *t.consts])
    ins, outs = options.get("in_shardings"), options.get("out_shardings")
    return StagedPlaces(jitted, tuple(given), ins, outs, gpu)


def spelled(where: Any) -> Sharding:
    """Return a sharding for what may be anywhere, too: it is on the processor."""
    return SingleDeviceSharding(processor()) if where is None else where


def formatted(where: Any, rank: int) -> Format:
    """Return layout and sharding of an array."""
    return Format(row_major(rank), spelled(where))
