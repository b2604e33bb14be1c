"""The tool that runs libraries' own tests tells whose a failure is."""

from __future__ import annotations

import pytest

from .suites import Limits, Suite, compare

TESTS = """
import importlib.util, sys, time
import pytest

STANDS_IN = "fnarray.as_jax" in sys.modules

def test_passes():
    pass

def test_fails_under_both():
    assert False

@pytest.mark.parametrize("x", [1, 2])
def test_fails_here(x):
    assert not STANDS_IN or x == 1

def test_hangs_here():
    if STANDS_IN:
        time.sleep(60)
"""


@pytest.mark.clients
def test_failures_are_told_apart(tmp_path, capsys):
    """What fails under the real JAX as well is not listed; what fails or hangs under fnarray is."""
    root = tmp_path / "library"
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "test_one.py").write_text(TESTS)
    (root / "tests" / "test_two.py").write_text("import absent_library")
    compare("library", root, Suite(), [], None, Limits(timeout=2, wall=60))
    row, *ours = capsys.readouterr().out.splitlines()[1:]
    assert row == "| library | 2 | 4 | 2 |"
    assert ours[0::2] == [
        f"tests/test_one.py::test_{name}" for name in ("fails_here[2]", "hangs_here")
    ]
    assert "assert (not True or 2 == 1)" in ours[1]
