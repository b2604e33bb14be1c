"""``jax.experimental.buffer_callback``: callbacks that write their results in place."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from fnarray import numpy as jnp
from fnarray import pure_callback, tree
from fnarray.experimental import io_callback

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(IntEnum):
    """What a callback is called for; on a CPU, to be executed."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback is told of its call."""

    stage = ExecutionStage.EXECUTE
    stream: int | None = None


_CONTEXT = ExecutionContext()


class Buffer:
    """Memory of an operand, or of a result, which is written to."""

    def __init__(self, array: np.ndarray):
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self.writeable = array.flags.writeable

    def unsafe_buffer_pointer(self) -> int:
        """Return the address."""
        return self._array.ctypes.data

    @property
    def __array_interface__(self) -> Any:
        return self._array.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """Return a function of arrays that calls ``callback(context, out, *buffers)``.

    Parameters
    ----------
    callback : callable
        Writes to the buffers of ``out``, which is one, or a tree of them.
    result_shape_dtypes : pytree of ShapeDtypeStruct
    has_side_effect : bool
        Whether each call is made, though nothing be read of it.
    vmap_method : str, optional
        As of `pure_callback`.
    input_output_aliases : dict of int to int, optional
        Numbers of results, by those of operands that they begin with.
    command_buffer_compatible : bool
        Accepted: there is none on a CPU.
    """
    aliases = input_output_aliases or {}
    structs, out_structure = tree.flatten(result_shape_dtypes)

    def on_host(ndims: list[int], *args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        arrays = [np.asarray(x).view() for x in leaves]
        for array in arrays:
            array.flags.writeable = False
        pairs = zip(arrays, ndims, strict=True)
        batch = np.broadcast_shapes(*(a.shape[: a.ndim - ndim] for a, ndim in pairs))
        outs = [np.empty((*batch, *s.shape), s.dtype) for s in structs]
        for source, to in aliases.items():
            outs[to][...] = arrays[source]
        args, kwargs = tree.unflatten(structure, map(Buffer, arrays))
        callback(_CONTEXT, tree.unflatten(out_structure, map(Buffer, outs)), *args, **kwargs)
        return tree.unflatten(out_structure, outs)

    def call(*args: Any, **kwargs: Any) -> Any:
        host = partial(on_host, list(map(jnp.ndim, tree.leaves((args, kwargs)))))
        if has_side_effect:
            return io_callback(host, result_shape_dtypes, *args, ordered=False, **kwargs)
        return pure_callback(host, result_shape_dtypes, *args, vmap_method=vmap_method, **kwargs)

    return call
