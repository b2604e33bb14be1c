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

quick = functools.partial(jax.jit, static_argnames="n")

def plain(f):
    return f

def rebound(f):
    f = print
    return f
"""
USE = """
import functools, jax, own
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
    "settings by a name": "quick = jax.jit(donate_argnums=0)\ng = quick(h)",
    "settings above": "quick = functools.partial(jax.jit)\n@quick\ndef k(x): return h(x)",
    "another's settings": "@own.quick\ndef k(x, n=1): return h(x)",
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
    assert "traced-branch" not in found(text.replace("static", "own.quick"), tmp_path)
    text = "@compiled\ndef k(x, n):\n    if n > 1: return x\n    return -x"
    assert "traced-branch" in found(text, tmp_path)


#: A project of which one file names JAX, or fnarray, and what the others import from it.
_UNNAMED = {
    "a name": "from own import compiled\n@compiled\ndef k(x): return h(x)",
    "a module": "import own\ng = own.compiled(h)",
    "another name": "from own import compiled as fast\ng = fast(h)",
    "all names": "from own import *\n@compiled\ndef k(x): return h(x)",
    "by a third file": "from third import compiled\n@compiled\ndef k(x): return h(x)",
    "the transform itself": "from third import jit\n@jit\ndef k(x): return h(x)",
    "partial": "from third import quick\n@quick\ndef k(x): return h(x)",
    "inside a function": "def run():\n    from own import compiled\n    return compiled(h)",
}


def test_a_file_need_not_name_what_traces(tmp_path):
    """A file that imports from one which names JAX, or fnarray, is looked at as that one is."""
    helper = "log = []\ndef h(x):\n    log.append(x)\n    return x\n"
    for library in ("jax", "fnarray"):
        folder = tmp_path / library
        folder.mkdir()
        third = (
            f"import functools, {library}\nfrom own import compiled\nfrom {library} import jit\n"
            "quick = functools.partial(jit, static_argnums=())\n"
        )
        texts = {"own": OWN.replace("jax", library), "third": third}
        texts |= {f"use{i}": f"{helper}{text}\n" for i, text in enumerate(_UNNAMED.values())}
        texts["none"] = helper + "import math\ng = math.sin\n"
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)
        sources = [parse(str(folder / f"{name}.py"), text) for name, text in texts.items()]
        findings = lint(sources, Settings(root=folder)).findings
        for i, name in enumerate(_UNNAMED):
            assert any(f.file.endswith(f"use{i}.py") for f in findings), (library, name)
        assert not any(f.file.endswith("none.py") for f in findings)
