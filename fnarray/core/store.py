"""Bytes by name, in a directory that only the user can write.

An entry is framed by a line that carries its name, its mark (versions, say) and a checksum,
written to a temporary file and renamed into place, then never changed.  A reader sees a whole
entry or none.  Whatever goes wrong (a killed writer, a full disk, a flipped bit, a directory
that is missing, read-only or open to others) costs a recomputation and at most one
`CacheWarning`, never a failure.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from ..config import config
from ..errors import CacheWarning
from .logs import Log

try:
    # As hashlib has it, which loads OpenSSL beside: 5 ms of each first call in a process.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["Info", "clear", "digest", "directory", "get", "info", "put", "put_source"]

#: A hash of 256 bits of what it is updated with, for names made from content and checksums.
digest: Final = partial(blake2b, digest_size=32)

MAGIC: Final = "fnarray-cache-1"
# Only names of this form are ever deleted: the directory may be one the user keeps other things in.
_ENTRY: Final = r"([fklpt]_[0-9a-f]+)\.(?:bin|py)"
_TEMPORARY: Final = ".fnarray-tmp-"
_STALE_SECONDS: Final = 3600.0
# Other processes write too; their entries are counted once in this many writes.
_RECOUNT_EVERY: Final = 64

_log: Final = Log("fnarray.compile")
_lock = threading.Lock()
_warned: Final[set[tuple[str, str]]] = set()
_written: Final[dict[Path, tuple[int, int]]] = {}  # directory -> bytes believed in it, writes


class Info(NamedTuple):
    """What the cache holds; `directory` is None where nothing can be kept on disk."""

    directory: str | None
    entries: int
    bytes: int
    kernels: int
    programs: int


class _Unusable(Exception):
    """Why a directory may not be used."""


def get(key: str, mark: str = "") -> bytes | None:
    """Return what was put under `key` with this mark, or None where there is no intact entry."""
    root = directory(create=False)
    if root is None:
        return None
    path = root / f"{key}.bin"
    try:
        payload = _open_frame(key, mark, path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.debug("cannot read %s: %s", path, error)
        return None
    if payload is None:
        _log.debug("%s is damaged or foreign: it is computed again", path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the least recently used entry goes first
    return payload


def put(key: str, payload: bytes, mark: str = "") -> None:
    """Keep `payload` under `key`; on failure warn once and keep nothing."""
    _write(f"{key}.bin", _frame(key, mark, payload))


def put_source(key: str, text: str) -> Path | None:
    """Keep readable source beside the entry `key`; return its path, or None if it was not kept."""
    return _write(f"{key}.py", text.encode())


def info() -> Info:
    """Count entries and bytes; a kernel's object code and its source are one entry."""
    root = directory(create=False)
    sizes: dict[str, int] = {}
    for key, status, _ in _files(root) if root else ():
        sizes[key] = sizes.get(key, 0) + status.st_size
    kernels, programs = (sum(key.startswith(kind) for key in sizes) for kind in ("k_", "p_"))
    where = str(root) if root else None
    return Info(where, kernels + programs, sum(sizes.values()), kernels, programs)


def clear() -> None:
    """Delete all entries and leftovers of killed writers; other files stay."""
    root = directory(create=False)
    if root is None:
        return
    for _, _, path in _files(root):
        _unlink(path)
    _sweep(root, older_than=0.0)
    _written.pop(root, None)


def directory(*, create: bool = True) -> Path | None:
    """Return the cache directory, or None, with one warning, where it must not be used.

    It is judged at every access: a check costs a microsecond, and permissions may change.
    Cached code runs when it is loaded, so the directory must belong to the user and be
    closed to everybody else.
    """
    where = config.cache_dir or _users_cache()
    try:
        root = Path(where).expanduser()
        if not config.cache_dir and not root.is_absolute():
            raise _Unusable("there is no home directory")
        root = root.absolute()
        if create:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(root)
    except (OSError, RuntimeError, ValueError, _Unusable) as error:
        if isinstance(error, FileNotFoundError) and not create:
            return None  # nothing was kept yet
        _warn_once(where, f"the directory cannot be used: {error}")
        return None
    return root


def _users_cache() -> str:
    if sys.platform == "linux":  # as platformdirs has it, which takes 15 ms to import
        return f"{os.environ.get('XDG_CACHE_HOME', '').strip() or '~/.cache'}/fnarray"
    import platformdirs

    return platformdirs.user_cache_dir("fnarray", appauthor=False)


