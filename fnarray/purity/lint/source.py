"""Files as the linter sees them: text of any encoding, syntax tree, and cells of notebooks."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

# IPython's lines that are no Python: magics, shell escapes, help.
_MAGIC = re.compile(r"^\s*(?:%|!|\?)|^[^#'\"]*\?{1,2}\s*$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w.,\s]+=\s*)(?:%|!).*$")
# Cell magics after which the rest of the cell is still Python.
_PYTHON_CELLS = ("time", "timeit", "capture", "prun", "python", "python3", "memit", "mprun")


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that cannot be parsed or read, and where."""

    message: str
    line: int = 1
    column: int = 1


@dataclass(slots=True)
class SourceFile:
    """One file: its lines and tree, or the problem that kept it from having one.

    ``cells`` is, for a notebook, the first line of each code cell in the joined text, with the
    cell's number counted from one as a notebook shows it.
    """

    path: str
    lines: list[str]
    tree: ast.Module | None = None
    problem: Problem | None = None
    cells: list[tuple[int, int]] = field(default_factory=list)
    encoding: str = "utf-8"

    def line(self, number: int) -> str:
        """Return a source line by its number, or the empty string past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def cell(self, line: int) -> tuple[int, int] | None:
        """Return a notebook's cell number, and the line inside that cell."""
        if not self.cells:
            return None
        start, number = self.cells[max(bisect_right(self.cells, (line, 1 << 30)) - 1, 0)]
        return number, line - start + 1


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
    """Read and parse a file; a problem is recorded, never raised."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        return SourceFile(
            str(path), [], problem=Problem(f"the file cannot be read ({error.strerror})")
        )
    return from_bytes(str(path), raw)


def from_bytes(path: str, raw: bytes) -> SourceFile:
    """Parse a file's contents; notebooks are told by their suffix."""
    text, encoding = decode(raw)
    if path.endswith(".ipynb"):
        return _notebook(path, text)
    source = parse(path, text)
    source.encoding = encoding
    return source


def parse(path: str, text: str) -> SourceFile:
    """Parse Python text."""
    # Only these end a line for the parser; str.splitlines would also split at form feeds.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    source = SourceFile(path, lines)
    joined = "\n".join(lines) + "\n"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source.tree = ast.parse(joined.removeprefix("\ufeff"), path)
    except SyntaxError as error:
        source.problem = Problem(
            error.msg or "invalid syntax", error.lineno or 1, max(error.offset or 1, 1)
        )
    except (ValueError, RecursionError, MemoryError) as error:
        source.problem = Problem(str(error) or type(error).__name__)
    return source


def _notebook(path: str, text: str) -> SourceFile:
    try:
        book = json.loads(text)
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
        return SourceFile(path, [], problem=Problem(f"no notebook ({error})"))
    if str(language).lower() != "python":
        return SourceFile(path, [], tree=ast.Module([], []))
    lines: list[str] = []
    starts: list[tuple[int, int]] = []
    good: list[str] = []
    problem = None
    for number, cell in code:
        starts.append((len(lines) + 1, number))
        original = cell.replace("\r\n", "\n").split("\n")
        python = _without_magics(original)
        alone = parse(path, "\n".join(python))
        if alone.problem is not None:  # one broken cell must not hide the others
            if problem is None:
                problem = Problem(
                    alone.problem.message, len(lines) + alone.problem.line, alone.problem.column
                )
            python = [""] * len(original)
        lines += original
        good += python
    source = parse(path, "\n".join(good))
    source.lines, source.cells = lines, starts
    source.problem = source.problem or problem
    return source


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
