"""``jax._src.traceback_util``: tracebacks are Python's own, with every frame."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from fnarray.extend.source_info_util import register_exclusion as register_exclusion


def api_boundary(fun: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return the function itself: no frames are hidden."""
    return fun


def include_frame(frame: FrameType) -> bool:
    """Return True: no frames are hidden."""
    return True


def filtering_mode() -> str:
    """Return ``"off"``: no frames are hidden."""
    return "off"
