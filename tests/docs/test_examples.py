"""Each example runs, and its own comparison with SciPy, scikit-learn or NumPy holds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from fnarray.config import effects
from fnarray.purity.lint.cli import main as lint

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.stem)
def test_examples_reach_the_numbers_of_their_reference(path, monkeypatch, capsys) -> None:
    """``main`` asserts what it promises, prints, and returns no failure; all of it is pure."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    with effects("error"):
        spec.loader.exec_module(module)
        assert not module.main()
    assert capsys.readouterr().out


def test_examples_pass_the_linter(capsys) -> None:
    """The linter, which reads the files and runs nothing, finds nothing in them."""
    assert lint([str(EXAMPLES)]) == 0, capsys.readouterr().out
