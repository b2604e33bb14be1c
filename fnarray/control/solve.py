"""Solutions of equations, differentiated by the implicit function theorem.

How a solution was found is of no matter for its derivative: where ``f(x*, a) = 0``, the tangent of
``x*`` solves the linear equation ``df/dx dx = -df/da da`` (Christianson, 1994).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from ..core import tree
from ..core.axes import Axis
from ..core.forms import Inline
from ..core.graph import ClosedGraph, eval_graph
from ..core.primitive import Primitive
from ..core.source import boundary
from ..core.surgery import closed_over_nothing, rearranged
from ..core.tangents import Undefined, Zero, is_zero, zero_of
from ..core.trace import bind, call_custom, trace_graph
from ..ops.kit.calls import neg
from ..ops.kit.canonical import as_array
from ..ops.kit.registry import register
from ..ops.kit.rules import add_tangents, all_spread, instantiate
from ..transforms.derivative import jvp as jvp_flat
from ..transforms.derivative import linearize as linearize_flat
from ..transforms.graphs import Flags, batch_graph
from ..transforms.transpose import backward
from .admission import admit
from .call import call_eagerly
from .custom_rules import JVPCall, JVPRule
from .signature import fun_name, fun_text

__all__ = ["custom_linear_solve", "custom_root"]

Fun = Callable[..., Any]
Values = Sequence[Any]


def _run(closed: ClosedGraph, args: Values) -> list[Any]:
    return eval_graph(closed.jaxpr, closed.consts, args, bind)


class _Like:
    """A structure and types that results of the user's functions must have."""

    def __init__(self, what: str, value: Any):
        leaves, self.spec = tree.flatten_spec(value)
        self.leaves = [as_array(x) for x in leaves]
        self.avals = [x.aval for x in self.leaves]
        self.what = what

    def traced(self, name: str, fun: Fun, of: Fun, aux: list[Any] | None = None) -> Any:
        """Trace a function of such a value whose result must be such a value.

        Returns
        -------
        ClosedGraph, tuple of Array
            Closed over nothing, and what it was closed over.
        """

        def flat(*xs: Any) -> list[Any]:
            with admit(of, name):
                out = fun(self.spec.unflatten(xs))
            return self.checked(name, out, of, aux)

        graph = trace_graph(flat, self.avals, fun_name(of))
        return closed_over_nothing(graph), graph.consts

    def checked(self, name: str, out: Any, fun: Fun, aux: list[Any] | None = None) -> list[Any]:
        """Return a result's leaves, those of auxiliary data last; raise if they do not fit."""
        rest: list[Any] = []
        if aux is not None:
            if not isinstance(out, tuple) or len(out) != 2:
                raise ValueError(
                    f"{name}() with has_aux=True must return a pair (result, aux), got {out!r} "
                    f"from {fun_text(fun)}."
                )
            out, extra = out
            rest, spec = tree.flatten_spec(extra)
            aux[:] = [spec]
        leaves, spec = tree.flatten_spec(out)
        if spec != self.spec:
            raise TypeError(
                f"{name}() output pytree structure must match {self.what}, got "
                f"{tree.PyTreeDef(spec)} and {tree.PyTreeDef(self.spec)}, from {fun_text(fun)}."
            )
        found = [as_array(x) for x in leaves]
        if any(x.shape != a.shape for x, a in zip(found, self.avals, strict=True)):
            raise ValueError(
                f"{name}() output shapes must match {self.what}, got {[x.shape for x in found]} "
                f"and {[a.shape for a in self.avals]}, from {fun_text(fun)}."
            )
        if any(x.dtype != a.dtype for x, a in zip(found, self.avals, strict=True)):
            raise TypeError(
                f"{name}() output dtypes must match {self.what}, got "
                f"{[x.dtype.name for x in found]} and {[a.dtype.name for a in self.avals]}, from "
                f"{fun_text(fun)}."
            )
        return [*found, *map(as_array, rest)]


# ---- custom_root ---------------------------------------------------------------------------------


class _RootRule(JVPRule):
    """The derivative of a root, by the implicit function theorem."""

    def __init__(
        self, f: ClosedGraph, solve: ClosedGraph, tangent_solve: ClosedGraph, counts: Values
    ):
        self.f = f
        self.solve = solve
        self.tangent_solve = tangent_solve
        self.counts = counts

    def __str__(self) -> str:
        return "_root_jvp"

    def call(self) -> JVPCall:
        """Return the call that has this rule; operands are what is closed over, and a guess."""
        of_f, of_solve, of_tangent = self.counts

        def run(*operands: Any) -> list[Any]:
            guess = operands[of_f + of_solve + of_tangent :]
            return _run(self.solve, [*operands[of_f : of_f + of_solve], *guess])

        return JVPCall(run, self, "_custom_root", False)

    def __call__(self, primals: Values, tangents: Values) -> tuple[Values, Values]:
        """Return the root, and the solution of the linearised equation."""
        of_f, of_solve, of_tangent = self.counts
        outs = list(call_custom(self.call(), primals))
        n = len(self.f.out_avals)
        root = outs[:n]
        consts = primals[:of_f]
        _, moved = jvp_flat(
            lambda *params: _run(self.f, [*params, *root]), consts, tangents[:of_f], "custom_root"
        )
        if all(map(is_zero, moved)):
            return outs, [zero_of(x) for x in outs]
        start = of_f + of_solve
        given = [*primals[start : start + of_tangent], *root, *map(instantiate, moved)]
        duals = [neg(t) for t in _run(self.tangent_solve, given)]
        return outs, [*duals, *(zero_of(x) for x in outs[n:])]


