"""Code that no reader, and no checker, can see."""

from __future__ import annotations

from ._base import LintRule


class DynamicCode(LintRule):
    """Source text is run: ``exec``, ``eval``, ``compile``."""

    code = "FNA501"
    name = "dynamic-code"
    message = "runs source text through {name!r}"
    repair = "Write the function out, or build it outside the traced function."
    watches = """
        builtins.exec builtins.eval builtins.compile runpy code.interact types.FunctionType
        types.CodeType
    """
    why = """
What the text does is decided when it runs, so nothing can be said about its effects.
"""
    bad = """
import fnarray

@fnarray.jit
def step(x):
    return eval("x * 2")
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    return x * 2
"""


class DynamicImport(LintRule):
    """A module is imported by a name computed at run time."""

    code = "FNA502"
    name = "dynamic-import"
    message = "imports through {name!r}"
    repair = "Import at the top of the module."
    watches = "builtins.__import__ importlib.import_module importlib.reload"
    why = """
An import runs the module's code, and which module it is cannot be seen.
"""
    bad = """
import fnarray

@fnarray.jit
def step(x):
    return __import__("math").sqrt(2.0) * x
"""
    good = """
import math

import fnarray

@fnarray.jit
def step(x):
    return math.sqrt(2.0) * x
"""