def _check_private(root: Path) -> None:
    status = root.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise _Unusable("it is not a directory")
    if os.name != "posix":
        return
    if status.st_uid != os.geteuid():
        raise _Unusable(f"it belongs to user {status.st_uid}, not to you (user {os.geteuid()})")
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise _Unusable(f"its mode {mode:04o} lets other users in; run chmod 700 on it")


def _frame(key: str, mark: str, payload: bytes) -> bytes:
    # The name is under the checksum: an entry copied over another must not pass for it.
    head = f"{MAGIC} {key} {mark} "
    return f"{head}blake2b:{digest(head.encode() + payload).hexdigest()}\n".encode() + payload


def _open_frame(key: str, mark: str, raw: bytes) -> bytes | None:
    payload = raw[raw.find(b"\n") + 1 :]
    return payload if raw == _frame(key, mark, payload) else None


def _write(name: str, data: bytes) -> Path | None:
    if len(data) > config.cache_size_limit:
        return None
    root = directory()
    if root is None:
        return None
    path = root / name
    temporary = root / f"{_TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}"
    try:
        try:
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(path)
        except BaseException:
            _unlink(temporary)
            raise
        _bound(root, len(data))
    except FileNotFoundError:
        return None  # another process cleared the cache meanwhile
    except OSError as error:
        _warn_once(str(root), f"cannot write: {error}")
        return None
    return path


def _bound(root: Path, added: int) -> None:
    """Count what was written and, above the limit, delete the least recently used entries."""
    with _lock:
        held, writes = _written.get(root, (0, 0))
        if writes % _RECOUNT_EVERY == 0:
            _sweep(root, older_than=_STALE_SECONDS)
            held = sum(status.st_size for _, status, _ in _files(root))
        else:
            held += added
        if held > config.cache_size_limit:
            # Down to 3/4, or a full cache would be listed again at every write.
            held = _evict(root, config.cache_size_limit * 3 // 4)
        _written[root] = held, writes + 1


def _evict(root: Path, keep: int) -> int:
    """Delete the oldest entries until at most `keep` bytes remain; return the bytes left."""
    entries: dict[str, tuple[int, int, list[Path]]] = {}  # key -> last use, bytes, files
    for key, status, path in _files(root):
        used, size, paths = entries.get(key, (0, 0, []))
        used = max(used, status.st_mtime_ns)
        entries[key] = used, size + status.st_size, [*paths, path]
    held = sum(size for _, size, _ in entries.values())
    for _, size, paths in sorted(entries.values()):
        if held <= keep:
            break
        for path in paths:
            _unlink(path)
        held -= size
    return held


def _files(root: Path) -> Iterator[tuple[str, os.stat_result, Path]]:
    """Yield key, status and path of every file that belongs to an entry."""
    for path in _listing(root):
        match = re.fullmatch(_ENTRY, path.name)
        if match:
            with contextlib.suppress(OSError):  # another process may evict at the same time
                yield match[1], path.lstat(), path


def _sweep(root: Path, older_than: float) -> None:
    """Delete temporary files whose writers must be dead."""
    now = time.time()
    for path in _listing(root):
        if path.name.startswith(_TEMPORARY):
            with contextlib.suppress(OSError):
                if now - path.lstat().st_mtime >= older_than:
                    path.unlink()


def _listing(root: Path) -> list[Path]:
    try:
        return list(root.iterdir())
    except OSError:
        return []


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _warn_once(where: str, problem: str) -> None:
    # One kind of trouble in one place is one warning, however many kernels meet it.
    kind = problem.partition(":")[0]
    full = os.strerror(errno.ENOSPC) in problem
    with _lock:
        if (where, kind) in _warned:
            return
        _warned.add((where, kind))
    warnings.warn(
        f"fnarray cache {where}: {problem}. Results are unaffected; later processes work it "
        "out again. "
        + ("Make room, or set" if full else "Set")
        + " FNARRAY_CACHE_DIR to a private directory (mode 0700).",
        CacheWarning,
        stacklevel=2,
    )


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    # A child forked while another thread counts would wait forever for a lock nobody holds.
    os.register_at_fork(after_in_child=_renew_lock)
