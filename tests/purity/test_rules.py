"""Every rule: its code, its texts, and its own examples."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

import fnarray
from fnarray.purity import check
from fnarray.purity.rules import RULES, LintRule, rule

LIVE = [r for r in RULES.values() if r.group not in ("tool", "tracing")]


def load(tmp_path, name: str, text: str) -> ModuleType:
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def traced(module: ModuleType) -> list:
    made = [v for v in vars(module).values() if type(v).__name__ == "PjitFunction"]
    for name in ("counter", "make"):
        if hasattr(module, name):
            result = getattr(module, name)()
            made += result if isinstance(result, list) else [result]
    return made


@pytest.mark.parametrize("r", RULES.values(), ids=lambda r: r.code)
def test_texts(r: type[LintRule]):
    """A rule has a code, a name in kebab case, a reason, and two programs that parse."""
    assert r.code.startswith("FNA")
    assert len(r.code) == 6
    assert r.name == r.name.lower().replace("_", "-")
    assert r.why.strip()
    assert r.repair.rstrip().endswith((".", ")"))
    compile(r.good, r.name, "exec")
    if r.code != "FNA001":
        compile(r.bad, r.name, "exec")
    assert rule(r.code) is rule(r.name) is r


@pytest.mark.parametrize("r", LIVE, ids=lambda r: r.code)
def test_bad_fires_and_good_is_silent(r: type[LintRule], tmp_path, monkeypatch):
    """The bad example gives this code and no other; the good one nothing."""
    if r.name in ("traced-generator", "traced-coroutine"):
        # jit refuses these by itself, at once: check the bare function.
        monkeypatch.setattr(fnarray, "jit", lambda f: f)
    bad, good = load(tmp_path, "bad", r.bad), load(tmp_path, "good", r.good)
    sys.modules.pop("bad", None)
    functions = traced(bad) or [getattr(bad, n) for n in ("steps", "step") if hasattr(bad, n)]
    assert functions
    assert {f.code for fun in functions for f in check(fun)} == {r.code}
    functions = traced(good) or [getattr(good, n) for n in ("steps", "step") if hasattr(good, n)]
    assert [f.concise() for fun in functions for f in check(fun)] == []


def test_codes_are_unique():
    """A second rule with a used code cannot be made."""
    with pytest.raises(TypeError, match="FNA101"):
        type("Again", (LintRule,), {"code": "FNA101"})


def test_unknown_rule():
    """An unknown code is a KeyError that says the range."""
    with pytest.raises(KeyError, match="FNA001"):
        rule("FNA999")
