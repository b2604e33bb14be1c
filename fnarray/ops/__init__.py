"""Operations, one file per family, one decorated block per primitive.

To users this is where ``jax.ops`` is: reductions by segments. The rest is below ``lax``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import hooks as _hooks

if TYPE_CHECKING:
    from .segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def __getattr__(name: str) -> Any:
    # Late: every family passes through here before segments, which stand on several, can load.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _hooks.bind()
    from . import segments

    return getattr(segments, name)
