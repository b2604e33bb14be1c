"""Decorators and functions that declare operations of common shapes.

A decorated function is the operation's face: its name, signature and docstring. The decorator
makes the `Primitive` record (kept as ``face.primitive`` and in `registry`) and gives the face its
body, which binds the primitive.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Protocol, cast

import numpy as np

from ...core.array import Array
from ...core.avals import ShapedArray
from ...core.forms import HOST, Inline, Library, Map, Reduce, Reindex, on_host
from ...core.primitive import Primitive, Rule
from ...core.source import UNKNOWN, located
from ...core.trace import bind, no_trace, trace_graph
from .checks import ANY, NUMBER, all_weak, broadcast_avals, check_kind, check_same_dtypes, kind
from .registry import register
from .rules import ELEMENTWISE_BATCH, NOT_LINEAR, one_more_axis, shifted

#: Batching of a reduction: its axes are one further.
_ALONG_AXES = one_more_axis(axes=shifted)
#: The cost of a function, as ``exp`` is one, in additions; and of a complex function, in real ones:
#: exponentials take 7.5 times as long, tangents 13, logarithms 16, sines 5.
DEAR, COMPLEX = 8, 6


class Face(Protocol):
    """The public function of a primitive."""

    primitive: Primitive

    def __call__(self, *args: Any, **kwargs: Any) -> Array:
        """Apply the primitive."""
        ...


def face_of(prim: Primitive, signature_from: Callable[..., Any]) -> Face:
    """Return the public function that binds a primitive of array operands only."""
    arity = len(inspect.signature(signature_from).parameters)
    if arity == 1:

        @wraps(signature_from)
        def unary(x: Any) -> Any:
            return bind(prim, x)

        face: Any = unary
    elif arity == 2:

        @wraps(signature_from)
        def binary(x: Any, y: Any) -> Any:
            return bind(prim, x, y)

        face = binary
    else:

        @wraps(signature_from)
        def several(*args: Any) -> Any:
            if len(args) != arity:
                raise TypeError(f"{prim.name}() takes {arity} arrays, got {len(args)}")
            return bind(prim, *args)

        face = several
    face.primitive = prim
    return face


def elementwise(
    template: str | dict[str, str] | Callable[[np.dtype], str],
    *,
    eval: Callable[..., Any],
    dtypes: str = ANY,
    result: Any = None,
    same_dtypes: bool = True,
    cost: int = 1,
    exact: bool = True,
    jvp: Rule,
    transpose: Rule = NOT_LINEAR,
    batch: Rule = ELEMENTWISE_BATCH,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Face]:
    """Declare an operation that acts on each element alone.

    Parameters
    ----------
    template : str, dict or callable
        Expression of the result (see ``core.forms``); by dtype kind (``{"f": ..., "iu": ...}``,
        keys are strings of kinds), or a function of the first operand's dtype.
    eval : callable
        NumPy evaluation on broadcastable arrays.
    dtypes : str
        Kinds of operands it takes.
    result : dtype or callable, optional
        Dtype of the result, or a function of the first operand's; the operands' where omitted.
    same_dtypes : bool
        Whether operands must have one dtype.
    cost : int
        In additions; `DEAR` or more for functions that cost as much as ``exp``.
    exact : bool
        As of `Map`.
    """

    def declare(signature: Callable[..., Any]) -> Face:
        label = name or signature.__name__

        def aval(*avals: ShapedArray, **params: Any) -> ShapedArray:
            if same_dtypes and avals[1:]:
                check_same_dtypes(label, avals)
            dtype = avals[0].dtype
            check_kind(label, dtype, dtypes)
            out = dtype if result is None else result(dtype) if callable(result) else result
            weak = all_weak(avals) and out != np.bool_
            return ShapedArray(broadcast_avals(label, avals), out, weak)

        def form(ins: tuple[ShapedArray, ...], outs: Any, **params: Any) -> Map:
            dtype = ins[0].dtype
            if callable(template):
                text = template(dtype)
            elif isinstance(template, dict):
                text = next(t for kinds, t in template.items() if kind(dtype) in kinds)
            else:
                text = template
            dear = cost >= DEAR and kind(dtype) == "c"
            return Map(text, cost * COMPLEX if dear else cost, exact)

        prim = register(
            Primitive(
                label, aval=aval, eval=eval, form=form, jvp=jvp, transpose=transpose, batch=batch
            )
        )
        return face_of(prim, signature)

    return declare


def reindexing(
    name: str,
    *,
    shape: Callable[..., tuple[int, ...]],
    index: Callable[..., tuple[Any, ...]],
    eval: Callable[..., Any],
    jvp: Rule,
    transpose: Rule,
    batch: Rule,
    print_params: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Primitive:
    """Declare a primitive whose result is its one operand's elements at other places.

    Parameters
    ----------
    shape : callable
        ``shape(in_shape, **params) -> shape`` of the result; raises the errors.
    index : callable
        ``index(i, in_shape, **params) -> indices`` of the operand for the result's index ``i``.
    eval : callable
        NumPy evaluation.
    """

    def aval(x: ShapedArray, **params: Any) -> ShapedArray:
        return ShapedArray(shape(x.shape, **params), x.dtype, x.weak_type)

    def form(ins: tuple[ShapedArray, ...], outs: Any, **params: Any) -> Reindex:
        in_shape = ins[0].shape
        return Reindex(lambda i, read: index(i, in_shape, **params))

    return register(
        Primitive(
            name,
            aval=aval,
            eval=eval,
            form=form,
            jvp=jvp,
            transpose=transpose,
            batch=batch,
            print_params=print_params,
        )
    )


def without_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape less some axes."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def place_axes(
    axes: tuple[int, ...], reduced: tuple[Any, ...], kept: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Interleave: ``reduced`` at positions ``axes``, ``kept`` at the others, in order."""
    r, k = iter(reduced), iter(kept)
    return tuple(next(r) if i in axes else next(k) for i in range(len(reduced) + len(kept)))


