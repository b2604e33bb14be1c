"""Reads of values that may change between two calls without anybody noticing."""

from __future__ import annotations

from ._base import LintRule


class MutableRead(LintRule):
    """A captured list, dict, set or other mutable container is read."""

    code = "FNA201"
    name = "mutable-read"
    message = "reads {name!r}, a mutable {what} from outside"
    repair = "Pass it as an argument, or freeze it: tuple, frozenset, types.MappingProxyType."
    why = """
The contents are read once and compiled in. A later change of the container would go unseen,
whatever its name: capitals do not freeze a list. An argument, or a container made inside, is no
problem.
"""
    bad = """
import fnarray

config = {"scale": 2.0}

@fnarray.jit
def step(x):
    return x * config["scale"]
"""
    good = """
import fnarray
from types import MappingProxyType

CONFIG = MappingProxyType({"scale": 2.0})

@fnarray.jit
def step(x):
    return x * CONFIG["scale"]
"""


class MutableArray(LintRule):
    """A captured NumPy array that can be written is read."""

    code = "FNA202"
    name = "mutable-array"
    message = "reads {name!r}, a writable NumPy array from outside"
    repair = (
        "Pass it as an argument, make it an array that cannot change (fnarray.numpy.asarray), or "
        "bind it once."
    )
    why = """
The numbers are compiled in. An array that is bound once, of up to config.captured_array_limit
bytes, is compared with its copy at each call, so that a write into it is seen. A name that is bound
again, or a larger array, would be read once and go stale.
"""
    bad = """
import fnarray
import numpy as np

weights = np.ones(3)

@fnarray.jit
def step(x):
    return x * weights

weights = np.zeros(3)
"""
    good = """
import fnarray
import fnarray.numpy as jnp

weights = jnp.ones(3)

@fnarray.jit
def step(x):
    return x * weights
"""


class GlobalScalar(LintRule):
    """A number, string or tuple of them is read from a global that is bound more than once."""

    code = "FNA203"
    name = "global-scalar"
    message = "reads the global {name!r}, which is not declared a constant"
    repair = (
        "Pass it as an argument; or declare it constant, in CAPITALS or as typing.Final; "
        "or make it a static argument."
    )
    why = """
A global that is bound again is a variable: the compiled program would hold the old value. A name
that its module is seen to bind once is a constant, as one in capitals is. Both are guarded: if one
is rebound all the same, the next call retraces.
"""
    bad = """
import fnarray

rate = 0.1

@fnarray.jit
def step(x):
    return x * rate

rate = 0.2
"""
    good = """
import fnarray

RATE = 0.1

@fnarray.jit
def step(x):
    return x * RATE
"""


class MutableAttribute(LintRule):
    """An attribute is read from an object, class or module that may change."""

    code = "FNA204"
    name = "mutable-attribute"
    message = "reads {name!r}, an attribute of an object that may change"
    repair = "Make the object's class a frozen dataclass, or pass the value as an argument."
    why = """
The attribute is read once and compiled in; a later assignment would go unseen. Frozen
dataclasses, named tuples and enums cannot change, and capitals mark a class attribute as
constant.
"""
    bad = """
import fnarray

class Settings:
    def __init__(self):
        self.scale = 2.0

settings = Settings()

@fnarray.jit
def step(x):
    return x * settings.scale
"""
    good = """
import fnarray
from dataclasses import dataclass

@dataclass(frozen=True)
class Settings:
    scale: float = 2.0

settings = Settings()

@fnarray.jit
def step(x):
    return x * settings.scale
"""


class ReboundCell(LintRule):
    """A closure reads a variable that a sibling rebinds, or a loop variable bound late."""

    code = "FNA205"
    name = "rebound-cell"
    message = "reads {name!r}, a variable of the enclosing function that {what}"
    repair = (
        "Bind the value at definition: a default argument ({name}={name}) or functools.partial."
    )
    why = """
A closure holds the variable, not its value. All functions made in a loop share the last value,
and a variable that another function rebinds is hidden state.
"""
    bad = """
import fnarray

def make():
    steps = []
    for k in range(3):
        steps.append(fnarray.jit(lambda x: x * k))
    return steps
"""
    good = """
import fnarray

def make():
    steps = []
    for k in range(3):
        steps.append(fnarray.jit(lambda x, k=k: x * k))
    return steps
"""
