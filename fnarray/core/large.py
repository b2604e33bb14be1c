"""Eager calls on many elements: they run as programs do, on several threads and in one pass.

NumPy runs operations one after the other, each on one thread and into fresh memory, and what it
lacks in functions is evaluated by SciPy's scalar ones. On a million numbers a standard deviation
along rows took 1,170 us by NumPy and 105 compiled, ``erf`` 16,800 and 290, ``nextafter`` 13,100 and
130. Below `LARGE` elements a launch costs more than it saves (decision 0056).
"""

# pyright: standard
from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..config import config
from .avals import ShapedArray
from .forms import Contract, Inline, Iota, Library, Map, Pieces, Reduce, Reindex, Update
from .graph import ClosedGraph, Eqn, Literal
from .hooks import compiled_call
from .primitive import Missing, Primitive
from .quiet import quietly
from .record import Record, evaluation
from .surgery import one_equation

__all__ = [
    "LARGE",
    "compiles",
    "evaluator",
    "heavy",
    "is_compiled",
    "is_exact",
    "is_exact_library",
    "is_exact_step",
    "is_large",
    "is_large_product",
    "later",
    "looped",
    "plainly",
    "runs_as_program",
]

#: Elements from which on a call runs as a program.
LARGE = 1 << 16
#: Elements below which nothing is asked.
_SOME = 1 << 14
#: Multiplications of real numbers from which on a product does: 128 x 128 by 128 x 128.
_PRODUCT = 1 << 21
#: From this cost on a function of an element is computed by other means than NumPy's: above that
#: of a remainder, which is exact.
_DEAR = 9
#: Functions that NumPy computes of several real numbers at once, on processors where it can.
_NUMPYS: frozenset[object] = frozenset({
    np.arccos, np.arccosh, np.arcsin, np.arcsinh, np.arctan, np.arctan2, np.arctanh, np.cbrt,
    np.cos, np.cosh, np.exp2, np.expm1, np.log, np.log1p, np.power, np.sin, np.sinh, np.tan,
    np.tanh,
})  # fmt: skip
#: Evaluators of hundreds of NumPy's calls, for which programs stand at any number of elements: a
#: derivative of 16 incomplete gamma functions took NumPy 500 ms, and takes 3 us.
looped: set[Callable[..., Any]] = set()
#: Kernels that run as plain Python take a second for a million elements.
_INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def is_large(avals: Iterable[ShapedArray]) -> bool:
    """Whether there are many elements in an array."""
    return any(a.size >= LARGE for a in avals)


def is_exact(graph: ClosedGraph) -> bool:
    """Whether a graph computes the same bits compiled as by NumPy: nothing in it rounds twice."""
    return all(map(is_exact_step, graph.jaxpr.eqns))


def is_exact_step(eqn: Eqn) -> bool:
    """Whether an equation gives the same bits compiled as by NumPy."""
    values = [a.aval.dtype for a in (*eqn.invars, *eqn.outvars)]
    if any(dtype.kind == "c" or dtype == np.float64 for dtype in values):
        return False
    kinds = {v.aval.dtype.kind for v in eqn.outvars}
    form = eqn.form()
    if {dtype.kind for dtype in values} <= {*"biu"}:  # whoever sorts, adds or multiplies them
        return not isinstance(form, Inline) or is_exact(form.graph)
    if isinstance(form, Inline):
        return is_exact(form.graph)
    if isinstance(form, Reduce):
        return kinds <= {"b", "i", "u"}
    if isinstance(form, Update):  # the last one counts
        return form.combine == "{1}"
    if isinstance(form, Library):
        return form.exact
    if isinstance(form, Map):
        # Of two numbers that are not both zero the larger is one of them.
        sure = form.exact or any(isinstance(a, Literal) and a.val != 0 for a in eqn.invars)
        return sure and form.cost < _DEAR
    return isinstance(form, Iota | Reindex | Pieces)


def is_exact_library(eqn: Eqn) -> bool:
    """Whether an equation calls a library that NumPy calls as well."""
    return is_compiled(eqn) and isinstance(form := eqn.form(), Library) and form.exact


def compiles() -> bool:
    """Whether anything that is called eagerly is run compiled."""
    return not (config.disable_jit or _INTERPRETED)


def runs_as_program(graph: ClosedGraph) -> bool:
    """Whether a graph on many elements is run compiled.

    One function alone that NumPy vectorizes is not, and neither is what runs the user's
    Python, in the caller's context.
    """
    if not compiles():
        return False
    eqns = graph.jaxpr.eqns
    if not all(map(is_compiled, eqns)):
        return False
    return not (len(eqns) < 2 and all(map(_is_numpys, eqns))) and not _is_view(graph)


