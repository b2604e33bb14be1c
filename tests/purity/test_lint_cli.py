"""The linter's command line: what it reads, how it reports, and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from fnarray.purity.lint import suppress
from fnarray.purity.lint.cli import explain, main
from fnarray.purity.lint.report import REPORTERS
from fnarray.purity.lint.source import decode, from_bytes
from fnarray.purity.rules import RULES

BRANCH = "import jax\n\n@jax.jit\ndef relu(x):\n    if x > 0:\n        return x\n    return 0.0\n"
CLEAN = "import jax\n\n@jax.jit\ndef double(x):\n    return 2 * x\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes files into a fresh folder, which is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(**files: str) -> Path:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_py", ".py").replace(
                "_toml", ".toml"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


def run(capsys, *argv: str) -> tuple[int, str, str]:
    """Run the linter; return status, output and complaints."""
    status = main(list(argv))
    out, err = capsys.readouterr()
    return status, out, err


def codes(text: str) -> list[str]:
    """Return the codes of a report in JSON, in order."""
    return [row["code"] for row in json.loads(text)]


@pytest.mark.parametrize(
    ("text", "argv", "status"),
    [
        (CLEAN, (), 0),
        (BRANCH, (), 1),
        (BRANCH, ("--exit-zero",), 0),
        (BRANCH, ("--ignore", "FNA601"), 0),
        (BRANCH, ("--ignore", "traced-branch"), 0),
        (BRANCH, ("--select", "FNA1"), 0),
        (BRANCH, ("--select", "FNA1", "--extend-select", "FNA601"), 1),
        (BRANCH, ("--ignore", "FNA6", "--extend-select", "FNA601"), 1),
        (BRANCH, ("--select", "FNA9"), 2),
        (BRANCH, ("--no-such-option",), 2),
        (BRANCH, ("nowhere.py",), 2),
        ("def f(:\n", (), 1),
    ],
)
def test_exit_status(project, capsys, text, argv, status):
    """0 is clean, 1 findings, 2 arguments that cannot be used."""
    project(a_py=text)
    assert run(capsys, ".", *argv)[0] == status


def test_full_frame(project, capsys):
    """The full format shows place, source, caret and repair."""
    project(a_py=BRANCH)
    _, out, _ = run(capsys, "a.py")
    assert "a.py:5:8: FNA601 [traced-branch]" in out
    assert "5 |     if x > 0:" in out
    assert "  |        ^^^^^\n" in out
    assert RULES["FNA601"].repair in out


def test_every_format_writes(project, capsys):
    """Every format names the rule and its line; machine formats parse."""
    project(a_py=BRANCH)
    texts = {name: run(capsys, "a.py", "--format", name)[1] for name in REPORTERS}
    assert codes(texts["json"]) == ["FNA601"]
    assert texts["github"].startswith("::error file=a.py,line=5,col=8,endLine=5,endColumn=13,")
    suite = ET.fromstring(texts["junit"])
    assert suite.get("failures") == "1"
    assert suite[0][0].get("line") == "5"
    assert texts["concise"].count("\n") == 1


def test_formats_of_nothing(project, capsys):
    """A clean run is a valid, empty document."""
    project(a_py=CLEAN)
    texts = {name: run(capsys, "a.py", "--format", name)[1] for name in REPORTERS}
    assert json.loads(texts["json"]) == []
    assert json.loads(texts["sarif"])["runs"][0]["results"] == []
    assert ET.fromstring(texts["junit"]).get("failures") == "0"
    assert texts["github"] == texts["concise"] == ""


def test_sarif(project, capsys):
    """SARIF 2.1.0: required properties, indices that point at rules, columns and fingerprints."""
    project(a_py=BRANCH + BRANCH.replace("relu", "other"))
    log = json.loads(run(capsys, ".", "--format", "sarif")[1])
    assert log["version"] == "2.1.0"
    (found,) = log["runs"]
    rules = found["tool"]["driver"]["rules"]
    assert found["tool"]["driver"]["name"] == "fnarray"
    assert all(base["uri"].endswith("/") for base in found["originalUriBaseIds"].values())
    assert len(found["results"]) == 2
    for result in found["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "FNA601"
        assert result["message"]["text"]
        where = result["locations"][0]["physicalLocation"]
        assert where["artifactLocation"] == {"uri": "a.py", "uriBaseId": "ROOT"}
        assert where["region"]["endColumn"] > where["region"]["startColumn"] >= 1
    marks = [r["partialFingerprints"]["fnarray/v1"] for r in found["results"]]
    assert len(set(marks)) == 2


def test_github_escapes(project, capsys):
    """What a workflow command reserves is escaped."""
    project(**{"a_py": "import jax\n@jax.jit\ndef f(x):\n    if x % 2 > 0:\n        return x\n"})
    out = run(capsys, "a.py", "--format", "github")[1]
    assert "::error " in out
    assert "\n" not in out.rstrip("\n")


def test_runs_without_numpy_and_imports_nothing(tmp_path):
    """The linter needs neither NumPy nor Numba, and never runs what it reads."""
    (tmp_path / "a.py").write_text("raise SystemExit(3)\n" + BRANCH)
    root = Path(__file__).parents[2]
    code = (
        "import sys, types\n"
        "for name in ('numpy', 'numba', 'jax', 'scipy', 'rich'): sys.modules[name] = None\n"
        "package = types.ModuleType('fnarray')\n"
        f"package.__path__ = [{str(root / 'fnarray')!r}]\n"
        "sys.modules['fnarray'] = package\n"
        "from fnarray.purity.lint.cli import main\n"
        "sys.exit(main(['a.py', '--color=always']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "FNA601" in done.stdout


# --- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        ("é = 1\n".encode(), "utf-8"),
        ("\ufeffé = 1\n".encode(), "utf-8-sig"),
        ("# -*- coding: latin-1 -*-\né = 1\n".encode("latin-1"), "iso-8859-1"),
        (b"x = '\xff'\n", "latin-1"),
        ("é = 1\n".encode("utf-16"), "utf-16"),
        (b"# coding: nonsense\nx = 1\n", "latin-1"),
    ],
)
def test_encodings(raw, encoding):
    """Text of any encoding is read, and parsed."""
    assert decode(raw)[1] == encoding
    source = from_bytes("a.py", raw)
    assert source.tree is not None, source.problem


def test_hostile_files(project, capsys):
    """Null bytes, deep nesting, a missing end and form feeds are findings or nothing: no crash."""
    root = project(
        a_py="import jax\n\x00\n",
        b_py="import jax\nx = " + "(" * 150 + "1" + ")" * 150 + "\n",
        c_py="import jax\nx = '''\n",
        d_py="import jax\n" + "x = " + "+".join(["1"] * 3000) + "\n",
        e_py="import jax\n\x0cx = 1\r\ny = 2\n",
    )
    (root / "f.ipynb").write_text("{}")
    status, out, err = run(capsys, ".", "--format", "json")
    assert status in {1, 2}
    assert "internal error" not in err
    assert set(codes(out)) == {"FNA001"}


def test_a_file_for_a_newer_python(project, capsys):
    """A file that this Python is too old for, if it is, is told apart from one that is wrong."""
    project(a_py="import jax\ntype Scalar = float\n", b_py="import jax\ndef f[T](x: T): return x\n")
    _, out, _ = run(capsys, ".", "--format", "json")
    rows = json.loads(out)
    said = ["Run fnarray lint with Python 3.12 or newer."] * (2 * (sys.version_info < (3, 12)))
    assert [row["repair"] for row in rows] == said
    assert all("this is written for 3.12" in row["message"] for row in rows)


def test_columns_count_characters(project, capsys):
    """A column is a character, not a byte."""
    project(a_py="import jax\n@jax.jit\ndef f(é, x):\n    é = é; assert x > 0\n")
    row = json.loads(run(capsys, "a.py", "--format", "json")[1])[0]
    assert (row["line"], row["column"]) == (4, 19)


def notebook(*cells: str) -> str:
    """Return a notebook with the given code cells, a page of text before each."""
    listed = []
    for cell in cells:
        listed.append({"cell_type": "markdown", "metadata": {}, "source": ["text"]})
        listed.append(
            {"cell_type": "code", "metadata": {}, "source": cell.splitlines(keepends=True),
             "outputs": [], "execution_count": None}
        )  # fmt: skip
    return json.dumps(
        {"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


def test_notebook(project, capsys):
    """Cells share names; magics are skipped; a place is a cell and a line in it."""
    root = project()
    text = notebook("import jax\n%matplotlib inline\n!ls", "%%bash\nls ?", BRANCH[12:], "x = (")
    (root / "n.ipynb").write_text(text)
    status, out, _ = run(capsys, "n.ipynb", "--format", "json")
    assert status == 1
    rows = {row["code"]: row for row in json.loads(out)}
    assert (rows["FNA601"]["cell"], rows["FNA601"]["cell_line"]) == (6, 3)
    assert rows["FNA001"]["cell"] == 8
    assert "n.ipynb:cell 6:3:8" in run(capsys, "n.ipynb", "--format", "concise")[1]
    main(["n.ipynb", "--add-ignore", "-q"])
    assert run(capsys, "n.ipynb", "--ignore", "FNA001")[0] == 0


def test_stdin(project, capsys, monkeypatch):
    """A dash reads standard input, under a name of choice."""
    import io

    project()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BRANCH.encode())))
    status, out, _ = run(capsys, "-", "--stdin-filename", "pkg/a.py", "--format", "concise")
    assert status == 1
    assert out.startswith("pkg/a.py:5:8: FNA601")


def test_discovery(project, capsys):
    """Folders are walked without caches and environments; a file named outright is taken."""
    project(a_py=CLEAN, b__c_py=CLEAN, build__d_py=CLEAN, **{".venv__e_py": CLEAN})
    shown = run(capsys, ".", "--show-files")[1].split()
    assert [Path(p).name for p in shown] == ["a.py", "c.py"]
    assert run(capsys, "build/d.py", "--show-files")[1].split() == ["build/d.py"]


# --- configuration -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "status"),
    [
        ("ignore = ['FNA601']", 0),
        ("select = ['FNA6']", 1),
        ("exclude = ['a.py']", 0),
        ("[tool.fnarray.lint.per-file-ignores]\n'a.py' = ['FNA6']", 0),
        ("[tool.fnarray.lint.per-file-ignores]\n'tests/**' = ['FNA6']", 1),
        ("format = 'json'", 1),
        ("ignore = 'FNA601'", 2),
        ("ignore = ['FNA999']", 2),
        ("colour = true", 2),
        ("max-unrolled = 0", 2),
        ("= 3", 2),
    ],
)
def test_configuration(project, capsys, table, status):
    """Options come from ``[tool.fnarray.lint]``; what cannot be meant is said, with status 2."""
    project(a_py=BRANCH, pyproject_toml=f"[tool.fnarray.lint]\n{table}\n")
    assert run(capsys, ".")[0] == status
    assert run(capsys, ".", "--isolated")[0] == 1


HELPED = """
import jax, tools, wandb

