"""Numba's targets."""

from typing import Any

cpu_target: Any
