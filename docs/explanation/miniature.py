"""The whole of fnarray in about three hundred lines: read it from top to bottom.

    function --check--> function --trace--> Graph --grad, vmap--> Graph --emit--> source --njit--> run

It is the house in miniature: purity by syntax, tracing, derivatives both ways, batching, and Python
loops as the compiler's output. What is left out is what makes the real one large: dtypes, control
flow, scheduling, the cache. NumPy and Numba are all it needs; with ``NUMBA_DISABLE_JIT=1`` the
emitted source runs as the plain Python that it is.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numba
import numpy as np

# -- 1. Purity: what a traced function may not do, by its syntax -----------------------------------
#
# Tracing runs Python once, the program runs many times: an effect would happen once, silently.


class ImpureError(TypeError):
    """A function does something that its compiled form would lose, or not see."""


def check(fun: Callable) -> None:
    """Raise `ImpureError` with the line of each effect of ``fun``; what a call makes is its own."""
    lines, first = inspect.getsourcelines(fun)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    outside = inspect.getclosurevars(fun)
    own = set(fun.__code__.co_varnames) - set(fun.__code__.co_varnames[: fun.__code__.co_argcount])
    found = []

    def note(node: ast.AST, what: str) -> None:
        found.append(f"line {first + node.lineno - 1}: {what}")

    for node in ast.walk(tree):
        match node:
            case ast.Global() | ast.Nonlocal():
                note(node, f"rebinds {', '.join(node.names)}: return the new value instead")
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                owner = node.value.id if isinstance(node.value, ast.Name) else "?"
                if owner not in own:
                    note(node, f"writes into {owner!r}, which the call does not own")
            case ast.Call(func=ast.Name("print" | "input" | "open" as name)):
                note(node, f"calls {name}, which would run once, while it is traced")
            case ast.Call(func=ast.Attribute(ast.Name(owner), "append" | "update" | "pop")):
                if owner not in own:
                    note(node, f"changes {owner!r}, which the call does not own")
            case ast.Name(name, ctx=ast.Load()):
                value = {**outside.globals, **outside.nonlocals}.get(name)
                if isinstance(value, int | float | list | dict) and not name.isupper():
                    note(node, f"reads {name!r}, which may change: pass it, or name it in CAPITALS")
    if found:
        raise ImpureError("\n  ".join([f"{fun.__name__} is not pure:", *found]))


# -- 2. Primitives: one op, one block; a rule says all that a transform or the compiler asks -------


@dataclass
class Primitive:
    """An operation and its rules.

    ``form`` says how it lowers: ``("map", template)`` computes an element from equal elements of
    its operands, ``("reindex", index)`` takes element ``index(i)`` of its operand, ``("sum",)``
    adds the last axis up. The emitter sees the form only, and transforms see rules only.
    """

    name: str
    form: tuple
    eval: Callable
    shape: Callable
    jvp: Callable = None  # (primals, tangents, **params) -> tangent
    transpose: Callable = None  # (ct, operands that are known or None, **params) -> cotangents
    batch: Callable = None  # (operands, all with an axis in front, **params) -> the same of it

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Evaluate, or let the innermost trace among the arguments record."""
        traces = [x.trace for x in args if isinstance(x, Tracer)]
        if not traces:
            return self.eval(*args, **params)
        return max(traces, key=lambda trace: trace.level).process(self, args, params)


def shape_of(x: Any) -> tuple[int, ...]:
    """Shape of an array, a number or a tracer."""
    return x.shape if isinstance(x, Tracer) else np.shape(x)


def elementwise(name: str, template: str, evaluate: Callable) -> Primitive:
    """An operation on equal shapes: it batches as itself."""
    prim = Primitive(name, ("map", template), evaluate, lambda *xs: shape_of(xs[0]))
    prim.batch = lambda xs: prim(*xs)
    return prim


add = elementwise("add", "({0} + {1})", np.add)
neg = elementwise("neg", "(-{0})", np.negative)
mul = elementwise("mul", "({0} * {1})", np.multiply)
div = elementwise("div", "({0} / {1})", np.divide)
exp = elementwise("exp", "math.exp({0})", np.exp)
log = elementwise("log", "math.log({0})", np.log)
tanh = elementwise("tanh", "math.tanh({0})", np.tanh)

# To spread puts an axis of n copies at the end; sum takes it away: each is the other's transpose.
spread = Primitive(
    "spread", ("reindex", lambda i: i[:-1]),
    lambda x, n: np.repeat(np.asarray(x)[..., None], n, -1), lambda x, n: (*shape_of(x), n),
    jvp=lambda xs, ts, n: spread(ts[0], n=n),
    transpose=lambda ct, xs, n: [total(ct)],
    batch=lambda xs, n: spread(xs[0], n=n),
)  # fmt: skip
total = Primitive(
    "sum", ("sum",), lambda x: np.sum(x, -1), lambda x: shape_of(x)[:-1],
    jvp=lambda xs, ts: total(ts[0]),
    transpose=lambda ct, xs: [spread(ct, n=shape_of(xs[0])[-1])],
    batch=lambda xs: total(xs[0]),
)  # fmt: skip
# Moves axes, as np.transpose does; a batch's axis stays in front.
permute = Primitive(
    "permute", ("reindex", None),
    lambda x, axes: np.transpose(x, axes), lambda x, axes: tuple(shape_of(x)[a] for a in axes),
    jvp=lambda xs, ts, axes: permute(ts[0], axes=axes),
    transpose=lambda ct, xs, axes: [permute(ct, axes=tuple(np.argsort(axes).tolist()))],
    batch=lambda xs, axes: permute(xs[0], axes=(0, *(a + 1 for a in axes))),
)  # fmt: skip
