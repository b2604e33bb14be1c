"""What the linter shows by default where JAX traces, and what it presumes."""

from __future__ import annotations

import json

import pytest

from fnarray.purity.lint.cli import main
from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import parse

HEAD = """\
import logging, time
from functools import partial
import jax, jax.numpy as jnp, numpy as np
log = logging.getLogger("a")
"""

_FIELD = """
class Model:
    def __init__(self, rate): self.rate = {first}
    def {method}(self, rate): self.rate = rate
    @partial(jax.jit, static_argnums=0)
    def step(self, x): return x * self.rate
"""
_LEAK = """
class Model:
    @partial(jax.jit, static_argnums=0)
    def step(self, x):
        self.last = x
        return x
    {reader}
"""
_COUNT = """
{where}
@jax.jit
def f(x):
    seen.append({what})
    return x
"""
_FIRST_USE = """
class Filter:
    def __init__(self): self.ramp = None
    @partial(jax.jit, static_argnums=0)
    def apply(self, y):
        {test}
            self.ramp = jnp.arange(y.shape[0]) - y.mean()
        return y * self.ramp
    def reset(self): self.ramp = None
"""
_LOOP = """
def fit(cases):
    for case in cases:
        @jax.jit
        def rule(x): return jnp.sin(x) * {what}
        print(rule(1.0))
"""
_CLOSURES = """
def make(cases):
    rules = {{}}
    for case in cases:
        def rule(x):
            def body(i, y): return y * case.weight
            return jax.lax.fori_loop(0, 3, body, x)
        rules[case] = jax.jit(rule){then}
    return rules
"""
_HELPER = """
def helper(x):
    {what}
    return x
@jax.jit
def f(x): return helper(x)
"""

_DRAWS = """
rows = iter(np.ones((3, 3)))
@jax.jit
def f(x): return {what}
"""
_TELLS = """
LEVEL = 3
@jax.jit
def f(x):
    if LEVEL > 2: print("level", LEVEL)
    return x
"""

#: What is asked, a program that shows a finding, one that lets it be presumed, and the code.
CASES = {
    "a field that a caller may give again": (
        _FIELD.format(first="rate", method="set_rate"),
        _FIELD.format(first="rate", method="build").replace("self.rate = rate\n    @",
                                                            "self.rate = self.read()\n    @"),
        "FNA204",
    ),
    "a traced value that another method reads": (
        _LEAK.format(reader="def show(self): print(self.last)"), _LEAK.format(reader=""), "FNA105",
    ),
    "a list of the module, or one that nobody reads": (
        _COUNT.format(where="seen = []", what="x"),
        "def outer():" + _COUNT.format(where="seen = []", what="x").replace("\n", "\n    ")
        + "\n    return f\n",
        "FNA103",
    ),
    "a counter that is one": (
        _LEAK.format(reader="").replace("self.last = x", "self.calls += 1"),
        _LEAK.format(reader="").replace("self.last = x", "if x.ndim: self.calls += 1"), "FNA105",
    ),
    "an iterator that a loop's body draws from": (
        _DRAWS.format(what="x + next(rows)"),
        _DRAWS.format(what="helper(x)") + "def helper(x): return x + next(rows)\n", "FNA401",
    ),
    "what the next trace finds": (
        _FIRST_USE.format(test="if self.ramp is None:"),
        _FIRST_USE.format(test="if y.ndim == 1:"), "FNA105",
    ),
    "a function that each turn makes alike": (
        _LOOP.format(what="2"), _LOOP.format(what="case"), "FNA606",
    ),
    "a closure that the loop keeps": (
        _CLOSURES.format(then=""), _CLOSURES.format(then=".lower(1.0).compile()"),
        "FNA205",
    ),
    "a print of what is traced": (
        _HELPER.format(what="print(x)"),
        _TELLS, "FNA311",
    ),
    "a log of what is traced": (
        "@jax.jit\ndef f(x):\n    log.info('%s', x)\n    return x\n",
        "@jax.jit\ndef f(x):\n    log.info('again')\n    return x\n", "FNA313",
    ),
    "a clock of the traced function itself": (
        "@jax.jit\ndef f(x): return x + time.time()\n",
        _HELPER.format(what="x = x + time.time()"), "FNA302",
    ),
    "a number of a traced value": (
        "@jax.jit\ndef f(x): return np.array(x)\n",
        "@jax.jit\ndef f(x, y): return np.array(x) if isinstance(y, np.ndarray) else x\n",
        "FNA603",
    ),
}  # fmt: skip


