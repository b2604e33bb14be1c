"""A graph as a straight list of NumPy calls: what replays an eager call on few elements."""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from .graph import Atom, ClosedGraph, Eqn, Literal

__all__ = ["Record", "thin_of"]

#: Results of constants alone are kept up to this size, and computed by each replay above it.
_SMALL = 4096
#: Values of more bytes than this take longer to get memory for than to let go of.
_LARGE = 1 << 16
#: What repeats elements in an evaluator's place, where only NumPy reads them: by single ones.
thin_of: dict[Callable[..., Any], Callable[..., Any]] = {}


def _settled(out: Any, dtype: np.dtype) -> np.ndarray:
    """Return an evaluator's result as a buffer."""
    if type(out) is not np.ndarray or out.dtype is not dtype:
        out = np.asarray(out, dtype)
    return out if out.flags.c_contiguous else out.copy(order="C")


def _evaluator(eqn: Eqn, thin: bool) -> Callable[..., Any]:
    evaluate = eqn.primitive.eval
    if thin:
        evaluate = thin_of[evaluate]
    return partial(evaluate, **eqn.params) if eqn.params else evaluate


def _thin(eqns: Sequence[Eqn], results: Sequence[Atom]) -> set[int]:
    """Return which equations repeat elements for NumPy's functions alone, which repeat themselves.

    An operand of each of these has the whole shape, so that the result does. The standard deviation
    of a million numbers took 90 us to repeat their mean.
    """
    able = {k: e.outvars[0] for k, e in enumerate(eqns) if e.primitive.eval in thin_of}
    for eqn in eqns:
        ufunc = isinstance(eqn.primitive.eval, np.ufunc) and not eqn.params
        repeated = [v for v in able.values() if v in eqn.invars]
        if repeated and not (ufunc and any(_is_whole(x, eqn, repeated) for x in eqn.invars)):
            able = {k: v for k, v in able.items() if v not in repeated}
    return {k for k, v in able.items() if v not in results}


def _is_whole(x: Atom, eqn: Eqn, repeated: Sequence[Atom]) -> bool:
    return x.aval.shape == eqn.outvars[0].aval.shape and x not in repeated


class Record:
    """A graph as a straight list of evaluations over a list of values.

    Values are constants, arguments, results in order. Until all constants are known, constant ``k``
    goes by ``~k``, and the others are counted from the first argument.

    Attributes
    ----------
    steps : list of (evaluate, places of operands, dtype)
        A tuple of dtypes where there are several results.
    results : list of int
        Their places.
    """

    def __init__(self, graph: ClosedGraph):
        jaxpr = graph.jaxpr
        self.constants: list[np.ndarray] = []
        place: dict[Any, int] = {var: i for i, var in enumerate(jaxpr.invars)}
        for var, value in zip(jaxpr.constvars, graph.consts, strict=True):
            place[var] = self._constant(np.asarray(value, var.aval.dtype))

        def find(atom: Atom) -> int:
            literal = isinstance(atom, Literal)
            return self._constant(atom.array()._data) if literal else place[atom]

        steps = []
        self.arguments = size = len(jaxpr.invars)
        thin = _thin(jaxpr.eqns, jaxpr.outvars)
        for k, eqn in enumerate(jaxpr.eqns):
            operands = list(map(find, eqn.invars))
            many = eqn.primitive.multiple_results
            dtypes = tuple(v.aval.dtype for v in eqn.outvars)
            evaluate = _evaluator(eqn, k in thin)
            if max(operands, default=-1) < 0 and _bytes(eqn) <= _SMALL:
                outs = evaluate(*[self.constants[~i] for i in operands])
                outs = map(_settled, outs if many else (outs,), dtypes)
                place.update(zip(eqn.outvars, map(self._constant, outs), strict=True))
                continue
            steps.append((evaluate, operands, dtypes if many else dtypes[0]))
            place.update(zip(eqn.outvars, range(size, size + len(dtypes)), strict=True))
            size += len(dtypes)

        results = list(map(find, jaxpr.outvars))

        def final(i: int) -> int:
            return ~i if i < 0 else i + len(self.constants)

        self.steps = [(f, tuple(map(final, at)), dtype) for f, at, dtype in steps]
        self.results = list(map(final, results))
        large = any(_bytes(eqn) > _LARGE for eqn in jaxpr.eqns)
        self.dead = self._last_reads() if large else None

    def _constant(self, value: np.ndarray) -> int:
        self.constants.append(value)
        return ~(len(self.constants) - 1)

    def _last_reads(self) -> list[list[int]]:
        """Return, for each step, the places of values that nothing reads after it."""
        last: dict[int, int] = {}
        for k, (_, operands, _) in enumerate(self.steps):
            last.update(dict.fromkeys(operands, k))
        kept = {*self.results, *range(len(self.constants))}
        dead: list[list[int]] = [[] for _ in self.steps]
        for place, k in last.items():
            if place not in kept:
                dead[k].append(place)
        return dead

    def _run_large(self, *data: Any) -> list[Any]:
        """Do as `run`, and let go of what is read no more: its memory is taken for what follows.

        A standard deviation of a million numbers took 536 us where all were kept.
        """
        assert self.dead is not None
        values = [*self.constants, *data]
        for (evaluate, operands, dtype), dead in zip(self.steps, self.dead, strict=True):
            out = evaluate(*map(values.__getitem__, operands))
            if type(dtype) is tuple:
                values.extend(map(_settled, out, dtype))
            else:
                values.append(_settled(out, dtype))
            del out
            for place in dead:
                values[place] = None
        return [values[place] for place in self.results]

    def run(self, *data: Any) -> list[Any]:
        """Return the results' buffers, given those of the arguments."""
        if self.dead is not None:
            return self._run_large(*data)
        values = [*self.constants, *data]
        get, keep = values.__getitem__, values.append
        for evaluate, operands, dtype in self.steps:
            out = evaluate(*map(get, operands))
            if type(dtype) is tuple:
                values.extend(map(_settled, out, dtype))
            else:
                keep(_settled(out, dtype))
        return list(map(get, self.results))

    def single(self) -> Callable[..., Any]:
        """Return what computes the buffer of the one result."""
        (at,) = self.results
        if at < len(self.constants):  # what is returned is not the record's: it may be viewed
            return lambda *data: self.constants[at].copy()
        if len(self.steps) == 1 and not self.constants:
            evaluate, operands, dtype = self.steps[0]
            alone = at == self.arguments and type(dtype) is not tuple
            if alone and operands == tuple(range(at)):
                return evaluate
            if alone and len(operands) > 1:
                pick = itemgetter(*operands)
                return lambda *data: evaluate(*pick(data))
        run = self.run
        return lambda *data: run(*data)[0]


def _bytes(eqn: Eqn) -> int:
    return sum(v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars)
