"""Loops whose number of turns is found as they run: ``while_loop``, and ``fori_loop`` upon it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from ..config import config
from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.forms import Watch, While
from ..core.graph import ClosedGraph
from ..core.ref import Ref, described
from ..core.source import boundary
from ..core.surgery import rearranged
from ..core.trace import Tracer, bind
from ..ops.bitwise import bitwise_or, eq, gt, lt
from ..ops.elementwise import add
from ..ops.kit.calls import convert
from ..ops.kit.checks import kind
from ..ops.select import select
from . import loop_rules
from ._looping import looping
from .admission import admit
from .flow import Watched, check_functions, parameter_name, settle, unwatched
from .in_place import runs_in_place
from .refs import give_back, values_of
from .scan import run_scan, turns
from .signature import Signature, fun_text, spec_of_call
from .tracing import Traced, traced

__all__ = ["fori_loop", "while_loop"]

C = TypeVar("C")


while_p = looping(
    "while",
    loop_rules.FAMILY,
    aval=lambda *avals, body_jaxpr, **params: body_jaxpr.out_avals,
    form=lambda ins, outs, *, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr: While(
        cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts
    ),
    linearize=loop_rules.LINEARIZE,
    transpose=loop_rules.TRANSPOSE,
    batch=loop_rules.BATCH,
)


@overload
def while_loop(
    cond_fun: Callable[[Array], Any], body_fun: Callable[[Array], Any], init_val: complex
) -> Array: ...


@overload
def while_loop(cond_fun: Callable[[C], Any], body_fun: Callable[[C], C], init_val: C) -> C: ...


@overload
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any: ...


@boundary
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """``while cond_fun(val): val = body_fun(val)`` from ``init_val``, as one native loop.

    Parameters
    ----------
    cond_fun : callable
        Value to a boolean scalar.
    body_fun : callable
        Value to the next one, of the same structure, shapes and dtypes. A weakly typed number in
        ``init_val`` takes the dtype that ``body_fun`` gives it.
    init_val : pytree

    Raises
    ------
    TypeError
        ``cond_fun`` gives no boolean scalar, ``body_fun`` changes the structure or a type, or one
        of them is not callable.
    """
    check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun, given=(init_val,))
    if config.disable_jit:
        with admit(cond_fun, "while_loop"), admit(body_fun, "while_loop"):
            # Where examples of a batch turn differently often, no Python loop can.
            while not isinstance(going := cond_fun(init_val), Tracer):
                if not going:
                    return init_val
                init_val = body_fun(init_val)
    spec = spec_of_call(init_val)
    init, body = settle(
        "while_loop",
        body_fun,
        init_val,
        lambda avals: traced(body_fun, Signature(spec, avals), user="while_loop"),
        name=parameter_name(body_fun, 0, "val"),
    )
    carried = Signature(spec, tuple(map(aval_of, init)))
    test = traced(cond_fun, carried, user="while_loop cond_fun")
    _check_test(cond_fun, test)
    return bind_while(test, body, init)


def bind_while(test: Traced, body: Traced, init: list[Any]) -> Any:
    """Bind the primitive for a traced condition and body; return the result in its structure."""
    if test.written:
        raise ValueError(
            f"lax.while_loop: cond_fun {test.name} writes to a Ref. Write in the body: how often "
            "the condition is asked is up to the loop."
        )
    both = [x for x in test.consts if type(x) is Ref and any(x is y for y in body.consts)]
    if both:
        raise ValueError(
            "only one reference to a mutable array may be passed as an argument to a function, but "
            f"cond_fun {test.name} and body_fun {body.name} of lax.while_loop both use the mutable "
            f"array reference of type {both[0].aval} that was {described(both[0])}. Carry what the "
            "condition asks for."
        )
    carried = [body.consts[k] for k in body.written]
    names = {id(ref): len(init) + j for j, ref in enumerate(carried)}
    tests, of_test = _parted(test, names, len(init), carried)
    consts, of_body = _parted(body, names, len(init), carried)
    outs = bind(
        while_p,
        *values_of([*tests, *consts, *init, *carried]),
        cond_nconsts=len(tests),
        cond_jaxpr=of_test,
        body_nconsts=len(consts),
        body_jaxpr=of_body,
    )
    return body.out_spec.unflatten(give_back(carried, range(len(carried)), outs))


def _parted(
    t: Traced, names: dict[int, int], num_carry: int, carried: list[Any]
) -> tuple[list[Any], ClosedGraph]:
    """Return what a part of a loop captured and the loop leaves as it is, and its graph.

    What the body writes is taken after the carry: ``names`` are its numbers there.
    """
    n = len(t.consts)
    place = {names[id(c)]: k for k, c in enumerate(t.consts) if id(c) in names}
    kept = [k for k in range(n) if id(t.consts[k]) not in names]
    more = [place.get(num_carry + j, ref.aval.inner_aval) for j, ref in enumerate(carried)]
    graph = rearranged(t.closed, (*kept, *range(n, n + num_carry), *more))
    return [t.consts[k] for k in kept], graph


def _check_test(cond_fun: Callable[..., Any], test: Traced) -> None:
    """Raise `TypeError` unless a loop's condition is a boolean scalar."""
    if not test.out_spec.is_leaf() or not test.out_avals:
        got = f"the structure {test.out_tree}"
    elif test.out_avals[0].shape or test.out_avals[0].dtype != np.bool_:
        got = test.out_avals[0].str_short()
    else:
        return
    raise TypeError(
        f"lax.while_loop: cond_fun must return a boolean scalar, but {fun_text(cond_fun)} "
        f"returns {got}."
    )


