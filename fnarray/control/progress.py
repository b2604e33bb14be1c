"""How far a loop inside of a program is: it looks at the clock now and then, and tells when due.

The loop is turned in blocks, and between them it is a comparison that says whether to look: in
machine code where the loop is that (`emit.flow`, `fnarray_kernels.watch`), in Python where that
turns it (`core.watch.ticking`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

from ..core.callables import take_name
from ..core.forms import Watch
from ..core.terminal import shows_bars
from ..core.watch import shows

__all__ = ["progress"]

#: A loop is 10 parts; 20, where they have 50 turns or more; 1,000, where they have 500.
_LEAST, _FEW, _MOST = 10, 20, 1000
_TURNS, _MANY = 50, 500
#: Milliseconds that a loop runs before it is shown, and between two showings.
_EVERY = 200
_MASK: Final = 0x7FFFFFFF
_log: Final = logging.getLogger("fnarray.progress")


def progress(
    n: int | None = None, label: str = "", *, parts: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Show how far a loop is while it runs: ``lax.scan(progress(n)(body), init, xs)``.

    The loop runs in blocks of turns, and looks at the clock between some of them: its turns cost
    what they cost without, and a loop of less than 0.2 s shows nothing. A terminal shows a bar;
    elsewhere the logger ``fnarray.progress`` has a line for each tenth. Ctrl-C ends the loop when
    it is next to be shown.

    Parameters
    ----------
    n : int, optional
        Turns of the loop; needed by a `fori_loop` whose bounds are computed.
    label : str
        What the bar says; the body's name, if omitted.
    parts : int, optional
        In how many blocks the loop runs, at most as many as it has turns; if omitted, 10 to 20, of
        50 turns or more if there are so many, and up to 1,000 of 500 or more.

    Returns
    -------
    callable
        Decorates the body of a `scan` or `fori_loop`; elsewhere the body is what it was.

    Raises
    ------
    TypeError
        ``n`` or ``parts`` is no int.
    ValueError
        ``n`` or ``parts`` is less than 1, or ``n`` is not the number of turns.
    """
    for name, value in (("n", n), ("parts", parts)):
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"progress: {name} must be an int, got {value!r} of {type(value)}.")
        if value < 1:
            raise ValueError(f"progress: {name} must be at least 1, got {value}.")

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(body):
            raise TypeError(f"progress({n}): expected a loop's body, got {body!r}.")
        return _Watched(body, n, label, parts)

    return decorate


class _Watched:
    """A body whose loop is watched (`core.watch.Watched`); loops ask it how."""

    def __init__(self, body: Callable[..., Any], n: int | None, label: str, parts: int | None):
        take_name(self, body)
        self.__wrapped__ = body
        self._n = n
        self._label = label or getattr(body, "__name__", "loop")
        self._parts = parts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __fnarray_watched__(self) -> tuple[Any, Any]:
        return self.__wrapped__, self

    def watch(self, where: str, turns: int) -> Watch | None:
        """Return how a loop of so many turns is watched."""
        if self._n not in (None, turns):
            raise ValueError(
                f"progress({self._n}): the {where} over {self._label} takes {turns} turns. Write "
                f"progress({turns}), or progress() for as many as there are."
            )
        if not turns:
            return None
        return self._shown(turns, turns, -(-turns // _parts_of(turns, self._parts)))

    def parts(self) -> tuple[int, int]:
        """Return into how many parts a loop of computed bounds is cut, and the turns of each."""
        if self._n is None:
            raise ValueError(
                f"progress: the bounds of the fori_loop over {self._label} are computed. Say how "
                "many turns there are at most: progress(n)."
            )
        each = -(-self._n // _parts_of(self._n, self._parts))
        return -(-self._n // each), each

    def of(self, part: Callable[..., Any]) -> _Watched:
        """Return the body of the loop over those parts, watched."""
        return _OfParts(part, self._n, self._label, self._parts)

    def _shown(self, total: int, turns: int, step: int) -> Watch:
        """Have a loop of so many turns shown, which stand for the total."""
        number = crc32(f"{self._label}\0{total}\0{turns}".encode()) & _MASK
        if number not in shows:
            shows[number] = _Bar(self._label, total, -(-total // turns)).at
        return Watch(number, step, _EVERY)


class _OfParts(_Watched):
    """The body of a loop over the parts of one whose bounds are computed."""

    def watch(self, where: str, turns: int) -> Watch:
        """Return how that loop is watched: each of its turns is a part."""
        assert self._n is not None
        return self._shown(self._n, turns, 1)


def _parts_of(turns: int, parts: int | None) -> int:
    """Return into how many parts a loop is cut."""
    few = max(_LEAST, min(turns // _TURNS, _FEW))
    return min(parts or min(max(few, turns // _MANY), _MOST), turns)


# ---- what is shown -------------------------------------------------------------------------------


class _Bar:
    """Shows how many turns are done: on a terminal, else in the log."""

    def __init__(self, label: str, total: int, each: int = 1):
        self.label = label
        self.total = total
        self.each = each
        self._bar: Any = None
        self._passed = self._told = 0

    def at(self, done: int, passed: int) -> None:
        """Show that so many times ``each`` turns are done after so many milliseconds."""
        try:
            self._show(min(done * self.each, self.total), passed)
        except BaseException:  # an interrupt as a rule: the terminal is given back
            self._end()
            raise

    def _show(self, done: int, passed: int) -> None:
        if passed < self._passed:
            self._end()  # another run
        self._passed = passed
        if self._bar is None and shows_bars():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), get_time=time.monotonic)
            self._bar.add_task(self.label, total=self.total, completed=done)
            self._bar.tasks[0].start_time = time.monotonic() - passed / 1e3
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)
        else:
            self._log(done, passed)
        if done >= self.total:
            self._end()

    def _end(self) -> None:
        self._passed = self._told = 0
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _log(self, done: int, passed: int) -> None:
        tenth = 10 * done // self.total
        if tenth > self._told:
            self._told = tenth
            took = passed / 1e3
            _log.info("%s: %d of %d turns after %.1f s", self.label, done, self.total, took)
