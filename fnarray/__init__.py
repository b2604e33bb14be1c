"""Pure functions on arrays, compiled to Numba source you can read."""

from __future__ import annotations

__version__ = "0.1.0"
