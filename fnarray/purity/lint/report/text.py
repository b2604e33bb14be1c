"""Formats for a terminal: ``full`` with the source frame, ``concise`` one line each."""

from __future__ import annotations

from typing import TextIO

from ...findings import Finding
from ._report import Report

_RESET = "\x1b[0m"
_STYLES = {"place": "\x1b[1m", "code": "\x1b[1;31m", "caret": "\x1b[1;31m", "dim": "\x1b[2m",
           "repair": "\x1b[32m"}  # fmt: skip
TAB = 4


def _paint(report: Report, style: str, text: str) -> str:
    return f"{_STYLES[style]}{text}{_RESET}" if report.color and text else text


def plural(n: int, noun: str) -> str:
    """Return a count with its noun: ``1 file``, ``2 files``."""
    return f"{n} {noun}{'s' * (n != 1)}"


def summary(report: Report) -> str:
    """Return the closing line."""
    looked = f"{plural(report.files, 'file')} checked in {report.seconds:.2f} s"
    if not report.findings:
        return f"No findings. {looked}."
    return f"Found {plural(len(report.findings), 'finding')}. {looked}."


def concise(report: Report, out: TextIO) -> None:
    """Write one line per finding."""
    for f in report.findings:
        out.write(f"{report.shown(f)}: {f.code} [{f.name}] {f.said}. {f.repair}\n")


def full(report: Report, out: TextIO) -> None:
    """Write each finding with three lines of source, a caret, the path to it and the repair."""
    if report.color and _rich(report, out):
        return
    for f in report.findings:
        out.write("\n".join(frame(report, f)) + "\n\n")
    out.write(summary(report) + "\n")


def frame(report: Report, f: Finding) -> list[str]:
    """Return the lines that show a finding: place, source, caret, path, repair."""
    head = f"{_paint(report, 'place', report.shown(f))}: {_paint(report, 'code', f.code)}"
    lines = [f"{head} [{f.name}] {f.said}"]
    source = report.sources.get(f.file)
    cell = source.cell(f.line) if source else None
    offset = f.line - cell[1] if cell else 0
    shown = [n for n in (f.line - 1, f.line) if source and n > offset and source.line(n).strip()]
    width = len(str(f.line - offset))
    for n in shown:
        assert source is not None
        text = source.line(n)
        gutter = _paint(report, "dim", f"{n - offset:{width}} |")
        lines.append(f"  {gutter} {text.expandtabs(TAB)}")
        if n == f.line:
            start = len(text[: f.column - 1].expandtabs(TAB))
            last = f.end_column - 1 if f.end_line == f.line else len(text)
            carets = "^" * max(len(text[:last].expandtabs(TAB)) - start, 1)
            gutter = _paint(report, "dim", f"{'':{width}} |")
            lines.append(f"  {gutter} {' ' * start}{_paint(report, 'caret', carets)}")
    if len(f.path) > 1:
        lines.append(f"  reached by {' -> '.join(f.path)}")
    lines.append(f"  {_paint(report, 'repair', f.repair)}")
    return lines


def _rich(report: Report, out: TextIO) -> bool:
    """Write with highlighted source when rich is installed; say whether it was."""
    try:
        from rich.console import Console
        from rich.syntax import Syntax
        from rich.text import Text
    except ImportError:
        return False
    console = Console(file=out, force_terminal=True, highlight=False, soft_wrap=True)
    for f in report.findings:
        head = Text.assemble(
            (report.shown(f), "bold"), ": ", (f.code, "bold red"), f" [{f.name}] ", f.said
        )
        console.print(head)
        source = report.sources.get(f.file)
        if source and source.line(f.line).strip():
            cell = source.cell(f.line)
            offset = f.line - cell[1] if cell else 0
            first = max(f.line - 1, offset + 1)
            frame = Syntax(
                "\n".join(source.line(n) for n in range(first, f.line + 1)), "python",
                line_numbers=True, start_line=first - offset, tab_size=TAB,
                background_color="default", highlight_lines={f.line - offset},
            )  # fmt: skip
            if f.end_line == f.line:
                frame.stylize_range(
                    "bold red underline",
                    (f.line - first + 1, f.column - 1),
                    (f.line - first + 1, f.end_column - 1),
                )
            console.print(frame)
        if len(f.path) > 1:
            console.print(Text(f"  reached by {' -> '.join(f.path)}"))
        console.print(Text(f"  {f.repair}\n", style="green"))
    console.print(summary(report))
    return True


def statistics(report: Report, out: TextIO) -> None:
    """Write how often each rule fired."""
    rows = report.statistics()
    width = len(str(rows[0][0])) if rows else 1
    for n, code, name in rows:
        out.write(f"{n:{width}}  {code}  {name}\n")
