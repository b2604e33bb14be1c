"""A project's own functions that apply a transform are transforms: what they get is traced."""

from __future__ import annotations

import pytest

from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import parse

OWN = """
import functools
import jax

def compiled(f):
    return jax.jit(f)

def fast(**options):
    def decorator(f):
        return jax.jit(f, **options)
    return decorator

def static(f):
    return functools.partial(jax.jit, static_argnums=1)(f)

def kept(f):
    g = jax.jit(f)
    @functools.wraps(f)
    def run(*args):
        return g(*args)
    return run

def handed_on(number, f=None):
    return compiled(f)

def plain(f):
    return f

def rebound(f):
    f = print
    return f
"""
USE = """
import jax, own
from own import compiled, fast, handed_on, kept, plain, rebound, static
log = []
def h(x, n=1):
    log.append(x)
    return x
def look():
    return log[-1]
"""
#: What traces `h`, and what does not.
TRACED = {
    "a call": "g = compiled(h)",
    "a call by keyword": "g = compiled(f=h)",
    "a call of a module's": "g = own.compiled(h)",
    "a factory": "g = fast(donate_argnums=0)(h)",
    "partial": "g = static(h)",
    "a wrapper's": "g = kept(h)",
    "one that hands it on": "g = handed_on(1, h)",
    "a lambda": "g = compiled(lambda x: h(x))",
    "a decorator": "@compiled\ndef k(x): return h(x)",
    "a factory of decorators": "@fast(donate_argnums=0)\ndef k(x): return h(x)",
    "a module's decorator": "@own.kept\ndef k(x): return h(x)",
    "a method's decorator": "class A:\n    @compiled\n    def k(self, x): return h(x)",
    "the same file": "def mine(f): return jax.jit(f)\ng = mine(h)",
}
UNTRACED = {
    "a call": "g = plain(h)",
    "a decorator": "@plain\ndef k(x): return h(x)",
    "another parameter": "g = handed_on(h)",
    "a name that is something else": "def compiled(f): return f\ng = compiled(h)",
}


def found(text, folder):
    """Return the rules that a file breaks which uses the project's functions."""
    sources = []
    for name, lines in (("own.py", OWN), ("use.py", USE + text + "\n")):
        path = folder / name
        path.write_text(lines)
        sources.append(parse(str(path), lines))
    result = lint(sources, Settings(root=folder))
    return {f.name for f in result.findings if f.file.endswith("use.py")}


@pytest.mark.parametrize("text", TRACED.values(), ids=TRACED)
def test_what_they_are_given_is_traced(text, tmp_path):
    """By whatever way the function comes to the transform."""
    assert "captured-mutation" in found(text, tmp_path)


@pytest.mark.parametrize("text", UNTRACED.values(), ids=UNTRACED)
def test_what_goes_elsewhere_is_not(text, tmp_path):
    """A function that only passes on is no transform."""
    assert "captured-mutation" not in found(text, tmp_path)


def test_static_arguments_are_the_transforms_own(tmp_path):
    """What the project's function says is static decides no branch."""
    text = "@static\ndef k(x, n):\n    if n > 1: return x\n    return -x"
    assert "traced-branch" not in found(text, tmp_path)
    text = "@compiled\ndef k(x, n):\n    if n > 1: return x\n    return -x"
    assert "traced-branch" in found(text, tmp_path)
