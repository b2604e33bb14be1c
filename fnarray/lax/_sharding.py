"""What programs say about where their arrays are."""

from __future__ import annotations

from ..api.resharding import with_sharding_constraint

__all__ = ["with_sharding_constraint"]
