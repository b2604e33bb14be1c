"""Primitives that JAX's graphs have and no graph here: libraries key rules of their own by them."""

from __future__ import annotations

from typing import Any

from ..core.primitive import Missing, Primitive

__all__: list[str] = []

_WHY = {
    "it is no operation of its own: rng_uniform calls the host": "rng_uniform",
    "they are no operations: the functions of these names are there": """
        after_all create_token dce_sink ragged_all_to_all
    """,
    "all devices share memory: it is no operation": "device_put",
    "windows are selected by reduce_window and its derivative": "select_and_scatter",
    "jit is the only stage": "stage",
}


def _only_named(name: str, why: str) -> Primitive:
    def refuse(*args: Any, **params: Any) -> Any:
        raise TypeError(f"lax.{name}_p stands for JAX's operation, and cannot be applied: {why}.")

    rules = dict.fromkeys(("jvp", "transpose", "batch"), Missing(why))
    return Primitive(name, aval=refuse, eval=refuse, form=Missing(why), **rules)


#: By name, without the ``_p``.
foreign = {name: _only_named(name, why) for why, names in _WHY.items() for name in names.split()}
