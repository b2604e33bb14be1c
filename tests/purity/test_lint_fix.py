"""``--fix``: what it changes still runs, means what the repair says, and is changed once."""

from __future__ import annotations

import re
import runpy

import pytest

from fnarray.purity.lint.cli import main
from fnarray.purity.lint.source import parse

#: Name to a program, what it holds afterwards, and a condition on the globals of its run.
PROGRAMS = {
    "keys": (
        """
import fnarray
from fnarray import random

def draws(key):
    a = random.normal(key, (3,))  # the first
    b = random.normal(key, (3,))
    for _ in range(2):
        c = b + random.normal(key, (
            3,  # of them
        ))
    return a, b, c

one, two, three = (x.tolist() for x in draws(random.key(0)))
""",
        "    key, sub = random.split(key)\n    a = random.normal(sub, (3,))  # the first\n",
        lambda got: got["one"] != got["two"] and got["one"] != got["three"],
    ),
    "keys by names": (
        """
import fnarray
from fnarray.random import key, normal, uniform

def draws(seed):
    a = normal(seed, (3,))
    return a, uniform(seed, (3,))

one, two = (x.tolist() for x in draws(key(0)))
""",
        "import key, normal, uniform\nfrom fnarray.random import split\n",
        lambda got: got["one"] != got["two"],
    ),
    "keys beside a name for split": (
        """
import fnarray
from fnarray.random import key, normal, split as halve

def draws(seed):
    a = normal(seed, (3,))
    return a, normal(seed, (3,))

one, two = (x.tolist() for x in draws(key(0)))
""",
        "    seed, sub = halve(seed)\n    a = normal(sub, (3,))\n",
        lambda got: got["one"] != got["two"],
    ),
    "keys beside their module": (
        """
import fnarray
import fnarray.random as draw
from fnarray.random import key, normal

def draws(seed):
    a = normal(seed, (3,))
    return a, normal(seed, (3,))

one, two = (x.tolist() for x in draws(key(0)))
""",
        "    seed, sub = draw.split(seed)\n",
        lambda got: got["one"] != got["two"],
    ),
    "arrays": (
        """
import fnarray
import numpy as np

weights = np.ones(3)  # to begin with

@fnarray.jit
def step(x):
    return x * weights

weights = np.array([
    1.0, 2.0, 3.0
])
result = step(2.0).tolist()
""",
        "import fnarray.numpy as jnp\n\nweights = jnp.asarray(np.ones(3))  # to begin with\n",
        lambda got: got["result"] == [2.0, 4.0, 6.0],
    ),
    "arrays of a call": (
        """
import fnarray
import fnarray.numpy as jnp
import numpy as np

def make():
    w = np.ones(2)

    @fnarray.jit
    def f(x):
        return x * w

    w = w + 1
    return f

result = make()(2.0).tolist()
""",
        "    w = jnp.asarray(np.ones(2))\n\n    @fnarray",
        lambda got: got["result"] == [4.0, 4.0],
    ),
    "constants": (
        """
import fnarray

match __name__:
    case "nowhere":
        rate = 0.1  # é
    case _:
        rate = 0.25

def other(rate):
    return rate

@fnarray.jit
def step(x, scale=rate):
    return x * scale + rate

result = float(step(1.0)), other(rate=rate)
""",
        "        RATE = 0.1  # é\n    case _:\n        RATE = 0.25\n",
        lambda got: got["result"] == (0.5, 0.25),
    ),
}

#: Programs with findings that take a decision.
LEFT = {
    "a variable": "rate = 0.1\n@fnarray.jit\ndef f(x):\n    return x * rate\nrate = 0.2\n",
    "an array that is written": (
        "w = np.ones(3)\n@fnarray.jit\ndef f(x):\n    return x * w\nw = w * 2\nw[0] = 5\n"
    ),
    "an array that is sorted": (
        "w = np.ones(3)\n@fnarray.jit\ndef f(x):\n    return x * w\nw = w * 2\nw.sort()\n"
    ),
    "a key of the module": (
        "key = random.key(0)\ndef f():\n    return random.normal(key) + random.normal(key)\n"
    ),
    "a lambda": "f = lambda key: random.normal(key) + random.normal(key)\n",
    "an import inside of the function": (
        "def f(key):\n    from fnarray.random import normal as draw\n"
        "    draws = [draw(key) for _ in range(2)]\n    return draws, draw(key)\n"
    ),
    "a condition": (
        "def f(key):\n    while random.normal(key) > random.normal(key):\n        pass\n"
    ),
    "rows in one order": (
        "def f(key, x, y):\n    x = random.permutation(key, x, axis=1)\n"
        "    return x, random.permutation(key, y)\n"
    ),
    "a key that a function inside sees": (
        "def f(key):\n    def g():\n        return random.normal(key)\n"
        "    a = random.normal(key)\n    return a, random.normal(key), g\n"
    ),
    "a name in a text": (
        "match np:\n    case 1:\n        rate = 0.1\n    case _:\n        rate = 0.2\n"
        "__all__ = ['rate']\n"
        "@fnarray.jit\ndef f(x):\n    return x * rate\n"
    ),
    "a name that is taken": (
        "RATE = 1\nmatch np:\n    case 1:\n        rate = 0.1\n    case _:\n        rate = 0.2\n"
        "@fnarray.jit\ndef f(x):\n    return x * rate\n"
    ),
    "an ignored one": (
        "def f(key):\n    a = random.normal(key)\n"
        "    return a, random.normal(key)  # fnarray: ignore[FNA605]\n"
    ),
}
HEAD = "import fnarray\nimport numpy as np\nfrom fnarray import random\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a file to write, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "program.py"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fixed_program_runs(name, file, capsys):
    """The finding is gone, the program gives its result, and comments stay where they were."""
    text, holds, right = PROGRAMS[name]
    file.write_text(text, encoding="utf-8")
    assert main(["program.py", "--no-cache", "-q"]) == 1
    assert main(["program.py", "--no-cache", "-q", "--fix"]) == 0, capsys.readouterr().out
    after = file.read_text(encoding="utf-8")
    assert holds in after
    assert re.findall("#.*", text) == re.findall("#.*", after)
    assert right(runpy.run_path(str(file)))
    assert main(["program.py", "--no-cache", "-q", "--fix"]) == 0
    assert file.read_text(encoding="utf-8") == after, "a second time changes nothing"


