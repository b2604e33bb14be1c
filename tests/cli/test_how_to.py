"""The console examples of the how-to pages print what they say."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/how-to").glob("*.md"))
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (?P<name>[\w./-]+\.\w+)\n")
_COMMAND = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_console_examples(page: Path, tmp_path: Path) -> None:
    """A block whose first line is a comment with a name is that file; ``$`` begins a command."""
    (tmp_path / "scripts").mkdir()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        text = block["text"]
        if (named := _FILE.match(text)) is not None and not named["name"].startswith("."):
            (tmp_path / named["name"]).write_text(text, encoding="utf-8")
        if block["kind"] != "console":
            continue
        for example in _COMMAND.finditer(text):
            command = example["command"].replace("fnarray ", f"{sys.executable} -m fnarray ", 1)
            done = subprocess.run(
                ["bash", "-c", command], cwd=tmp_path, env=environment, text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            same = doctest.OutputChecker().check_output(example["output"], done.stdout, flags)
            assert same, f"{example['command']}\n{done.stdout}"
