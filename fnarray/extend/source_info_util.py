"""Where in the user's code something happened, named as in ``jax.extend.source_info_util``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..api.tracing import named_scope as extend_name_stack
from ..core.source import Source as SourceInfo
from ..core.source import Transform, exclude, located, relabelled, scoped, user_source

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]
__dir__ = __all__.copy


def register_exclusion(path: str) -> None:
    """Take the lines of a file, or of a folder, for a library's and not the user's."""
    exclude(path)


def current() -> SourceInfo:
    """Return the user's line that is running."""
    return user_source()


new_source_info = current


class NameStack(str):
    """Names of the blocks of `named_scope` around, outermost first, joined by slashes."""

    __slots__ = ()

    def extend(self, name: str) -> NameStack:
        """Return the names with one more."""
        return self + name

    def __add__(self, inner: str) -> NameStack:
        return NameStack("/".join(filter(None, (self, inner))))


def current_name_stack() -> NameStack:
    """Return the names of the blocks of `named_scope` that are running."""
    return NameStack(current().scope)


def new_name_stack(name: str = "") -> NameStack:
    """Return names of which there is one, or none."""
    return NameStack(name)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Return a line of source as text."""
    return str(source_info)


@contextmanager
def user_context(source: SourceInfo | None, **settings: Any) -> Iterator[None]:
    """Say where operations are from, for the duration of the block."""
    with located(source):
        yield


def set_name_stack(name_stack: str) -> relabelled:
    """Let names be those given, for the duration of the block.

    Parameters
    ----------
    name_stack : str
        Names from the outermost on, between slashes.

    Returns
    -------
    context manager
    """
    return relabelled(tuple(filter(None, name_stack.split("/"))))


def reset_name_stack() -> relabelled:
    """Let there be no names, for the duration of the block.

    Returns
    -------
    context manager
    """
    return relabelled(())


def transform_name_stack(name: str) -> scoped:
    """Put a transform around the names of the block: ``vmap(layer)``.

    Parameters
    ----------
    name : str
        The transform's.

    Returns
    -------
    context manager
    """
    return scoped(Transform(name))
