"""Looking at functions without running them, and running them without compiling."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..control import call as calls
from ..control.call import abstract, argument_paths, fun_name, fun_text
from ..core import tree
from ..core.array import aval_of
from ..core.avals import ShapedArray
from ..core.graph import ClosedGraph
from ..core.trace import no_trace, trace_graph
from .jit import Jitted, jit
from .stages import struct_of


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Return a function that gives the graph of ``fun`` for given arguments.

    Parameters
    ----------
    fun : callable
    static_argnums : int or sequence of int
        As in `jit`.
    axis_env : None
        Accepted for compatibility.
    return_shape : bool
        Whether to return the result's shapes and dtypes too, as `ShapeDtypeStruct` leaves.

    Returns
    -------
    callable
        Takes what ``fun`` takes, or `ShapeDtypeStruct` stand-ins; returns a `ClosedGraph`, which
        prints in JAX's notation.

    Raises
    ------
    TypeError
        ``fun`` is not callable.
    """
    if not callable(fun):
        raise TypeError(f"make_jaxpr: the first argument must be callable, got {fun!r}.")
    # The checks and splitting of static arguments are jit's; the trace is its own, unlike jit's
    # closed over what it captured.
    splitter = jit(fun, static_argnums=static_argnums)

    @functools.wraps(fun)
    def make_graph(*args: Any, **kwargs: Any) -> Any:
        dyn, dyn_kw, statics = splitter._split(args, kwargs)
        leaves, spec = tree.flatten_spec((dyn, dyn_kw))
        avals = splitter._avals(leaves, args, kwargs)
        graph, out_spec = _trace(fun, spec, avals, statics, "make_jaxpr")
        if return_shape:
            return graph, out_spec.unflatten([struct_of(a) for a in graph.out_avals])
        return graph

    make_graph.__name__ = f"make_jaxpr({fun_name(fun)})"
    return make_graph


def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of ``fun(*args, **kwargs)``, computed by tracing alone.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        Arrays or `ShapeDtypeStruct` stand-ins, in containers.

    Returns
    -------
    pytree of ShapeDtypeStruct
    """
    wrapped = fun if isinstance(fun, Jitted) else jit(fun)
    return wrapped.eval_shape(*args, **kwargs)
