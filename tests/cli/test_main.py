"""``python -m fnarray``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fnarray
from fnarray.__main__ import main, parse_spec

SOURCE = """
import fnarray
import fnarray.numpy as jnp

@fnarray.jit
def scaled(x, y):
    return jnp.exp(x) * y

def plain(x):
    return x + 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(SOURCE)
    return path


def test_version(capsys) -> None:
    """``--version`` names the package and its version."""
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == f"fnarray {fnarray.__version__}"


def test_show_prints_emitted_source(file: Path, capsys) -> None:
    """``show FILE:FUNC`` prints kernels and driver for the given arrays."""
    assert main(["show", f"{file}:scaled", "f32[100]", "f32[]"]) == 0
    out = capsys.readouterr().out
    assert "vm.exp" in out
    assert "def main(a0, a1):" in out
    assert "# program.py:7" in out


def test_show_takes_functions_that_are_not_jitted(file: Path, capsys) -> None:
    """A plain function is traced; ``--dialect jaxpr`` prints its graph."""
    assert main(["show", f"{file}:plain", "i32[3]", "--dialect", "jaxpr"]) == 0
    assert "add a 1:i32[]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "nowhere.py:f"], "FILE:FUNC"),
        (["show", "{file}:absent"], "has no 'absent'"),
        (["show", "{file}:plain", "float[3]"], "dtype[shape]"),
        (["show", "{file}:plain", "f99[3]"], "dtype[shape]"),
        (["explain", "{file}:scaled", "f32[3]"], "missing a required argument: 'y'. Describe"),
    ],
)
def test_unusable_arguments_are_explained(arguments, said, file: Path, capsys) -> None:
    """Bad arguments give status 2 and a message that says what to write."""
    assert main([a.format(file=file) for a in arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [("f32[3,4]", (3, 4), "float32"), ("bool[]", (), "bool"), ("bf16[ 2 ]", (2,), "bfloat16")],
)
def test_specs(text: str, shape: tuple[int, ...], dtype: str) -> None:
    """An argument's stand-in is a dtype and a shape in brackets."""
    spec = parse_spec(text)
    assert spec.shape == shape
    assert spec.dtype.name == dtype


def test_explain_prints_or_writes_a_report(file: Path, tmp_path: Path, capsys) -> None:
    """Text with the user's line and a time; a page with ``--output``; 1 for what cannot compile."""
    assert main(["explain", f"{file}:scaled", "f32[100]", "f32[]"]) == 0
    out = capsys.readouterr().out
    assert "scaled" in out
    assert "kernel0" in out
    page = tmp_path / "report.html"
    assert main(["explain", f"{file}:plain", "i32[3]", "--output", str(page)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert page.read_text().startswith("<!doctype html>")
    assert main(["explain", f"{file}:scaled", "f32[2]", "f32[3]"]) == 1
    assert "cannot be compiled" in capsys.readouterr().out
    gone = tmp_path / "no" / "such" / "report.html"
    assert main(["explain", f"{file}:plain", "i32[3]", "--output", str(gone)]) == 2
    assert "nothing was" in capsys.readouterr().err


def test_cache_info_and_clear(capsys, tmp_path) -> None:
    """``cache info`` counts entries, ``cache clear`` empties the directory."""
    before = fnarray.config.cache_dir
    fnarray.config.update("cache_dir", str(tmp_path / "own"))  # tests beside write to theirs
    try:
        fnarray.jit(lambda x: x * 3.25)(1.0)
        assert main(["cache", "info"]) == 0
        assert "kernels" in capsys.readouterr().out
        assert main(["cache", "clear"]) == 0
        assert "kernels    0" in capsys.readouterr().out
    finally:
        fnarray.config.update("cache_dir", before)


def test_env_runs_as_a_module() -> None:
    """``python -m fnarray env`` prints versions and settings."""
    command = [sys.executable, "-m", "fnarray", "env"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert out.startswith(f"fnarray {fnarray.__version__}")
    assert "enable_x64" in out
