"""Where in the user's code something happened, and what users see of a traceback."""

from __future__ import annotations

import functools
import linecache
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from ..config import config
from .frozen import frozen

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100,PTH120 - import time


@frozen
class Transform:
    """A transform of what is named by the labels within it."""

    name: str


#: Labels around an operation, outermost first.
Stack = tuple[str | Transform, ...]

JVP, TRANSPOSE, VMAP = map(Transform, ("jvp", "transpose", "vmap"))


@frozen
class Source:
    """A line of the user's code: file, number, the function it is in, and what is around.

    Attributes
    ----------
    stack : tuple of (str or Transform)
        Labels of `named_scope`, and transforms, from where the graph begins that it is in.
    """

    file: str
    line: int
    function: str
    stack: Stack = ()

    @property
    def scope(self) -> str:
        """The labels joined by slashes; transforms are around the next: ``jvp(layer)/dense``."""
        parts: list[str] = []
        for label in reversed(self.stack):
            if isinstance(label, Transform):
                parts.append(f"{label.name}({parts.pop() if parts else ''})")
            else:
                parts.append(label)
        return "/".join(reversed(parts))

    def labelled(self, stack: Stack) -> Source:
        """Return the line under other labels."""
        same = stack == self.stack
        return self if same else Source(self.file, self.line, self.function, stack)

    def text(self) -> str:
        """Return the source line, stripped, or an empty string where it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


UNKNOWN = Source("<unknown>", 0, "<unknown>")


class _Told(threading.local):
    source: Source | None = None
    stack: Stack = ()


_told = _Told()


class located:  # noqa: N801, a context manager, lighter than a generator's
    """Say where operations are from, for the duration of the block: an equation that is run again.

    Its labels come after those that are around now. None for where the stack says operations are,
    as when a function of the user's runs within.
    """

    __slots__ = ("saved", "source")

    def __init__(self, source: Source | None):
        self.source = source

    def __enter__(self) -> None:
        source, around = self.source, _told.stack
        self.saved = _told.source, around
        if source is not None:
            if around and source is not UNKNOWN:
                source = source.labelled((*around, *source.stack))
            _told.stack = source.stack
        _told.source = source

    def __exit__(self, *exception: object) -> None:
        _told.source, _told.stack = self.saved


class scoped:  # noqa: N801, as `located`
    """Label the operations of a block, within the labels that are around."""

    __slots__ = ("label", "saved")

    def __init__(self, label: str | Transform):
        self.label = label

    def __enter__(self) -> None:
        self.saved = _told.stack
        _told.stack = (*self.saved, self.label)

    def __exit__(self, *exception: object) -> None:
        _told.stack = self.saved


class relabelled(located):  # noqa: N801
    """Label the operations of a block with these labels, in the place of those that are around."""

    __slots__ = ("stack",)

    def __init__(self, stack: Stack):
        super().__init__(None)
        self.stack = stack

    def __enter__(self) -> None:
        source = _told.source
        self.saved = source, _told.stack
        _told.stack = self.stack
        if source is not None:
            _told.source = source.labelled(self.stack)


class unlabelled(relabelled):  # noqa: N801
    """Begin a graph: what is around it labels the equation that it is in, or nothing."""

    __slots__ = ()

    def __init__(self):
        super().__init__(())


def labels() -> Stack:
    """Return the labels that are around."""
    return _told.stack


def under(label: str | Transform, fun: Callable[..., T]) -> Callable[..., T]:
    """Return a function whose operations have one more label."""

    def call(*args: Any) -> T:
        with scoped(label):
            return fun(*args)

    return call


def is_told() -> bool:
    """Whether it is said where operations are from: a program is run again."""
    return _told.source is not None


#: Files and folders whose lines are no user's; the interpreter's own run ``python -m``, and those
#: of `functools` stand between a property of ours and who asks for it.
_excluded: tuple[str, ...] = (PACKAGE, "<frozen ", functools.__file__)


def exclude(path: str) -> None:
    """Take the lines of a file, or of a folder, for a library's and not the user's."""
    global _excluded
    if path not in _excluded:
        _excluded = (*_excluded, path)


def user_source() -> Source:
    """Return the innermost line on the stack that is no library's, or what was told."""
    if _told.source is not None:
        return _told.source
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - no public name as fast
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if not name.startswith(_excluded) and "optree" not in name:
            return Source(name, frame.f_lineno, code.co_qualname, _told.stack)
        frame = frame.f_back
    return UNKNOWN


# ---- tracebacks ----------------------------------------------------------------------------------

# An error passes several of this package's public functions on its way out; each takes our frames
# off the traceback as it stands, and whoever called adds their own: decision 0055.

_NOTE = (
    "fnarray's own frames are left out of this traceback; set FNARRAY_TRACEBACK_FILTERING=off to "
    "see them."
)


def is_ours(frame: types.FrameType) -> bool:
    """Return whether a frame runs a library's code that is not to be shown: this package's."""
    return frame.f_code.co_filename.startswith(_excluded)


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
