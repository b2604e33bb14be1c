"""What findings say: the object as the user wrote it, each cause once, no call twice in a row."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from fnarray.purity import check
from fnarray.purity.engine.ownership import _OF_CACHES, _OF_CLASSES, _OF_OTHERS, _OF_STREAMS
from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import read

SOURCE = """
import array
import contextvars
import functools
import inspect
import sys
import types
import uuid
import fnarray
import fnarray.numpy as jnp
import numpy as np
class Box:
    count = 1.0
    def grow(self): Box.count = 2.0
matrix = np.ones((2, 2))
box, table = Box(), dict(a=1.0, b=2.0)
nested, space = {{"a": {{"b": []}}}}, types.SimpleNamespace(rate=1.0)
def table_of(): return dict(a=1.0)
@functools.cache
def remembered(n): return n
current = contextvars.ContextVar("current")
samples, raw = array.array("d", [1.0]), bytearray(4)
view = memoryview(raw)
@fnarray.jit
def f(x):
    {line}
    return x
def first(items=[1.0]):
    return items[0]
def drawn(x, numbers=iter([1.0, 2.0])):
    return x * next(numbers)
def kept(x, items=[]):
    items.append(1.0)
    return x
def again(x, n):
    table["n"] = n
    return x if not n else again(x, n - 1)
"""
#: A line, and how each of its findings begins.
SAID = {
    'setattr(box, "w", x)': ["sets 'box.w'"],
    "setattr(box, str(x), x)": ["sets 'box.<computed>'"],
    'delattr(box, "w")': ["deletes 'box.w'"],
    "del box.w": ["deletes 'box.w'"],
    'object.__setattr__(box, "w", x)': ["sets 'box.w'"],
    "current.set(x)": ["changes 'current'"],
    "samples.byteswap()": ["changes 'samples'"],
    "samples.frombytes(b'ab')": ["changes 'samples'"],
    "samples[0] += 1.0": ["changes 'samples'"],
    "view.release()": ["changes 'view'"],
    "view.cast('b')[0] = 1": ["changes 'view'"],
    "memoryview(raw)[0] = 1": ["changes 'raw'"],
    "np.frombuffer(raw, np.uint8)[0] = 1": ["changes 'raw'"],
    'globals()["last"] = x': ["writes the global 'last'"],
    "globals().update(last=x)": ["writes the global 'last'"],
    'globals().update({"last": x})': ["writes the global 'last'"],
    'globals().setdefault("last", x)': ["writes the global 'last'"],
    "globals().update([])": ["writes the global 'globals().update(...)'"],
    "x = drawn(x) + drawn(x)": ["draws from 'numbers'"],
    "x = kept(x)": ["changes 'items'"],
    'vars(box)["w"] = x': ["sets 'box.w'"],
    'box.__dict__["w"] = x': ["sets 'box.w'"],
    "vars(box).update(w=x)": ["changes 'box.__dict__', an attribute"],
    'fnarray.config.update("enable_x64", True)': ["fnarray.config.update reads or changes"],
    'box.x64 = "no" if fnarray.config.enable_x64 else "yes"': ["sets 'box.x64'"],
    'x = table["a"] * x + table["b"] * table["a"]': ["reads 'table'"],
    'x = table["a"] * x + current.get()': ["reads 'table'", "reads 'current'"],
    "matrix.T[0] = 1": ["writes into 'matrix'"],
    "matrix.reshape(4)[0] = 1": ["writes into 'matrix'"],
    'x = x * len(open("table").name)': ["open reads"],
    "x = x * first()": ["reads 'items'"],
    'table["c"] = table["a"] + table["b"]': ["changes 'table'"],
    'nested["a"]["b"].append(x)': ['changes \'nested["a"]["b"]\''],
    'x["hist"].append(1.0)': ["changes the argument 'x[\"hist\"]' in place (append)"],
    'x["a"].step = 1': ["changes the argument 'x[\"a\"]' in place (sets step)"],
    'x["w"][0] = 1.0': ["assigns to an item of 'x[\"w\"]'"],
}


#: A line, and the repair of its only finding: it is done in one line, and helps.
REPAIRED = {
    "x = x * Box.count": _OF_CLASSES,
    "x = x * Box().count": _OF_CLASSES,
    "x = x * box.count": "Make the object's class a frozen dataclass, or pass the value as an "
    "argument.",
    "x = x * current.get()": "Read it outside, and pass what it gives as an argument.",
    "current.set(x)": _OF_STREAMS,
    **dict.fromkeys(
        ("first.calls = 1", "Box.count = 3.0", "box.count = 3.0", "space.rate = 1.0"),
        "Return the new value, and let the caller set it.",
    ),
    "x = x * space.rate": _OF_OTHERS,
    "x = x * box.__dict__['count']": _OF_OTHERS,
    "remembered.cache_clear()": _OF_CACHES,
    "x = x * len(sys.stdin.name)": "Read it before the call, and pass what was read.",
    "x = x * len(inspect.stack())": "Pass what it tells of the caller as an argument.",
    "x = x * uuid.uuid4().int": "Draw it outside, and pass it as an argument.",
    "y = jnp.sin(x); y[0] = 1.0": "Write y.at[0].set(...), which returns a new array.",
    "x[1:] -= 2.0": "Write x.at[1:].subtract(...), which returns a new array.",
    'x["w"][0] *= 2.0': 'Write x["w"].at[0].multiply(...), which returns a new array.',
    'x["w"] = 1.0': 'Build a new one: {**x, "w": ...}.',
    'x["a"]["w"] = 1.0': 'Build a new one: {**x["a"], "w": ...}.',
    "for k in x: x[k] -= 1.0": "Build a new one: {**x, k: ...}.",
    "for k, v in table_of().items(): x[k] = v": "Build a new one: {**x, k: ...}.",
    'x["hist"].append(1.0)': 'Build a new one: [*x["hist"], item].',
    "x.sort()": "Build a new one: sorted(x).",
    "x.step = 1": "Build a new one, such as dataclasses.replace(x, step=...).",
}


def both(line, folder):
    """Return the findings of the checker of live functions, and of the linter."""
    path = folder / "said.py"
    path.write_text(SOURCE.format(line=line))
    spec = importlib.util.spec_from_file_location("said", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return check(module.f), lint([read(path)], Settings(root=folder)).findings


@pytest.mark.parametrize("line", SAID)
def test_the_object_is_named_as_written_and_once(line, tmp_path):
    """Both front ends say the same, and one thing for each cause."""
    for found in both(line, tmp_path):
        assert len(found) == len(SAID[line]), [f.message for f in found]
        for finding, begins in zip(found, SAID[line], strict=True):
            assert finding.message.startswith(begins), finding.message


@pytest.mark.parametrize("line", REPAIRED)
def test_a_repair_is_of_what_was_found(line, tmp_path):
    """Of a class's attribute no dataclass is made, and a context variable is not frozen."""
    for findings in both(line, tmp_path):
        assert [finding.repair for finding in findings] == [REPAIRED[line]]


