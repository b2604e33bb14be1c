"""Writing a file whole, or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path


def written(path: Path, text: str, what: str) -> Path:
    """Write a file, whole or not at all; return its path.

    What a link leads to is written, and a device or pipe (``/dev/stdout``) is written to: neither
    is exchanged for a file.

    Raises
    ------
    OSError
        It cannot be written: what was there is as it was, and nothing else is left.
    """
    data = text.encode()
    name = None
    said = "cannot be written, and nothing was"
    try:
        if path.exists() and not path.is_file():
            said = "cannot be written"
            path.write_bytes(data)
            return path
        home = path.resolve()
        with tempfile.NamedTemporaryFile(dir=home.parent, prefix=".fnarray-", delete=False) as file:
            name = file.name
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(home)
    except OSError as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        raise OSError(
            error.errno,
            f"{what} ({len(data):,} bytes) {said}: {error.strerror}. "
            "Make room, or choose another place",
            str(path),
        ) from error
    return path