@jax.jit
def step(x):
    wandb.log({"loss": x})
    return tools.count(x)
"""
COUNTER = "calls = 0\ndef count(x):\n    global calls\n    calls += 1\n    return x\n"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("", ["FNA101"]),
        ("trusted = ['tools']", []),
        ("trusted = ['tool']", ["FNA101"]),
        ("impure = ['wandb']", ["FNA101", "FNA316"]),
        ("impure = ['wandb.log', 'tools.count']", ["FNA316", "FNA316"]),
    ],
)
def test_trusted_and_impure(project, capsys, table, expected):
    """Packages named as trusted are not entered; functions named as impure are refused."""
    project(a_py=HELPED, tools_py=COUNTER, pyproject_toml=f"[tool.fnarray.lint]\n{table}\n")
    assert sorted(codes(run(capsys, ".", "--format", "json")[1])) == expected


def test_settings_hold_from_any_folder(project, capsys, monkeypatch):
    """Patterns are relative to the settings' folder, wherever the linter is started."""
    table = "[tool.fnarray.lint.per-file-ignores]\n'src/**' = ['FNA601']\n"
    root = project(src__a_py=BRANCH, pyproject_toml=table)
    monkeypatch.chdir(root / "src")
    assert run(capsys, ".")[0] == run(capsys, "a.py")[0] == 0
    monkeypatch.chdir(root)
    assert run(capsys, "src")[0] == 0


