"""Programs by key: which kernels to load and the driver that calls them, without a trace.

The key stands for a function's code, captured constants, argument types and transforms; the
versions are added here. A record lists the package's own sources that had a part in it, those that
its process had loaded, and what they held: it never outlives the code that wrote it.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ...core.lazy import BEGUN
from ...core.logs import Log
from ...core.store import digest
from . import key as keys
from . import store

__all__ = ["get", "put"]

Names = tuple[str, ...]
_PACKAGES: Final = frozenset({"fnarray", "fnarray_kernels"})
#: Where names of sources begin: the folder that holds the package.
_PLACE: Final = str(Path(__file__).parents[3])
#: A file that changed so lately may change again within one tick of the file system's clock.
_SETTLED: Final = 2_000_000_000

_log: Final = Log("fnarray.compile")


def get(key: str) -> Any | None:
    """Return the record put under `key`, or None."""
    payload = store.get(keys.program_name(key, _PLACE))
    if payload is None:
        return None
    try:
        names, contents, record = pickle.loads(payload)
        # The record last: its classes are those of the sources.
        return pickle.loads(record) if _contents(names) == contents else None
    except Exception as error:  # a class named in the record may be gone
        _log.debug("program %s cannot be read: %r", key, error)
        return None


def put(key: str, record: object, made_by: Iterable[str] = ()) -> None:
    """Keep a picklable record under `key`, where its sources are what this process runs.

    Parameters
    ----------
    made_by : iterable of str
        Sources that need not be loaded for it, as of a compiler whose work was there already.

    Raises
    ------
    pickle.PicklingError, TypeError, AttributeError
        The record cannot be pickled.
    """
    packed = pickle.dumps(record, protocol=pickle.HIGHEST_PROTOCOL)
    names = _loaded(made_by)
    if names is None:
        return
    contents, latest = (_known[names], None) if names in _known else _read(names)
    _known[names] = contents
    if contents is None:
        return
    # Looked at after they were read: one may have changed since it was loaded.
    if (latest if latest is not None else _status(names, dict(_settled))[1]) + _SETTLED > BEGUN:
        return
    payload = pickle.dumps((names, contents, packed), protocol=pickle.HIGHEST_PROTOCOL)
    store.put(keys.program_name(key, _PLACE), payload)


def _loaded(more: Iterable[str]) -> Names | None:
    """Name the sources that had a part in what this process makes; None where some are no files.

    What is not loaded cannot have had one: with the same sources, another process would load the
    same of them. They are a third of all.
    """
    start = _PLACE + os.sep
    paths: set[str] = set()
    for name, module in tuple(sys.modules.items()):
        package = name.partition(".")[0]
        if package in _PACKAGES:
            spec = getattr(module, "__spec__", None)
            if spec is None:  # another one's code has made it
                continue
            if not str(spec.origin).endswith(".py"):
                return None
            paths.add(spec.origin.removeprefix(start))
            if package == "fnarray":
                _running.add(spec.origin.removeprefix(start))
    paths.update(path.removeprefix(start) for path in more)
    return tuple(sorted(paths))


#: Hashes of sources that this process has asked for.
_known: Final[dict[Names, str | None]] = {}


def _contents(names: Names) -> str | None:
    """Return the hash of sources; None if one is gone."""
    if names not in _known:
        _known[names] = _read(names)[0]
    return _known[names]


def _read(names: Names) -> tuple[str | None, int | None]:
    """Return the hash of sources, read or known from an earlier reading.

    Beside it, where they were read, when the last had changed: they were looked at again then.
    """
    try:
        status = _status(names, _looked_at)[0]
        entry = f"f_{status[:32]}"
        known = store.get(entry)
        if known is not None:
            return known.decode(), None
        found = keys.hashed(_PLACE + os.sep + name for name in names)
        again = dict(_settled)
        after, latest = _status(names, again)
        if time.time_ns() - latest > _SETTLED and after == status:
            _settled.update((name, again[name]) for name in names if name in _running)
            store.put(entry, found.encode())
    except OSError:
        return None, None
    return found, latest


Status = tuple[int, int, int, int]
_looked_at: Final[dict[str, Status]] = {}
#: The same of sources that were as they had been when they were looked at again, after they were
#: loaded and read: what this process runs, and the hash that it knows, are of these. To look at all
#: of them for each program took 1.2 ms of 28 that one of ten operations takes.
_settled: Final[dict[str, Status]] = {}
#: The sources that are loaded, when this was last asked; those of kernels are read again, as text.
_running: Final[set[str]] = set()


def _status(names: Sequence[str], looked_at: dict[str, Status]) -> tuple[str, int]:
    """Return a hash of what the system knows of sources, and when the last changed.

    Where it is the same the contents are: whatever writes to a file, or puts another in its place,
    sets the time of its last change of status, which a copy cannot keep.
    """
    folder = os.open(_PLACE, os.O_RDONLY)  # from where paths are short
    try:
        for name in names:
            if name not in looked_at:
                s = os.stat(name, dir_fd=folder)
                looked_at[name] = s.st_dev, s.st_ino, s.st_size, s.st_ctime_ns
    finally:
        os.close(folder)
    numbers = [number for name in names for number in looked_at[name]]
    known = digest("\n".join(names).encode())
    known.update(struct.pack(f"<{len(numbers)}Q", *numbers))
    return known.hexdigest(), max(numbers[3::4], default=0)