@boundary
def custom_root(
    f: Fun, initial_guess: Any, solve: Fun, tangent_solve: Fun, has_aux: bool = False
) -> Any:
    """Return a root of a function, differentiable in what the function is closed over.

    Parameters
    ----------
    f : callable
        Takes a value like ``initial_guess`` to one of the same structure, shapes and dtypes.
    initial_guess : pytree
        Not differentiated.
    solve : callable
        ``solve(f, initial_guess)``: the root, with any method.
    tangent_solve : callable
        ``tangent_solve(g, y)``: solves ``g(x) = y`` for linear ``g``. For reverse mode it must be
        transposable, as `custom_linear_solve` is.
    has_aux : bool
        Whether ``solve`` returns ``(root, aux)``, of which ``aux`` is not differentiated.

    Returns
    -------
    pytree
        Like ``initial_guess``; a pair of it and ``aux`` with ``has_aux``.

    Raises
    ------
    TypeError, ValueError
        A function's result is not like ``initial_guess``.
    """
    like = _Like("initial_guess", initial_guess)
    aux: list[Any] | None = [] if has_aux else None
    f_graph, f_consts = like.traced("f", f, f)
    solve_graph, solve_consts = like.traced("solve", lambda x: solve(f, x), solve, aux)

    def solve_tangent(*values: Any) -> list[Any]:
        n = len(like.avals)
        root, y = values[:n], like.spec.unflatten(values[n:])
        _, linear = linearize_flat(
            lambda *xs: like.checked("f", f(like.spec.unflatten(xs)), f), root, "custom_root"
        )

        def g(x: Any) -> Any:
            duals = linear([as_array(t) for t in tree.leaves(x)])
            return like.spec.unflatten([instantiate(t) for t in duals])

        with admit(tangent_solve, "tangent_solve"):
            out = tangent_solve(wraps(f)(g), y)
        return like_x.checked("tangent_solve", out, tangent_solve)

    like_x = _Like("x", initial_guess)
    tangent = trace_graph(solve_tangent, [*like.avals, *like.avals], "tangent_solve")
    counts = len(f_consts), len(solve_consts), len(tangent.consts)
    rule = _RootRule(f_graph, solve_graph, closed_over_nothing(tangent), counts)
    operands = [*f_consts, *solve_consts, *tangent.consts, *like.leaves]
    outs = [as_array(x) for x in call_custom(rule.call(), operands)]
    return _result(like, outs, aux)


def _result(like: _Like, outs: list[Any], aux: list[Any] | None) -> Any:
    n = len(like.avals)
    value = like.spec.unflatten(outs[:n])
    return value if aux is None else (value, aux[0].unflatten(outs[n:]))


# ---- custom_linear_solve -------------------------------------------------------------------------


