"""What eager calls remember, in one place: bounded, and forgotten by ``clear_caches``.

A key begins with what remembers (a primitive, a function), so that no two share an entry. Reading
and writing are single operations of a dict, which threads may do at once: those that race write
what is equal.
"""

from __future__ import annotations

from typing import Any

from .keep import forgotten

_MOST = 8192
_memo: dict[Any, Any] = {}
recall = _memo.get
forgotten(_memo.clear)


def remember(key: Any, value: Any) -> None:
    """Keep a value under a hashable key."""
    if len(_memo) >= _MOST:
        # All of it at once: to know which are old, every call would have to note what it used.
        _memo.clear()
    _memo[key] = value
