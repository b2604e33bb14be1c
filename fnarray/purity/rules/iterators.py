"""Iterators that outlive the call, and functions that are not plain functions."""

from __future__ import annotations

from ._base import LintRule


class OuterIterator(LintRule):
    """An iterator, generator or file from outside is advanced."""

    code = "FNA401"
    name = "outer-iterator"
    message = "draws from {name!r}, an iterator the call does not own"
    repair = "Draw outside and pass the items as an argument."
    why = """
Drawing changes the iterator. It happens while tracing, once; every later call would see the same
item.
"""
    bad = """
import fnarray

batches = iter([1.0, 2.0, 3.0])

@fnarray.jit
def step(x):
    return x + next(batches)
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    batches = iter([1.0, 2.0, 3.0])
    return x + next(batches)
"""


class ArgumentIterator(LintRule):
    """``next`` is called on an argument of the traced function."""

    code = "FNA402"
    name = "argument-iterator"
    message = "draws from the argument {name!r}"
    repair = "Draw outside and pass the item, or pass a sequence."
    why = """
An iterator is state: drawing from it changes what the caller holds, once, while tracing.
"""
    bad = """
import fnarray

@fnarray.jit
def step(batches, x):
    return x + next(batches)
"""
    good = """
import fnarray

@fnarray.jit
def step(batch, x):
    return x + batch
"""


class TracedGenerator(LintRule):
    """A generator function is traced."""

    code = "FNA403"
    name = "traced-generator"
    message = "{name!r} is a generator function, which cannot be traced"
    repair = "Return the values in a list, or use lax.scan."
    why = """
Calling a generator function runs nothing; its body would run later, outside the trace.
"""
    bad = """
import fnarray

@fnarray.jit
def steps(x):
    for i in range(3):
        yield x * i
"""
    good = """
import fnarray

@fnarray.jit
def steps(x):
    return [x * i for i in range(3)]
"""


class TracedCoroutine(LintRule):
    """A coroutine function is traced."""

    code = "FNA404"
    name = "traced-coroutine"
    message = "{name!r} is a coroutine function, which cannot be traced"
    repair = "Make it a plain function, and await outside."
    why = """
Calling a coroutine function runs nothing; its body would run later, outside the trace, and waits.
"""
    bad = """
import fnarray

@fnarray.jit
async def step(x):
    return x * 2
"""
    good = """
import fnarray

@fnarray.jit
def step(x):
    return x * 2
"""