def levels(text: str) -> list[tuple[str, bool]]:
    """Return the codes found in a program, and whether each is presumed."""
    result = lint([parse("a.py", HEAD + text)], Settings(presumed=True))
    assert not result.crashes
    return sorted({(finding.code, finding.presumed) for finding in result.findings})


@pytest.mark.parametrize("name", CASES)
def test_the_text_decides(name):
    """With both halves in the text a finding is shown; with one of them elsewhere, presumed."""
    shown, presumed, code = CASES[name]
    assert levels(shown) == [(code, False)]
    assert (code, True) in levels(presumed)
    assert all(level for _, level in levels(presumed))


@pytest.mark.parametrize("name", CASES)
def test_what_is_presumed_is_said_when_asked(name):
    """By default the linter reports what is shown alone."""
    shown, presumed, code = CASES[name]
    assert [f.code for f in lint([parse("a.py", HEAD + shown)], Settings()).findings] == [code]
    assert lint([parse("a.py", HEAD + presumed)], Settings()).findings == []


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_presumed_of_fnarray(name):
    """Where fnarray traces, the call refuses, whatever the rest of the text says.

    But what a static object holds: that is guarded, and read.
    """
    for text in CASES[name][:2]:
        source = (HEAD + text).replace("jax", "fnarray")
        found = lint([parse("a.py", source)], Settings(presumed=True)).findings
        assert bool(found) == (name != "a field that a caller may give again")
        assert not any(finding.presumed for finding in found)


def test_a_write_is_shown_if_one_way_shows_it():
    """Of two ways that lead to one place the surer one is told."""
    text = _HELPER.format(what="x = x + time.time()")
    assert levels(text) == [("FNA302", True)]
    assert levels(text + "g = jax.jit(helper)\n") == [("FNA302", False)]


def test_the_command_takes_the_level(tmp_path, monkeypatch, capsys):
    """``--presumed`` and the setting add what is presumed; comments that silence it are in use."""
    monkeypatch.chdir(tmp_path)
    text = HEAD + CASES["a log of what is traced"][1]
    (tmp_path / "a.py").write_text(text)
    assert main(["--no-cache", "--isolated", "-q", "."]) == 0
    assert main(["--no-cache", "--isolated", "--format", "json", "--presumed", "."]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["presumed"] is True
    main(["--no-cache", "--isolated", "--format", "sarif", "--presumed", "."])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [one["level"] for one in run["results"]] == ["note"]
    main(["--no-cache", "--isolated", "--format", "github", "--presumed", "."])
    assert capsys.readouterr().out.startswith("::notice file=a.py,")
    for form in ("full", "concise", "junit"):
        main(["--no-cache", "--isolated", "--format", form, "--presumed", "--color", "never", "."])
        assert capsys.readouterr().out.count("presumed: ") == (2 if form == "junit" else 1)
    (tmp_path / "pyproject.toml").write_text("[tool.fnarray.lint]\npresumed = true\n")
    assert main(["-q", "."]) == 1
    assert main(["-q", "."]) == 1  # from the cache
    (tmp_path / "a.py").write_text(text.replace("'again')", "'again')  # fnarray: ignore[FNA313]"))
    assert main(["--no-cache", "--isolated", "-q", "."]) == 0
    (tmp_path / "other.toml").write_text("presumed = 'yes'\n")
    assert main(["-q", "--config", "other.toml", "."]) == 2
    assert "expected true or false" in capsys.readouterr().err
