"""What is shown while one waits, where somebody looks on."""

from __future__ import annotations

import os
import sys


def shows_bars() -> bool:
    """Whether standard error is a terminal that can write a line again."""
    dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return sys.stderr is not None and sys.stderr.isatty() and not dumb
