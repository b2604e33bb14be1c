"""Every public name that does something has an example, and every example gives what it says."""

from __future__ import annotations

import doctest
import inspect
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import fnarray
from fnarray.config import effects
from fnarray.distributed import Cluster

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs/_ext"))
import prompts  # noqa: E402
import surfaces  # noqa: E402

FILES = sorted(path.stem for path in prompts.FOLDER.glob("*.txt"))
DOCUMENTED = [name for name in surfaces.every_name() if ">>>" in name.doc]


def shown(name):
    """Whether an example of a name is on its page."""
    return ">>>" in name.doc or prompts.found(name) is not None


def run(text, space, label):
    """Run what Python's prompt shows; return how many lines gave something else."""
    test = doctest.DocTestParser().get_doctest(text, space, label, None, 0)
    with effects("error"):
        failed = (
            doctest.DocTestRunner(optionflags=prompts.FLAGS).run(test, clear_globs=False).failed
        )
    space.update(test.globs)
    return failed


def test_every_name_has_an_example():
    """Functions and classes of ours; a name has it in its docstring or in its module's file."""
    without = [n.full for n in surfaces.every_name() if prompts.asks(n) and not shown(n)]
    assert without == []


def test_every_block_is_of_a_public_name():
    """Files are of public modules, blocks of their names, of which none has two."""
    for module in FILES:
        names = {name.name: name for name in surfaces.names(module)}
        blocks = prompts.blocks(module)
        whole = [key for key in blocks if "." not in key]
        assert [key for key in whole if key not in names or ">>>" in names[key].doc] == []
        of_classes = [key.split(".") for key in blocks if "." in key]
        assert [key for cls, key in of_classes if not hasattr(names[cls].value, key)] == []
        margin = [line for line in prompts._file(module).splitlines() if line[:1].isidentifier()]
        assert margin == sorted(blocks)


@pytest.mark.parametrize(
    "cls",
    [
        fnarray.Array, fnarray.custom_jvp, fnarray.custom_vjp, fnarray.stages.Wrapped,
        fnarray.export.Exported, fnarray.numpy.ufunc, fnarray.purity.Finding,
        fnarray.scipy.spatial.transform.Rotation,
    ],
)  # fmt: skip
def test_methods_that_programs_call_have_an_example(cls):
    """Each of them has one of its own, as functions have."""
    members = {key: inspect.getattr_static(cls, key) for key in vars(cls) if key[0] != "_"}
    called = [key for key, m in members.items() if callable(getattr(m, "__func__", m))]
    assert len(called) >= 1
    assert [key for key in called if prompts.of_method(cls, key) is None] == []
    assert [key for key in called if not inspect.getdoc(members[key])] == []


@pytest.mark.parametrize("module", FILES)
def test_examples_give_what_they_say(module):
    """Each block of a module's file, by itself after the lines that all assume, run once."""
    assumed = {}
    with fnarray.numpy.printoptions(), ExitStack() as opened:
        assert run(prompts.assumed(module), assumed, module) == 0
        for value in assumed.values():
            if isinstance(value, Cluster):
                opened.callback(value.close)
        for name, block in prompts.blocks(module).items():
            assert run(f"{block}\n", dict(assumed), f"{module}.{name}") == 0


def test_functions_of_two_names_are_called_by_each():
    """The example on a function's page calls it as the page does, and gives what it says."""
    found = prompts.respelled()
    assert "jnp.radians(" in {name.full: block for name, block in found}["fnarray.numpy.radians"]
    with fnarray.numpy.printoptions():
        for name, block in found:
            space = {}
            assert run(f"{prompts.assumed(name.module)}{block}\n", space, name.full) == 0


@pytest.mark.parametrize("name", DOCUMENTED, ids=lambda name: name.full)
def test_examples_in_docstrings_run(name):
    """Every ``>>>`` of a public docstring gives what it says."""
    space = {
        "fnarray": fnarray, "fa": fnarray, "jnp": fnarray.numpy, "lax": fnarray.lax,
        "random": fnarray.random, "tree": fnarray.tree, name.name: name.value,
    }  # fmt: skip
    assert run(inspect.cleandoc(name.doc), space, name.full) == 0
