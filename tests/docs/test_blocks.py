"""Blocks of pages that are neither Python nor a console's: what they say is understood.

``>>>`` examples run in ``test_pages``, ``console`` blocks in ``tests/cli/test_how_to``, programs
of rules in ``tests/purity``, the README's commands in ``.ci/run``. Others are for a shell, or files
for other programs: their text is parsed, and each command given to the parser of its program.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from asv.commands import make_argparser

import fnarray.__main__ as cli
from fnarray.config import from_environment
from fnarray.purity.lint.cli import parser as lint_parser

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("asv_bench/*.md"), *ROOT.glob("*.md")])
_BLOCK = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
#: Those of Python and consoles are run elsewhere, those of Sphinx by it, and text is not code.
ELSEWHERE = {"python", "console", "text"}
_HERE = {"script.py", "ARGS", "package", "model.py", "bench_one.py"}


def blocks(*kinds: str) -> Iterator[tuple[str, str]]:
    """Give the page and the text of each block of a kind."""
    for page in PAGES:
        if "_build" in page.parts or "made" in page.parts:
            continue
        for _, kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind in kinds or not kinds:
                yield f"{page.relative_to(ROOT)}: {kind}", text


def commands(text: str) -> Iterator[list[str]]:
    """Give each command of a shell's text, in words; what it computes itself is one word."""
    for line in re.sub(r"\$\(.*?\)", "COMPUTED", text).splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command: list[str] = []
        for word in [*words, ";"]:
            if set(word) <= set("&|;"):
                if command:
                    yield command
                command = []
            else:
                command.append(word)


def understood(command: list[str], folder: Path) -> None:
    """Ask the program of a command for its view of the arguments."""
    settings: dict[str, str] = {}
    while "=" in command[0]:
        name, value = command.pop(0).split("=", 1)
        settings[name] = value
    # A variable that config does not know is not among the values.
    assert len(from_environment(settings)) == len(settings), settings
    program, rest = Path(command[0]).name, command[1:]
    if program in ("python", "pytest") and "-p" in rest:
        assert find_spec(rest[rest.index("-p") + 1])
    if program == "python" and rest[0] == "-m":
        program, rest = rest[1], rest[2:]
    match program:
        case "python":
            found = any((home / rest[0]).is_file() for home in (ROOT, folder))
            assert found or rest[0] in _HERE, rest[0]
        case "fnarray":
            if rest[0] == "lint":
                lint_parser().parse_args(rest[1:])
            elif rest[0] != "run":
                cli.parser().parse_args(rest)
        case "asv":
            make_argparser()[0].parse_args(rest)
        case "pip":
            extras = ConfigParser()
            extras.read(ROOT / "setup.cfg")
            for named in re.findall(r"\[(.*?)\]", " ".join(rest)):
                assert set(named.split(",")) <= set(extras["options.extras_require"]), named
        case "sh":
            assert rest[0] == "-c"
            for inner in commands(rest[1]):
                understood(inner, folder)
        case "git":
            if rest[:2] == ["bisect", "run"]:
                understood(rest[2:], folder)
        case _:
            assert program in {"pytest", "venv", "sphinx", "flake8", "pre-commit"}, program


def test_every_kind_of_block_is_checked() -> None:
    """A block of another kind is found out here: who runs it?"""
    here = {"sh", "toml", "yaml", "json", "vim"}
    kinds = {where.rsplit(": ", 1)[1] for where, _ in blocks()}
    assert here & kinds == here
    assert {k for k in kinds - ELSEWHERE - here if not k.startswith("{")} == set()


def test_a_shell_and_programs_understand_commands() -> None:
    """Settings, extras and files exist, and options are those of the program."""
    shown = list(blocks("sh"))
    whole = "\n".join(text for _, text in shown)
    done = subprocess.run(["bash", "-n"], input=whole, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for where, text in shown:
        for command in commands(text):
            try:
                understood(command, (ROOT / where.split(":")[0]).parent)
            except SystemExit:
                pytest.fail(f"{where}: its program has no use for {shlex.join(command)}")


def test_settings_of_other_programs_are_read() -> None:
    """TOML, YAML and JSON is; and hooks, steps and matchers in it are of programs that exist."""
    tables = [tomllib.loads(text) for _, text in blocks("toml")]
    assert any("lint" in t.get("tool", {}).get("fnarray", {}) for t in tables)
    values = [yaml.safe_load(text) for _, text in blocks("yaml")]
    hooks = {h["id"] for h in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    runs: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if "repo" in value and value["repo"] != "local":
                assert {hook["id"] for hook in value["hooks"]} <= hooks
            runs.extend(value[k] for k in ("run", "entry") if isinstance(value.get(k), str))
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    walk(values)
    assert any(run.startswith("fnarray lint") for run in runs)
    for run in runs:
        for command in commands(run):
            understood(command, ROOT)


def test_editors_read_what_the_linter_prints() -> None:
    """Visual Studio Code's pattern and Vim's command, by the line that the page itself shows."""
    page = (ROOT / "docs/how-to/lint-in-an-editor.md").read_text(encoding="utf-8")
    line = re.search(r"^model\.py:.*$", page, re.MULTILINE)
    (task,) = (json.loads(text)["tasks"][0] for where, text in blocks("json") if "editor" in where)
    pattern = task["problemMatcher"]["pattern"]
    assert line is not None
    found = re.fullmatch(pattern["regexp"], line[0])
    assert found is not None
    told = [found[pattern[k]] for k in ("file", "line", "column", "code")]
    assert told == ["model.py", "7", "17", "FNA601"]
    understood(shlex.split(task["command"]), ROOT)
    (vim,) = (text for _, text in blocks("vim"))
    made = re.search(r"makeprg=(.*?) errorformat", vim)
    assert made is not None
    understood(shlex.split(made[1].replace("\\ ", " ").replace("%:S", "model.py")), ROOT)
    if shutil.which("vim"):  # where it is, it reads the line by the page's own format
        told = vim_reads(vim, line[0])
        assert told == "7 17 FNA601"


def vim_reads(autocmd: str, line: str) -> str:
    """Return line, column and first word of what Vim's error list makes of a line."""
    form = autocmd.rsplit("errorformat=", 1)[1].strip()
    script = (
        f"set errorformat={form} | cgetexpr {json.dumps(line)} | "
        "let q = getqflist()[0] | "
        "call writefile([q.lnum . ' ' . q.col . ' ' . split(q.text)[0]], '/dev/stdout') | qa!"
    )
    done = subprocess.run(
        ["vim", "-es", "-u", "NONE", "-c", script], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
