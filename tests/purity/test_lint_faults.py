"""A fault of the linter is a finding: it hides nothing, and is not taken for silence."""

from __future__ import annotations

import json

import pytest

from fnarray.purity.lint import linter
from fnarray.purity.lint.cli import main

BRANCH = "import jax\n\n@jax.jit\ndef relu(x):\n    if x > 0:\n        return x\n    return 0.0\n"


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    """Two files with a finding each, and a linter that fails in one of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(linter, "reused", fail)
    for name in ("bad.py", "good.py"):
        (tmp_path / name).write_text(BRANCH)


def fail(project, module):
    """Fail as a bug would."""
    if module.path == "bad.py":
        raise AttributeError("'Import' object has no attribute 'exact'")
    return []


def test_the_rest_is_linted(faulty, capsys):
    """The fault is one finding of its file, next to what else is found; the exit status is 3."""
    assert main(["--format", "json", "--no-cache"]) == 3
    found = [(row["file"], row["code"]) for row in json.loads(capsys.readouterr().out)]
    assert found == [("bad.py", "FNA005"), ("bad.py", "FNA601"), ("good.py", "FNA601")]


def test_verbose_prints_the_traceback(faulty, capsys):
    """The finding names the exception; ``--verbose`` shows where it came from."""
    main(["--no-cache"])
    out, err = capsys.readouterr()
    assert "AttributeError: 'Import' object has no attribute 'exact'" in out
    assert "Traceback" not in err
    main(["--verbose", "--no-cache"])
    assert "in fail" in capsys.readouterr().err


def test_a_fault_may_be_ignored_but_not_hidden(faulty, capsys):
    """No option turns the exit status of a failed run into one of success."""
    assert main(["--ignore", "FNA005,FNA601", "--exit-zero", "--no-cache"]) == 3
    assert "No findings" in capsys.readouterr().out


def test_faults_outside_of_files(tmp_path, monkeypatch, capsys):
    """A fault that belongs to no file ends the run with 3 and one line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fnarray.purity.lint.cli.settings_of", lambda args: 1 / 0)
    assert main([]) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_range_of_an_imported_number(tmp_path, monkeypatch, capsys):
    """The length of a loop may be a name of a sibling module: what that is decides nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.py").write_text("N = 3\n")
    (tmp_path / "main.py").write_text(
        "import jax\nfrom sizes import N\n\n@jax.jit\ndef f(x):\n"
        "    for _ in range(N):\n        x = x + 1\n    return x\n"
    )
    assert main(["--no-cache"]) == 0, capsys.readouterr().out
