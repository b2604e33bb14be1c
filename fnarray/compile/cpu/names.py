"""What a driver on the processor calls, without what plans and writes one.

A process that finds its program in the cache imports this alone.
"""

from __future__ import annotations

import platform
from functools import partial
from typing import Any, Final

import numpy as np

from ...core.lines import LARGE, aligned
from ...threads.onethread import one_thread
from ..target import Limits
from .launch import cores, launch
from .namespace import CODES
from .workspace import taken

#: Thresholds of the processor.
LIMITS: Final = Limits(
    group=4096,
    twofold=64,
    padded=16 if platform.machine() in ("x86_64", "AMD64") else 0,
    lines=LARGE,
)


def names(limits: Limits) -> dict[str, Any]:
    """Return what a driver calls: allocation, threads, dtypes."""
    words: dict[str, Any] = {
        "empty": np.empty, "aligned": aligned, "spare": [], "taken": taken,
        "launch": partial(launch, limits), "cores": cores, "one_thread": one_thread,
    }  # fmt: skip
    return {**words, **CODES}
