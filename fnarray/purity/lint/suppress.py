"""Comments that silence a rule: ``# fnarray: ignore[FNA101]``, and their upkeep.

A comment covers the logical line it stands in (a call over five lines is one), or, alone on its
line, the logical line that follows.  ``# fnarray: ignore-file[FNA101]`` covers the file.  Codes
must be named: a comment that would silence everything silences nothing and is itself reported.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .source import SourceFile, parse

MARK = "fnarray:"
_COMMENT = re.compile(
    r"#\s*fnarray:\s*ignore(?P<file>-file)?(?![\w-])\s*(?:\[(?P<codes>[^\]\n]*)\])?",
    re.IGNORECASE,
)
_JUNK = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


class Comment(NamedTuple):
    """One suppression comment: where it stands, what it names, the lines it covers."""

    line: int
    column: int
    end_column: int
    codes: tuple[str, ...]
    whole_file: bool
    first: int
    last: int
    used: set[str]


class Suppressions:
    """The suppression comments of one file; remembers which of them were needed."""

    def __init__(self, comments: Iterable[Comment] = ()) -> None:
        self.comments = tuple(comments)

    @classmethod
    def of(cls, lines: list[str]) -> Suppressions:
        """Read the comments out of source lines; text inside strings is no comment."""
        if not any(MARK in line and "ignore" in line for line in lines):
            return cls()
        return cls(_comments(lines))

    def covers(self, code: str, name: str, line: int) -> bool:
        """Say whether a finding is silenced, and note the comment as used."""
        hit = False
        for comment in self.comments:
            if comment.whole_file or comment.first <= line <= comment.last:
                for entry in comment.codes:
                    if entry.upper() == code or entry.lower() == name:
                        comment.used.add(entry)
                        hit = True
        return hit

    def unused(self) -> Iterator[tuple[Comment, str]]:
        """Yield each named code that silenced nothing."""
        for comment in self.comments:
            for entry in dict.fromkeys(comment.codes):
                if entry not in comment.used:
                    yield comment, entry

    def blanket(self) -> Iterator[Comment]:
        """Yield the comments that name no code."""
        return (comment for comment in self.comments if not comment.codes)


def logical_lines(lines: list[str]) -> list[tuple[int, int]]:
    """Return the first and last line of each logical line, in order.

    Text that cannot be tokenized yields what came before the fault.
    """
    spans: list[tuple[int, int]] = []
    start = None
    for token in _tokens(lines):
        if token.type in _JUNK:
            continue
        if start is None:
            start = token.start[0]
        if token.type == tokenize.NEWLINE:
            spans.append((start, token.end[0]))
            start = None
    return spans


def _tokens(lines: list[str]) -> Iterator[tokenize.TokenInfo]:
    reader = io.StringIO("\n".join(lines) + "\n").readline
    try:
        yield from tokenize.generate_tokens(reader)
    except (tokenize.TokenError, SyntaxError):
        return


def _comments(lines: list[str]) -> Iterator[Comment]:
    spans = logical_lines(lines)
    seen = [
        token for token in _tokens(lines) if token.type == tokenize.COMMENT and MARK in token.string
    ]
    for token in seen:
        line = token.start[0]
        for found in _COMMENT.finditer(token.string):
            first, last = _covered(line, spans)
            column = token.start[1] + found.start()
            codes = tuple(c.strip() for c in (found["codes"] or "").split(",") if c.strip())
            end = token.start[1] + found.end()
            yield Comment(line, column, end, codes, found["file"] is not None, first, last, set())


def _covered(line: int, spans: list[tuple[int, int]]) -> tuple[int, int]:
    for first, last in spans:
        if first <= line <= last:
            return first, last
        if first > line:
            return line, last
    return line, line


# --- --add-ignore --------------------------------------------------------------------------------


def add_ignores(lines: list[str], wanted: Iterable[tuple[int, str]]) -> list[str]:
    """Return the lines with comments that silence each ``(line, code)``.

    The comment goes to the end of the logical line: the middle of one may be a string or a
    line continued by a backslash.
    """
    out = list(lines)
    spans = logical_lines(lines)
    by_end: dict[int, set[str]] = {}
    for line, code in wanted:
        last = next((last for first, last in spans if first <= line <= last), line)
        by_end.setdefault(last, set()).add(code)
    existing = {c.line: c for c in Suppressions.of(lines).comments if not c.whole_file}
    for last, codes in by_end.items():
        text = out[last - 1]
        if comment := existing.get(last):
            names = ", ".join(sorted(codes | set(comment.codes)))
            text = f"{text[: comment.column]}# fnarray: ignore[{names}]{text[comment.end_column :]}"
        else:
            text = f"{text.rstrip()}  # fnarray: ignore[{', '.join(sorted(codes))}]"
        out[last - 1] = text
    return out


def rewrite(source: SourceFile, wanted: Iterable[tuple[int, str]]) -> bool:
    """Write the comments into a file; say whether that left its meaning, and was done."""
    lines = add_ignores(source.lines, wanted)
    if not same_tree(source, "\n".join(lines)):
        return False
    write_back(source, lines)
    return True


def write_back(source: SourceFile, lines: list[str]) -> None:
    """Write a file's lines anew; line endings, encoding and the last newline are kept."""
    path = Path(source.path)
    raw = path.read_bytes()
    end = "\r\n" if b"\r\n" in raw else "\n"
    text = end.join(lines) + end * raw.endswith(b"\n")
    path.write_bytes(text.encode(source.encoding))


def same_tree(source: SourceFile, text: str) -> bool:
    """Say whether changed text still parses to the same tree."""
    changed = parse(source.path, text).tree
    return changed is not None and source.tree is not None and (
        ast.dump(changed) == ast.dump(source.tree)
    )  # fmt: skip
