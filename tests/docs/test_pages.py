"""Examples of the documentation run and print what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from fnarray.config import effects

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_print_what_they_say(page: Path) -> None:
    """Every ``>>>`` example of a page gives the printed result."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    with effects("error"):
        failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert failed == 0


def test_the_tour_has_examples() -> None:
    """The tour follows a call with real output."""
    text = (ROOT / "docs/explanation/tour.md").read_text(encoding="utf-8")
    assert len(doctest.DocTestParser().get_examples(text)) >= 8