def test_no_call_is_said_twice_in_a_row(tmp_path):
    """A function that calls itself stands once in the chain of calls."""
    for found in both("x = again(x, 3)", tmp_path):
        (finding,) = found
        assert finding.path[-1] == "again"
        assert finding.path.count("again") == 1


LEAK = """
import fnarray
from fnarray import lax
@fnarray.jit
def f(x):
    seen = []
    def inner(y):
        seen.append(y)
        return y * y
    return {call}
"""
#: How a local of the traced function gets out of a function that is traced inside of it.
INSTEAD = {
    "fnarray.grad(inner)(x)": "Return it from the function: grad(inner, has_aux=True) gives",
    "fnarray.vjp(inner, x)[0]": "Return it from the function: vjp(inner, has_aux=True) gives",
    "fnarray.vmap(inner)(x)": "Return it from the function: vmap(inner) gives",
    "lax.map(inner, x)": "Carry the value through the loop",
}


@pytest.mark.parametrize("call", INSTEAD)
def test_a_callback_that_leaks_says_how_its_transform_gives_values_back(call, tmp_path):
    """The repair is one that the transform offers."""
    path = tmp_path / "leak.py"
    path.write_text(LEAK.format(call=call))
    (found,) = lint([read(path)], Settings(root=tmp_path)).findings
    assert found.code == "FNA108"
    assert found.repair.startswith(INSTEAD[call])


HOST = """
import time
import fnarray
def cb(v):
    time.sleep(0.0)
    print(v)
    return v
@fnarray.jit
def f(x):
    return fnarray.pure_callback(cb, x, x)
@fnarray.jit
def g(x):
    print(x)
    return x
print(f(1.0))
try:
    g(1.0)
except fnarray.errors.EffectError as error:
    print(error)
"""


@pytest.mark.parametrize("given", [["-c", HOST], ["-c" + HOST], ["-"]])
def test_a_program_on_the_command_line_is_judged_as_in_a_file(given):
    """What a host callback does is allowed; what is found is found where it is."""
    told = [*given, "--", "an argument"] if given != ["-"] else given
    done = subprocess.run(
        [sys.executable, *told], input=HOST, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("1.0\n1.0\njit: g is not pure: an effect found.")
    assert ":13:" in done.stdout
    assert ("    print(x)\n" in done.stdout) == (given != ["-"])  # text that was piped is gone
