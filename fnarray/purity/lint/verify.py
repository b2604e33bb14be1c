"""``lint --verify``: run the scripts, each traced function twice, and compare what was traced.

The only part of the linter that runs the user's code, and only when asked to. It sees what no
reading of source can: an effect inside a library, or behind a name that is computed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..findings import Finding, Place
from ..rules import RULES
from .config import Settings, UsageError
from .source import SourceFile

SECONDS = 600
_PACKAGES = Path(__file__).parents[3]
_USES = re.compile(r"^\s*(?:import|from) fnarray\b", re.MULTILINE)
_FIRST = re.compile(r"\n\s+first: (?P<file>.+?):(?P<line>\d+)")
_MAIN = re.compile(r"^if __name__ == ['\"]__main__['\"]:", re.MULTILINE)


def verify(sources: Iterable[SourceFile], settings: Settings) -> Iterator[Finding]:
    """Yield the effects that end the scripts among the sources, run with ``check_determinism``.

    A script imports fnarray, and has an ``if __name__ == "__main__":`` block or is in no package.

    Raises
    ------
    UsageError
        When a script does not run to its end for another reason than an effect.
    """
    sources = list(sources)
    known = {os.path.realpath(source.path): source for source in sources}
    for source in sources:
        if source.tree is not None and not source.cells and _is_script(source):
            report = _run(source, settings)
            if report is not None:
                yield from _findings(report, source, known)


def _is_script(source: SourceFile) -> bool:
    path, text = Path(source.path), "\n".join(source.lines)
    if not path.is_file() or not _USES.search(text):
        return False
    alone = not (path.parent / "__init__.py").exists() and not path.name.startswith("test_")
    return alone or _MAIN.search(text) is not None


def _run(source: SourceFile, settings: Settings) -> dict[str, Any] | None:
    """Run a script; return the report of an effect that ended it."""
    script = str(Path(source.path).resolve())
    paths = [str(_PACKAGES), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "FNARRAY_CHECK_DETERMINISM": "1",
        "FNARRAY_EFFECTS": "error",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "report.json")
        # -P: the working directory is no place to import from, unless the script lies there.
        command = [sys.executable, "-P", "-m", f"{__package__}.rerun", str(out), script]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=SECONDS,
                env=environment, cwd=settings.root, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise UsageError(f"--verify: {source.path} did not end within {SECONDS} s.") from error
        if out.exists():
            return json.loads(out.read_text(encoding="utf-8"))
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise UsageError(f"--verify: {source.path} does not run: {last[0]}")
    return None


def _findings(
    report: dict[str, Any], script: SourceFile, known: dict[str, SourceFile]
) -> Iterator[Finding]:
    for row in report["findings"]:
        finding = Finding(**row | {"path": tuple(row["path"])})
        source = known.get(os.path.realpath(finding.file))
        yield finding._replace(file=source.path) if source is not None else finding
    if not report["findings"]:
        yield _differs(report, script, known)


def _differs(report: dict[str, Any], script: SourceFile, known: dict[str, SourceFile]) -> Finding:
    """Return the finding that two traces differ, at the first operation that does.

    Where that is not in a linted file, at the innermost call that is.
    """
    what = report["text"].partition("differ: ")[2].partition("\n  The function")[0]
    frames = report["frames"]
    if (at := _FIRST.search(what)) is not None:
        frames, what = [*frames, (at["file"], int(at["line"]))], what[: at.start()]
    source, line = script, 1
    for file, number in frames:
        if (found := known.get(os.path.realpath(file))) is not None:
            source, line = found, number
    text = source.line(line)
    where = Place(source.path, line, len(text) - len(text.lstrip()) + 1, line, len(text) + 1)
    return RULES["FNA004"].at(where, what=what.strip(" :.\n"), source=text)
