"""``jaxlib``: there is none, and it has a version."""

from __future__ import annotations

from .version import __version__ as __version__
