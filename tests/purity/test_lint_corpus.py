"""The linter over the corpus of realistic functions, and over each rule's examples."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fnarray.purity import check
from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import SourceFile, parse
from fnarray.purity.rules import RULES

from .corpus import FILES as NAMES
from .corpus import cases

CORPUS = Path(__file__).with_name("corpus")


def traced_source(path: Path) -> SourceFile:
    """Return a file of the corpus with a transform for what it hands to the checker without one."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("make_"):
            lines.append(f"_fnarray.jit({node.name}())")
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TRACED":
            assert isinstance(node.value, ast.Dict)
            for pair in reversed(node.value.values):  # in its place: the line stays the same
                at, start, end = pair.elts[0], pair.elts[0].col_offset, pair.elts[0].end_col_offset
                line = lines[at.lineno - 1]
                jitted = f"_fnarray.jit({line[start:end]})"
                lines[at.lineno - 1] = f"{line[:start]}{jitted}{line[end:]}"
    return parse(str(path), "\n".join([*lines, "import fnarray as _fnarray", ""]))


@pytest.fixture(scope="module")
def verdicts():
    """Return the lines, as ``(file, line)``, that are marked, found in files, and found live."""
    every = [case for name in NAMES for case in cases(name)]
    marked = {(Path(case.file).name, line) for case in every for line in case.lines}
    live = {(Path(f.file).name, f.line) for case in every for f in check(case.function)}
    result = lint([traced_source(CORPUS / f"{name}.py") for name in NAMES], Settings(root=CORPUS))
    assert not result.crashes
    return marked, {(Path(f.file).name, f.line) for f in result.findings}, live


def test_recall(verdicts):
    """At least 99% of the lines marked as impure are found, with nothing imported."""
    marked, found, _ = verdicts
    assert len(marked - found) <= 0.01 * len(marked), sorted(marked - found)


def test_false_positives(verdicts):
    """At most 1% of what is found is neither marked nor found live."""
    marked, found, live = verdicts
    wrong = found - marked - live
    assert len(wrong) <= 0.01 * len(found), sorted(wrong)


def test_live_and_static_agree(verdicts):
    """Line by line both front ends give the same verdict; live objects tell a little more."""
    _, found, live = verdicts
    assert len(found ^ live) <= 0.01 * len(live), sorted(found ^ live)


@pytest.mark.parametrize(
    "code", sorted(RULES.keys() - {"FNA004", "FNA005"})
)  # test_verify, test_faults
def test_rule_examples(code):
    """A rule's bad example fires it, and nothing else; the good one is silent."""
    rule = RULES[code]
    bad = lint([parse("bad.py", rule.bad)], Settings()).findings
    good = lint([parse("good.py", rule.good)], Settings()).findings
    assert {f.code for f in bad} == {code}
    assert good == []


@pytest.mark.parametrize("code", sorted(c for c in RULES if not c.startswith("FNA0")))
def test_rule_is_suppressed(code):
    """A comment on the lines of a rule's bad example silences it, by code and by name."""
    rule = RULES[code]
    lines = rule.bad.split("\n")
    for mark in (code, rule.name):
        silenced = list(lines)
        for number in {f.line for f in lint([parse("bad.py", rule.bad)], Settings()).findings}:
            silenced[number - 1] += f"  # fnarray: ignore[{mark}]"
        assert lint([parse("bad.py", "\n".join(silenced))], Settings()).findings == []
