"""A graph as a straight list of NumPy calls: what replays an eager call on few elements."""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from .avals import ShapedArray
from .graph import Atom, ClosedGraph, Eqn, Literal

__all__ = ["Record", "evaluation", "is_small", "known_of", "spelled_of", "thin_of"]

#: Results of constants alone are kept up to this size, and computed by each replay above it.
_SMALL = 4096
#: Values of more bytes than this take longer to get memory for than to let go of.
_LARGE = 1 << 16
#: What repeats elements in an evaluator's place, where only NumPy reads them: by single ones.
thin_of: dict[Callable[..., Any], Callable[..., Any]] = {}
#: What evaluators come down to where the avals of their operands are known, to the bit: given avals
#: and params, a function of buffers, or None where it is the evaluator itself.
known_of: dict[Callable[..., Any], Callable[..., Callable[..., Any] | None]] = {}
#: What evaluators do, operation by operation: given avals and params, a graph, or None. Its exact
#: operations give the same bits compiled.
spelled_of: dict[Callable[..., Any], Callable[..., ClosedGraph | None]] = {}
#: Calls after which a record's steps are worth code of their own, which takes 0.3 ms to compile.
_OFTEN = 20
#: What evaluates an operation by other means than NumPy's; None where nothing does.
Heavy = Callable[[Eqn], Callable[..., Any] | None]


def _settled(out: Any, dtype: np.dtype) -> np.ndarray:
    """Return an evaluator's result as a buffer."""
    if type(out) is not np.ndarray or out.dtype is not dtype:
        out = np.asarray(out, dtype)
    return out if out.flags.c_contiguous else out.copy(order="C")


def evaluation(
    evaluate: Callable[..., Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> Callable[..., Any]:
    """Return what evaluates an operation on buffers of some avals."""
    if (made := known_of.get(evaluate)) and (known := made(*avals, **params)):
        return known
    return partial(evaluate, **params) if params else evaluate


def _evaluator(eqn: Eqn, thin: bool) -> Callable[..., Any]:
    evaluate = eqn.primitive.eval
    if thin:
        return partial(thin_of[evaluate], **eqn.params)
    return evaluation(evaluate, [x.aval for x in eqn.invars], eqn.params)


def _is_sound(evaluate: Callable[..., Any], eqn: Eqn, thin: Container[Atom]) -> bool:
    """Whether NumPy gives the result of an equation as it is to be, whatever the values are.

    An operand in order that has the whole shape is followed; of no axes NumPy makes scalars.
    """
    if not isinstance(evaluate, np.ufunc) or eqn.primitive.multiple_results:
        return False
    out = eqn.outvars[0].aval
    if not out.shape or all(x.aval.shape != out.shape or x in thin for x in eqn.invars):
        return False
    try:
        given = tuple(x.aval.dtype for x in eqn.invars)
        return evaluate.resolve_dtypes((*given, None))[-1] is out.dtype
    except TypeError:
        return False


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

    def __init__(self, graph: ClosedGraph, heavy: Heavy = lambda eqn: None):
        jaxpr = graph.jaxpr
        self.constants: list[np.ndarray] = []
        place: dict[Any, int] = {var: i for i, var in enumerate(jaxpr.invars)}
        for var, value in zip(jaxpr.constvars, graph.consts, strict=True):
            place[var] = self._constant(np.asarray(value, var.aval.dtype))

        def find(atom: Atom) -> int:
            literal = isinstance(atom, Literal)
            return self._constant(atom.array()._data) if literal else place[atom]

        steps = []
        sound: list[bool] = []
        self.arguments = size = len(jaxpr.invars)
        thin = _thin(jaxpr.eqns, jaxpr.outvars)
        for k, eqn in enumerate(jaxpr.eqns):
            operands = list(map(find, eqn.invars))
            many = eqn.primitive.multiple_results
            dtypes = tuple(v.aval.dtype for v in eqn.outvars)
            evaluate = heavy(eqn) or _evaluator(eqn, k in thin)
            if max(operands, default=-1) < 0 and is_small(eqn):
                outs = evaluate(*[self.constants[~i] for i in operands])
                outs = map(_settled, outs if many else (outs,), dtypes)
                place.update(zip(eqn.outvars, map(self._constant, outs), strict=True))
                continue
            steps.append((evaluate, operands, dtypes if many else dtypes[0]))
            sound.append(_is_sound(evaluate, eqn, [v for i in thin for v in jaxpr.eqns[i].outvars]))
            place.update(zip(eqn.outvars, range(size, size + len(dtypes)), strict=True))
            size += len(dtypes)

        results = list(map(find, jaxpr.outvars))

        def final(i: int) -> int:
            return ~i if i < 0 else i + len(self.constants)

        self.steps = [(f, tuple(map(final, at)), dtype) for f, at, dtype in steps]
        self.results = list(map(final, results))
        large = any(_bytes(eqn) > _LARGE for eqn in jaxpr.eqns)
        self.dead = self._last_reads() if large else None
        self._sound = sound
        self._left = _OFTEN
        self._code: Callable[..., Sequence[Any]] | None = None

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

    def _as_code(self) -> Callable[..., Sequence[Any]]:
        """Return the steps as a function: half of what a step of few elements takes is saved."""
        names: dict[str, Any] = {"ndarray": np.ndarray, "settled": _settled}
        names.update((f"v{i}", value) for i, value in enumerate(self.constants))
        place = len(self.constants) + self.arguments
        lines: list[str] = []
        for k, (evaluate, operands, dtype) in enumerate(self.steps):
            names[f"e{k}"] = evaluate
            call = f"e{k}({', '.join(f'v{i}' for i in operands)})"
            dtypes = dtype if type(dtype) is tuple else (dtype,)
            outs = [f"v{place + i}" for i in range(len(dtypes))]
            place += len(outs)
            lines.append(f"{', '.join(outs)}{',' * (type(dtype) is tuple)} = {call}")
            for i, out in enumerate(outs if not self._sound[k] else ()):
                names[d := f"d{k}_{i}"] = dtypes[i]
                fits = f"type({out}) is ndarray and {out}.dtype is {d} and {out}.flags.c_contiguous"
                lines.append(f"if not ({fits}): {out} = settled({out}, {d})")
        params = ", ".join(f"v{len(self.constants) + i}" for i in range(self.arguments))
        body = "".join(f"    {line}\n" for line in lines)
        returned = "".join(f"v{i}, " for i in self.results)
        exec(f"def steps({params}):\n{body}    return ({returned})", names)
        return names["steps"]

    def run(self, *data: Any) -> Sequence[Any]:
        """Return the results' buffers, given those of the arguments."""
        if self._code is not None:
            return self._code(*data)
        if self.dead is not None:
            return self._run_large(*data)
        self._left -= 1
        if not self._left:
            self._code = self._as_code()
        values = [*self.constants, *data]
        get, keep = values.__getitem__, values.append
        for evaluate, operands, dtype in self.steps:
            out = evaluate(*map(get, operands))
            if type(dtype) is tuple:
                values.extend(map(_settled, out, dtype))
            else:
                keep(_settled(out, dtype))
        return list(map(get, self.results))

    def is_sound(self) -> bool:
        """Whether `single` is a function of NumPy's, whose result is as it is to be."""
        return isinstance(self.single(), np.ufunc) and all(self._sound)

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


def is_small(eqn: Eqn) -> bool:
    """Whether a record keeps the results of an equation, if they follow from constants."""
    return _bytes(eqn) <= _SMALL


def _bytes(eqn: Eqn) -> int:
    return sum(v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars)