def is_compiled(eqn: Eqn) -> bool:
    """Whether an equation may be part of a program that stands for an eager call."""
    prim = eqn.primitive
    if prim.effects or isinstance(prim.form, Missing):
        return False
    if prim.quiet:
        return True
    form = eqn.form()
    return isinstance(form, Inline) and all(map(is_compiled, form.graph.jaxpr.eqns))


def _is_numpys(eqn: Eqn) -> bool:
    real = all(v.aval.dtype.kind == "f" for v in eqn.outvars)
    return real and eqn.primitive.eval in _NUMPYS


def _is_view(graph: ClosedGraph) -> bool:
    """Whether NumPy gives the result in the operand's memory, as it lies there."""
    if len(graph.in_avals) != 1 or not all(isinstance(e.form(), Reindex) for e in graph.jaxpr.eqns):
        return False
    untouched = np.empty(graph.in_avals[0].shape, graph.in_avals[0].dtype)
    return any(np.may_share_memory(untouched, out) for out in Record(graph).run(untouched))


def plainly(prim: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """Return what evaluates an operation by NumPy."""
    if prim.quiet:
        return partial(quietly, prim.eval, **params)
    return partial(prim.eval, **params)


def evaluator(
    prim: Primitive,
    ins: Sequence[ShapedArray],
    outs: Any,
    params: dict[str, Any],
) -> Callable[..., Any]:
    """Return what evaluates an operation that is called alone on arrays of some avals.

    Where NumPy has no function for what it computes of each element, and there are many, that is
    a program: at once if bits depend on it, else from the third call on. So are large products and
    convolutions.
    """
    if prim.eval in looped:
        graph = one_equation(prim, tuple(ins), tuple(params.items()))
        if runs_as_program(graph):
            run = partial(_program, graph)
            return run if prim.multiple_results else lambda *data: run(*data)[0]
    by_numpy = plainly(prim, params)
    if prim.quiet:
        by_numpy = partial(quietly, evaluation(prim.eval, ins, params))
    if prim.multiple_results or not prim.quiet or all(a.size < _SOME for a in (*ins, outs)):
        return by_numpy
    graph = one_equation(prim, tuple(ins), tuple(params.items()))
    (eqn,) = graph.jaxpr.eqns
    form = eqn.form() if is_compiled(eqn) else None
    many = is_large((*ins, outs)) and (
        isinstance(form, Map | Iota | Update) or (isinstance(form, Reindex) and len(ins) == 1)
    )
    if not (many or _is_heavy(form, ins, outs)) or not runs_as_program(graph):
        return by_numpy

    def program(*data: np.ndarray) -> np.ndarray:
        return _program(graph, *data)[0]

    return later(by_numpy, program, 2) if is_exact(graph) else program


def heavy(eqn: Eqn) -> Callable[..., Any] | None:
    """Return what runs an operation among others as a program, where `evaluator` does so alone.

    That is a large product or convolution: the first call and what replays it give the same bits.
    """
    prim, ins, outs = eqn.primitive, [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    if not prim.quiet or not is_compiled(eqn) or all(a.size < _SOME for a in (*ins, *outs)):
        return None
    if len(outs) != 1 or not _is_heavy(eqn.form(), ins, outs[0]):
        return None
    graph = one_equation(prim, tuple(ins), tuple(eqn.params.items()))
    return (lambda *data: _program(graph, *data)[0]) if runs_as_program(graph) else None


def _program(graph: ClosedGraph, *data: np.ndarray) -> Sequence[np.ndarray]:
    return compiled_call(graph, data)


def is_large_product(multiplications: int, *dtypes: np.dtype) -> bool:
    """Whether a product that is called alone runs as a program, however few elements it has."""
    return multiplications >= _PRODUCT and all(dtype.kind == "f" for dtype in dtypes)


def _is_heavy(form: object, ins: Sequence[ShapedArray], out: ShapedArray) -> bool:
    """Whether an operation of a form is a product or convolution that runs as a program alone."""
    if isinstance(form, Contract):
        return is_large_product(_multiplications(form, ins[0], out), ins[0].dtype, out.dtype)
    return (
        isinstance(form, Library) and form.op.module == "conv" and (form.flops or 0) >= 2 * _PRODUCT
    )


def _multiplications(form: Contract, lhs: ShapedArray, out: ShapedArray) -> int:
    return out.size * math.prod(lhs.shape[a] for a in form.lhs_contract)


def later(first: Callable[..., Any], then: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """Return a function that is another after some calls: what is met seldom is not built."""
    left = calls

    def run(*data: Any) -> Any:
        nonlocal left
        if left <= 0:
            return then(*data)
        left -= 1
        return first(*data)

    return run
