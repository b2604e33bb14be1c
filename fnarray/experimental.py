"""What JAX keeps under this name."""

from __future__ import annotations

from .control.callback import io_callback as io_callback

__all__ = ["io_callback"]