# ---- counted loops -------------------------------------------------------------------------------


# The counter is an array, so that what a lambda computes with it has a type; a function that says
# another type of it (int, as in JAX) is taken by the third and fourth.
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Array, Array], Any],
    init_val: complex,
    *,
    unroll: int | bool | None = None,
) -> Array: ...


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Array, C], C],
    init_val: C,
    *,
    unroll: int | bool | None = None,
) -> C: ...


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[int, Array], Any],
    init_val: complex,
    *,
    unroll: int | bool | None = None,
) -> Array: ...


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, C], C],
    init_val: C,
    *,
    unroll: int | bool | None = None,
) -> C: ...


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any: ...


@boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """``for i in range(lower, upper): val = body_fun(i, val)`` from ``init_val``; never unrolled.

    With bounds known while tracing it is a `scan`, else a `while_loop`.

    Parameters
    ----------
    lower, upper : integer scalars
        Of one dtype, which a Python number takes from the other; may be traced.
    body_fun : callable
        ``(i, value)`` to the next value, of the same structure, shapes and dtypes.
    init_val : pytree
    unroll : int or bool, optional
        How many turns to lay out in a row, where the bounds are known.

    Raises
    ------
    TypeError
        The bounds are no integers of one dtype; ``body_fun`` is not callable, or changes the
        structure or a type.
    ValueError
        ``unroll`` is given and a bound is traced.
    """
    body_fun, watched = unwatched(body_fun)
    check_functions("fori_loop", body_fun=body_fun, given=(lower, init_val))
    low, high = _bound("lower", lower), _bound("upper", upper)
    # A number beside a bound of another dtype is of that dtype, as it is beside an operand.
    if low.weak_type and not high.weak_type:
        lower, low = convert(lower, high.dtype), high
    elif high.weak_type and not low.weak_type:
        upper, high = convert(upper, low.dtype), low
    if low.dtype != high.dtype:
        raise TypeError(
            "lax.fori_loop: lower and upper must have equal types, got "
            f"{low.dtype} and {high.dtype}. Convert one of them."
        )
    known = not (isinstance(lower, Tracer) or isinstance(upper, Tracer))
    if watched is not None and not known:
        return _in_parts(watched, body_fun, lower, upper, init_val)
    length = max(int(upper) - int(lower), 0) if known else 0
    watch = watched.watch("fori_loop", length) if watched else None
    if config.disable_jit and known:
        return _in_python(body_fun, range(int(lower), int(upper)), low.dtype, init_val, watch)
    if known:
        body, init = _settled(body_fun, (int(lower), init_val), _turn(body_fun))
        if runs_in_place(body):
            init_val = tree.structure(init_val).unflatten(init[1:])
            return _in_python(body_fun, range(int(lower), int(upper)), low.dtype, init_val, watch)
        unrolled = turns("fori_loop", unroll, length)
        return run_scan(body, init, (), length, False, unrolled, watch)[1]
    if unroll is not None:
        raise ValueError(
            "lax.fori_loop: unroll is only possible where both bounds are known while tracing. "
            "Leave it out, or mark the arguments the bounds depend on static."
        )
    start = (lower, upper, init_val)
    body, init = _settled(body_fun, start, _turn_to(body_fun))
    carried = Signature(spec_of_call(*start), tuple(map(aval_of, init)))
    test = traced(_before, carried, user="fori_loop")
    return bind_while(test, body, init)[2]


