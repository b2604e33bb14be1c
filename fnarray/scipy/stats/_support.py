"""What distributions share: values outside the support, and quantiles outside [0, 1]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array

__all__: list[str] = []


def inside(
    ok: Any, x: Array, f: Callable[[Array], Array], outside: float = -np.inf, safe: float = 0.5
) -> Array:
    """Return ``f(x)`` where ``ok``, a constant elsewhere.

    ``f`` sees a harmless number in the place of others: a derivative of infinity would make NaN
    even where it is not selected. NaN is not outside.
    """
    ok = jnp.logical_or(ok, x != x)
    return jnp.where(ok, f(jnp.where(ok, x, safe)), outside)


def quantile(q: Array, f: Callable[[Array], Array]) -> Array:
    """Return ``f(q)`` for ``q`` in [0, 1], NaN elsewhere."""
    return inside(jnp.logical_and(q >= 0, q <= 1), q, f, np.nan)