@pytest.mark.parametrize("name", LEFT)
def test_what_takes_a_decision_is_left(name, file, capsys):
    """Where the repair would be a guess, or break something, the file stays byte for byte."""
    file.write_text(HEAD + LEFT[name])
    status = main(["program.py", "--no-cache", "-q"])
    assert status == (name != "an ignored one"), capsys.readouterr()
    assert main(["program.py", "--no-cache", "-q", "--fix"]) == status
    assert file.read_text() == HEAD + LEFT[name]


def test_diff_changes_nothing(file, capsys):
    """``--diff`` prints a patch and exits with 1; without repairs it prints nothing."""
    text = PROGRAMS["keys"][0]
    file.write_text(text)
    assert main(["program.py", "--diff"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("--- program.py\n+++ program.py\n")
    assert "+    key, sub = random.split(key)\n" in out
    assert file.read_text() == text
    file.write_text("x = 1\n")
    assert main(["program.py", "--diff"]) == 0
    assert not capsys.readouterr().out


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("last", [True, False])
def test_formatting_stays(file, end, last):
    """Line ends, encoding and the last newline are those of the file."""
    text = "# coding: latin-1\n# é\n" + PROGRAMS["keys"][0].strip().replace("é", "e")
    text = text.replace("\n", end) + end * last
    file.write_bytes(text.encode("latin-1"))
    assert main(["program.py", "--no-cache", "-q", "--fix"]) == 0
    raw = file.read_bytes()
    assert b"\xe9" in raw
    assert raw.count(b"\n") - raw.count(end.encode()) == 0
    assert raw.endswith(end.encode()) is last
    assert [n for n in raw.decode("latin-1").splitlines() if "split" in n] != []


def test_a_finding_of_another_file(tmp_path, monkeypatch, capsys):
    """A helper is repaired where it stands, although another file traces it."""
    monkeypatch.chdir(tmp_path)
    helper = (
        "import numpy as np\n\nw = np.ones(3)\n\ndef f(x):\n    return x * w\n\nw = np.zeros(3)\n"
    )
    (tmp_path / "helper.py").write_text(helper)
    (tmp_path / "main.py").write_text(
        "import fnarray\nimport helper\n\ng = fnarray.jit(helper.f)\n"
    )
    assert main(["--no-cache", "--fix", "-q"]) == 0, capsys.readouterr().out
    assert (
        "import fnarray.numpy as jnp\n\nw = jnp.asarray(np.ones(3))"
        in (tmp_path / "helper.py").read_text()
    )


def test_explain(capsys):
    """``--explain`` prints the page of a rule, by code or name, and lints nothing."""
    assert main(["--explain", "FNA605", "--explain", "global-write"]) == 0
    out = capsys.readouterr().out
    assert "# FNA605: key-reuse" in out
    assert "# FNA101: global-write" in out
    assert main(["--explain", "FNA999"]) == 2


def test_the_repairs_of_the_rules_own_examples(file):
    """The example of each rule that has a repair is repaired, or says why not: it rebinds."""
    from fnarray.purity.lint.repairs import REPAIRS
    from fnarray.purity.rules import RULES

    for code in REPAIRS:
        file.write_text(RULES[code].bad)
        assert main(["program.py", "--no-cache", "-q", "--fix"]) == (code == "FNA203")
        assert parse("program.py", file.read_text()).tree is not None


def test_the_module_of_the_library_that_traces_is_named(file):
    """Beside JAX, whose arrays another transform would capture."""
    file.write_text(
        "import jax.numpy as jnp\nimport fnarray, fnarray.numpy as fnp\nimport numpy as np\n"
        "w = np.zeros(3)\n@fnarray.jit\ndef f(x): return x * w\nw = np.ones(3)\n"
    )
    assert main(["program.py", "--no-cache", "-q", "--fix"]) == 0
    assert "w = fnp.asarray(np.ones(3))" in file.read_text()
