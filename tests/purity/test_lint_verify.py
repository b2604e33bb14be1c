"""``lint --verify`` runs programs, and reports the effects that end them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fnarray.purity.lint.cli import main
from fnarray.purity.rules import RULES

UNSEEN = """
import fnarray

def noisy(x):
    print(x)
    return x

# The name is computed: no reading of the file can tell what is traced.
fnarray.jit(globals()["noi" + "sy"])(1.0)
"""
RULE = RULES["FNA004"]


@pytest.mark.parametrize(
    ("text", "status", "expected"),
    [
        (RULE.good, 0, []),
        (RULE.bad, 1, [("FNA004", 7)]),
        (RULE.bad.replace("rvs()", "rvs()  # fnarray: ignore[FNA004]"), 0, []),
        (UNSEEN, 1, [("FNA311", 5)]),
        (UNSEEN.replace("print(x)", "print(x)  # fnarray: ignore[FNA311,FNA002]"), 0, []),
        ("import fnarray\nraise ValueError('no data')\n", 2, "does not run: ValueError: no data"),
        ("import fnarray\nraise SystemExit(3)\n", 2, "does not run: exit status 3"),
        ("import math\nraise SystemExit(3)\n", 0, []),
    ],
    ids=[
        "pure",
        "differs",
        "differs-ignored",
        "unseen",
        "ignored",
        "raises",
        "exits",
        "no-fnarray",
    ],
)
def test_verify(tmp_path, monkeypatch, capsys, text, status, expected):
    """Scripts that use fnarray are run; an effect that ends one is a finding at its line."""
    monkeypatch.chdir(tmp_path)
    Path("run.py").write_text(text)
    Path("test_run.py").write_text("import fnarray\nraise SystemExit(5)\n")  # pytest's to run
    assert main([".", "--verify", "--format", "json"]) == status
    out, err = capsys.readouterr()
    if status == 2:
        assert expected in err
    else:
        assert [(row["code"], row["line"]) for row in json.loads(out)] == expected


def test_verify_obeys_settings(tmp_path, monkeypatch):
    """What is not selected is not reported, although it ended the program."""
    monkeypatch.chdir(tmp_path)
    Path("run.py").write_text(UNSEEN)
    assert main([".", "--verify", "--ignore", "FNA311"]) == 0
