"""Programs of the gallery are drawn in one process, and none disturbs the next."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import fnarray

pytest.importorskip("matplotlib").use("Agg")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs/_ext"))
import gallery  # noqa: E402

DRAWN = """
from matplotlib import pyplot as plt
def main():
    figure, axes = plt.subplots()
    axes.set(xlabel="x", ylabel={label!r})
    {last}
    return figure
"""


@pytest.mark.parametrize(
    ("label", "last", "said"),
    [
        ("y", "1 / 0", "program.py failed: division by zero"),
        ("", "pass", "program.py: a picture does not say what it shows"),
        ("y", "import fnarray; fnarray.config.update('enable_x64', True)", "leaves a setting"),
    ],
)
def test_what_a_program_does_wrong_is_said_with_its_name(label, last, said, tmp_path):
    """One that fails, that draws axes without names, or leaves a setting changed."""
    program = tmp_path / "program.py"
    program.write_text(DRAWN.format(label=label, last=last))
    try:
        with pytest.raises((RuntimeError, ValueError), match=said):
            gallery.draw(program, tmp_path / "picture.png")
    finally:
        fnarray.config.update("enable_x64", False)
