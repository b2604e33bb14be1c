"""``jax.experimental.serialize_executable``: compiled functions as bytes.

The bytes hold the program (`fnarray.export`'s) and the avals of its arguments; kernels come from
the cache of the process that loads them, or are compiled there.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import fnarray
from fnarray import export, tree
from fnarray.extend.core import jaxpr_as_fun
from fnarray.stages import Compiled

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """Return a compiled function's bytes, and the structures of what it takes and returns.

    Raises
    ------
    ValueError
        The function takes or holds Refs, which belong to this process.
    """
    if compiled._traced.written_refs is not None:
        raise ValueError(
            f"serialize: {compiled.fun_name} takes or holds Refs, which belong to this process. "
            "Pass their values, and return the new ones."
        )
    infos, in_tree = tree.flatten(compiled.args_info)
    avals = [(info.shape, info.dtype) for info in infos]
    structs = [fnarray.ShapeDtypeStruct(*aval) for aval in avals]
    program = export.export(fnarray.jit(jaxpr_as_fun(compiled._traced.closed)))(*structs)
    return pickle.dumps((bytes(program.serialize()), avals)), in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """Return the compiled function of `serialize`'s bytes and structures.

    The bytes are unpickled: load none that you did not write. ``backend`` and
    ``execution_devices`` are accepted; the function runs where its arguments are.
    """
    blob, avals = pickle.loads(serialized)
    program = export.deserialize(blob)
    args, kwargs = tree.unflatten(in_tree, [fnarray.ShapeDtypeStruct(*aval) for aval in avals])

    def loaded(*args: Any, **kwargs: Any) -> Any:
        return tree.unflatten(out_tree, program.call(*tree.leaves((args, kwargs))))

    return fnarray.jit(loaded).lower(*args, **kwargs).compile()
