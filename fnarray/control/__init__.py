"""Operations that hold graphs: calls, branches, loops."""

from __future__ import annotations

from . import lanes as lanes
from .associative import associative_scan
from .cond import cond, platform_dependent, switch
from .loop import fori_loop, while_loop
from .scan import map, scan
from .solve import custom_linear_solve, custom_root

__all__ = [
    "associative_scan",
    "cond",
    "custom_linear_solve",
    "custom_root",
    "fori_loop",
    "map",
    "platform_dependent",
    "scan",
    "switch",
    "while_loop",
]
