"""Pages about rules, made from the rule classes: for ``fnarray rule``, and for the reference.

``python -m fnarray.purity.lint.pages docs/reference/rules`` writes the reference anew; a test
compares it with the classes.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ..rules import RULES, LintRule
from .config import Settings
from .linter import lint
from .report import Report
from .report.text import frame
from .source import parse

_TITLES = {
    "tool": "The linter's own",
    "writes": "Writes to what outlives the call",
    "reads": "Reads of what may change",
    "nondeterminism": "Chance, clocks, addresses",
    "io": "Input and output",
    "iterators": "Iterators that outlive the call",
    "dynamic": "Code that cannot be read",
    "tracing": "Pitfalls of tracing",
}
_HEAD = """\
# Rules

One page for each rule of the purity checker and its linter, made from the rule classes.
`fnarray rule CODE` prints the same text.
Rules of the groups *writes* to *dynamic* are checked in files and in live functions; *tracing* and
*the linter's own* concern files alone.
"""


def summary(rule: type[LintRule]) -> str:
    """Return a rule in one sentence."""
    return (rule.__doc__ or "").strip().splitlines()[0]


def page(rule: type[LintRule]) -> str:
    """Return a rule's explanation in Markdown."""
    return (
        f"# {rule.code}: {rule.name}\n\n{summary(rule)}\n\n"
        f"Group: {rule.group}.\n\n"
        f"## Why\n\n{rule.why.strip()}\n\n"
        f"## Bad\n\n```python\n{rule.bad.strip()}\n```\n\n"
        f"## Good\n\n```python\n{rule.good.strip()}\n```"
    )


def reported(rule: type[LintRule]) -> str:
    """Return what the linter prints for a rule's bad example; nothing for one that it must run."""
    name = f"{rule.name}.py"
    result = lint([parse(name, rule.bad.strip() + "\n")], Settings())
    report = Report(tuple(result.findings), result.sources, Path(), 1)
    return "\n\n".join("\n".join(frame(report, finding)) for finding in result.findings)


def reference() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page of the reference, the index first."""
    index = io.StringIO()
    index.write(_HEAD)
    ordered = sorted(RULES.values(), key=lambda rule: rule.code)
    for group, rules in groupby(ordered, key=lambda rule: rule.group):
        index.write(f"\n## {_TITLES[group]}\n\n| code | name | finds |\n|---|---|---|\n")
        for rule in rules:
            link = f"[{rule.code}]({rule.code}.md)"
            index.write(f"| {link} | `{rule.name}` | {summary(rule)} |\n")
    index.write("\n```{toctree}\n:hidden:\n:glob:\n\nFNA*\n```\n")
    yield "index.md", index.getvalue()
    for rule in ordered:
        silence = (
            f"## Silence it\n\n`# fnarray: ignore[{rule.code}]` on the line, "
            f"`ignore = ['{rule.code}']` under `[tool.fnarray.lint]`, or `per-file-ignores`.\n"
        )
        shown = reported(rule)
        printed = f"## What is reported\n\n```text\n{shown}\n```\n\n" if shown else ""
        yield f"{rule.code}.md", f"{page(rule)}\n\n{printed}{silence}"


def main(folder: str) -> None:
    """Write the reference into a folder."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in reference():
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
