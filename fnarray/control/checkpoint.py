"""Checkpointing: what a function computes on the way is computed again for its derivative.

Reverse mode keeps values of the forward pass. Of a checkpointed function it keeps the arguments,
and what a policy names, and computes the rest a second time (Griewank & Walther, *Evaluating
Derivatives*, ch. 12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from ..core import tree
from ..core.callables import named_as
from ..core.forms import Inline, Map
from ..core.graph import ClosedGraph, Eqn, Var
from ..core.primitive import Primitive
from ..core.tangents import differentiable
from ..core.trace import bind
from ..ops.kit.canonical import as_array
from ..ops.kit.registry import register
from ..ops.kit.rules import ELEMENTWISE_BATCH
from ..transforms.graphs import linearize_graph
from . import checkpoint_rules
from ._bodies import Holding, holding
from .admission import admit
from .in_place import runs_in_place
from .refs import give_back, values_of
from .signature import (
    Signature,
    StaticSpec,
    abstract,
    argnums,
    argument_paths,
    first_rejected,
    fun_text,
    positional,
    unhashable,
    with_statics,
)
from .tracing import trace, traced

__all__: list[str] = []

Policy = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")


def _form(
    ins: Any, outs: Any, *, jaxpr: ClosedGraph, prevent_cse: Any, differentiated: bool, policy: Any
) -> Inline:
    apart = any(prevent_cse) if isinstance(prevent_cse, tuple) else prevent_cse
    return Inline(jaxpr, apart=differentiated and apart)


remat_p = holding("remat2", Holding(), form=_form, linearize=checkpoint_rules.LINEARIZE)

name_p = register(
    Primitive(
        "name",
        quiet=False,
        aval=lambda x, *, name: x,
        eval=lambda x, *, name: x,
        form=lambda ins, outs, *, name: Map("{0}", 0),
        jvp=lambda primals, tangents, *, name: (bind(name_p, *primals, name=name), tangents[0]),
        transpose=lambda ct, x, *, name: [ct],
        batch=ELEMENTWISE_BATCH,
    )
)


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Callable[P, R]:
    """Return a function that keeps less for its derivative, and computes it again.

    Parameters
    ----------
    fun : callable
        Traced when called: no branching on values of arguments that are not static.
    prevent_cse : bool
        Whether what is computed again is kept apart from the equal first time: else the compiler
        may share them, and keep what was to be dropped. In the body of a `scan` it makes no
        difference.
    policy : callable, optional
        ``policy(primitive, *avals, **params) -> bool``, whether a value may be kept; see
        `checkpoint_policies`. By default none but the arguments.
    static_argnums, static_argnames : int or sequence of int, str or sequence of str
        Arguments that are not traced.
    concrete : False
        Not supported: use ``static_argnums``.

    Raises
    ------
    ValueError
        When called: ``static_argnums`` that the arguments do not have.
    """
    if not callable(fun):
        raise TypeError(f"checkpoint: Expected a callable value, got {fun!r} of type {type(fun)}.")
    if concrete:
        raise TypeError(
            "checkpoint: concrete=True is not supported, as in JAX: mark the arguments whose "
            "values fun needs static (static_argnums, static_argnames)."
        )
    if policy is not None and not callable(policy):
        raise TypeError(f"checkpoint: policy must be a callable or None, got {policy!r}.")
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    params = {
        "policy": policy,
        "prevent_cse": prevent_cse if isinstance(prevent_cse, bool) else tuple(prevent_cse),
        "differentiated": False,
    }
    return _checkpointed(fun, argnums(static_argnums), names, params)


def _checkpointed(
    fun: Callable[..., Any], nums: tuple[int, ...], names: tuple[str, ...], params: dict[str, Any]
) -> Callable[..., Any]:
    order = positional(fun) if names else []
    spec = StaticSpec((*nums, *(order.index(k) for k in names if k in order)), names)

    @named_as(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        n = len(args)
        if any(not -n <= i < n for i in nums):
            raise ValueError(
                f"checkpoint of {fun_text(fun)}: the `static_argnums` argument can only take "
                "integer values greater than or equal to `-len(args)` and less than `len(args)`, "
                f"but got {nums}, while `len(args)` = {n}."
            )
        dyn, dyn_kw, statics = spec.split(args, kwargs)
        leaves, in_spec = tree.flatten_spec((dyn, dyn_kw))
        try:
            signature = Signature(in_spec, tuple(abstract(x) for x in leaves), statics)
        except TypeError:
            _reject(fun, dyn, dyn_kw, statics)
            raise
        if unhashable(statics):
            # Traced anew at each call: there is nothing to know the values by.
            whole = named_as(fun)(lambda *a, **k: _with(fun, a, k, statics))
            t = trace(fun, signature._replace(statics=()), user="checkpoint", call=whole)
        else:
            t = traced(fun, signature, user="checkpoint")
        if runs_in_place(t):
            with admit(fun, "checkpoint", statics=statics):
                return fun(*args, **kwargs)
        operands = [*t.consts, *leaves]
        outs = bind(remat_p, *values_of(operands), jaxpr=t.closed, **params)
        return t.out_spec.unflatten(give_back(operands, t.written, outs))

    return checkpointed


def _with(fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any], statics: Any) -> Any:
    full, named = with_statics(args, kwargs, statics)
    return fun(*full, **named)


def _reject(fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any], statics: Any) -> None:
    """Raise the error of the first argument that is no array, by name."""
    if found := first_rejected(fun, args, kwargs, statics):
        path, x, error = found
        raise TypeError(
            f"checkpoint: the argument {path} of {fun_text(fun)} is {x!r} of type {type(x)}, "
            "not a valid fnarray type. Pass arrays, or mark it static (static_argnums)."
        ) from error


remat = checkpoint


def checkpoint_name(x: Any, name: str) -> Any:
    """Return an array, or a tree of them, as values of a name that policies know."""
    return tree.map(lambda leaf: bind(name_p, as_array(leaf), name=name), x)


# ---- what is kept --------------------------------------------------------------------------------


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """Return what reverse mode keeps of a function's forward pass.

    Returns
    -------
    list of (ShapedArray, str)
        The type of each value, and where it comes from.
    """
    leaves, spec = tree.flatten_spec((args, kwargs))
    avals = tuple(abstract(x) for x in leaves)
    t = trace(f, Signature(spec, avals), user="saved_residuals")
    closed, consts = t.closed, t.consts
    active = tuple(
        k >= len(consts) and differentiable(a.dtype) for k, a in enumerate(closed.in_avals)
    )
    d = linearize_graph(closed, active)
    g = d.primal.graph.jaxpr
    given = len(d.primal.consts) + len(consts)
    texts: dict[Var, str] = dict.fromkeys(g.invars[:given], "from a constant")
    paths = argument_paths(f, args, kwargs)
    texts |= {v: f"from the argument {p}" for v, p in zip(g.invars[given:], paths, strict=True)}
    texts |= {v: _origin(eqn) for eqn in g.eqns for v in eqn.outvars}
    computed = iter(g.outvars[len(closed.out_avals) :])
    found: list[tuple[Any, str]] = []
    held: set[Var] = set()
    for r in d.residuals:
        if r is None:
            atom = next(computed)
        elif isinstance(r, int):
            atom = g.invars[len(d.primal.consts) + r]
        else:
            atom = None
            found.append((r.aval, "from a constant"))
        if isinstance(atom, Var):
            held.add(atom)
    ordered = [v for v in texts if v in held]
    return found + [(v.aval, texts[v]) for v in ordered]


def _origin(eqn: Eqn) -> str:
    name = eqn.primitive.name
    what = f"named '{eqn.params['name']}'" if name == "name" else f"output of {name}"
    if name == "jit":
        what = f"output of jitted function '{eqn.params['name']}'"
    return f"{what} from {eqn.source}"


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what reverse mode keeps of a function's forward pass, a line for each value."""
    for aval, text in saved_residuals(f, *args, **kwargs):
        print(aval.str_short(short_dtypes=True).lstrip("~"), text)  # noqa: T201
