"""What users see of a traceback: their own frames (``config.traceback_filtering``).

An error passes several of this package's public functions on its way out; each takes the package's
frames off the traceback as it stands, and whoever called adds their own.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from ..config import config

F = TypeVar("F", bound=Callable[..., Any])
_OURS = str(Path(__file__).parent.parent) + os.sep
_NOTE = (
    "fnarray's own frames are left out of this traceback; set FNARRAY_TRACEBACK_FILTERING=off to "
    "see them."
)


def is_ours(frame: types.FrameType) -> bool:
    """Return whether a frame runs this package's code."""
    return frame.f_code.co_filename.startswith(_OURS)


def tidy(error: BaseException) -> None:
    """Take the package's frames out of the traceback of an error that is on its way out.

    To be followed by a bare ``raise``, which does not add the frame that it is in.

    Notes
    -----
    By ``config.traceback_filtering``: ``"off"`` leaves all frames; ``"tracebackhide"`` marks them
    (IPython and pytest hide such); ``"remove_frames"`` says in a note that some were removed, and
    ``"auto"`` and ``"quiet_remove_frames"`` remove them.
    """
    mode = config.traceback_filtering
    if mode == "off":
        return
    for e in _chain(error):
        steps = list(_steps(e.__traceback__))
        if mode == "tracebackhide":
            for step in steps:
                if is_ours(step.tb_frame):
                    step.tb_frame.f_locals["__tracebackhide__"] = True
            continue
        kept = [step for step in steps if not is_ours(step.tb_frame)]
        if len(kept) == len(steps):
            continue
        rest = None
        for step in reversed(kept):
            rest = types.TracebackType(rest, step.tb_frame, step.tb_lasti, step.tb_lineno)
        e.__traceback__ = rest
        if mode == "remove_frames" and _NOTE not in getattr(e, "__notes__", ()):
            e.add_note(_NOTE)


def boundary(fun: F) -> F:
    """Declare a function that users call: errors leave it without the package's frames."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            tidy(error)
            raise

    return cast("F", call)


def _steps(step: types.TracebackType | None) -> Iterator[types.TracebackType]:
    while step is not None:
        yield step
        step = step.tb_next


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that are told with it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
