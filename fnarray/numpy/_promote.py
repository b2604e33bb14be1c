"""What happens to arguments before an operation sees them: checks, promotion, broadcasting."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..config import config
from ..core.array import Array
from ..core.dtypes import (
    bool_,
    canonicalize_dtype,
    dtype_and_weak,
    int32,
    is_bool,
    is_integer,
    is_unsigned,
    lattice_result_type,
    to_inexact,
)
from ..ops.kit.calls import convert
from ..ops.shape import broadcast_in_dim, broadcast_shapes

__all__: list[str] = []

ArrayLike = Any
Promotion = Callable[..., list[Array]]

_ARRAYLIKE = (Array, np.ndarray, np.generic, bool, int, float, complex)


def as_operand(name: str, x: Any, position: int = 0) -> Any:
    """Return an argument that counts as an array; its own ``__jax_array__`` speaks for it.

    Raises
    ------
    TypeError
        For lists, None, strings and other objects, naming the function and the position.
    """
    if isinstance(x, _ARRAYLIKE):
        return x
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    raise TypeError(
        f"numpy.{name} requires ndarray or scalar arguments, got {type(x)} at position "
        f"{position}. Convert it with fnarray.numpy.asarray."
    )


def operands(name: str, *args: Any) -> list[Any]:
    """Return arguments that count as arrays; see `as_operand`."""
    return [as_operand(name, x, i) for i, x in enumerate(args)]


def no_out(name: str, out: Any, error: type[Exception] = NotImplementedError) -> None:
    """Raise an error, of JAX's class, for an ``out`` argument: arrays are immutable."""
    if out is not None:
        raise error(
            f"The 'out' argument to jnp.{name} is not supported: out must be None, as arrays are "
            "immutable. Use the result."
        )


def promote_dtypes(*args: Any) -> list[Array]:
    """Convert arrays to the dtype they promote to, weak where all are."""
    dtype, weak = lattice_result_type([dtype_and_weak(x) for x in args])
    return [convert(x, dtype, weak) for x in args]


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """Convert arrays to the inexact dtype they promote to: integers become floats."""
    dtype, weak = lattice_result_type([dtype_and_weak(x) for x in args])
    return [convert(x, to_inexact(dtype), weak) for x in args]


def promote_dtypes_numeric(*args: Any) -> list[Array]:
    """Convert arrays to the dtype they promote to; bools become integers of 32 bits."""
    dtype, weak = lattice_result_type([dtype_and_weak(x) for x in args])
    if dtype == bool_:
        dtype = int32
    return [convert(x, dtype, weak) for x in args]


def wide_integer(dtype: np.dtype) -> np.dtype:
    """Dtype that sums of a dtype have: the default integer at least."""
    if is_bool(dtype):
        return canonicalize_dtype(int)
    if is_integer(dtype):
        default = canonicalize_dtype(np.uint64 if is_unsigned(dtype) else np.int64)
        return default if default.itemsize > dtype.itemsize else dtype
    return dtype


def promote_shapes(name: str, *args: Any) -> list[Any]:
    """Give arrays of different ranks one rank; operations stretch scalars and axes of size 1.

    Raises
    ------
    ValueError
        Ranks differ and ``numpy_rank_promotion`` is ``"raise"``.
    """
    shapes = [np.shape(x) for x in args]
    if len({len(s) for s in shapes if s}) < 2:
        return list(args)
    if config.numpy_rank_promotion != "allow":
        _tell_of_ranks(name, shapes, config.numpy_rank_promotion)
    try:
        rank = len(broadcast_shapes(*shapes))
    except ValueError as error:
        raise ValueError(f"numpy.{name}: {error}") from error
    return [x if not np.shape(x) else to_rank(x, rank) for x in args]


def _tell_of_ranks(name: str, shapes: list[tuple[int, ...]], mode: str) -> None:
    listed = " ".join(map(str, shapes))
    repair = "Insert axes with x[None] or expand_dims."
    if mode == "raise":
        # In JAX's words, which libraries' tests look for.
        raise ValueError(
            f"numpy.{name}: ranks differ. Operands could not be broadcast together for {name} on "
            f"shapes {listed} and with the config option numpy_rank_promotion='raise'. {repair}"
        )
    warnings.warn(
        f"numpy.{name}: Following NumPy automatic rank promotion for {name} on shapes {listed}, "
        f"which the config option numpy_rank_promotion={mode!r} tells of. {repair}",
        stacklevel=5,
    )


def to_rank(x: Any, rank: int) -> Any:
    """Put axes of size 1 in front, as broadcasting does."""
    shape = np.shape(x)
    extra = rank - len(shape)
    if not extra:
        return x
    return broadcast_in_dim(x, (1,) * extra + shape, tuple(range(extra, rank)))


def broadcast_to(name: str, x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast an array to a shape.

    Raises
    ------
    ValueError
        The shapes do not fit.
    """
    old = np.shape(x)
    if old == shape:
        return x
    start = len(shape) - len(old)
    if start < 0 or any(n not in (1, m) for n, m in zip(old, shape[start:], strict=True)):
        raise ValueError(
            f"numpy.{name}: an array of shape {old} cannot be broadcast to shape {shape}."
        )
    return broadcast_in_dim(x, shape, tuple(range(start, len(shape))))


def strengthen(promoted: list[Array], *given: Any) -> list[Array]:
    """Make promoted arrays strong unless all given ones are weak.

    ``float* + int32`` is weak in the lattice; functions of several steps give strong results.
    """
    if all(dtype_and_weak(x)[1] for x in given):
        return promoted
    return [convert(x, x.dtype) for x in promoted]


def promote_args(name: str, *args: Any) -> list[Array]:
    """Check, promote and align the ranks of the arguments of ``numpy.<name>``."""
    return promote_shapes(name, *promote_dtypes(*operands(name, *args)))


def promote_args_inexact(name: str, *args: Any) -> list[Array]:
    """As `promote_args`, to an inexact dtype."""
    return promote_shapes(name, *promote_dtypes_inexact(*operands(name, *args)))


def promote_args_numeric(name: str, *args: Any) -> list[Array]:
    """As `promote_args`, bools to integers."""
    return promote_shapes(name, *promote_dtypes_numeric(*operands(name, *args)))
