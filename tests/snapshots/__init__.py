"""Emitted text of programs that teach something, for each target.

``python -m tests.snapshots`` writes it anew; `tests.replay` compares some 1,700 programs between
two commits.
"""

from __future__ import annotations

import re
from pathlib import Path
from unittest import mock

import fnarray
from fnarray.compile.cuda import cublas, vendor
from tests.cuda.programs import PROGRAMS

#: Targets, and the dialects that their text is asked for by.
TARGETS = {"cpu": "numba", "cuda": "cuda"}


def path_of(target: str, name: str) -> Path:
    """Return where the text of a program is kept."""
    return Path(__file__).parent / target / f"{name}.txt"


def text_of(target: str, name: str) -> str:
    """Return a program's kernels and driver, without names that hash the compiler, and lines."""
    f, args = PROGRAMS[name]
    fnarray.clear_caches()  # a program of the same graph shows the lines of who asked for it first
    with (  # its text is another
        mock.patch.object(vendor, "installed", return_value=False),
        mock.patch.object(cublas, "library", return_value=None),
    ):
        text = fnarray.jit(f).lower(*args).as_text(dialect=TARGETS[target])
    names = list(dict.fromkeys(re.findall(r"\bk_[0-9a-f]{16}\b", text)))
    for k, found in enumerate(names):
        text = text.replace(found, f"kernel{k}")
    return re.sub(r"(# [\w<>.]+):\d+:?", r"\1:", text)