@pytest.mark.parametrize(
    ("library", "said"), [("jax", "jax.debug.print"), ("fnarray", "fnarray.debug.print")]
)
def test_repairs_speak_of_the_library_in_use(project, capsys, library, said):
    """Who uses JAX is shown JAX's repair."""
    project(a_py=f"import {library}\n@{library}.jit\ndef f(x):\n    print(x)\n")
    assert f" {said}," in run(capsys, "a.py")[1]


# --- suppressions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# fnarray: ignore[FNA601]", []),
        ("# fnarray: ignore[traced-branch] known to be static", []),
        ("# noqa  # fnarray: ignore[FNA601]", []),
        ("# fnarray: ignore[FNA601, FNA101]", ["FNA002"]),
        ("# fnarray: ignore[FNA101]", ["FNA601", "FNA002"]),
        ("# fnarray: ignore[FNA999, FNA601]", ["FNA003"]),
        ("# fnarray: ignore", ["FNA601", "FNA003"]),
    ],
)
def test_comments(project, capsys, comment, expected):
    """A comment silences the codes it names; what it names in vain is reported."""
    project(a_py=BRANCH.replace("if x > 0:", f"if x > 0:  {comment}"))
    assert sorted(codes(run(capsys, "a.py", "--format", "json")[1])) == sorted(expected)