class _Four(NamedTuple):
    """What belongs to each of the four functions of a linear equation."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def swapped(self) -> _Four:
        """Return what belongs to those of the transposed equation."""
        return _Four(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def _groups(operands: Values, counts: _Four) -> tuple[_Four, list[Any]]:
    """Split operands into what each function is closed over, and the right-hand side."""
    rest, groups = list(operands), []
    for n in counts:
        groups.append(rest[:n])
        rest = rest[n:]
    return _Four(*groups), rest


def _solve_form(ins: Any, outs: Any, *, const_lengths: _Four, jaxprs: _Four) -> Inline:
    first = const_lengths.matvec + const_lengths.vecmat
    numbers: list[Any] = list(ins)
    count = const_lengths.solve
    numbers[first : first + count] = range(count)
    total = sum(const_lengths)
    numbers[total:] = range(count, count + len(ins) - total)
    return Inline(rearranged(jaxprs.solve, tuple(numbers)))


def _solve_eval(*xs: Any, const_lengths: _Four, jaxprs: _Four) -> Any:
    groups, b = _groups(xs, const_lengths)
    return call_eagerly(jaxprs.solve, [*groups.solve, *b])


def _solve_jvp(primals: Values, tangents: Values, *, const_lengths: _Four, jaxprs: _Four) -> Any:
    params = {"const_lengths": const_lengths, "jaxprs": jaxprs}
    consts, b = _groups(primals, const_lengths)
    moved, db = _groups(tangents, const_lengths)
    outs = bind(custom_linear_solve_p, *primals, **params)
    x, rest = outs[: len(b)], outs[len(b) :]
    # A dx = db - dA x
    _, dax = jvp_flat(
        lambda *own: _run(jaxprs.matvec, [*own, *x]), consts.matvec, moved.matvec, "matvec"
    )
    right = [add_tangents(t, s if is_zero(s) else neg(s)) for t, s in zip(db, dax, strict=True)]
    if all(map(is_zero, right)):
        return outs, [zero_of(o) for o in outs]
    given = [*primals[: sum(const_lengths)], *map(instantiate, right)]
    duals = bind(custom_linear_solve_p, *given, **params)
    return outs, [*duals[: len(b)], *(zero_of(o) for o in rest)]


def _solve_transpose(cts: Values, *operands: Any, const_lengths: _Four, jaxprs: _Four) -> list[Any]:
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve: give it, or symmetric=True where the equation is."
        )
    consts, b = _groups(operands, const_lengths)
    given = [instantiate(Zero(x.aval) if is_zero(c) else c) for c, x in zip(cts, b, strict=False)]
    swapped = consts.swapped()
    found = bind(
        custom_linear_solve_p,
        *(x for group in swapped for x in group),
        *given,
        const_lengths=const_lengths.swapped(),
        jaxprs=jaxprs.swapped(),
    )
    return [*(None for _ in range(sum(const_lengths))), *found[: len(b)]]


def _solve_batch(
    axis: Axis, operands: Values, batched: Flags, *, const_lengths: _Four, jaxprs: _Four
) -> Any:
    consts, b = _groups(operands, const_lengths)
    flags, of_b = _groups(batched, const_lengths)
    groups, graphs = [], []
    for own, f, closed in zip(consts, flags, jaxprs, strict=True):
        made: tuple[Any, ...] = ()
        if closed is not None:
            every = (True,) * len(closed.out_avals)
            d = batch_graph(closed, (*f, *(True for _ in b)), axis, every)
            closed, made = d.graph, d.consts
        groups.append([*made, *own])
        graphs.append(closed)
    outs = bind(
        custom_linear_solve_p,
        *(x for group in groups for x in group),
        *all_spread(axis, b, of_b),
        const_lengths=_Four(*map(len, groups)),
        jaxprs=_Four(*graphs),
    )
    return outs, (True,) * len(outs)


custom_linear_solve_p = register(
    Primitive(
        "custom_linear_solve",
        quiet=False,
        aval=lambda *avals, const_lengths, jaxprs: jaxprs.solve.out_avals,
        eval=_solve_eval,
        form=_solve_form,
        jvp=_solve_jvp,
        transpose=_solve_transpose,
        batch=_solve_batch,
        multiple_results=True,
    )
)


@boundary
def custom_linear_solve(
    matvec: Fun,
    b: Any,
    solve: Fun,
    transpose_solve: Fun | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve ``matvec(x) = b`` for a linear function, differentiable in its closure and in ``b``.

    Parameters
    ----------
    matvec : callable
        Linear; takes and returns values of the structure, shapes and dtypes of ``b``.
    b : pytree
    solve : callable
        ``solve(matvec, b)``: the solution, with any method.
    transpose_solve : callable, optional
        ``transpose_solve(vecmat, b)``, of the transposed equation; reverse mode needs it.
    symmetric : bool
        Whether the equation is its own transpose; then ``solve`` serves for both.
    has_aux : bool
        Whether the two return ``(solution, aux)``, of which ``aux`` is not differentiated.

    Returns
    -------
    pytree
        Like ``b``; a pair of it and ``aux`` with ``has_aux``.

    Raises
    ------
    TypeError, ValueError
        A function's result is not like ``b``; or, in reverse mode, there is no
        ``transpose_solve``.
    """
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    like = _Like("b", b)
    aux: list[Any] | None = [] if has_aux else None
    matvec_graph, matvec_consts = like.traced("matvec", matvec, matvec)
    solve_graph, solve_consts = like.traced("solve", lambda x: solve(matvec, x), solve, aux)
    jaxprs = [matvec_graph, None, solve_graph, None]
    consts = [matvec_consts, (), solve_consts, ()]
    if transpose_solve is not None:
        unused: list[Any] | None = [] if has_aux else None
        vecmat = matvec if symmetric else _transposed(matvec_graph, matvec_consts, like)
        jaxprs[1], consts[1] = like.traced("vecmat", vecmat, matvec)
        given = transpose_solve
        jaxprs[3], consts[3] = like.traced(
            "transpose_solve", lambda x: given(vecmat, x), given, unused
        )
    outs = bind(
        custom_linear_solve_p,
        *(c for group in consts for c in group),
        *like.leaves,
        const_lengths=_Four(*map(len, consts)),
        jaxprs=_Four(*jaxprs),
    )
    return _result(like, outs, aux)


def _transposed(graph: ClosedGraph, consts: Values, like: _Like) -> Fun:
    """Return the transpose of a linear function of values like others."""

    def vecmat(y: Any) -> Any:
        operands = [*consts, *map(Undefined, like.avals)]
        cts = [as_array(c) for c in tree.leaves(y)]
        found = backward(graph.jaxpr, graph.consts, operands, cts)
        return like.spec.unflatten([instantiate(c) for c in found[len(consts) :]])

    return vecmat
