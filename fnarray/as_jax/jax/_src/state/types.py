"""``jax._src.state.types``."""

from __future__ import annotations

from fnarray.core.ref import AbstractRef as AbstractRef
from fnarray.core.ref import TransformedRef as TransformedRef
