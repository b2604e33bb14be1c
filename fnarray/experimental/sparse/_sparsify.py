"""Functions of dense arrays applied to sparse ones, operation by operation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ... import lax
from ... import numpy as jnp
from ...api.tracing import make_jaxpr
from ...core import tree
from ...core.avals import ShapeDtypeStruct
from ...core.graph import ClosedGraph, Literal, eval_graph
from ...core.trace import bind
from . import _linear as linear
from . import _shape as shape
from ._array import SparseArray
from ._bcoo import (
    BCOO,
    bcoo_fromdense,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    bcoo_update_layout,
)
from ._bcsr import BCSR
from ._convolution import bcoo_conv_general_dilated

__all__ = ["sparsify"]

#: Operations that give 0 for 0: on elements stored once, they work on the data.
_KEEP_ZERO = [
    "abs",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "conj",
    "expm1",
    "floor",
    "imag",
    "log1p",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "erf",
    "erf_inv",
    "square",
]
#: Those that are linear besides: duplicates stay.
_LINEAR = ("neg", "real", "copy", "copy_p", "convert_element_type", "reduce_precision",
           "stop_gradient")  # fmt: skip
#: Operations that hold one graph, by the name of its param.
_CALLS = {
    "jit": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
}


def is_sparse(x: Any) -> bool:
    """Whether a leaf of arguments is a sparse array."""
    return isinstance(x, SparseArray)


def as_bcoo(x: Any) -> Any:
    """Return a sparse array of any kind as a BCOO, others as they are."""
    return x.to_bcoo() if is_sparse(x) and not isinstance(x, BCOO) else x


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function of sparse arrays that does what ``f`` does to dense ones.

    Parameters
    ----------
    f : callable
        A function on arrays; it is traced with dense ones of the same shapes.
    use_tracer : bool
        Accepted; there is one way.

    Returns
    -------
    callable
        Its results are sparse where the operations that made them have sparse results.

    Raises
    ------
    NotImplementedError
        By the function: an operation on a sparse array that has no rule, named.
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs), is_sparse)
        ours = [as_bcoo(x) for x in leaves]
        shown = [ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x for x in ours]
        arrays = [k for k, x in enumerate(shown) if is_sparse(ours[k]) or _is_array(x)]
        out: list[Any] = []

        def dense(*given: Any) -> Any:
            filled = list(shown)
            for k, x in zip(arrays, given, strict=True):
                filled[k] = x
            args, kwargs = tree.unflatten(structure, filled)
            leaves, spec = tree.flatten(f(*args, **kwargs))
            out[:] = [spec]
            return leaves

        closed = make_jaxpr(dense)(*(shown[k] for k in arrays))
        found = evaluate(closed, [ours[k] for k in arrays])
        return tree.unflatten(out[0], found)

    return wrapped


def _is_array(x: Any) -> bool:
    return hasattr(x, "dtype") or isinstance(x, int | float | complex)


def evaluate(closed: ClosedGraph, args: Sequence[Any]) -> list[Any]:
    """Run a graph on arrays of which some are sparse."""
    return eval_graph(closed.jaxpr, closed.consts, args, _apply)


def _apply(prim: Any, *operands: Any, **params: Any) -> Any:
    if not any(map(is_sparse, operands)):
        return bind(prim, *operands, **params)
    operands = tuple(x.array() if isinstance(x, Literal) else x for x in operands)
    name = prim.name
    if name in _CALLS:
        return evaluate(params[_CALLS[name]], operands)
    rule = _RULES.get(name)
    if rule is not None:
        return rule(*operands, **params)
    if name in _LINEAR or name in _KEEP_ZERO:
        (mat,) = operands
        if name in _KEEP_ZERO and not mat.unique_indices:
            mat = bcoo_sum_duplicates(mat, nse=mat.nse)
        return mat._with(bind(prim, mat.data, **params))
    raise NotImplementedError(
        f"sparsify: there is no sparse rule for {name!r}. Make the operand dense before: "
        "M.todense()."
    )


# ---- rules ---------------------------------------------------------------------------------------


def multiply(x: Any, y: Any) -> Any:
    """Multiply two arrays of which one or both are sparse."""
    if is_sparse(x) and is_sparse(y):
        if x.indices is y.indices and x.unique_indices:
            return x._with(x.data * y.data)
        return linear.bcoo_multiply_sparse(x, y)
    mat, dense = (x, y) if is_sparse(x) else (y, x)
    if not jnp.ndim(dense):
        return mat._with(mat.data * dense)
    return mat._with(linear.bcoo_multiply_dense(mat, dense))


def divide(x: Any, y: Any) -> Any:
    """Divide a sparse array by a dense one."""
    if is_sparse(y):
        raise NotImplementedError("sparsify: division by a sparse array divides by zeros.")
    if not jnp.ndim(y):
        return x._with(x.data / y)
    return x._with(x.data / linear.bcoo_multiply_dense(x._with(jnp.ones_like(x.data)), y))


def add(x: Any, y: Any) -> Any:
    """Add two arrays; sparse where both are."""
    if not (is_sparse(x) and is_sparse(y)):
        return linear.dense_of(x) + linear.dense_of(y)
    if x.indices is y.indices:
        return x._with(x.data + y.data)
    if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
        x, y = (
            bcoo_update_layout(
                m, n_batch=min(x.n_batch, y.n_batch), n_dense=min(x.n_dense, y.n_dense)
            )
            for m in (x, y)
        )
    b = x.n_batch
    dtype = jnp.promote_types(x.dtype, y.dtype)
    data = jnp.concatenate([x.data.astype(dtype), y.data.astype(dtype)], b)
    return BCOO((data, jnp.concatenate([x.indices, y.indices], b)), shape=x.shape)


def subtract(x: Any, y: Any) -> Any:
    """Subtract two arrays; sparse where both are."""
    return add(x, y._with(-y.data) if is_sparse(y) else -y)


def power(x: BCOO, y: int) -> BCOO:
    """Raise elements to a positive power."""
    if y <= 0:
        raise NotImplementedError(f"sparsify: zeros to the power {y} are no zeros.")
    x = x if x.unique_indices else bcoo_sum_duplicates(x, nse=x.nse)
    return x._with(lax.integer_pow(x.data, y))


def _scan(*operands: Any, jaxpr: Any, length: int, num_carry: int, num_consts: int, reverse: bool,
          unroll: Any) -> list[Any]:  # fmt: skip
    consts, rest = operands[:num_consts], operands[num_consts:]
    init, xs = list(rest[:num_carry]), list(rest[num_carry:])

    def body(carry: Any, x: Any) -> Any:
        outs = evaluate(jaxpr, [*consts, *carry, *x])
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(body, init, xs, length, reverse)
    return [*carry, *ys]


def _while(*operands: Any, cond_nconsts: int, cond_jaxpr: Any, body_nconsts: int,
           body_jaxpr: Any) -> list[Any]:  # fmt: skip
    first = operands[:cond_nconsts]
    second = operands[cond_nconsts : cond_nconsts + body_nconsts]
    init = list(operands[cond_nconsts + body_nconsts :])
    return lax.while_loop(
        lambda c: evaluate(cond_jaxpr, [*first, *c])[0],
        lambda c: evaluate(body_jaxpr, [*second, *c]),
        init,
    )


def _cond(index: Any, *operands: Any, branches: Any) -> list[Any]:
    runs = [functools.partial(lambda b, *xs: evaluate(b, xs), branch) for branch in branches]
    return lax.switch(index, runs, *operands)


def _dynamic_slice(mat: Any, *starts: Any, slice_sizes: Any, **_: Any) -> Any:
    return shape.bcoo_dynamic_slice(mat, starts, slice_sizes)


def _convolution(x: Any, y: Any, *, out_sharding: Any = None, **params: Any) -> Any:
    x, y = (m if is_sparse(m) else bcoo_fromdense(m, nse=m.size) for m in (x, y))
    return bcoo_conv_general_dilated(x, y, **params)


_RULES: dict[str, Callable[..., Any]] = {
    "mul": multiply,
    "div": divide,
    "add": add,
    "add_any": add,
    "sub": subtract,
    "integer_pow": power,
    "dot_general": lambda x, y, *, dimension_numbers, **_: linear.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers
    ),
    "transpose": lambda x, *, permutation: bcoo_transpose(x, permutation=permutation),
    "reduce_sum": lambda x, *, axes, **_: _whole(linear.bcoo_reduce_sum(x, axes=axes)),
    "broadcast_in_dim": lambda x, **params: shape.bcoo_broadcast_in_dim(
        x, shape=params["shape"], broadcast_dimensions=params["broadcast_dimensions"]
    ),
    "reshape": lambda x, *, new_sizes, **_: shape.bcoo_reshape(x, new_sizes=new_sizes),
    "squeeze": lambda x, *, dimensions: shape.bcoo_squeeze(x, dimensions=dimensions),
    "slice": lambda x, *, start_indices, limit_indices, strides: shape.bcoo_slice(
        x, start_indices=start_indices, limit_indices=limit_indices, strides=strides
    ),
    "dynamic_slice": _dynamic_slice,
    "gather": lambda x, at, **params: shape.bcoo_gather(x, at, **params),
    "rev": lambda x, *, dimensions: shape.bcoo_rev(x, dimensions),
    "concatenate": lambda *xs, dimension: (
        shape.bcoo_concatenate(xs, dimension=dimension)
        if all(map(is_sparse, xs))
        else jnp.concatenate([linear.dense_of(x) for x in xs], dimension)
    ),
    "conv_general_dilated": _convolution,
    "scan": _scan,
    "while": _while,
    "cond": _cond,
}


def todense(x: Any) -> Any:
    """Return a sparse array as a dense one, others as they are."""
    return bcoo_todense(x) if isinstance(x, BCOO) else x.todense() if is_sparse(x) else x


# ---- operators -----------------------------------------------------------------------------------


def _lifted(name: str, fun: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        rows = isinstance(self, BCSR)
        ours = [x.to_bcoo() if isinstance(x, BCSR) else _operand(x) for x in (self, *args)]
        out = fun(*ours)
        return BCSR.from_bcoo(out) if rows and isinstance(out, BCOO) else out

    method.__name__ = name
    return method


def _operand(x: Any) -> Any:
    return x if is_sparse(x) or isinstance(x, int | float | complex) else jnp.asarray(x)


def _stretched(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Broadcast sparse operands of different shapes before."""

    def stretched(x: Any, y: Any) -> Any:
        if is_sparse(x) and is_sparse(y) and x.shape != y.shape:
            sizes = lax.broadcast_shapes(x.shape, y.shape)
            x, y = (_to_shape(m, sizes) for m in (x, y))
        return fun(x, y)

    return stretched


