"""A second run examines only what can have changed, and prints the same; so do many processes."""

from __future__ import annotations

import json

import pytest

from fnarray.core import store
from fnarray.purity.lint import jobs, linter, results
from fnarray.purity.lint.cli import main

MAIN = "import jax\nfrom helpers import noisy\n\n@jax.jit\ndef step(x):\n    return noisy(x)\n"
NOISY = "def noisy(x):\n    print(x)\n    return x\n"
QUIET = "def noisy(x):\n    return x\n"
ALONE = "import jax\n\n@jax.jit\ndef relu(x):\n    if x > 0:\n        return x\n    return 0.0\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A file, its helper, and a file that has nothing to do with them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "helpers.py").write_text(NOISY)
    (tmp_path / "alone.py").write_text(ALONE)
    return tmp_path


@pytest.fixture
def examined(monkeypatch):
    """The paths that are examined from here on."""
    found: list[str] = []
    examine = linter.Examiner.examine

    def noted(self, source):
        found.append(source.path)
        return examine(self, source)

    monkeypatch.setattr(linter.Examiner, "examine", noted)
    return found


def run(capsys, *argv: str) -> list[tuple[str, str]]:
    """Return file and code of each finding."""
    assert main(["--format", "json", *argv]) in (0, 1)
    return [(row["file"], row["code"]) for row in json.loads(capsys.readouterr().out)]


BOTH = [("alone.py", "FNA601"), ("helpers.py", "FNA311")]


def test_a_second_run_examines_nothing(project, capsys, examined):
    """Nothing changed: the same findings, and no file is examined; also one that is named alone."""
    assert run(capsys) == BOTH
    assert sorted(examined) == ["alone.py", "helpers.py", "main.py"]
    examined.clear()
    assert run(capsys) == BOTH
    assert run(capsys, "alone.py") == BOTH[:1]
    assert run(capsys, "--select", "FNA3") == BOTH[1:], "selecting is no part of the outcome"
    assert not examined


def test_what_is_imported_counts(project, capsys, examined):
    """A changed helper is examined with those that import it, directly or not; others are not."""
    (project / "far.py").write_text("import jax\nimport main\n\nf = jax.jit(main.step)\n")
    run(capsys)
    examined.clear()
    (project / "helpers.py").write_text(QUIET)
    assert run(capsys) == BOTH[:1]
    assert sorted(examined) == ["far.py", "helpers.py", "main.py"]
    examined.clear()
    (project / "alone.py").write_text(ALONE + "\n")
    assert run(capsys) == BOTH[:1]
    assert examined == ["alone.py"]


def test_a_helper_that_was_not_given_counts(project, capsys, examined):
    """What a named file imports is looked at although it is not linted itself."""
    assert run(capsys, "main.py") == BOTH[1:]
    (project / "helpers.py").write_text(QUIET)
    assert run(capsys, "main.py") == []
    (project / "helpers.py").write_text(NOISY)
    assert run(capsys) == BOTH, "what a partial run found out is of no use for others"


def test_a_file_that_appears_or_goes(project, capsys):
    """A name that begins, or ceases, to lead to a file of the project is followed anew."""
    (project / "helpers.py").unlink()
    assert run(capsys) == BOTH[:1]
    (project / "helpers.py").write_text(NOISY)
    assert run(capsys) == BOTH
    (project / "helpers.py").write_text("def noisy(:\n")
    assert run(capsys) == [BOTH[0], ("helpers.py", "FNA001")]
    (project / "helpers.py").write_text(NOISY)
    assert run(capsys) == BOTH
    (project / "helpers").mkdir()
    (project / "helpers/__init__.py").write_text(QUIET)  # a package comes before a module
    assert run(capsys) == BOTH[:1]


def test_settings_that_change_outcomes(project, capsys):
    """Other transforms, trusted packages or limits are another entry."""
    (project / "wrapped.py").write_text("from lib import run\n\n@run\ndef f(x):\n    print(x)\n")
    assert run(capsys) == BOTH
    (project / "a.toml").write_text('transforms = ["lib.run"]\n')
    assert run(capsys, "--config", "a.toml") == [*BOTH, ("wrapped.py", "FNA311")]
    (project / "b.toml").write_text('transforms = ["lib.run"]\ntrusted = ["helpers"]\n')
    assert run(capsys, "--config", "b.toml") == [BOTH[0], ("wrapped.py", "FNA311")]
    assert run(capsys) == BOTH


def entry(project):
    """Return the file of this project's entry."""
    root = store.directory()
    mine = [path for path in root.glob("l_*.bin") if b"alone.py" in path.read_bytes()]
    return max(mine, key=lambda p: p.stat().st_mtime_ns)


def test_a_damaged_entry_is_none(project, capsys, examined):
    """A flipped bit, a cut or an empty file costs an examination, and nothing else."""
    run(capsys)
    for spoil in (lambda raw: raw[:-1], lambda raw: b"", lambda raw: raw.replace(b"FNA", b"FNB")):
        path = entry(project)
        path.write_bytes(spoil(path.read_bytes()))
        examined.clear()
        assert run(capsys) == BOTH
        assert len(examined) == 3


def test_another_linter_is_another_entry(project, capsys, examined, monkeypatch):
    """What an older linter found out says nothing of this one."""
    run(capsys)
    monkeypatch.setattr(results, "_mark", lambda: "another")
    examined.clear()
    run(capsys)
    assert len(examined) == 3


def test_no_cache(project, capsys, examined):
    """``--no-cache`` neither reads nor writes; standard input is never kept."""
    before = set(store.directory().glob("l_*"))
    run(capsys, "--no-cache")
    run(capsys, "--no-cache")
    assert len(examined) == 6
    assert set(store.directory().glob("l_*")) == before


def test_a_directory_that_cannot_be_used(project, capsys, monkeypatch):
    """Where nothing can be kept everything is found all the same, with a warning."""
    monkeypatch.setattr("fnarray.core.store.directory", lambda create=True: None)
    assert run(capsys) == run(capsys) == BOTH


def test_processes_find_the_same(project, capsys, monkeypatch, examined):
    """Two processes give what one gives, in the same order, and leave the same entry."""
    for i in range(12):
        (project / f"more{i}.py").write_text(ALONE + f"\n\nb{i} = jax.jit(lambda x: print(x))\n")
    alone = run(capsys, "--no-cache", "--jobs", "1")
    assert len(alone) == 2 + 24
    examined.clear()
    monkeypatch.setattr(jobs, "_CHARACTERS_EACH", 1)
    assert run(capsys, "--jobs", "2") == alone
    assert not examined, "the work was done elsewhere"
    assert run(capsys) == alone
    assert not examined


def test_processes_are_given_neighbours():
    """Parts go to whoever asks: two processes that take turns have a half of the files each."""
    assert jobs._in_turns([["a"], ["b"], ["c"], ["d"], ["e"]], 2) == [
        ["a"], ["d"], ["b"], ["e"], ["c"]
    ]  # fmt: skip


def test_a_file_under_two_names(project, capsys, examined):
    """A link to a helper is the helper: it is examined once, and its changes are seen."""
    (project / "other").mkdir()
    (project / "other/real.py").write_text(NOISY)
    (project / "helpers.py").unlink()
    (project / "helpers.py").symlink_to(project / "other/real.py")
    first = run(capsys)
    examined.clear()
    assert run(capsys) == first
    assert not examined
    (project / "other/real.py").write_text(QUIET)
    assert run(capsys) == BOTH[:1]