def reduction(
    combine: str | dict[str, str],
    *,
    eval: Callable[..., Any],
    start: Callable[[np.dtype], Any],
    accumulator: Callable[[np.dtype], np.dtype] = lambda dtype: dtype,
    in_order: str | dict[str, str] | None = None,
    dtypes: str = NUMBER,
    jvp: Rule,
    transpose: Rule = NOT_LINEAR,
    batch: Rule = _ALONG_AXES,
    print_params: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Callable[[Callable[..., Any]], Face]:
    """Declare a reduction of one operand along ``axes``.

    Parameters
    ----------
    combine : str or dict by kinds
        New accumulator, over ``{a0}`` and ``{x0}``.
    start : callable
        ``start(dtype)`` is the accumulator's start, the result over no elements.
    accumulator : callable
        ``accumulator(dtype)`` is the accumulator's dtype; the operand's where omitted.
    in_order : str or dict by kinds, optional
        ``combine`` where terms are to be taken from first to last, if that leaves the order open.
    """

    def declare(signature: Callable[..., Any]) -> Face:
        label = signature.__name__

        def aval(x: ShapedArray, *, axes: tuple[int, ...], **params: Any) -> ShapedArray:
            check_kind(label, x.dtype, dtypes)
            _check_axes(label, x, axes)
            return ShapedArray(without_axes(x.shape, axes), x.dtype, x.weak_type)

        def form(
            ins: tuple[ShapedArray, ...], outs: Any, *, axes: tuple[int, ...], **params: Any
        ) -> Reduce | Reindex:
            x, wide = ins[0], accumulator(ins[0].dtype)
            if axes and all(x.shape[a] == 1 for a in axes):  # of one number each: it itself
                return Reindex(lambda i, read: place_axes(axes, (0,) * len(axes), i))
            return Reduce(
                extents=tuple(x.shape[a] for a in axes),
                index=(lambda o, r: place_axes(axes, r, o),),
                inits=(start(x.dtype),),
                combine=(_spelled(combine, x.dtype),),
                dtypes=None if wide == x.dtype else (wide,),
                axes=axes,
                in_order=None if in_order is None else (_spelled(in_order, x.dtype),),
            )

        prim = register(
            Primitive(
                label,
                aval=aval,
                eval=eval,
                form=form,
                jvp=jvp,
                transpose=transpose,
                batch=batch,
                print_params=print_params,
            )
        )

        @wraps(signature)
        def reduce(x: Any, axes: Any) -> Any:
            return bind(prim, x, axes=tuple(sorted(int(a) for a in axes)))

        face = cast("Face", reduce)
        face.primitive = prim
        return face

    return declare


def _spelled(text: str | dict[str, str], dtype: np.dtype) -> str:
    """Return the text for a dtype of one that may differ by kind."""
    if isinstance(text, dict):
        return next(t for kinds, t in text.items() if kind(dtype) in kinds)
    return text


def _check_axes(label: str, x: ShapedArray, axes: tuple[int, ...]) -> None:
    if any(not 0 <= a < x.ndim for a in axes) or len(set(axes)) != len(axes):
        raise ValueError(
            f"lax.{label}: axes must be distinct and within the {x.ndim} axes of shape "
            f"{x.shape}, got {axes}."
        )


def kernel_call(
    name: str,
    *,
    aval: Callable[..., Any],
    eval: Callable[..., Any],
    call: Callable[..., Library | Inline],
    multiple_results: bool = False,
    jvp: Rule,
    transpose: Rule = NOT_LINEAR,
    batch: Rule,
    print_params: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Primitive:
    """Declare a primitive that runs as one whole-array step (see `core.forms.Library`)."""
    hosted = on_host(name)

    def form(*args: Any, **params: Any) -> Library | Inline:
        found = call(*args, **params)
        return hosted if found is HOST else found

    return register(
        Primitive(
            name,
            aval=aval,
            eval=eval,
            form=form,
            multiple_results=multiple_results,
            jvp=jvp,
            transpose=transpose,
            batch=batch,
            print_params=print_params,
        )
    )


def inlined(fun: Callable[..., Any], many: bool = False) -> Callable[..., Inline]:
    """Return the form of an operation that ``fun`` composes of others."""

    @lru_cache(maxsize=1024)
    def graph(ins: tuple[ShapedArray, ...], params: tuple[tuple[str, Any], ...]) -> Inline:
        def flat(*xs: Any) -> Any:
            out = fun(*xs, **dict(params))
            return out if many else (out,)

        with no_trace(), located(UNKNOWN):  # a graph for all who call it, from wherever
            return Inline(trace_graph(flat, ins, fun.__name__.lstrip("_")))

    def form(ins: Any, outs: Any, **params: Any) -> Inline:
        return graph(tuple(ins), tuple(params.items()))

    return form
