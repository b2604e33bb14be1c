"""Machine formats: what other programs will read is what their definitions allow."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from fnarray.purity.lint.cli import parser
from fnarray.purity.lint.config import FORMATS, Options, Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.pages import reference
from fnarray.purity.lint.report import REPORTERS, Report
from fnarray.purity.lint.source import from_bytes, parse
from fnarray.purity.rules import RULES

ROOT = Path(__file__).parents[2]
# Names, columns and text that a careless writer would break on.
HOSTILE = (
    "import jax\n\n@jax.jit\ndef f(x):\n    s = '<&\"]]>%\x0c é 🎉'; print(x, s, ':,')\n"
    "    return x\n"
)


def report() -> Report:
    """Return a report of every rule's bad example, and of hostile text in a notebook and a file."""
    cell = {"cell_type": "code", "source": HOSTILE, "metadata": {}, "outputs": []}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    sources = [parse(f"{code} ü.py", rule.bad) for code, rule in RULES.items()]
    sources += [parse("a,b:c.py", HOSTILE), from_bytes("n.ipynb", json.dumps(book).encode())]
    result = lint(sources, Settings(root=ROOT))
    return Report(tuple(result.findings), result.sources, ROOT, len(sources))


def written(name: str) -> str:
    out = io.StringIO()
    REPORTERS[name](report(), out)
    return out.getvalue()


# SARIF 2.1.0 (OASIS), section 3: properties of the objects that are written. Each object's own
# are closed: the standard's schema allows no others. A star: must be there.
SARIF: dict[str, dict[str, str]] = {
    "log": {"version*": "=2.1.0", "$schema": "uri", "runs*": "[run"},
    "run": {
        "tool*": "tool", "results": "[result", "columnKind": "=unicodeCodePoints",
        "originalUriBaseIds": "{artifactLocation", "artifacts": "[artifact",
        "invocations": "[invocation",
    },
    "tool": {"driver*": "component", "extensions": "[component"},
    "component": {
        "name*": "text", "version": "text", "informationUri": "uri", "rules": "[descriptor",
    },
    "descriptor": {
        "id*": "text", "name": "text", "shortDescription": "message", "fullDescription": "message",
        "help": "message", "helpUri": "uri", "defaultConfiguration": "configuration",
        "properties": "any",
    },
    "configuration": {"level": "=error", "enabled": "any"},
    "message": {"text*": "text", "markdown": "text"},
    "result": {
        "message*": "message", "ruleId": "text", "ruleIndex": "index", "level": "=error|note",
        "locations": "[location", "partialFingerprints": "{text",
    },
    "location": {"physicalLocation": "physical"},
    "physical": {"artifactLocation*": "artifactLocation", "region": "region"},
    "artifactLocation": {"uri": "reference", "uriBaseId": "text"},
    "region": {
        "startLine*": "count", "startColumn": "count", "endLine": "count", "endColumn": "count",
        "snippet": "snippet",
    },
    "snippet": {"text": "text"},
}  # fmt: skip
LEAVES = {
    "text": lambda v: isinstance(v, str) and v != "",
    "uri": lambda v: re.match(r"[a-z]+://", v),
    "reference": lambda v: re.fullmatch(r"[!-~]+", v) and "\\" not in v,
    "index": lambda v: isinstance(v, int) and v >= 0,
    "count": lambda v: isinstance(v, int) and v >= 1,
    "any": lambda v: True,
}


def conforms(value: Any, kind: str, where: str) -> None:
    """Fail unless a value is what the table says."""
    if kind[0] == "=":
        assert value in kind[1:].split("|"), where
    elif kind[0] == "[":
        for i, item in enumerate(value):
            conforms(item, kind[1:], f"{where}[{i}]")
    elif kind[0] == "{":
        for key, item in value.items():
            conforms(item, kind[1:], f"{where}.{key}")
    elif kind in LEAVES:
        assert LEAVES[kind](value), f"{where}: {value!r}"
    else:
        table = {name.rstrip("*"): inner for name, inner in SARIF[kind].items()}
        assert value.keys() <= table.keys(), f"{where}: {value.keys() - table.keys()}"
        needed = {name.rstrip("*") for name in SARIF[kind] if name.endswith("*")}
        assert needed <= value.keys(), f"{where}: {needed - value.keys()}"
        for key, item in value.items():
            conforms(item, table[key], f"{where}.{key}")


def test_sarif_conforms():
    """Objects have the properties that the standard names and no others, of the right kind."""
    log = json.loads(written("sarif"))
    conforms(log, "log", "log")
    (found,) = log["runs"]
    ids = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    assert len(found["results"]) >= len(RULES)
    for result in found["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        region = result["locations"][0]["physicalLocation"]["region"]
        start = region["startLine"], region["startColumn"]
        assert start < (region["endLine"], region["endColumn"])


def test_junit_conforms():
    """Suites and cases nest as readers expect, their counts add up, and no text breaks them."""
    root = ET.fromstring(written("junit"))
    assert root.tag == "testsuites"
    suites = list(root)
    assert {s.tag for s in suites} == {"testsuite"}
    counts = {int(root.get("tests")), sum(int(s.get("tests")) for s in suites)}
    assert counts == {len(root.findall(".//failure"))}
    for suite in suites:
        assert int(suite.get("tests")) == int(suite.get("failures")) == len(suite)
        assert {case.tag for case in suite} == {"testcase"}
        assert all(case.get("name") and case.get("classname") for case in suite)


def test_github_is_one_command_a_finding():
    """Every line is one command whose properties hold no separator of their own."""
    lines = written("github").splitlines()
    assert len(lines) == len(report().findings)
    for line in lines:
        head, message = re.fullmatch(r"::error (.*?)::(.*)", line).groups()
        keys = [part.partition("=")[0] for part in head.split(",")]
        assert keys in (
            ["file", "line", "col", "endLine", "endColumn", "title"],
            ["file", "line", "col", "endLine", "title"],
        )
        assert message


def test_json_rows_have_all_fields():
    """A row holds place, rule, texts and path; one of a notebook also its cell."""
    rows = json.loads(written("json"))
    names = {"code", "name", "message", "repair", "file", "line", "column", "end_line",
             "end_column", "source", "path", "presumed"}  # fmt: skip
    for row in rows:
        assert row.keys() - {"cell", "cell_line"} == names
        assert ("cell" in row) == row["file"].endswith(".ipynb")


def test_reference_is_up_to_date():
    """The pages of the reference are those that the rule classes make."""
    folder = ROOT / "docs/reference/rules"
    made = dict(reference())
    assert {p.name for p in folder.glob("*.md")} == made.keys()
    stale = [n for n, text in made.items() if (folder / n).read_text(encoding="utf-8") != text]
    assert not stale, "run: python -m fnarray.purity.lint.pages docs/reference/rules"


def test_reference_names_every_setting():
    """Each setting, command-line option and format has its place in the reference."""
    text = (ROOT / "docs/reference/linter.md").read_text(encoding="utf-8")
    names = {name.replace("_", "-") for name in Options._fields} - {"root"}
    options = {o for a in parser()._actions for o in a.option_strings if o.startswith("--")}
    missing = [n for n in names | set(FORMATS) if f"`{n}`" not in text]
    missing += [o for o in options - {"--help", "--output-format"} if f"`{o}" not in text]
    assert not missing
