"""``jaxlib.version``."""

from __future__ import annotations

from ..finder import VERSION

__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))
