"""Which files to lint: the paths given, and below folders every Python file and notebook."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .config import Settings, UsageError, real_path

SUFFIXES = (".py", ".ipynb")


def files(paths: Iterable[str], settings: Settings) -> list[Path]:
    """Return the files to lint, each once, in a stable order.

    A file named outright is taken whatever its suffix or the exclusions say; a folder is walked.

    Raises
    ------
    UsageError
        For a path that does not exist.
    """
    found: dict[str, Path] = {}
    for given in paths:
        path = Path(given)
        if path.is_dir():
            for file in _walk(path, settings):
                found.setdefault(real_path(str(file)), file)
        elif path.exists():
            found.setdefault(os.path.realpath(path), path)
        else:
            raise UsageError(f"{given}: no such file or folder.")
    return list(found.values())


def _walk(folder: Path, settings: Settings) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        here = Path(base)
        folders[:] = sorted(f for f in folders if not settings.excluded(here / f))
        for name in sorted(names):
            if name.endswith(SUFFIXES) and not settings.excluded(here / name):
                yield here / name
