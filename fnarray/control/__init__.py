"""Operations that hold graphs: calls, branches, loops."""

from __future__ import annotations

from .associative import associative_scan
from .cond import cond, platform_dependent, switch
from .loop import fori_loop, while_loop
from .scan import map, scan

__all__ = [
    "associative_scan",
    "cond",
    "fori_loop",
    "map",
    "platform_dependent",
    "scan",
    "switch",
    "while_loop",
]
