"""``jax._src.numpy.util``: arguments as arrays, of one dtype or of one rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnarray.core.array import Array
from fnarray.core.dtypes import dtype_and_weak, to_complex
from fnarray.core.dtypes import lattice_result_type as _lattice_result_type
from fnarray.numpy._promote import operands as _operands
from fnarray.numpy._promote import promote_args as promote_args
from fnarray.numpy._promote import promote_args_inexact as promote_args_inexact
from fnarray.numpy._promote import promote_args_numeric as promote_args_numeric
from fnarray.numpy._promote import promote_dtypes as promote_dtypes
from fnarray.numpy._promote import promote_dtypes_inexact as promote_dtypes_inexact
from fnarray.numpy._promote import promote_dtypes_numeric as promote_dtypes_numeric
from fnarray.numpy._promote import promote_shapes as promote_shapes
from fnarray.ops.kit.calls import convert
from fnarray.ops.kit.canonical import as_array


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """Convert arrays to the complex dtype they promote to."""
    dtype, weak = _lattice_result_type([dtype_and_weak(x) for x in args])
    return [convert(x, to_complex(dtype), weak) for x in args]


def check_arraylike(
    fun_name: str, *args: Any, emit_warning: bool = False, stacklevel: int = 3
) -> None:
    """Raise `TypeError` for an argument that does not count as an array."""
    del emit_warning, stacklevel  # lists are refused, as jax refuses them now
    _operands(f"{fun_name}", *args)


def ensure_arraylike_tuple(fun_name: str, tup: Sequence[Any]) -> tuple[Array, ...]:
    """Return arguments that count as arrays, as arrays; raise `TypeError` for others."""
    return tuple(as_array(x) for x in _operands(fun_name, *tup))


def ensure_arraylike(fun_name: str, /, *args: Any) -> Any:
    """Return arguments that count as arrays, as arrays: one, or a tuple of several."""
    arrays = ensure_arraylike_tuple(fun_name, args)
    return arrays[0] if len(arrays) == 1 else arrays