def test_comment_covers_a_logical_line():
    """A comment counts for the whole call it stands in, or the line after it; not in strings."""
    lines = ["f(", "  a,", "  b)  # fnarray: ignore[FNA101]", "# fnarray: ignore[FNA102]", "",
             "g()", "s = '# fnarray: ignore[FNA103]'"]  # fmt: skip
    found = suppress.Suppressions.of(lines)
    assert [(c.codes, c.first, c.last) for c in found.comments] == [
        (("FNA101",), 1, 3),
        (("FNA102",), 4, 6),
    ]


def test_ignore_file(project, capsys):
    """``ignore-file`` covers the file."""
    project(a_py="# fnarray: ignore-file[FNA601]\n" + BRANCH)
    assert run(capsys, "a.py")[0] == 0


def test_unused_is_silent_for_rules_that_are_off(project, capsys):
    """A comment for a rule that is not selected may well be needed elsewhere."""
    project(a_py=CLEAN.replace("2 * x", "2 * x  # fnarray: ignore[FNA601]"))
    assert run(capsys, "a.py", "--ignore", "FNA601")[0] == 0
    assert run(capsys, "a.py")[0] == 1


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_add_ignore(project, capsys, newline):
    """Comments are added once, merged with those there, and the program is unchanged."""
    root = project()
    text = (
        'import jax\n\n@jax.jit\ndef f(x, s="""a\nb"""):\n    if (x >\n        0):\n'
        "        return float(x)  # note\n    return x if x < 0 else 1  # fnarray: ignore[FNA101]\n"
    )
    path = root / "a.py"
    path.write_bytes(text.replace("\n", newline).encode())
    assert run(capsys, "a.py", "--add-ignore")[0] == 1  # the comment in vain is left
    after = path.read_bytes().decode()
    assert after.count(newline) == text.count("\n")
    assert "# note  # fnarray: ignore[FNA602]" in after
    assert "# fnarray: ignore[FNA101, FNA601]" in after
    assert codes(run(capsys, "a.py", "--format", "json")[1]) == ["FNA002"]


# --- baseline ------------------------------------------------------------------------------------


def test_baseline(project, capsys):
    """Known findings are left out wherever they move; new ones are reported, gone ones noted."""
    root = project(a_py=BRANCH)
    assert run(capsys, ".", "--write-baseline", "known.json")[0] == 0
    assert run(capsys, ".", "--baseline", "known.json")[0] == 0
    (root / "a.py").write_text("import os\n\n" + BRANCH)
    assert run(capsys, ".", "--baseline", "known.json")[0] == 0
    (root / "a.py").write_text(BRANCH + BRANCH)
    assert run(capsys, ".", "--baseline", "known.json")[0] == 1
    (root / "a.py").write_text(CLEAN)
    assert "1 finding of known.json is gone" in run(capsys, ".", "--baseline", "known.json")[2]
    assert run(capsys, ".", "--baseline", "missing.json")[0] == 2
    (root / "known.json").write_text("[]")
    assert run(capsys, ".", "--baseline", "known.json")[0] == 2


# --- rule ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(RULES))
def test_rule_explains(capsys, code):
    """``rule CODE`` shows why, a bad and a good example."""
    assert explain([code]) == 0
    text = capsys.readouterr().out
    assert RULES[code].bad.strip() in text
    assert RULES[code].good.strip() in text


def test_rule_lists_and_refuses(capsys):
    """Without a code all are listed; an unknown one is status 2."""
    assert explain([]) == 0
    listed = capsys.readouterr().out
    assert all(code in listed for code in RULES)
    assert explain(["FNA999"]) == 2


def test_statistics(project, capsys):
    """Findings are counted per rule, most frequent first."""
    project(a_py=BRANCH, b_py=BRANCH)
    assert run(capsys, ".", "--statistics")[1] == "2  FNA601  traced-branch\n"


def test_flake8_plugin(project):
    """flake8 gets a line, a column from zero, a text that begins with the code; settings hold."""
    import ast

    from fnarray.purity.lint.flake8 import Plugin

    root = project(a_py=BRANCH, b__pyproject_toml="[tool.fnarray.lint]\nignore = ['FNA6']\n")
    lines = BRANCH.splitlines(keepends=True)
    ((line, column, text, kind),) = Plugin(ast.parse(BRANCH), str(root / "a.py"), lines).run()
    assert (line, column, kind) == (5, 7, Plugin)
    assert text.startswith("FNA601 ")
    assert not list(Plugin(ast.parse(BRANCH), str(root / "b" / "a.py"), lines).run())


def test_pre_commit_hooks_are_defined():
    """The hook definitions name the command and the files that concern it."""
    text = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert text.count("- id: ") == text.count("entry: fnarray lint") == 2
    assert text.count("types_or: [python, jupyter]") == 2
