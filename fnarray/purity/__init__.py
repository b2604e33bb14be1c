"""Purity: which effects a function has, judged from its syntax and the objects it names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .findings import Finding as Finding
    from .live import assert_pure as assert_pure
    from .live import assume_pure as assume_pure
    from .live import check as check

# Lazy: the linter, and flake8, import this package where neither NumPy nor Numba is installed.
_HOME = {
    "Finding": "findings", "assert_pure": "live", "assume_pure": "live", "check": "live",
    "trust": "live", "verify": "live",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOME)
