"""How far a loop inside of a program is: it runs in parts, and tells after one when it is time.

A part ends in a tick, an operation on a few integers that the loop carries: it looks at the clock
after 1, 2, 4, ... parts, and calls Python when the loop has run for `_EVERY` ms since it last did.
Ticks are machine code where the loop is (`fnarray_kernels.watch`), and Python's where it is not.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

import numpy as np

from ..core import tree
from ..core.array import aval_of
from ..core.callables import take_name
from ..core.forms import KernelRef, Library
from ..core.primitive import Primitive
from ..core.ref import Ref
from ..core.terminal import shows_bars
from ..core.trace import Tracer, bind
from ..core.watch import shows, tell
from ..ops.elementwise import min as minimum
from ..ops.elementwise import mul, sub
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ..ops.kit.registry import register
from ..ops.kit.rules import CONSTANT, NOT_LINEAR
from ..ops.shape import reshape
from ..ops.slicing import concatenate, slice_in_dim
from .host import act_by_row
from .loop import fori_loop
from .scan import scan

__all__ = ["progress"]

#: Parts of a loop at most and at least, and turns of one.
_MOST, _LEAST, _TURNS = 20, 10, 50
#: Milliseconds that a loop runs before it is shown, and between two showings.
_EVERY = 200
#: Milliseconds count to here and begin anew.
_MASK: Final = 0x7FFFFFFF
TICK: Final = KernelRef("watch", "tick")
_NATIVE: Final = sys.platform in ("linux", "darwin")
_log: Final = logging.getLogger("fnarray.progress")


def progress(
    n: int | None = None, label: str = "", *, parts: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Show how far a loop is while it runs: ``lax.scan(progress(n)(body), init, xs)``.

    The loop runs as some native loops, one after another, which look at the clock between them: its
    turns cost what they cost without, and a loop of less than 0.2 s shows nothing. A terminal shows
    a bar; elsewhere the logger ``fnarray.progress`` has a line for each tenth. Ctrl-C ends the loop
    when it is next to be shown.

    Parameters
    ----------
    n : int, optional
        Turns of the loop; needed by a `fori_loop` whose bounds are computed.
    label : str
        What the bar says; the body's name, if omitted.
    parts : int, optional
        In how many parts the loop runs; if omitted, 10 to 20, of 50 turns or more if there are so
        many.

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
    """A body whose loop is watched; `scan` and `fori_loop` ask it to run them."""

    def __init__(self, body: Callable[..., Any], n: int | None, label: str, parts: int | None):
        take_name(self, body)
        self.__wrapped__ = body
        self._n = n
        self._label = label or getattr(body, "__name__", "loop")
        self._parts = parts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def _checked(self, where: str, length: int) -> int:
        """Return into how many parts of one size a loop is cut; what is left is one more."""
        if self._n not in (None, length):
            raise ValueError(
                f"progress({self._n}): the {where} over {self._label} takes {length} turns. Write "
                f"progress({length}), or progress() for as many as there are."
            )
        return _parts_of(length, self._parts)

    def __fnarray_scan__(self, init: Any, xs: Any, length: int | None, reverse: bool, unroll: Any):
        body = self.__wrapped__
        leaves = tree.leaves(xs)
        if any(isinstance(x, Ref) for x in leaves):
            raise TypeError(
                f"progress: {self._label} scans over a Ref, whose rows lie in one piece of memory "
                "and cannot be cut into parts. Scan over its value, or without progress."
            )
        turns = int(length) if length is not None else aval_of(leaves[0]).shape[0] if leaves else 0
        parts = self._checked("scan", turns)
        if not turns:
            return scan(body, init, xs, length, reverse, unroll)
        step = turns // (parts + 1 if turns % parts else parts)
        whole = step * parts
        # What is over comes first: of two loops, the second of which begins with what the first has
        # carried last, LLVM cut the first's vectors of four in two (+5 %), and this one is short.
        early = turns - whole
        state = _begun(self._label, turns)

        def part(carried: Any, of: Any) -> Any:
            (carry, state), (k, rows) = carried, of
            k = sub(np.int32(parts - 1), k) if reverse else k
            state = _ticked(mul(k, np.int32(step)) + np.int32(early), state)
            carry, ys = scan(body, carry, rows, step, reverse, unroll)
            return (carry, state), ys

        def rest(carry: Any) -> Any:
            ends = (whole, turns) if reverse else (0, early)
            rows = tree.map(lambda x: slice_in_dim(as_array(x), *ends), xs)
            return scan(body, carry, rows, early, reverse, unroll)

        def first(x: Any) -> Any:
            ends = (0, whole) if reverse else (early, turns)
            x = slice_in_dim(as_array(x), *ends) if early else as_array(x)
            return reshape(x, (parts, step, *x.shape[1:]))

        rows = np.arange(parts, dtype=np.int32), tree.map(first, xs)
        end = None
        if early:
            state = _ticked(np.int32(0), state)
            init, end = rest(init)
        (carry, state), ys = scan(part, (init, state), rows, parts, reverse)
        _ticked(np.int32(turns), state)
        ys = tree.map(lambda y: reshape(y, (whole, *y.shape[2:])), ys)
        if early:
            both = (ys, end) if reverse else (end, ys)
            ys = tree.map(lambda *y: concatenate(y, 0), *both)
        return carry, ys

    def __fnarray_fori__(self, lower: Any, upper: Any, init: Any, unroll: Any) -> Any:
        if isinstance(lower, Tracer) or isinstance(upper, Tracer):
            return self._computed(lower, upper, init)
        body = self.__wrapped__
        turns = max(int(upper) - int(lower), 0)
        parts = self._checked("fori_loop", turns)
        if not turns:
            return fori_loop(lower, upper, body, init, unroll=unroll)
        step = turns // (parts + 1 if turns % parts else parts)

        def some(begin: Any, count: int, val: Any) -> Any:
            return fori_loop(0, count, lambda j, v: body(begin + j, v), val, unroll=unroll)

        early = turns - step * parts  # as of a scan

        def part(k: Any, carried: Any) -> Any:
            val, state = carried
            state = _ticked(k * step + early, state)
            return some(lower + early + k * step, step, val), state

        state = _begun(self._label, turns)
        if early:
            state = _ticked(np.int32(0), state)
            init = some(lower, early, init)
        val, state = fori_loop(0, parts, part, (init, state))
        _ticked(np.int32(turns), state)
        return val

    def _computed(self, lower: Any, upper: Any, init: Any) -> Any:
        """Run a loop whose bounds are computed, in parts of the turns that ``n`` promises."""
        if self._n is None:
            raise ValueError(
                f"progress: the bounds of the fori_loop over {self._label} are computed. Say how "
                "many turns there are at most: progress(n)."
            )
        body, step = self.__wrapped__, max(self._n // _parts_of(self._n, self._parts), 1)
        lower, upper = (as_array(x) for x in (lower, upper))
        upper = convert(upper, lower.dtype) if upper.aval.weak_type else upper
        lower = convert(lower, upper.dtype)
        one = np.asarray(step, lower.dtype)

        def part(k: Any, carried: Any) -> Any:
            val, state = carried
            begin = lower + k * one
            state = _ticked(begin - lower, state)
            return fori_loop(begin, minimum(begin + one, upper), body, val), state

        count = (upper - lower + (one - 1)) // one
        start = init, _begun(self._label, self._n)
        val, state = fori_loop(np.asarray(0, lower.dtype), count, part, start)
        _ticked(np.int32(self._n), state)
        return val


def _parts_of(turns: int, parts: int | None) -> int:
    """Return into how many parts a loop is cut; a divisor of its turns if there is one near."""
    # What is left is no less than a part: LLVM writes few turns out, and a loop around them all, 14
    # times four sines, lost its vectors.
    wanted = min(parts or min(_MOST, max(_LEAST, turns // _TURNS)), max(turns, 1))
    near = range(wanted, max(wanted // 2, 1) - 1, -1)
    return next((k for k in near if turns % k == 0), max(wanted - 1, 1))


# ---- ticks ---------------------------------------------------------------------------------------


def _begun(label: str, total: int) -> np.ndarray:
    """Return what ticks know of a loop that begins, and have it shown under its number there."""
    number = crc32(f"{label}\0{total}".encode()) & _MASK
    if number not in shows:
        shows[number] = _Bar(label, total).at
    return np.array([0, 0, 0, number, min(total, _MASK), _EVERY], np.int32)


def _ticked(done: Any, state: Any) -> Any:
    """Tell that so many turns are done, if it is time to; return what the next tick knows."""
    return bind(progress_p, convert(as_array(done), np.dtype(np.int32)), state)[0]


def _tick(done: np.ndarray, state: np.ndarray) -> tuple[np.ndarray]:
    """Tell of a loop that Python turns, as ``fnarray_kernels.watch.tick`` does."""
    turns, (look, begun, shown, bar, total, every) = int(done), state.tolist()
    if turns < look and (shown == begun or turns < total):
        return (state,)
    now = int(1e3 * time.monotonic()) & _MASK
    if not turns:
        begun = shown = now
    passed, due = (now - begun) & _MASK, (now - shown) & _MASK >= every
    ahead = min(max(turns * every // (2 * passed + 1), 1), max(turns, 1))
    if turns and (due or turns >= total):
        shown = now
        tell(bar, turns, passed)
    return (np.array([min(turns + ahead, _MASK), begun, shown, bar, total, every], np.int32),)


progress_p = register(
    Primitive(
        "progress",
        quiet=False,
        aval=lambda done, state: (state,),
        eval=_tick,
        form=lambda ins, outs: Library(TICK, kernel=_NATIVE, ends=True),
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=lambda size, args, batched: act_by_row(progress_p, args, batched, {}),
        effects=("debug",),
        multiple_results=True,
    )
)


# ---- what is shown -------------------------------------------------------------------------------


class _Bar:
    """Shows how many turns are done: on a terminal, else in the log."""

    def __init__(self, label: str, total: int):
        self.label = label
        self.total = total
        self._bar: Any = None
        self._passed = self._told = 0

    def at(self, done: int, passed: int) -> None:
        """Show that so many turns are done after so many milliseconds."""
        try:
            self._show(done, passed)
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
