"""``jax._src.xla_bridge``."""

from __future__ import annotations

from typing import Any

from fnarray.extend.backend import backends as backends
from fnarray.extend.backend import get_backend as get_backend

#: Platforms whose devices were asked for; none is ever put here.
_backends: dict[str, Any] = {}
