"""A change of emitted text is seen."""

from __future__ import annotations

import pytest

from tests.cuda.programs import PROGRAMS

from . import TARGETS, path_of, text_of


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_as_it_was(target: str, name: str) -> None:
    """Where the change is meant, ``python -m tests.snapshots`` writes the text anew."""
    assert text_of(target, name) == path_of(target, name).read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_every_snapshot_is_of_a_program(target: str) -> None:
    """No text is left of a program that is gone."""
    kept = {p.stem for p in path_of(target, "any").parent.glob("*.txt")}
    assert kept == set(PROGRAMS)
