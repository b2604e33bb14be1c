"""Looking at functions without running them, and running them without compiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ..control.signature import fun_name
from ..control.tracing import trace, traced
from ..core import tree
from ..core.array import ArrayImpl, aval_of
from ..core.avals import OverlayAval, ShapedArray, ShapeDtypeStruct
from ..core.axes import AxisTrace
from ..core.callables import is_a, named_as
from ..core.dims import is_symbolic_dim
from ..core.hooks import span
from ..core.primitive import Primitive
from ..core.ref import AbstractRef, Ref
from ..core.source import boundary, scoped
from ..core.trace import CustomCall, Trace, Tracer, bind, call_custom, tracing, within
from ..ops.kit.moves import Overlay
from .jit import PjitFunction, jit
from .stages import structs_of


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
    axis_env : sequence of (name, size), optional
        Mapped axes that collectives in ``fun`` may name.
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
    # Signatures are jit's; the trace is its own, and the graph holds what it captured.
    jitted = jit(fun, static_argnums=static_argnums)

    @named_as(fun)
    def make_graph(*args: Any, **kwargs: Any) -> Any:
        _, signature = jitted._signature_of(args, kwargs)
        axes = AxisTrace("make_jaxpr", tuple((name, size) for name, size in axis_env or ()))
        axes.outside = frozenset(map(id, _scalars_of(fun)))
        with tracing(axes):
            t = trace(fun, signature, user="make_jaxpr")
        graph = t.told(t.graph, fun)
        if return_shape:
            return graph, structs_of(t.out_spec, t.out_avals)
        return graph

    make_graph.__name__ = f"make_jaxpr({fun_name(fun)})"
    return make_graph


def _scalars_of(fun: Any) -> Iterator[ArrayImpl]:
    """Yield the arrays without axes that a function is closed over, in trees and other functions.

    They are constants of its graph, as in JAX, for whom a graph of other values is to be alike:
    an L-BFGS of Optimistix begins with a counter of 0, which later is traced.
    """
    met: set[int] = set()
    todo: list[Any] = [fun]
    while todo:
        x = todo.pop()
        if id(x) in met:
            continue
        met.add(id(x))
        kind = type(x)  # a user's ``__class__`` is not asked
        if issubclass(kind, ArrayImpl):
            if not x.aval.shape:
                yield x
        elif issubclass(kind, MethodType):
            todo += (x.__self__, x.__func__)
        elif issubclass(kind, FunctionType):
            todo += x.__defaults__ or ()
            for cell in x.__closure__ or ():
                with suppress(ValueError):  # not assigned yet
                    todo.append(cell.cell_contents)
        elif issubclass(kind, partial):
            todo += (x.func, *x.args, *x.keywords.values())
        elif not issubclass(kind, (type, ModuleType)):
            leaves = tree.leaves(x)
            todo += leaves if len(leaves) != 1 or leaves[0] is not x else ()


@boundary
def eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of ``fun(*args, **kwargs)``, computed by tracing alone.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        Arrays or `ShapeDtypeStruct` stand-ins, in containers. Their sizes may be symbolic (see
        `export.symbolic_shape`): those of the results are then formulas of them.

    Returns
    -------
    pytree of ShapeDtypeStruct
    """
    if any(
        is_symbolic_dim(d) for x in tree.leaves((args, kwargs)) for d in getattr(x, "shape", ())
    ):
        from .symbolic_shapes import symbolic_shapes

        return symbolic_shapes(fun if is_a(fun, PjitFunction) else jit(fun), args, kwargs)
    if is_a(fun, PjitFunction):
        return fun.eval_shape(*args, **kwargs)
    _, signature = jit(fun)._signature_of(args, kwargs)
    t = traced(fun, signature, user="eval_shape")
    return structs_of(t.out_spec, t.out_avals)


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Return ``fun`` running under `named_scope` of ``name``, by default its own name."""
    scope = fun_name(fun) if name is None else name
    return named_scope(scope)(fun)


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Label a region of a program, as a context manager or decorator.

    Labels are for readers: graphs are folded by them (`fnarray.explain`), and a profile shows what
    runs op by op under them (`fnarray.profiler`). Results do not depend on them.

    Raises
    ------
    TypeError
        ``name`` is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: name must be a string, got {name!r} of type {type(name)}.")
    with scoped(name), span("scope", name):
        yield


class _EagerTrace(Trace):
    """Evaluates what no tracer is an operand of, and passes on what one is."""

    def _where(self, args: Sequence[Any]) -> within:
        return within(self.parent if any(isinstance(x, Tracer) for x in args) else None)

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation."""
        with self._where(args):
            return bind(prim, *args, **params)

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Call a function that has a derivative of its own."""
        with self._where(args):
            return call_custom(call, args)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations of known values at once, inside a traced function too.

    Those of which an operand is a tracer are traced as ever.
    """
    with tracing(_EagerTrace("ensure_compile_time_eval")):
        yield


def typeof(x: Any) -> ShapedArray | OverlayAval | AbstractRef:
    """Return what tracing knows of a value: shape, dtype and weak type.

    Raises
    ------
    TypeError
        ``x`` is no array and no number.
    """
    if isinstance(x, Ref):
        return x.aval
    if isinstance(x, ShapeDtypeStruct) and x.sharding is not None:
        return ShapedArray(x.shape, x.dtype, x.weak_type, sharding=x.sharding)
    return x.kind if isinstance(x, Overlay) else aval_of(x)
