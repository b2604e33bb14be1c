"""``jax._src.traceback_util``: which frames users see, by ``config.traceback_filtering``."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from fnarray.config import config
from fnarray.core.source import boundary, is_ours
from fnarray.extend.source_info_util import register_exclusion as register_exclusion


def api_boundary(fun: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return the function, which errors leave without frames of fnarray."""
    return boundary(fun)


def include_frame(frame: FrameType) -> bool:
    """Return whether a frame is the user's or a library's, not fnarray's."""
    return not is_ours(frame)


def filtering_mode() -> str:
    """Return ``config.traceback_filtering``."""
    return config.traceback_filtering