def _to_shape(mat: BCOO, sizes: tuple[int, ...]) -> BCOO:
    if mat.shape == sizes:
        return mat
    places = range(len(sizes) - mat.ndim, len(sizes))
    return shape.bcoo_broadcast_in_dim(mat, shape=sizes, broadcast_dimensions=tuple(places))


def _sum(self: Any, axis: Any = None) -> Any:
    axes = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    mat = self.to_bcoo() if isinstance(self, BCSR) else self
    return _whole(linear.bcoo_reduce_sum(mat, axes=tuple(axes)))


def _whole(mat: BCOO) -> Any:
    """Return a sparse number as a number."""
    return mat if mat.shape else bcoo_todense(mat)


def _reshape(self: Any, *sizes: Any, **_: Any) -> Any:
    self = self.to_bcoo() if isinstance(self, BCSR) else self
    new = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return shape.bcoo_reshape(self, new_sizes=tuple(new))


def _getitem(self: Any, index: Any) -> Any:
    return sparsify(lambda x: x[index])(self)


_METHODS = {
    "__neg__": lambda x: x._with(-x.data),
    "__abs__": lambda x: _apply_named("abs", x),
    "__pos__": lambda x: x,
    "__matmul__": linear.matmul,
    "__rmatmul__": lambda x, y: linear.matmul(y, x),
    "__mul__": _stretched(multiply),
    "__rmul__": _stretched(multiply),
    "__truediv__": _stretched(divide),
    "__add__": _stretched(add),
    "__radd__": _stretched(add),
    "__sub__": _stretched(subtract),
    "__rsub__": lambda x, y: subtract(y, x),
    "__pow__": power,
    "sum": _sum,
    "reshape": _reshape,
    "__getitem__": _getitem,
}


def _apply_named(name: str, x: Any) -> Any:
    return sparsify(getattr(lax, name))(x)


for _name, _fun in _METHODS.items():
    _method = _lifted(_name, _fun) if _name not in ("sum", "reshape", "__getitem__") else _fun
    for _cls in (BCOO, BCSR):
        setattr(_cls, _name, _method)
