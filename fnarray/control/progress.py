"""How far a loop inside of a program is: it runs in parts, with a call of Python after each."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..core import tree
from ..core.array import aval_of
from ..core.callables import take_name
from ..core.ref import Ref
from ..core.trace import Tracer
from ..ops.elementwise import min as minimum
from ..ops.elementwise import mul, sub
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ..ops.shape import reshape
from ..ops.slicing import concatenate, slice_in_dim
from .debugging import call_back
from .host import FlatCallback, split_arguments
from .loop import fori_loop
from .scan import scan

__all__ = ["progress"]

#: Parts of a loop at most and at least, and turns of one. A loop takes 7 us longer, and 3 us for
#: each part: 62 us for 20, which is 0.4 % of 16 ms and 1 % of 6 (medians of 120 to 400 calls, sides
#: taking turns, processor time). Where others have the caches, and a part has streamed 200 kB to
#: 800 kB, to come back to Python takes 5 to 35 us: 1 to 2 % of 16 and 64 ms, less of longer loops.
_MOST, _LEAST, _TURNS = 20, 10, 50
_log: Final = logging.getLogger("fnarray.progress")


def progress(
    n: int | None = None, label: str = "", *, parts: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Show how far a loop is while it runs: ``lax.scan(progress(n)(body), init, xs)``.

    The loop runs as some native loops, one after another, with a call of Python after each, so its
    turns cost what they cost without. A terminal shows a bar; elsewhere the logger
    ``fnarray.progress`` has a line for each tenth.

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
        """Return into how many parts a loop is cut."""
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
        step = turns // parts
        whole = step * parts
        bar = _Bar(self._label, turns)
        _tell(bar.at, np.int32(0))

        def part(carry: Any, of: Any) -> Any:
            k, rows = of
            out = scan(body, carry, rows, step, reverse, unroll)
            done = mul(sub(np.int32(parts), k), np.int32(step)) if reverse else (
                mul(k, np.int32(step)) + np.int32(step))  # fmt: skip
            _tell(bar.at, done + np.int32(turns - whole if reverse else 0))
            return out

        def rest(carry: Any) -> Any:
            rows = tree.map(lambda x: slice_in_dim(as_array(x), whole, turns), xs)
            out = scan(body, carry, rows, turns - whole, reverse, unroll)
            _tell(bar.at, np.int32(turns - whole if reverse else turns))
            return out

        def first(x: Any) -> Any:
            x = slice_in_dim(as_array(x), 0, whole) if turns > whole else as_array(x)
            return reshape(x, (parts, step, *x.shape[1:]))

        rows = np.arange(parts, dtype=np.int32), tree.map(first, xs)
        ends: list[Any] = []
        if turns > whole and reverse:
            init, end = rest(init)
            ends = [end]
        carry, ys = scan(part, init, rows, parts, reverse)
        ys = tree.map(lambda y: reshape(y, (whole, *y.shape[2:])), ys)
        if turns > whole and not reverse:
            carry, end = rest(carry)
            ends = [end]
        for end in ends:
            ys = tree.map(lambda y, e: concatenate([y, e], 0), ys, end)
        return carry, ys

    def __fnarray_fori__(self, lower: Any, upper: Any, init: Any, unroll: Any) -> Any:
        if isinstance(lower, Tracer) or isinstance(upper, Tracer):
            return self._computed(lower, upper, init)
        body = self.__wrapped__
        turns = max(int(upper) - int(lower), 0)
        parts = self._checked("fori_loop", turns)
        if not turns:
            return fori_loop(lower, upper, body, init, unroll=unroll)
        step = turns // parts
        bar = _Bar(self._label, turns)
        _tell(bar.at, np.int32(0))

        def some(begin: Any, count: int, val: Any) -> Any:
            return fori_loop(0, count, lambda j, v: body(begin + j, v), val, unroll=unroll)

        def part(k: Any, val: Any) -> Any:
            val = some(lower + k * step, step, val)
            _tell(bar.at, (k + 1) * step)
            return val

        val = fori_loop(0, parts, part, init)
        if turns > step * parts:
            val = some(lower + step * parts, turns - step * parts, val)
            _tell(bar.at, np.int32(turns))
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
        bar = _Bar(self._label, self._n)
        _tell(bar.at, np.int32(0))
        one = np.asarray(step, lower.dtype)

        def part(k: Any, val: Any) -> Any:
            begin = lower + k * one
            end = minimum(begin + one, upper)
            val = fori_loop(begin, end, body, val)
            _tell(bar.at, end - lower)
            return val

        count = (upper - lower + (one - 1)) // one
        val = fori_loop(np.asarray(0, lower.dtype), count, part, init)
        _tell(bar.end)
        return val


class _Tick(FlatCallback):
    """A callback that takes what the program has: no copies, and no trees."""

    def call(self, *leaves: Any) -> None:
        """Call the function."""
        self.callback.value(*leaves)


def _tell(show: Callable[..., None], *done: Any) -> None:
    """Have a method of a bar called when the program is there."""
    leaves, in_tree, statics = split_arguments(done, {})
    call_back(_Tick(show, in_tree, statics), leaves, effect="Debug", partitioned=False)


def _parts_of(turns: int, parts: int | None) -> int:
    """Return into how many parts a loop is cut; a divisor of its turns if there is one near."""
    wanted = min(parts or min(_MOST, max(_LEAST, turns // _TURNS)), max(turns, 1))
    near = range(wanted, max(wanted // 2, 1) - 1, -1)
    return next((k for k in near if turns % k == 0), wanted)


class _Bar:
    """Shows how many turns are done: on a terminal, else in the log."""

    def __init__(self, label: str, total: int):
        self.label = label
        self.total = total
        self._bar: Any = None
        self._begin = 0.0
        self._told = 0

    def at(self, done: Any) -> None:
        """Show that so many turns are done; 0 begins anew."""
        done = int(done)
        if not done:
            self._start()
        elif self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)
        else:
            self._log(done)
        if done >= self.total:
            self.end()

    def end(self) -> None:
        """Show no more."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _start(self) -> None:
        self.end()
        self._begin, self._told = time.monotonic(), 0
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True))
            self._bar.add_task(self.label, total=self.total)
            self._bar.start()

    def _log(self, done: int) -> None:
        tenth = 10 * done // self.total
        if tenth > self._told:
            self._told = tenth
            passed = time.monotonic() - self._begin
            _log.info("%s: %d of %d turns after %.1f s", self.label, done, self.total, passed)
