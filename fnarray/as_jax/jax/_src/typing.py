"""``jax._src.typing``: the public annotations, and one for what has a dtype."""

from __future__ import annotations

from fnarray.typing import ArrayLike as ArrayLike
from fnarray.typing import DTypeLike as DTypeLike
from fnarray.typing import _HasDType as SupportsDType  # noqa: F401
