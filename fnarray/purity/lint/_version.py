"""The version, read from the file: the root package is above this floor."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def version() -> str:
    """Return fnarray's version."""
    text = (Path(__file__).parents[2] / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__\s*=\s*["\']([^"\']+)', text, re.MULTILINE)
    return found[1] if found else "0"
