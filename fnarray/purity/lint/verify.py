"""``lint --verify``: run the files, each traced function twice, and compare what was traced.

The only part of the linter that runs the user's code, and only when asked to.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ..findings import Finding, Place
from ..rules import RULES
from .config import Settings, UsageError
from .source import Source

SECONDS = 600
_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_FAULT = re.compile(
    r"^(?:[\w.]+\.)?(?P<error>\w*(?:Effect|Determinism)\w*Error): (?P<text>.*)$", re.M
)

_CODE = re.compile(r"\bFNA\d{3}\b")


def verify(sources: Iterable[Source], settings: Settings) -> list[Finding]:
    """Run every script among the sources with ``FNARRAY_CHECK_DETERMINISM=1``.

    A script is a file with an ``if __name__ == "__main__":`` block, or outside of any package.

    Raises
    ------
    UsageError
        When a file does not run to its end for another reason than an effect.
    """
    found = []
    for source in sources:
        path = Path(source.path)
        if source.tree is None or source.cells or not path.is_file() or not _runs(source, path):
            continue
        environment = os.environ | {"FNARRAY_CHECK_DETERMINISM": "1", "FNARRAY_EFFECTS": "error"}
        try:
            done = subprocess.run(
                [sys.executable, str(path.resolve())], capture_output=True, text=True,
                timeout=SECONDS, env=environment, cwd=settings.root, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise UsageError(f"--verify: {path} did not end within {SECONDS} s.") from error
        if done.returncode:
            found.append(_finding(source, done.stderr))
    return found


def _runs(source: Source, path: Path) -> bool:
    text = "\n".join(source.lines)
    main = re.search(r"^if __name__ == ['\"]__main__['\"]:", text, re.MULTILINE)
    alone = not (path.parent / "__init__.py").exists() and not path.name.startswith("test_")
    uses = re.search(r"^\s*(?:import|from) fnarray\b", text, re.MULTILINE)
    return bool(uses) and (main is not None or alone)


def _finding(source: Source, stderr: str) -> Finding:
    fault = _FAULT.search(stderr)
    if fault is None:
        last = stderr.strip().splitlines()[-1:] or ["no message"]
        raise UsageError(f"--verify: {source.path} does not run: {last[0]}")
    here = str(Path(source.path).resolve())
    lines = [int(m["line"]) for m in _LINE.finditer(stderr) if m["file"] == here]
    line = lines[-1] if lines else 1
    text = source.line(line)
    where = Place(source.path, line, len(text) - len(text.lstrip()) + 1, line, len(text) + 1)
    named = _CODE.search(stderr)
    rule = RULES.get(named[0] if named else "", RULES["FNA304"])
    return rule.at(where, name=f"the program traced here ({fault['text']})", source=text)
