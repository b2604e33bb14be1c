"""Every way into the package gives all of it; the linter's way needs no array library."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import fnarray

ROOT = Path(__file__).parents[2]
BLOCKED = ("numpy", "numba", "llvmlite", "scipy", "optree", "ml_dtypes", "cloudpickle", "rich")
# What a user may do with any array: operators, methods, properties, eager loops, compiled calls.
WHOLE = """
assert str(x + 1) == '[2 3]' and str(2 * x) == '[2 4]' and float(x.sum()) == 3
assert str(-x) == '[-1 -2]' and bool((x == x).all()) and int(x[1]) == 2 and x.T.shape == (2,)
assert str(x.at[0].set(5)) == '[5 2]'
import fnarray, fnarray.lax
assert int(fnarray.lax.fori_loop(0, 4, lambda i, s: s + i, 0)) == 6
assert str(fnarray.jit(lambda v: v * 2)(x)) == '[2 4]'
"""


def run(code: str, read: str = "") -> str:
    """Run a program in a fresh process; return what it prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=read, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


DOORS = [
    "import fnarray as fn; x = fn.numpy.array([1, 2])",
    "import fnarray; x = fnarray.device_put(__import__('numpy').array([1, 2], 'int32'))",
    "import fnarray.numpy as jnp; x = jnp.array([1, 2])",
    "from fnarray import numpy as jnp; x = jnp.array([1, 2])",
    "from fnarray import *; x = numpy.array([1, 2])",
    "from fnarray.lax import iota; x = iota('int32', 2); x = x + x // x.max() * 0 + 1",
    "import fnarray.lax as lax; x = lax.full((2,), 1).cumsum()",
    "import fnarray.core.array as a, numpy; x = a.asarray(numpy.array([1, 2]))",
    "from fnarray.api.jit import jit; x = jit(lambda v: v + 0)(__import__('numpy').r_[1, 2])",
    "from fnarray.random import key; key(0); import fnarray.numpy as n; x = n.arange(1, 3)",
    "import fnarray.tree_util, fnarray.nn, fnarray.scipy; x = fnarray.lax.iota('int32', 2) + 1",
]  # fmt: skip
#: A process for each program, which finds NumPy loaded and nothing of ours.
EACH = """
import os, sys, json, traceback, numpy
for program in json.loads(sys.stdin.read()):
    child = os.fork()
    if not child:
        try:
            exec(program, {})
        except BaseException:
            print(program, traceback.format_exc(), sep="\\n", flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(program, "ended otherwise", flush=True)
assert "fnarray" not in sys.modules
"""


def test_every_door():
    """Whatever is imported first, arrays have operators and methods, and loops run compiled."""
    programs = json.dumps([f"{door}\n{WHOLE}" for door in DOORS])
    assert not run(EACH, programs)


def test_unpickled_arrays_are_whole():
    """An array that arrives in a process which has imported nothing behaves as everywhere."""
    data = pickle.dumps(fnarray.numpy.array([1, 2]))
    run(f"import pickle\nx = pickle.loads({data!r})\n{WHOLE}")


def test_first_use_inside_a_trace():
    """Operators that arrive while a function is traced leave nothing in its graph."""
    code = (
        "import numpy, sys\n"
        "from fnarray.core.trace import trace_graph\n"
        "from fnarray.core.avals import ShapedArray\n"
        "assert 'fnarray.numpy' not in sys.modules\n"
        "from fnarray.api.tracing import make_jaxpr\n"
        "print(make_jaxpr(lambda x: x + x)(numpy.float32(1)))\n"
    )
    assert run(code).strip() == "{ lambda ; a:f32[]. let b:f32[] = add a a in (b,) }"


def test_late_members_are_those_installed():
    """What stands for members not installed yet, for `Array.astype` too, is what is installed."""
    code = (
        "import fnarray as fa\n"
        "late = {name for name, x in vars(fa.Array).items() if type(x).__name__ == '_Late'}\n"
        "assert fa.Array.astype.__name__ == 'astype', fa.Array.astype\n"
        "assert not [n for n, x in vars(fa.Array).items() if type(x).__name__ == '_Late']\n"
        "from fnarray.numpy._methods import array_methods\n"
        "print(sorted(late ^ set(array_methods())))\n"
    )
    assert run(code).strip() == "[]"


