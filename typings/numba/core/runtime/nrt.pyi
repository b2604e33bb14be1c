"""Numba's runtime: memory and exceptions of compiled code."""

from typing import Any

rtsys: Any
