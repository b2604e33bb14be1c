"""Operations, one file per family, one decorated block per primitive.

To users this is where ``jax.ops`` is: reductions by segments. The rest is below ``lax``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.lazy import surface as _surface

if _TYPE_CHECKING:
    from .segments import segment_max as segment_max
    from .segments import segment_min as segment_min
    from .segments import segment_prod as segment_prod
    from .segments import segment_sum as segment_sum

# Late: every family passes through here before segments, which stand on several, can load.
_HOMES = {".segments": "segment_max segment_min segment_prod segment_sum"}

__getattr__, __dir__, __all__ = _surface(__name__, _HOMES)  # pyright: ignore[reportUnsupportedDunderAll]
