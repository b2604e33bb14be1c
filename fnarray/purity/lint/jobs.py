"""Examining many files: what is known is taken from the cache, the rest shared among processes."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator

from ...threads.cores import available_cores
from .config import Settings
from .linter import Examiner, Outcome
from .results import Record, Records, Results
from .source import SourceFile

#: Text that keeps a process busy for longer than it takes to start: a second.
_CHARACTERS_EACH = 1_000_000
#: Parts that each process is given, one after the other, so that none waits long for the last.
_PARTS_EACH = 4

Part = tuple[list[Outcome], dict[str, Record]]


def outcomes(
    given: list[SourceFile], settings: Settings, *, jobs: int | None = None, cached: bool = True
) -> list[Outcome]:
    """Return what each file gives, in order."""
    results = Results(settings) if cached else None
    known = results.hold(given) if results is not None else {}
    left = [source for source in given if source.path not in known]
    if not left:
        return [known[source.path] for source in given]
    size = sum(len(source.text) for source in left)
    most = 1 + size // _CHARACTERS_EACH
    for found, records in _examined(left, given, settings, min(jobs or available_cores(), most)):
        known |= {outcome.path: outcome for outcome in found}
        if results is not None:
            results.add(found, records)
    if results is not None:
        results.write()
    return [known[source.path] for source in given]


def _examined(
    left: list[SourceFile], given: list[SourceFile], settings: Settings, jobs: int
) -> list[Part]:
    shared = _shared(left, given, settings, jobs) if jobs > 1 else None
    if shared is not None:
        return shared
    return [_Worker(Examiner(given, settings)).part(left)]


def _shared(
    left: list[SourceFile], given: list[SourceFile], settings: Settings, jobs: int
) -> list[Part] | None:
    """Return what several processes found, or None where they cannot be had."""
    # Most runs are of few files, and these imports take longer than one of them.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    paths = [source.path for source in given]
    parts = _in_turns([[s.path for s in part] for part in _parts(left, jobs * _PARTS_EACH)], jobs)
    try:
        # A fork of a process with threads may wait forever; a fresh one costs 0.1 s.
        with ProcessPoolExecutor(
            jobs, multiprocessing.get_context("spawn"), _start, (paths, settings)
        ) as pool:
            return list(pool.map(_examine_part, parts))
    except (BrokenProcessPool, OSError):  # no memory, or no processes, to spare
        return None


class _Worker:
    """Examines parts of the files, and tells what it opened on the way."""

    def __init__(self, examiner: Examiner) -> None:
        self.examiner = examiner
        self.records = Records(examiner.project)

    def part(self, sources: list[SourceFile]) -> Part:
        found = [self.examiner.examine(source) for source in sources]
        return found, self.records.of(sources)


def _parts(sources: list[SourceFile], count: int) -> Iterator[list[SourceFile]]:
    """Split sources, in order, into parts with about as much text in each: neighbours import."""
    most = sum(len(source.text) for source in sources) / count
    part: list[SourceFile] = []
    size = 0
    for source in sources:
        part.append(source)
        size += len(source.text)
        if size >= most:
            yield part
            part, size = [], 0
    if part:
        yield part


def _in_turns(parts: list[list[str]], jobs: int) -> list[list[str]]:
    """Order parts so that processes that take turns get neighbours, which import the same."""
    size = -(-len(parts) // jobs)
    return [part for first in range(size) for part in parts[first::size]]


# --- in the other processes ---

_workers: list[_Worker] = []


def _start(paths: list[str], settings: Settings) -> None:
    gc.disable()
    # As the first process does: taking all trees apart was a third of the time of two processes.
    atexit.register(os._exit, 0)
    _workers.append(_Worker(Examiner((), settings, paths)))


def _examine_part(paths: list[str]) -> Part:
    worker = _workers[0]
    return worker.part([worker.examiner.project.source(path) for path in paths])
