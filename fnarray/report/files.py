"""Writing a file whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def written(path: Path, content: str | bytes, what: str) -> Path:
    """Write a file, whole or not at all; return its path.

    What a link leads to is written, and a device or pipe (``/dev/stdout``) is written to: neither
    is exchanged for a file. Who may read it is as it was, and of a new one what the process says.

    Raises
    ------
    OSError
        It cannot be written: what was there is as it was, and nothing else is left.
    """
    data = content.encode() if isinstance(content, str) else content
    beside = None
    said = "cannot be written, and nothing was"
    try:
        if path.exists() and not path.is_file():
            said = "cannot be written"
            path.write_bytes(data)
            return path
        home = path.resolve()
        place = home.with_name(f".fnarray-{os.urandom(8).hex()}")
        with place.open("xb") as file:
            beside = place
            file.write(data)
        if home.exists():
            place.chmod(home.stat().st_mode)
        place.replace(home)
    except OSError as error:
        if beside is not None:
            beside.unlink(missing_ok=True)
        raise OSError(
            error.errno,
            f"{what} ({len(data):,} bytes) {said}: {error.strerror}. "
            "Make room, or choose another place",
            str(path),
        ) from error
    return path
