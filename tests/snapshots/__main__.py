"""Write the snapshots anew."""

from __future__ import annotations

from tests.cuda.programs import PROGRAMS

from . import TARGETS, path_of, text_of

for target in TARGETS:
    folder = path_of(target, "any").parent
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.txt"):
        old.unlink()
    for program in PROGRAMS:
        path_of(target, program).write_text(text_of(target, program))
