"""`map`: one program over many points, in chunks that take a measured time each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
from distributed import as_completed

from ..api.batching import vmap
from ..api.jit import jit
from ..core import tree
from .devices import clusters

#: Seconds that a chunk is to take: long against a task's overhead, short against a look at the bar.
CHUNK_SECONDS = 1.0


class SweepError(RuntimeError):
    """Some points of a sweep failed; what the others gave is kept.

    Attributes
    ----------
    failures : dict of int to Exception
        By number of the point.
    results : pytree of numpy.ndarray or None
        Of all points, rows of failed ones zero; None where all failed.
    """

    def __init__(self, message: str, failures: dict[int, BaseException], results: Any):
        super().__init__(message)
        self.failures, self.results = failures, results


def map(
    f: Callable[..., Any],
    xs: Any,
    *,
    cluster: Any = None,
    chunk: int | None = None,
    progress: bool | None = None,
) -> Any:
    """Return ``f`` of each point, in order: vmapped, compiled, on all workers.

    Parameters
    ----------
    f : callable
        Pure, of one point: a pytree of arrays without their first axis.
    xs : pytree of arrays
        Points, along the first axis of each.
    cluster : Cluster, optional
        By default the one that was connected last.
    chunk : int, optional
        Points in a task; by default as many as take a second, by what the first ones took.
    progress : bool, optional
        Whether to show a bar; by default in a terminal or a notebook.

    Returns
    -------
    pytree of numpy.ndarray
        Results along a new first axis.

    Raises
    ------
    SweepError
        Some points failed: it has them by number, and what the others gave.
    TypeError
        ``f`` cannot be pickled.
    ValueError
        Arrays are not of as many points.
    """
    where = _cluster(cluster)
    leaves, spec = tree.flatten(tree.map(np.asarray, xs))
    sizes = {x.shape[0] if x.ndim else None for x in leaves}
    if len(sizes) != 1 or None in sizes:
        raise ValueError(
            f"distributed.map: arrays must have one row for each point, got shapes "
            f"{[x.shape for x in leaves]}."
        )
    count = leaves[0].shape[0]
    # Errors of purity and of shapes are raised here, with the user's line.
    jit(vmap(f)).trace(tree.map(lambda x: x[:1], tree.unflatten(spec, leaves)))
    try:
        work = cloudpickle.dumps(f)
    except Exception as error:
        raise TypeError(
            f"distributed.map: {f!r} cannot be sent to workers: {error}. It may hold arrays, "
            "numbers and functions, and no open files, locks or connections."
        ) from error
    sweep = _Sweep(where, work, leaves, spec, count, chunk)
    with _bar(count, progress) as advance:
        sweep.run(advance)
    return sweep.result()


class _Sweep:
    def __init__(
        self, cluster: Any, work: bytes, leaves: list[Any], spec: Any, count: int, chunk: int | None
    ):
        self.client = cluster.client
        self.workers = len(cluster.devices)
        self.work, self.leaves, self.spec = work, leaves, spec
        self.count, self.chunk = count, chunk
        self.rows: dict[int, Any] = {}
        self.failures: dict[int, BaseException] = {}
        self.next = 0
        self.seconds = 0.0  # of a point

    def run(self, advance: Callable[[int], None]) -> None:
        """Keep two tasks a worker under way until all points are done."""
        under_way = as_completed([], with_results=False)
        for _ in range(2 * self.workers):
            self._more(under_way)
        try:
            for future in under_way:
                start, size, seconds, found, failed = future.result()
                self.rows[start] = size, found
                self.failures.update(failed)
                # What was compiled on the way is no time of a point's: the least counts.
                each = seconds / size
                self.seconds = min(self.seconds or each, each)
                advance(size)
                self._more(under_way)
        except BaseException:
            self.client.cancel(list(under_way.futures), force=True)
            raise

    def _more(self, under_way: Any) -> None:
        if self.next >= self.count:
            return
        start, left = self.next, self.count - self.next
        size = self.chunk or self._size()
        size = max(1, min(size, left))
        self.next += size
        part = [x[start : start + size] for x in self.leaves]
        # A task that fails because its worker is lost is run again, by Dask, elsewhere.
        under_way.add(
            self.client.submit(_task, self.work, self.spec, part, start, pure=False, retries=2)
        )

    def _size(self) -> int:
        if not self.seconds:
            return max(1, min(16, self.count // (8 * self.workers)))
        fair = max(1, -(-self.count // (4 * self.workers)))
        return min(fair, int(CHUNK_SECONDS / max(self.seconds, 1e-9)) or 1)

    def result(self) -> Any:
        """Return the results in order; raise for points that failed."""
        order = [self.rows[k] for k in sorted(self.rows)]
        known = next((found for _, found in order if found is not None), None)
        results = None
        if known is not None:
            blank = tree.map(lambda x: np.zeros(x.shape[1:], x.dtype), known)
            filled = [
                tree.map(lambda x, n=size: np.zeros((n, *x.shape), x.dtype), blank)
                if found is None
                else found
                for size, found in order
            ]
            results = tree.map(lambda *xs: np.concatenate(xs), *filled)
        if self.failures:
            k = min(self.failures)
            point = self.spec.unflatten([x[k] for x in self.leaves])
            raise SweepError(
                f"distributed.map: {len(self.failures)} of {self.count} points failed, the first "
                f"is number {k}, {point!r}: {self.failures[k]!r}. The error's `failures` has all, "
                "its `results` what the other points gave.",
                self.failures,
                results,
            ) from self.failures[k]
        return results


_compiled: dict[bytes, Any] = {}


def _task(work: bytes, spec: Any, part: list[Any], start: int) -> Any:
    """Do a chunk on a worker: all at once, or one by one where one fails."""
    found = _compiled.get(work)
    if found is None:
        if len(_compiled) > 100:
            _compiled.clear()
        f = cloudpickle.loads(work)
        found = _compiled[work] = jit(vmap(f), effects="off")  # the client has looked
    begun, size = time.perf_counter(), len(part[0])
    failures: dict[int, BaseException] = {}
    try:
        out = tree.map(np.asarray, found(spec.unflatten(part)))
    except Exception:
        out = _one_by_one(found, spec, part, start, failures)
    return start, size, time.perf_counter() - begun, out, failures


def _one_by_one(
    f: Any, spec: Any, part: list[Any], start: int, failures: dict[int, BaseException]
) -> Any:
    rows: list[Any] = []
    for k in range(len(part[0])):
        try:
            rows.append(tree.map(np.asarray, f(spec.unflatten([x[k : k + 1] for x in part]))))
        except Exception as error:
            failures[start + k] = error
            rows.append(None)
    known = next((r for r in rows if r is not None), None)
    if known is None:
        return None
    blank = tree.map(np.zeros_like, known)
    return tree.map(lambda *xs: np.concatenate(xs), *(blank if r is None else r for r in rows))


def _cluster(given: Any) -> Any:
    if given is not None:
        return given
    alive = [c for c in clusters.values() if not c.closed]
    if not alive:
        raise RuntimeError("distributed.map: no cluster is connected. Call connect() first.")
    return alive[-1]


class _bar:  # noqa: N801 - used as a function
    """A progress bar of rich, which knows terminals and notebooks; nothing where neither is."""

    def __init__(self, count: int, wanted: bool | None):
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        show = (console.is_terminal or console.is_jupyter) if wanted is None else wanted
        self.progress = Progress(console=console, disable=not show)
        self.count = count

    def __enter__(self) -> Callable[[int], None]:
        self.progress.start()
        task = self.progress.add_task("points", total=self.count)
        return lambda n: self.progress.advance(task, n)

    def __exit__(self, *exc: object) -> None:
        self.progress.stop()
