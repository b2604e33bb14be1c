"""Loggers of the standard library, which is imported once there is somebody to hear.

`logging` takes 4 ms, a third of a first call whose program is in the cache.
"""

from __future__ import annotations

import sys

DEBUG, INFO, WARNING = 10, 20, 30


class Log:
    """The logger of a name: its methods are those of `logging.Logger`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def log(self, level: int, message: str, *args: object) -> None:
        """Log a message, as the logger would if it had been there from the start."""
        # Until somebody imports it there is no handler but the last resort, which shows warnings.
        if level >= WARNING or "logging" in sys.modules:
            from logging import getLogger

            caller = 3 if sys._getframe(1).f_globals is globals() else 2  # pyright: ignore
            getLogger(self.name).log(level, message, *args, stacklevel=caller)

    def debug(self, message: str, *args: object) -> None:
        """Log what few want to know."""
        self.log(DEBUG, message, *args)

    def info(self, message: str, *args: object) -> None:
        """Log what happens."""
        self.log(INFO, message, *args)

    def warning(self, message: str, *args: object) -> None:
        """Log what may be wrong."""
        self.log(WARNING, message, *args)
