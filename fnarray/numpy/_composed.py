"""Functions of several operations, called eagerly: record once, then replay on NumPy arrays.

Each operation called alone costs 2 us or more beside its work: binding, looking up its rule, making
an array. A function of fifteen such, as ``x // y`` is, would take 60 us on a few numbers. Recorded
once for the kinds of its arguments, it is replayed at the cost of its NumPy calls alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import numpy as np

from ..config import config
from ..core.array import Array, ArrayImpl, asarray
from ..core.graph import ClosedGraph, Literal
from ..core.quiet import quietly
from ..core.trace import state, trace_graph, wrap
from ._face import remember
from ._promote import operands

__all__: list[str] = []


class _Program:
    """A recorded function as steps over a list of values."""

    def __init__(self, graph: ClosedGraph, single: bool):
        jaxpr = graph.jaxpr
        self.single = single
        # A value is known by its place: arguments, then constants, then results in order.
        place = {var: i for i, var in enumerate(jaxpr.invars)}
        self.constants: list[Any] = []

        def constant(value: Any, dtype: np.dtype) -> int:
            self.constants.append(np.asarray(value, dtype))
            return len(jaxpr.invars) + len(self.constants) - 1

        for var, value in zip(jaxpr.constvars, graph.consts, strict=True):
            place[var] = constant(value, var.aval.dtype)
        atoms = [a for eqn in jaxpr.eqns for a in eqn.invars] + list(jaxpr.outvars)
        literals = {id(a): constant(a.val, a.aval.dtype) for a in atoms if isinstance(a, Literal)}
        size = len(jaxpr.invars) + len(self.constants)

        def read(atom: Any) -> int:
            return literals[id(atom)] if isinstance(atom, Literal) else place[atom]

        self.steps = []
        for eqn in jaxpr.eqns:
            sources = tuple(map(read, eqn.invars))
            dtypes = tuple(v.aval.dtype for v in eqn.outvars)
            self.steps.append((eqn.primitive, eqn.params, sources, dtypes))
            for var in eqn.outvars:
                place[var] = size
                size += 1
        prims = {v: eqn.primitive for eqn in jaxpr.eqns for v in eqn.outvars}
        made = cast("Callable[[Any], Any]", prims.get)
        self.results = [(read(a), a.aval, made(a)) for a in jaxpr.outvars]

    def run(self, data: list[Any]) -> list[Any]:
        """Return all values, given those of the arguments."""
        values = data + self.constants
        for prim, params, sources, dtypes in self.steps:
            out = prim.eval(*[values[i] for i in sources], **params)
            for part, dtype in zip(out if prim.multiple_results else (out,), dtypes, strict=True):
                if type(part) is not np.ndarray or part.dtype != dtype:
                    part = np.asarray(part, dtype)
                values.append(part if part.flags.c_contiguous else part.copy(order="C"))
        return values

    def __call__(self, args: list[ArrayImpl]) -> Any:
        values = quietly(self.run, [a._data for a in args])
        outs = [wrap(values[i], aval, prim) for i, aval, prim in self.results]
        return outs[0] if self.single else tuple(outs)


def composed(f: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a function of arrays, positional, and hashable settings, named, that is replayed.

    Its operations must follow from the arguments' avals and the settings alone.
    """
    memo: dict[Any, _Program] = {}
    name = f.__name__.lstrip("_")

    @wraps(f)
    def face(*args: Any, **settings: Any) -> Any:
        if state.trace is not None or config.debug_nans:
            return f(*args, **settings)
        arrays = [a if type(a) is ArrayImpl else asarray(a) for a in operands(name, *args)]
        key = (tuple([a.aval for a in arrays]), config.trace_token, *settings.items())
        program = memo.get(key)
        if program is None:
            program = _record(f, name, arrays, settings)
            remember(memo, key, program)
        return program(arrays)

    return face


def _record(
    f: Callable[..., Any], name: str, arrays: list[Any], settings: dict[str, Any]
) -> _Program:
    single = True

    def flat(*tracers: Any) -> list[Any]:
        nonlocal single
        out = f(*tracers, **settings)
        single = isinstance(out, Array)
        return [out] if single else list(out)

    return _Program(trace_graph(flat, [a.aval for a in arrays], name), single)
