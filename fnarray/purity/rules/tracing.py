"""Code that is pure, and yet means something else than it seems to while it is traced."""

from __future__ import annotations

from ._base import LintRule


class TracedBranch(LintRule):
    """Python's ``if``, ``while``, ``and`` on a traced value."""

    code = "FNA601"
    name = "traced-branch"
    message = "{what} decides on {name!r}, which has no value while tracing"
    repair = "Use where, lax.cond or lax.while_loop; or make the argument static."
    why = "A traced value has a shape and a dtype, no number; its truth is known at run time."
    bad = """
import fnarray

@fnarray.jit
def relu(x):
    if x > 0:
        return x
    return 0.0
"""
    good = """
import fnarray
import fnarray.numpy as jnp

@fnarray.jit
def relu(x):
    return jnp.where(x > 0, x, 0.0)
"""


#: What to do where a number is asked for otherwise than by ``float`` and its like.
_OF_NUMBERS = {
    "range()": "Make the argument static, or use lax.fori_loop.",
    "an index": "Index an array: jnp.asarray([...])[{name}].",
    "a number's format": "Leave the format out, or use fnarray.debug.print.",
    ".item()": "Keep the array, which computes as its number does; or ask the result.",
    ".tolist()": "Keep it an array; or make the list of the returned value.",
}


class TracedConversion(LintRule):
    """``float``, ``int``, ``bool``, ``.item()`` of a traced value."""

    code = "FNA602"
    name = "traced-conversion"
    message = "{what} asks for the number of {name!r}, which has none while tracing"
    repair = "Keep it an array: x.astype(...); or convert outside, from the returned value."
    repairs = _OF_NUMBERS
    why = "A traced value has a shape and a dtype, no number."
    bad = """
import fnarray

@fnarray.jit
def step(x):
    return float(x) * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    return x.astype(float) * 2
"""


class NumpyOnTraced(LintRule):
    """A NumPy function is called on a traced value."""

    code = "FNA603"
    name = "numpy-on-traced"
    message = "{what} needs the numbers of {name!r}, which has none while tracing"
    repair = "Call the function of the same name in fnarray.numpy."
    why = "NumPy computes at once, and a traced value has no numbers yet."
    bad = """
import fnarray
import numpy as np

@fnarray.jit
def step(x):
    return np.sin(x)
"""
    good = """
import fnarray
import fnarray.numpy as jnp

@fnarray.jit
def step(x):
    return jnp.sin(x)
"""


class BooleanMask(LintRule):
    """An array is as large as traced values say: by a mask as an index, or ``jnp.nonzero``."""

    code = "FNA604"
    name = "boolean-mask"
    message = "{name!r} {what}, so the size of the result is unknown while tracing"
    repair = "Use jnp.where(mask, x, 0), or jnp.nonzero(..., size=n)."
    why = "Shapes are decided while tracing; how many elements a mask selects is known only later."
    bad = """
import fnarray

@fnarray.jit
def positive_sum(x):
    return x[x > 0].sum()
"""
    good = """
import fnarray
import fnarray.numpy as jnp

@fnarray.jit
def positive_sum(x):
    return jnp.where(x > 0, x, 0).sum()
"""


class KeyReuse(LintRule):
    """A random key is consumed twice."""

    code = "FNA605"
    name = "key-reuse"
    message = "the key {name!r} {what}, so the draws are not independent"
    repair = "Split it: {name}, sub = random.split({name})."
    why = "The same key gives the same numbers; two draws from it are copies of each other."
    bad = """
from fnarray import random

def noise(key):
    a = random.normal(key)
    b = random.normal(key)
    return a + b
"""
    good = """
from fnarray import random

def noise(key):
    one, two = random.split(key)
    return random.normal(one) + random.normal(two)
"""


class JitInLoop(LintRule):
    """A function is transformed anew at each iteration."""

    code = "FNA606"
    name = "jit-in-loop"
    message = "{what} in a loop makes a new function, and traces it, at each iteration"
    repair = "Transform it once, before the loop."
    why = "Programs are kept per function; a lambda made in a loop is new each time."
    bad = """
import fnarray

def run(xs):
    return [fnarray.jit(lambda v: v * 2)(x) for x in xs]
"""
    good = """
import fnarray

def run(xs):
    double = fnarray.jit(lambda v: v * 2)
    return [double(x) for x in xs]
"""


class UnrolledLoop(LintRule):
    """A Python loop of many iterations is unrolled into the program."""

    code = "FNA607"
    name = "unrolled-loop"
    message = "the loop is unrolled {what} times into the compiled program"
    repair = "Use lax.fori_loop or lax.scan."
    why = "Tracing runs the loop; the program grows, and compiles slowly."
    bad = """
import fnarray

@fnarray.jit
def step(x):
    for i in range(1000):
        x = x * 1.001
    return x
"""
    good = """
import fnarray
from fnarray import lax

@fnarray.jit
def step(x):
    return lax.fori_loop(0, 1000, lambda i, x: x * 1.001, x)
"""


class UnhashableStatic(LintRule):
    """A static argument has a list, dict, set or array as its default or value."""

    code = "FNA608"
    name = "unhashable-static"
    message = "the static argument {name!r} is {what}, which cannot be hashed"
    repair = "Use a tuple or a frozenset."
    why = "Programs are looked up by the values of static arguments, which must hash and compare."
    bad = """
from functools import partial

import fnarray

@partial(fnarray.jit, static_argnames=("shape",))
def step(x, shape=[2, 2]):
    return x.reshape(shape)
"""
    good = """
from functools import partial

import fnarray

@partial(fnarray.jit, static_argnames=("shape",))
def step(x, shape=(2, 2)):
    return x.reshape(shape)
"""