def _in_python(
    body_fun: Callable[..., Any], turns: range, dtype: np.dtype, val: Any, watch: Watch | None
) -> Any:
    """Run a counted loop op by op."""
    from ..core.watch import ticking  # which few programs need

    with admit(body_fun, "fori_loop"):
        for i in ticking(watch, turns):
            val = body_fun(np.asarray(i, dtype)[()], val)
    return val


def _turn(body_fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda i, val: (_next(i), body_fun(i, val))


def _turn_to(body_fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda i, upper, val: (_next(i), upper, body_fun(i, val))


def _settled(
    body_fun: Callable[..., Any], start: tuple[Any, ...], turn: Callable[..., Any]
) -> tuple[Traced, list[Any]]:
    """Trace a turn of a counted loop; return it and the carry it starts with."""
    spec = spec_of_call(*start)
    init, body = settle(
        "fori_loop",
        body_fun,
        start,
        lambda avals: traced(body_fun, Signature(spec, avals), user="fori_loop", call=turn),
        name=parameter_name(body_fun, 1, "val"),
        shown=lambda carry: carry.child(-1),
    )
    return body, init


def _in_parts(
    watched: Watched, body_fun: Callable[..., Any], lower: Any, upper: Any, init_val: Any
) -> Any:
    """Run a loop of computed bounds as one over parts of the turns that are promised.

    The last part has what is left, should there be more turns than that.
    """
    count, each = watched.parts()
    dtype = aval_of(lower).dtype
    each = np.asarray(min(each, np.iinfo(dtype).max), dtype)[()]

    def part(k: Any, carried: Any) -> Any:
        begin, val = carried
        end = add(begin, each)
        # A sum that is beyond its dtype begins anew below.
        over = bitwise_or(eq(k, count - 1), bitwise_or(lt(end, begin), gt(end, upper)))
        end = select(over, upper, end)
        return end, fori_loop(begin, end, body_fun, val)

    lower, upper = (convert(x, dtype) for x in (lower, upper))
    return fori_loop(0, count, watched.of(part), (lower, init_val))[1]


def _before(i: Any, upper: Any, val: Any) -> Any:
    return lt(i, upper)


def _bound(name: str, value: Any) -> ShapedArray:
    """Return the aval of a bound; raise `TypeError` unless it is an integer scalar."""
    aval = aval_of(value)
    if aval.shape or kind(aval.dtype) not in "biu":
        raise TypeError(f"lax.fori_loop: {name} must be an integer scalar, got {aval.str_short()}.")
    return aval


def _next(i: Any) -> Any:
    """``i + 1`` in the dtype of ``i``, as weak as it is."""
    return add(i, 1 if i.aval.weak_type else np.ones((), i.aval.dtype)[()])
