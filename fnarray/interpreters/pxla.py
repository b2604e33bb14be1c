"""``jax.interpreters.pxla``: nothing of it has a meaning here."""

from __future__ import annotations

__all__: list[str] = []
__dir__ = __all__.copy
