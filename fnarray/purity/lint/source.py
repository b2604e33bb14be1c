"""Files as the linter sees them: text of any encoding, syntax tree, and cells of notebooks."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import warnings
from bisect import bisect_right
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ...core import store

# IPython's lines that are no Python: magics, shell escapes, help.
_MAGIC = re.compile(r"^\s*(?:%|!|\?)|^[^#'\"]*\?{1,2}\s*$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w.,\s]+=\s*)(?:%|!).*$")
# Cell magics after which the rest of the cell is still Python.
_PYTHON_CELLS = ("time", "timeit", "capture", "prun", "python", "python3", "memit", "mprun")
#: Statements that older versions do not know, by their first line.
_SINCE = (
    ((3, 12), re.compile(r"\s*(type\s+\w+\s*(=|\[)|class\s+\w+\s*\[|(async\s+)?def\s+\w+\s*\[)")),
    ((3, 14), re.compile(r"\s*except\s+[\w.]+\s*,")),
)


class Problem(NamedTuple):
    """A file that cannot be parsed or read, and where; ``newer`` is the Python that can."""

    message: str
    line: int = 1
    column: int = 1
    newer: str = ""


class SourceFile:
    """One file: its text, and, when they are asked for, its lines and its tree.

    ``problem`` says why there is no tree, or not a whole one. ``cells`` is, for a notebook, the
    first line of each code cell in the joined text, with the cell's number counted from one as a
    notebook shows it. ``digest`` stands for the bytes of a file that was read.
    """

    def __init__(
        self,
        path: str,
        text: str,
        *,
        encoding: str = "utf-8",
        digest: str = "",
        problem: Problem | None = None,
    ) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self.digest = digest
        self.cells: list[tuple[int, int]] = []
        if problem is not None:
            self.parsed = None, problem

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        # Only these end a line for the parser; str.splitlines would also split at form feeds.
        lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    @cached_property
    def parsed(self) -> tuple[ast.Module | None, Problem | None]:
        """The tree, or what kept the text from having one."""
        return _parsed(self.path, self.text)

    @cached_property
    def ours(self) -> bool:
        """Whether the file names ``fnarray``, which will refuse what is found in it."""
        return "fnarray" in self.text

    @property
    def tree(self) -> ast.Module | None:
        """The syntax tree, if there is one."""
        return self.parsed[0]

    @property
    def problem(self) -> Problem | None:
        """What is wrong with the file, if anything."""
        return self.parsed[1]

    def line(self, number: int) -> str:
        """Return a source line by its number, or the empty string past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def cell(self, line: int) -> tuple[int, int] | None:
        """Return a notebook's cell number, and the line inside that cell."""
        if not self.cells:
            return None
        start, number = self.cells[max(bisect_right(self.cells, (line, 1 << 30)) - 1, 0)]
        return number, line - start + 1


def _parsed(path: str, text: str) -> tuple[ast.Module | None, Problem | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.removeprefix("\ufeff"), path), None
    except SyntaxError as error:
        where = error.lineno or 1, max(error.offset or 1, 1)
        here = (error.text or "").partition("\n")[0]
        running = sys.version_info[:2]
        since = next((v for v, form in _SINCE if v > running and form.match(here)), None)
        if since is None:
            return None, Problem(error.msg or "invalid syntax", *where)
        running, asked = (".".join(map(str, v)) for v in (running, since))
        message = f"Python {running} runs the linter, and this is written for {asked}"
        return None, Problem(message, *where, newer=asked)
    except (ValueError, RecursionError, MemoryError) as error:
        return None, Problem(str(error) or type(error).__name__)


def decode(raw: bytes) -> tuple[str, str]:
    """Decode source by its mark or coding comment, else as Latin-1, which never fails."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        for mark, name in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
            if raw.startswith(mark):
                try:
                    return raw.decode(name), name
                except UnicodeDecodeError:
                    break
        text, encoding = raw.decode("latin-1"), "latin-1"
    return text, encoding


def read(path: Path | str) -> SourceFile:
    """Read a file; a problem is recorded, never raised."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        problem = Problem(f"the file cannot be read ({error.strerror})")
        return SourceFile(str(path), "", problem=problem)
    return from_bytes(str(path), raw)


def from_bytes(path: str, raw: bytes) -> SourceFile:
    """Return a file's contents; notebooks are told by their suffix."""
    text, encoding = decode(raw)
    source = SourceFile(path, text, encoding=encoding, digest=store.digest(raw).hexdigest())
    if path.endswith(".ipynb"):
        _unpack(source)
    return source


def parse(path: str, text: str) -> SourceFile:
    """Return Python text as a file."""
    return SourceFile(path, text)


def _unpack(source: SourceFile) -> None:
    """Join the code cells of a notebook into one text, and parse what of them is Python."""
    try:
        import json  # which checks of live functions never need: 2 ms

        book = json.loads(source.text)
        cells = book.get("cells")
        if cells is None:  # format 3 nests cells in worksheets and calls their text input
            cells = [c for sheet in book["worksheets"] for c in sheet["cells"]]
        language = book.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        code = [
            (number, _joined(c.get("source", c.get("input", ""))))
            for number, c in enumerate(cells, 1)
            if c.get("cell_type") == "code"
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        source.lines, source.parsed = [], (None, Problem(f"no notebook ({error})"))
        return
    if str(language).lower() != "python":
        source.lines, source.parsed = [], (ast.Module([], []), None)
        return
    lines: list[str] = []
    starts: list[tuple[int, int]] = []
    good: list[str] = []
    problem = None
    for number, cell in code:
        starts.append((len(lines) + 1, number))
        original = cell.replace("\r\n", "\n").split("\n")
        python = _without_magics(original)
        _, wrong = _parsed(source.path, "\n".join([*python, ""]))
        if wrong is not None:  # one broken cell must not hide the others
            if problem is None:
                problem = Problem(wrong.message, len(lines) + wrong.line, wrong.column)
            python = [""] * len(original)
        lines += original
        good += python
    tree, wrong = _parsed(source.path, "\n".join([*good, ""]))
    source.lines, source.cells = lines, starts
    source.text = "\n".join(lines)
    source.parsed = tree, wrong or problem


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _without_magics(lines: list[str]) -> list[str]:
    """Replace IPython's own lines by ``pass`` at the same indent, so that line numbers hold."""
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%"):
        word = first[2:].split(maxsplit=1)[0] if first[2:].split() else ""
        if word not in _PYTHON_CELLS:
            return [""] * len(lines)
    joined = "\n".join(lines)
    if not any(mark in joined for mark in "%!?"):
        return lines
    try:
        ast.parse(joined)
    except (SyntaxError, ValueError):
        return [_plain(line) for line in lines]
    return lines


def _plain(line: str) -> str:
    if assigned := _ASSIGNED_MAGIC.match(line):
        return assigned[1] + "None"
    if _MAGIC.match(line):
        return line[: len(line) - len(line.lstrip())] + "pass"
    return line
