"""Text to syntax tree, by one thread at a time."""

from __future__ import annotations

import ast
import threading

from .fork import holding_through_forks

_one = threading.RLock()
holding_through_forks(_one.acquire, _one.release)


def parse(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of ``text``, as `ast.parse` does, from any number of threads.

    CPython 3.11 keeps the depth of the tree that it builds for the interpreter, not for the
    thread (gh-106905): where threads change places in the middle, a good text ends in
    ``SystemError``. Ours take turns; after a thread that does not know of the lock, try again.

    Raises
    ------
    SyntaxError, ValueError, RecursionError, MemoryError
        As `ast.parse`.
    """
    with _one:
        while True:
            try:
                return ast.parse(text, filename)
            except SystemError as error:
                if "recursion depth" not in str(error):
                    raise