def test_public_names_are_found_and_declared():
    """Each public name exists, its module lists it, and type checkers are told of it."""
    shown = dir(fnarray)
    for name in fnarray.__all__:
        assert name in shown
        assert getattr(fnarray, name) is not None
    for module, names in fnarray._HOMES.items():
        home = importlib.import_module(module, "fnarray")
        assert all(hasattr(home, name) for name in names.split()), module
    tree = ast.parse((ROOT / "fnarray/__init__.py").read_text(encoding="utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If))
    declared: set[str] = set()
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            # Without the second name it is private to checkers, once the package is installed.
            assert alias.asname == alias.name, alias.name
            declared.add(alias.name)
    missing = set(fnarray.__all__) - declared - {"config", "cache_info"}
    assert not missing, f"tell type checkers in fnarray/__init__.py of {sorted(missing)}"


@pytest.mark.parametrize("package", ["fnarray.numpy", "fnarray.lax", "fnarray.ops"])
def test_surfaces_list_what_their_modules_do(package):
    """The table of a surface is what the modules it names say is public, and all of it is there."""
    surface = importlib.import_module(package)
    for module, names in surface._HOMES.items():
        home = importlib.import_module(module, package)
        assert sorted(names.split()) == sorted(home.__all__), module
        assert all(getattr(surface, name) is getattr(home, name) for name in names.split())
    assert set(surface.__all__) <= set(dir(surface))


def test_primitives_are_listed_as_they_are_declared():
    """What is listed without an import is what importing all finds."""
    code = (
        "from fnarray import lax\n"
        "from fnarray.lax._primitives import NAMES\n"
        "lax._import_families()\n"
        "found = {f\"{name.replace('-', '_')}_p\" for name in lax._registry}\n"
        "print(sorted(found ^ {*NAMES.split()}), all(hasattr(lax, n) for n in NAMES.split()))\n"
    )
    assert run(code).strip() == "[] True"


def test_no_public_name_is_hidden_by_a_submodule():
    """Importing a submodule binds its name on the package: no late name may share one."""
    below = {m.name for m in pkgutil.iter_modules(fnarray.__path__)}
    late = {name for names in fnarray._HOMES.values() for name in names.split()}
    assert not below & late


def test_unknown_names_are_refused():
    """A misspelt name is an AttributeError that names the package."""
    with pytest.raises(AttributeError, match=r"'fnarray' has no attribute 'jitt'"):
        fnarray.jitt  # noqa: B018


LINT = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {blocked!r}:
            raise ImportError(name + ' is blocked')
sys.meta_path.insert(0, Block())
from fnarray.__main__ import main
status = main({argv!r})
assert not {blocked!r}.intersection(sys.modules)
print('status', status)
"""


@pytest.mark.parametrize(
    ("argv", "said", "status"),
    [
        (["lint", "--color=always", "a.py"], "FNA601", 1),
        (["lint", "a.py", "--format", "sarif"], '"version": "2.1.0"', 1),
        (["rule", "FNA601"], "## Good", 0),
        (["rule"], "global-write", 0),
        (["lint", "nowhere.py"], "", 2),
    ],
)
def test_lint_needs_no_library(tmp_path, monkeypatch, argv, said, status):
    """``fnarray lint`` and ``fnarray rule`` import nothing outside the standard library."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(
        "import jax\n@jax.jit\ndef f(x):\n    if x > 0:\n        return x\n"
    )
    # What is slow to import would be most of a short run: a third of it was dataclasses.
    unused = {"dataclasses", "inspect", "tomllib", "traceback"} if argv[-1] == "a.py" else set()
    out = run(LINT.format(blocked={*BLOCKED, *unused}, argv=argv))
    assert said in out
    assert f"status {status}" in out


def test_flake8_plugin_needs_no_library():
    """The plugin's module imports where neither NumPy nor Numba is installed."""
    code = LINT.replace("from fnarray.__main__ import main", "import fnarray.purity.lint.flake8")
    run(code.replace("status = main({argv!r})", "status = 0").format(blocked=set(BLOCKED)))
