"""Examples of the documentation run and print what they say."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from importlib.util import find_spec
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


@pytest.mark.parametrize("page", ["run-on-a-gpu", "run-a-jax-library"])
def test_blocks_without_prompts_run(page: str, tmp_path: Path) -> None:
    """Those of a page make one program, which runs where there is no GPU and no library either."""
    text = (ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    program = "\n".join(block for block in blocks if ">>>" not in block)
    if find_spec("optax") is None:
        program = re.sub(r"import optax.*\n", "", program)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_tour_has_examples() -> None:
    """The tour follows a call with real output."""
    text = (ROOT / "docs/explanation/tour.md").read_text(encoding="utf-8")
    assert len(doctest.DocTestParser().get_examples(text)) >= 8
