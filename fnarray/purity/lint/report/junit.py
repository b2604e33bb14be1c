"""``junit``: one test suite per file, one failed case per finding."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from ..config import relative
from ._report import Report

# What XML 1.0 allows; a form feed in a source line, say, would make the document invalid.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _attr(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("?", text))


def junit(report: Report, out: TextIO) -> None:
    """Write a JUnit document; a clean run has one passing case."""
    n = len(report.findings)
    out.write('<?xml version="1.0" encoding="utf-8"?>\n')
    out.write(f'<testsuites name="fnarray" tests="{max(n, 1)}" failures="{n}" errors="0">\n')
    for file, group in groupby(report.findings, key=lambda f: f.file):
        found = list(group)
        name = _attr(relative(file, report.root))
        out.write(
            f'  <testsuite name={name} tests="{len(found)}" failures="{len(found)}" errors="0">\n'
        )
        for f in found:
            case = _attr(f"{f.code} {f.name}")
            out.write(
                f'    <testcase name={case} classname={name} file={name} line="{f.line}" '
                f'column="{f.column}">\n'
                f'      <failure type="{f.code}" message={_attr(f.said)}>'
                f"{escape(_FORBIDDEN.sub('?', f.full()))}</failure>\n    </testcase>\n"
            )
        out.write("  </testsuite>\n")
    if not n:
        out.write(
            '  <testsuite name="fnarray" tests="1" failures="0" errors="0">\n'
            '    <testcase name="no findings" classname="fnarray"/>\n  </testsuite>\n'
        )
    out.write("</testsuites>\n")
