"""What names in files stand for: kinds of objects, constants, and bodies to follow."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fnarray.purity.engine.machine import Engine
from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.project import Project
from fnarray.purity.lint.source import parse, read
from fnarray.purity.lint.statics import StaticResolver
from fnarray.purity.lint.traced import Finder

PROGRAM = """
import collections, dataclasses, enum, itertools, logging, math, random, types, typing
import numpy as np, jax.numpy as jnp
from functools import partial
from math import pi
from typing import Final, NamedTuple

rate = 0.1
epoch = 0
epoch = 1
RATE = 0.1
fixed: Final = 3
SIZES = (1, 2)
NESTED = ([1], 2)
table = {}
LIST = [1]
counts = collections.defaultdict(int)
queue = collections.deque()
weights = np.zeros(3)
array = jnp.zeros(3)
frozen = types.MappingProxyType({"a": 1})
stream = iter([1])
counter = itertools.count()
rng = np.random.default_rng(0)
log = logging.getLogger()
alias = table
either = [] if rate else {}
total = 2 * RATE + 1

class Plain:
    LIMIT = 3
    def __init__(self): self.scale = 2.0
    def __call__(self, x): return x
    def method(self, x): return x

@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float = 1.0

class Pair(NamedTuple):
    a: int

class Colour(enum.Enum):
    RED = 1

plain = Plain()
still = Frozen()
pair = Pair(1)

def helper(x): return x
def numbers():
    yield 1
drawn = numbers()
bound = partial(helper, 1)
short = lambda x: x

def probe(x):
    return x
"""


@pytest.fixture(scope="module")
def resolver():
    """A resolver over the program, with the function whose names are looked up."""
    project = Project(Settings())
    module = project.take(parse("a.py", PROGRAM))
    found = StaticResolver(Finder(project))
    scope = module.scope.names["probe"][0].scope
    return found, found.function(scope)


@pytest.mark.parametrize(
    ("name", "kind", "constant"),
    [
        ("rate", "scalar", True),
        ("epoch", "scalar", False),
        ("RATE", "scalar", True),
        ("fixed", "scalar", True),
        ("SIZES", "scalar", True),
        ("NESTED", "tuple", True),
        ("total", "scalar", True),
        ("table", "dict", False),
        ("alias", "dict", False),
        ("LIST", "list", True),
        ("counts", "dict", False),
        ("queue", "deque", False),
        ("weights", "ndarray", True),
        ("array", "array", False),
        ("frozen", "frozen", False),
        ("stream", "iterator", False),
        ("counter", "iterator", False),
        ("drawn", "generator", False),
        ("rng", "rng", False),
        ("log", "logger", False),
        ("plain", "instance", False),
        ("still", "frozen", False),
        ("pair", "frozen", False),
        ("Plain", "class", True),
        ("Colour", "class", True),
        ("helper", "function", True),
        ("short", "function", False),
        ("bound", "partial", False),
        ("math", "module", True),
        ("pi", "scalar", True),
    ],
)
def test_kinds(resolver, name, kind, constant):
    """A name's kind is that of the object a live program would find."""
    found, function = resolver
    value = found.lookup(function, name)
    assert value is not None
    assert (value.kind, value.constant, value.name) == (kind, constant, name)


def test_either(resolver):
    """A name bound in two ways may be either."""
    found, function = resolver
    assert {v.kind for v in found.lookup(function, "either").each()} == {"list", "dict"}


def test_bodies(resolver):
    """Functions, methods, callable objects, classes and partials lead to their bodies."""
    found, function = resolver
    bodies = {}
    for name in ("helper", "short", "plain", "Plain"):
        body, receiver = found.follow(found.lookup(function, name))
        bodies[name] = (body.name, receiver is not None)
    method = found.attribute(found.lookup(function, "plain"), "method")
    body, receiver = found.follow(method)
    assert (body.name, receiver.kind) == ("method", "instance")
    assert bodies == {
        "helper": ("helper", False),
        "short": ("<lambda>", False),
        "plain": ("__call__", True),
        "Plain": ("__init__", False),
    }


def test_attributes(resolver):
    """Attributes of instances, classes and modules; outside names keep their dotted name."""
    found, function = resolver
    plain = found.lookup(function, "plain")
    assert found.attribute(plain, "scale").holder == "attribute"
    assert found.attribute(plain, "LIMIT").constant
    assert found.attribute(found.lookup(function, "np"), "sin").ref == "numpy.sin"
    assert found.lookup(function, "print").ref == "builtins.print"
    assert found.lookup(function, "nowhere") is None


def test_across_files(tmp_path: Path):
    """Values and bodies are found in other files, through packages and renaming."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("from .state import table as shared\n")
    (package / "state.py").write_text("table = {}\ndef helper(x): return x\n")
    main = tmp_path / "main.py"
    main.write_text(
        "import pkg\nimport pkg.state as st\nfrom pkg import shared\ndef probe(): ...\n"
    )
    project = Project(Settings(root=tmp_path))
    module = project.take(read(main))
    found = StaticResolver(Finder(project))
    function = found.function(module.scope.names["probe"][0].scope)
    assert found.lookup(function, "shared").kind == "dict"
    assert found.attribute(found.lookup(function, "pkg"), "shared").kind == "dict"
    module = found.lookup(function, "st")
    assert found.attribute(module, "table").kind == "dict"
    body, _ = found.follow(found.attribute(module, "helper"))
    assert isinstance(body.node, ast.FunctionDef)
    assert Path(body.file).name == "state.py"


INTERPRETER = """
import jax
seen = []

def run(program, x):
    for step in program:
        if step.loop:
            x, _ = jax.lax.scan(lambda c, i: (run(step.body, c), i), x, None, 3)
        elif step.branch:
            x = jax.lax.cond(x > 0, lambda v: run(step.body, v), lambda v: run(step.other, v), x)
        elif step.turns:
            x = jax.lax.fori_loop(0, 3, lambda i, v: run(step.body, v), x)
        else:
            seen.append(x)
    return x

@jax.jit
def start(x):
    return run(x.program, x)
"""


def test_a_function_that_traces_itself_is_followed_a_few_deep(monkeypatch: pytest.MonkeyPatch):
    """Each of its traces is one level deeper, and would be new to it forty times over."""
    bodies: list[int] = []
    block = Engine.block

    def counted(engine: Engine, body: list[ast.stmt], frame):
        bodies.append(len(body))
        return block(engine, body, frame)

    monkeypatch.setattr(Engine, "block", counted)
    found = lint([parse("interpreter.py", INTERPRETER)], Settings()).findings
    assert [(f.code, f.line) for f in found] == [("FNA103", 14)]
    assert len(bodies) < 200  # 929 without the limit


def test_classes_that_inherit_from_each_other_are_no_error():
    """Nothing runs that way, but a file may be written so."""
    text = (
        "import jax\n\nclass A(B):\n    pass\n\nclass B(A):\n    pass\n\n"
        "@jax.jit\ndef f(x):\n    print(x)\n    return A(x).foo(x)\n"
    )
    found = lint([parse("around.py", text)], Settings()).findings
    assert [(f.code, f.line) for f in found] == [("FNA311", 11)]
