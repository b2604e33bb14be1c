"""Ways to change what a compiled function captured: a module's text for each.

A row is a *setup*, an *expression* that the function multiplies its argument by, and a *change*.
Kinds of rows stand in files of their own; each defines ``ROWS``.
"""

from __future__ import annotations

from typing import NamedTuple

HEAD = """\
import abc, array, collections, contextvars, copy, ctypes, dataclasses, enum, functools, itertools
import asyncio, contextlib, inspect, json, math, multiprocessing, operator, threading, types
import typing, weakref
import numpy as np
import fnarray
import fnarray.numpy as jnp
from fnarray import lax
"""


class Row(NamedTuple):
    """One way to change something captured; nothing is read where the setup makes ``f`` itself."""

    setup: str
    reads: str
    change: str

    def source(self) -> str:
        """Return a module with ``f``, and ``change``, which is to be seen by the next call."""
        made = f"def f(x):\n    return x * ({self.reads})\n" if self.reads else ""
        # The change is text that is run: the module itself is not seen to write anything.
        return f"{HEAD}{self.setup}\n{made}\nCHANGE = '''\n{self.change}\n'''\n"


def rows(kind: str, setup: str, change: str, *reads: str) -> dict[str, Row]:
    """Return rows that read one thing in many ways."""
    return {f"{kind}: {read}": Row(setup, read, change) for read in reads}
