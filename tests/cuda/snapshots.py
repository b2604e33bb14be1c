"""Emitted text of `programs`; ``python -m tests.cuda.snapshots`` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

import fnarray

from .programs import PROGRAMS

FOLDER = Path(__file__).parent / "snapshots"


def text_of(name: str) -> str:
    """Return a program's kernels and launches, without names that hash the compiler, and lines."""
    f, args = PROGRAMS[name]
    text = fnarray.jit(f).lower(*args).as_text(dialect="cuda")
    names = list(dict.fromkeys(re.findall(r"\bk_[0-9a-f]{16}\b", text)))
    for k, found in enumerate(names):
        text = text.replace(found, f"kernel{k}")
    return re.sub(r"(# [\w<>.]+):\d+:?", r"\1:", text)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for program in PROGRAMS:
        (FOLDER / f"{program}.txt").write_text(text_of(program))
