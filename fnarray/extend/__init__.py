"""The interface for extensions, named as ``jax.extend``: primitives of one's own, and graphs."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.lazy import surface as _surface

if _TYPE_CHECKING:
    from . import backend, core, linear_util, random, source_info_util  # noqa: F401

__getattr__, __dir__, __all__ = _surface(  # pyright: ignore[reportUnsupportedDunderAll]
    __name__, {}, "backend core linear_util random source_info_util"
)
