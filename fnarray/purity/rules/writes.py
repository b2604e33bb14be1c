"""Writes to anything that outlives the call."""

from __future__ import annotations

from typing import Final

from ._base import LintRule

#: How a container is made anew, by the method that would change it in place.
_REBUILT: Final = {
    "append": "Build a new one: [*{name}, item].",
    "appendleft": "Build a new one: deque([item, *{name}]).",
    **dict.fromkeys(("extend", "in place"), "Build a new one: [*{name}, *items]."),
    "extendleft": "Build a new one: deque([*items, *{name}]), items in reverse.",
    "insert": "Build a new one: [*{name}[:i], item, *{name}[i:]].",
    "add": "Build a new one: {{*{name}, item}}.",
    "update": "Build a new one: {{**{name}, **other}}.",
    "setdefault": "Build a new one: {{key: value, **{name}}}.",
    "sort": "Build a new one: sorted({name}).",
    "reverse": "Build a new one: {name}[::-1].",
    **dict.fromkeys(
        ("pop", "popitem", "del"),
        "Build a new one: {{k: v for k, v in {name}.items() if k != key}} of a dict, "
        "[*{name}[:i], *{name}[i + 1:]] of a list.",
    ),
    **dict.fromkeys(
        ("remove", "discard"),
        "Build a new one: [item for item in {name} if item != other], or {name} - {{other}} of a "
        "set.",
    ),
}


class GlobalWrite(LintRule):
    """A global name is bound, rebound or deleted."""

    code = "FNA101"
    name = "global-write"
    message = "writes the global {name!r}"
    repair = "Return the new value instead, and let the caller bind it."
    why = """
A traced function's Python runs once per signature; the compiled program runs at every call. The
write happens at the first call only, and what is written is a tracer, dead when tracing ends.
"""
    bad = """
import fnarray

count = 0

@fnarray.jit
def step(x):
    global count
    count = count + 1
    return x * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x, count):
    return x * 2, count + 1
"""


class NonlocalWrite(LintRule):
    """A variable of the function around the traced one is rebound."""

    code = "FNA102"
    name = "nonlocal-write"
    message = "rebinds {name!r}, a variable of a function outside the trace"
    repair = "Return the new value instead, and let the caller bind it."
    why = """
The enclosing variable outlives the trace, so it would be written once, at the first call, with a
tracer. A variable of the traced function itself is its own business, and may be rebound by its
inner functions.
"""
    bad = """
import fnarray

def counter():
    calls = 0

    @fnarray.jit
    def step(x):
        nonlocal calls
        calls += 1
        return x * 2

    return step
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    calls = 0

    def inner(y):
        nonlocal calls
        calls += 1
        return y * 2

    return inner(x), calls
"""


class CapturedMutation(LintRule):
    """A list, dict, set or other container from outside is changed in place."""

    code = "FNA103"
    name = "captured-mutation"
    message = "changes {name!r}, which the call does not own ({what})"
    repair = "Build a new container inside the function and return it."
    why = """
The container outlives the call. The change happens while tracing, once, and leaves tracers in it.
A container made inside the traced function is local state and may be changed freely.
"""
    bad = """
import fnarray

log = []

@fnarray.jit
def step(x):
    log.append(x)
    return x * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    log = []
    log.append(x)
    return x * 2, log
"""


class ArgumentMutation(LintRule):
    """An argument of the traced function is changed in place."""

    code = "FNA104"
    name = "argument-mutation"
    message = "changes the argument {name!r} in place ({what})"
    repair = "Build a new one, and return it."
    repairs = _REBUILT
    why = """
The traced function receives a copy of the structure of its arguments: the caller never sees the
change, although the same code without the transform would show it. Return a new container.
"""
    bad = """
import fnarray

@fnarray.jit
def step(params, g):
    params["w"] = params["w"] - 0.1 * g
    return params
"""
    good = """
import fnarray

@fnarray.jit
def step(params, g):
    return {**params, "w": params["w"] - 0.1 * g}
"""


class AttributeWrite(LintRule):
    """An attribute of an object, class or module from outside is set or deleted."""

    code = "FNA105"
    name = "attribute-write"
    message = "{what} {name!r}, an attribute of an object the call does not own"
    repair = "Return the new value, and let the caller set it."
    why = """
The object outlives the call, so the attribute would be set once, while tracing, to a tracer.
"""
    bad = """
import fnarray

class Model:
    calls = 0

@fnarray.jit
def step(x):
    Model.calls = 1
    return x * 2
"""
    good = """
import fnarray

class Box:
    pass

@fnarray.jit
def step(x):
    box = Box()
    box.value = x * 2
    return box.value
"""


class ArrayItemWrite(LintRule):
    """``x[i] = v`` on an array handed in."""

    code = "FNA106"
    name = "array-item-write"
    message = "assigns to an item of {name!r}, but arrays are immutable"
    repair = "Write {what}, which returns a new array."
    why = """
Arrays are values. ``x.at[i].set(v)`` says the same and compiles to a write in place where nothing
else needs the old array.
"""
    bad = """
import fnarray

@fnarray.jit
def step(x, i):
    x[i] = 0.0
    return x
"""
    good = """
import fnarray

@fnarray.jit
def step(x, i):
    return x.at[i].set(0.0)
"""


class ArrayWrite(LintRule):
    """A NumPy array from outside is written: item, ``+=``, ``out=`` or a method in place."""

    code = "FNA107"
    name = "array-write"
    message = "writes into {name!r}, a NumPy array the call does not own ({what})"
    repair = "Compute a new array and return it."
    why = """
NumPy's buffer outlives the call and cannot hold tracers; compiled code never writes to it.
"""
    bad = """
import fnarray
import numpy as np

totals = np.zeros(3)

@fnarray.jit
def step(x):
    totals[0] = 1.0
    return x * 2
"""
    good = """
import fnarray
import numpy as np

@fnarray.jit
def step(x):
    totals = np.zeros(3)
    totals[0] = 1.0
    return x * 2 + totals
"""


class CallbackLeak(LintRule):
    """A loop body, branch or other traced callback changes a local of the function around it."""

    code = "FNA108"
    name = "callback-leak"
    message = "a traced callback changes {name!r}, which belongs to the function around it ({what})"
    repair = "Carry the value through the loop, or return it from the branch."
    why = """
The body of a loop or branch is traced on its own and compiled into it. What it leaves in an outer
variable is a tracer of the inner trace, written once, not once per iteration.
"""
    bad = """
import fnarray
from fnarray import lax

@fnarray.jit
def total(x):
    seen = []

    def body(i, acc):
        seen.append(acc)
        return acc + x[i]

    return lax.fori_loop(0, 3, body, 0.0)
"""
    good = """
import fnarray
from fnarray import lax

@fnarray.jit
def total(x):
    def body(acc, xi):
        return acc + xi, acc

    return lax.scan(body, 0.0, x)
"""
