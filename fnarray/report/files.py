"""Writing a file whole, or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path


def written(path: Path, text: str, what: str) -> Path:
    """Write a file, whole or not at all; return its path.

    Raises
    ------
    OSError
        It cannot be written: what was there is as it was, and nothing else is left.
    """
    data = text.encode()
    name = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".fnarray-", delete=False) as file:
            name = file.name
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        raise OSError(
            error.errno,
            f"{what} ({len(data):,} bytes) cannot be written, and nothing was: {error.strerror}. "
            "Make room, or choose another place",
            str(path),
        ) from error
    return path
