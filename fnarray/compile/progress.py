"""What is said of a program whose kernels take long to make."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any, Final

from ..core.logs import Log
from ..core.terminal import shows_bars

#: Seconds between two looks at the count, on a terminal.
_PAUSE: Final = 0.1
_log: Final = Log("fnarray.compile")


def show(name: str, count: int, done: Callable[[], int], ended: Event, since: float) -> None:
    """Show how many kernels of a program are done, until it has ended.

    A terminal shows a bar, which goes away; elsewhere the log has a line after 1, 2, 4, ... s.

    Parameters
    ----------
    name : str
        Of the program.
    count, done
        How many kernels it has, and what says how many are done.
    ended : Event
    since : float
        When it began, by `monotonic`.
    """
    if shows_bars():
        with _bar() as bar:
            task = bar.add_task(name, total=count, completed=done())
            bar.tasks[0].start_time = since
            while not ended.wait(_PAUSE):
                bar.update(task, completed=done())
        return
    wait = monotonic() - since
    while not ended.is_set():
        passed = monotonic() - since
        _log.info("compiling %s: %d of %d kernels after %.1f s", name, done(), count, passed)
        ended.wait(wait)
        wait *= 2


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("compiling {task.description}"), BarColumn(), MofNCompleteColumn()
    more = TextColumn("kernels"), TimeElapsedColumn()
    console = Console(stderr=True)
    return Progress(*columns, *more, console=console, transient=True, get_time=monotonic)
