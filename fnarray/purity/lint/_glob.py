"""Path patterns of the configuration."""

from __future__ import annotations

import re
from functools import lru_cache


def matches(path: str, pattern: str) -> bool:
    """Say whether a pattern covers a path (forward slashes, relative to the configuration).

    A pattern without a slash names a file or folder at any depth; with one, it is anchored at
    the root.  ``*`` and ``?`` stop at a slash, ``**`` does not; a folder covers what it holds.
    """
    return _compiled(pattern).search(path) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    text = pattern.removeprefix("./").rstrip("/")
    anchored = "/" in text
    out, i = "", 0
    while i < len(text):
        if text.startswith("**/", i):
            out, i = out + r"(?:.*/)?", i + 3
        elif text.startswith("**", i):
            out, i = out + ".*", i + 2
        elif text[i] == "*":
            out, i = out + "[^/]*", i + 1
        elif text[i] == "?":
            out, i = out + "[^/]", i + 1
        elif text[i] == "[" and "]" in text[i + 2 :]:
            end = text.index("]", i + 2)
            body = text[i + 1 : end].replace("\\", r"\\")
            body = "^" + body[1:] if body[0] == "!" else body
            out, i = f"{out}[{body}]", end + 1
        else:
            out, i = out + re.escape(text[i]), i + 1
    start = "^" if anchored else "(?:^|/)"
    return re.compile(f"{start}{out.removeprefix('/') if anchored else out}(?:/|$)")
